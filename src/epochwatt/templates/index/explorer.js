// The explorer of the landing page. Data: pages/explorer.py. Charts: Vega-Lite, in the page.
// Fronts are those of analysis/pareto.py, intervals those of analysis/compare.py; tests compare them.
"use strict";
(() => {
  const section = document.getElementById("explorer");
  const holder = document.getElementById("explorer-data");
  if (!section || !holder) return;
  const data = JSON.parse(holder.textContent);
  const $ = (id) => document.getElementById(id);
  const make = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);

  // -- rows and words ---------------------------------------------------------------------------
  const names = Object.keys(data.runs);
  const rows = (data.runs.run ?? []).map((_, n) => Object.fromEntries(names.map((name) => [name, data.runs[name][n]])));
  const place = new Map(rows.map((row, n) => [row.run, n]));
  const KINDS = {
    measured: "measured",
    imported: "imported logs, not measured here",
    simulated: "simulated, not measured",
    fake: "fake board, not measured",
  };
  const SHORT = { measured: "measured", imported: "imported", simulated: "simulated", fake: "fake board" };
  const word = (name) => data.columns[name]?.label ?? name.replaceAll("_", " ");
  const unit = (name) => { const u = data.columns[name]?.unit ?? ""; return u === "samples" ? "" : u; };
  const axisTitle = (name) => word(name) + (unit(name) ? ` (${unit(name)})` : "");
  const QUANTITIES = names.filter((name) => rows.some((row) => typeof row[name] === "number"));
  const FACTORS = data.factors.filter((name) => name in data.runs);
  const CLOCKS = data.clocks;
  const varies = (name, among = rows) => new Set(among.map((row) => row[name])).size > 1;
  const titled = (name, value) => {
    if (value === null || value === undefined || value === "") return "–";
    if (name === "kind") return SHORT[value] ?? value;
    if (name === "device" || name === "model") return data.titles[value] ?? value;
    if (value === "asis") return "as is"; // a mode: as the machine was found
    return String(value);
  };
  // four figures, as `epochwatt compare` prints; a large number in full
  const number = (value) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    return Math.abs(value) >= 9999.5 ? value.toFixed(0) : String(Number(value.toPrecision(4)));
  };
  const quantity = (name, value) => number(value) + (value === null || !unit(name) ? "" : ` ${unit(name)}`);
  const phrase = (name, value) => (name in data.settings
    ? data.settings[name].replace("{}", titled(name, value)).replace(/^1 (worker|torch thread|epoch)s/, "1 $1")
    : `${word(name)} ${titled(name, value)}`);

  // -- numbers: as analysis/pareto.py and analysis/compare.py -----------------------------------
  // Places that none beats in both costs, ascending in the first; of equal ones the first counts.
  function front(first, second) {
    const order = first.map((_, n) => n).sort((a, b) => first[a] - first[b] || second[a] - second[b] || a - b);
    let least = Infinity;
    return order.filter((n) => { const better = second[n] < least; least = Math.min(least, second[n]); return better; });
  }
  // The best within a budget: least `goal` where `cost` <= limit, then least cost; -1: there is none.
  function best(cost, goal, limit) {
    const inside = cost.map((_, n) => n).filter((n) => cost[n] <= limit);
    return inside.sort((a, b) => goal[a] - goal[b] || cost[a] - cost[b] || a - b)[0] ?? -1;
  }
  // Energy, Wh, with what draws power besides, W: as sweeps/other_power.py.
  const PACED = 0.95; // of a deadline, from which on a mode just meets it
  const counted = (row, rest, idle, deadline) => row.energy_wh
    + (idle ? idle * (deadline - row.e2e_s) + rest * deadline : rest * row.e2e_s) / 3600;
  const LANCZOS = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];
  function logGamma(x) {
    if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
    const t = x + 6.5;
    const sum = LANCZOS.reduce((total, c, n) => total + (n ? c / (x - 1 + n) : c), 0);
    return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
  }
  function incompleteBeta(a, b, x) { // regularised; continued fraction by Lentz
    if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
    if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(b, a, 1 - x);
    const scale = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
    const tiny = (v) => (Math.abs(v) < 1e-300 ? 1e-300 : v);
    let c = 1, d = 1 / tiny(1 - ((a + b) * x) / (a + 1)), h = d;
    for (let m = 1; m < 1000; m += 1) {
      for (const step of [(m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
        (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1))]) {
        d = 1 / tiny(1 + step * d); c = tiny(1 + step / c); h *= d * c;
      }
      if (Math.abs(d * c - 1) < 1e-15) break;
    }
    return (scale * h) / a;
  }
  // Student's t: the value below which a share of 0.975 lies
  function studentT(freedom) {
    const outside = (t) => incompleteBeta(freedom / 2, 0.5, freedom / (freedom + t * t));
    let low = 0, high = 2;
    while (outside(high) > 0.05) high *= 2;
    for (let n = 0; n < 200 && high - low > 1e-14 * high; n += 1) {
      const middle = (low + high) / 2;
      if (outside(middle) > 0.05) low = middle; else high = middle;
    }
    return (low + high) / 2;
  }
  // Ratio of two means with Welch's interval on its logarithm; sides: n, mean, variance
  function ratio(a, b) {
    const parts = [a, b].map((s) => s.variance / (s.n * s.mean ** 2));
    const value = b.mean / a.mean, total = parts[0] + parts[1];
    if (total === 0) return { value, low: value, high: value };
    const freedom = total ** 2 / (parts[0] ** 2 / (a.n - 1) + parts[1] ** 2 / (b.n - 1));
    const half = studentT(freedom) * Math.sqrt(total);
    return { value, low: value * Math.exp(-half), high: value * Math.exp(half) };
  }
  function verdict(low, high, margin) {
    if (low >= 1 / (1 + margin) && high <= 1 + margin) return "equivalent";
    return low > 1 + margin || high < 1 / (1 + margin) ? "different" : "not enough epochs";
  }
  const side = (part, n) => Object.fromEntries(Object.entries(data.compared[part]).map(([name, column]) => [name, column[n]]));
  function compared(one, other, part, margin) {
    const [a, b, e2eA, e2eB] = [side(part, one), side(part, other), side("e2e", one), side("e2e", other)];
    const out = { part, a: a.mean, b: b.mean, nA: a.n, nB: b.n, ratio: null, low: null, high: null, verdict: "not comparable", reason: "" };
    if (!e2eA.n || !e2eB.n) return { ...out, verdict: "not enough epochs", reason: "no valid epoch after the first" };
    const [scopeA, scopeB] = [rows[one].power_scope, rows[other].power_scope];
    if (["energy", "power"].includes(part) && scopeA && scopeB && scopeA !== scopeB) {
      return { ...out, reason: `${part} of ${scopeA} against ${scopeB}` };
    }
    for (const [name, s] of [["A", a], ["B", b]]) {
      if (!s.n) return { ...out, reason: `no value in ${name}` };
      if (s.mean <= 0) return { ...out, reason: `not above 0 in ${name}` };
    }
    if (Math.min(a.n, b.n) < 2) {
      return { ...out, ratio: b.mean / a.mean, verdict: "not enough epochs", reason: "one epoch has no spread" };
    }
    const { value, low, high } = ratio(a, b);
    return { ...out, ratio: value, low, high, verdict: verdict(low, high, margin) };
  }
  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text());
  }

  // -- looks ------------------------------------------------------------------------------------
  const rgb = (colour) => (colour.startsWith("#")
    ? [1, 3, 5].map((n) => parseInt(colour.slice(n, n + 2), 16))
    : (colour.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number));
  const lightness = (colour) => { const [r, g, b] = rgb(colour); return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255; };
  const mixed = (colour, other, share) => { const o = rgb(other);
    return `rgb(${rgb(colour).slice(0, 3).map((c, n) => Math.round(c * (1 - share) + o[n] * share)).join(",")})`; };
  const isDark = () => lightness(getComputedStyle(section).color) > 0.5;
  // dark greens vanish on a dark page, yellow on a white one
  const visible = (colour) => {
    if (isDark()) return lightness(colour) < 0.42 ? mixed(colour, "#ffffff", 0.4) : colour;
    return lightness(colour) > 0.8 ? mixed(colour, "#000000", 0.25) : colour;
  };
  const p = (name) => visible(data.palette[name] ?? "#777777");
  const OTHERS = ["clock_class_1", "hdd", "disk", "above_baseload", "epoch_bound", "ssd", "emmc", "baseload", "epoch_0"];
  function colours(name, values) {
    const steps = values.every((v) => typeof v === "number");
    return values.map((value, n) => {
      if (data.palette[value]) return p(value);
      if (steps) return mixed(isDark() ? "#c6dbef" : "#9ecae1", isDark() ? "#2171b5" : "#08306b", values.length > 1 ? n / (values.length - 1) : 1);
      return p(OTHERS[n % OTHERS.length]);
    });
  }
  const SHAPES = { measured: "circle", imported: "triangle-up", simulated: "diamond", fake: "cross" };
  function config() {
    const ink = getComputedStyle(section).color, mute = mixed(ink, isDark() ? "#000000" : "#ffffff", 0.25);
    const faint = mixed(ink, isDark() ? "#000000" : "#ffffff", isDark() ? 0.75 : 0.86);
    return {
      background: "transparent", font: getComputedStyle(section).fontFamily.replaceAll('"', "'"), view: { stroke: faint },
      axis: { labelColor: mute, titleColor: ink, gridColor: faint, tickColor: faint, domainColor: faint, labelFontSize: 11, titleFontSize: 12, titleFontWeight: 500 },
      legend: { labelColor: ink, titleColor: mute, labelFontSize: 11.5, titleFontSize: 11, titleFontWeight: 500, orient: "top", columns: narrow() ? 2 : 8, symbolSize: 90, offset: 8,
        ...(narrow() ? { layout: { top: { direction: "vertical", anchor: "start", margin: 4 } } } : {}) },
      header: { labelColor: ink, titleColor: ink }, title: { color: ink, subtitleColor: mute, anchor: "start" }, text: { color: ink }, rule: { color: ink },
    };
  }
  const narrow = () => section.clientWidth < 600;
  const BARE = { actions: { export: { svg: true, png: true }, source: false, compiled: false, editor: false }, ast: true };
  const drawn = new Map(); // element -> view, and how to draw it again
  async function embed(element, spec, again, renderer = "svg") {
    if (!window.vegaEmbed) document.head.append(make("script", $("vega").textContent)); // read when it is needed
    drawn.get(element)?.result?.finalize();
    const settings = { ...BARE, renderer, config: config(), tooltip: { theme: isDark() ? "dark" : "light" } };
    const result = await vegaEmbed(element, spec, settings);
    drawn.set(element, { result, again });
    return result.view;
  }
  const asked = new Map(); // of draws that overtake each other only the last one counts
  const latest = (key) => { const n = (asked.get(key) ?? 0) + 1; asked.set(key, n); return () => asked.get(key) === n; };
  function options(select, entries, chosen) {
    select.replaceChildren(...entries.map(([value, text]) => make("option", text, { value, selected: value === chosen })));
  }
  function badge(kind) { return make("span", KINDS[kind] ?? kind, { className: `x-kind x-${kind}` }); }
  function table(header, body) {
    const t = make("table"), head = t.createTHead().insertRow();
    for (const cell of header) head.append(make("th", cell.text ?? cell, { scope: "col", className: cell.right ? "x-n" : "" }));
    const rest = t.createTBody();
    for (const cells of body) {
      const line = rest.insertRow();
      cells.forEach((cell, n) => {
        const td = line.insertCell();
        if (header[n].right) td.className = "x-n";
        if (cell instanceof Node) td.append(cell); else td.textContent = cell;
      });
    }
    return t;
  }
  const right = (text) => ({ text, right: true });

  // -- names of runs ----------------------------------------------------------------------------
  const groupOf = (row) => data.workload.map((name) => row[name]).join("|");
  const groups = new Map();
  rows.forEach((row) => groups.set(groupOf(row), [...(groups.get(groupOf(row)) ?? []), row]));
  const WITHIN = FACTORS.filter((name) => !["kind", "imported", "power_scope", ...data.workload].includes(name));
  function groupTitle(group) {
    const first = group[0], many = [...groups.values()].map((g) => g[0]).filter((row) => row.kind === first.kind && row.device === first.device && row.model === first.model);
    const also = ["instance", "setup", "dataset", "dataset_source", "dataset_scale", "power_scope"].filter((name) => varies(name, many));
    return [SHORT[first.kind], titled("device", first.device), titled("model", first.model), ...also.map((name) => phrase(name, first[name]))].join(" · ");
  }
  function runTitle(row) {
    const group = groups.get(groupOf(row));
    const differing = WITHIN.filter((name) => varies(name, group) || ["power_mode", "num_workers", "storage"].includes(name));
    return differing.filter((name) => row[name] !== null && row[name] !== "").map((name) => phrase(name, row[name])).join(", ");
  }
  function runOptions(select, among, chosen) {
    const parts = [...groups.values()].map((group) => [groupTitle(group), group.filter((row) => among(row))]).filter(([, group]) => group.length);
    select.replaceChildren(...parts.map(([title, group]) => {
      const part = make("optgroup", "", { label: title });
      part.append(...group.map((row) => make("option", runTitle(row), { value: row.run, selected: row.run === chosen })));
      return part;
    }));
  }

  // -- all runs ---------------------------------------------------------------------------------
  const FILTERS = FACTORS.filter((name) => varies(name));
  const wanted = Object.fromEntries(FILTERS.map((name) => [name, new Set()]));
  const ordered = (values) => [...new Set(values)].sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true })));
  const kept = () => rows.filter((row) => FILTERS.every((name) => !wanted[name].size || wanted[name].has(row[name])));
  const hover = (row, all = false) => Object.fromEntries([["run", row.run], ["data", KINDS[row.kind]],
    ...FACTORS.filter((name) => name !== "kind" && (all || varies(name)) && row[name] !== null && row[name] !== "").map((name) => [word(name), titled(name, row[name])]),
    ...CLOCKS.filter((name) => row[name] !== null).map((name) => [word(name), quantity(name, row[name])]),
    ["valid epochs 1+", String(row.n_epochs)],
    ...["e2e_s", "stall_s", "compute_s", "overhead_s", "energy_wh", "power_mean_w"].filter((name) => row[name] !== null).map((name) => [word(name), quantity(name, row[name])])]);
  const point = (row, x, y) => ({ x: row[x], y: row[y], run: row.run, kind: row.kind, filled: row.kind === "measured" ? 0.85 : 0.1, seen: hover(row) });
  const marks = { type: "point", filled: true, strokeWidth: 1.8, size: 85, opacity: 1, cursor: "pointer" };
  const looks = { fillOpacity: { field: "filled", type: "quantitative", scale: null, legend: null },
    strokeDash: { condition: { test: "datum.kind === 'fake'", value: [2, 2] }, value: [1, 0] } };
  const hinted = { tooltip: { field: "seen", type: "nominal" } };

  async function drawPoints() {
    const current = latest("points");
    const [x, y, colour, shape] = ["x-x", "x-y", "x-colour", "x-shape"].map((id) => $(id).value);
    const log = $("x-log").checked, among = kept();
    const meant = among.filter((row) => row.n_epochs), meanless = among.length - meant.length;
    const there = meant.filter((row) => row[x] !== null && row[y] !== null && !(log && (row[x] <= 0 || row[y] <= 0)));
    const without = meant.length - there.length;
    const why = (meanless ? `; ${meanless} without a valid epoch after the first left out` : "")
      + (without ? `; ${without} without ${[x, y].filter((name) => meant.some((row) => row[name] === null)).map(word).join(" or ") || "a value above 0"} left out` : "");
    $("x-count").textContent = `${there.length} of ${rows.length} runs shown${why}`;
    if (!there.length) {
      drawn.get($("x-chart"))?.result?.finalize();
      $("x-chart").replaceChildren();
      $("x-table").replaceChildren();
      return;
    }
    const values = there.map((row) => ({ ...point(row, x, y), colour: titled(colour, row[colour]), shape: titled(shape, row[shape]) }));
    const domain = ordered(there.map((row) => row[colour])), shapes = ordered(there.map((row) => row[shape]));
    const scale = { ...(log ? { type: "log" } : { zero: false }), nice: false, padding: 18 };
    const size = { width: "container", height: narrow() ? 320 : 430 };
    const range = colours(colour, domain), named = domain.map((v) => titled(colour, v));
    const symbol = shape === "kind" ? shapes.map((kind) => SHAPES[kind]) : ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke", "triangle-left"];
    const spec = {
      ...size, autosize: { type: "fit", contains: "padding" }, data: { name: "points", values },
      params: [{ name: "zoom", bind: "scales", select: { type: "interval", zoom: "wheel![event.ctrlKey]",
        translate: "[pointerdown[event.pointerType !== 'touch'], window:pointerup] > window:pointermove!" } },
      { name: "pick", select: { type: "point", fields: ["run"], on: "click" } }],
      mark: marks,
      encoding: {
        x: { field: "x", type: "quantitative", title: axisTitle(x), scale, axis: { format: ",.6~g", tickCount: narrow() ? 4 : 8, labelOverlap: true } },
        y: { field: "y", type: "quantitative", title: axisTitle(y), scale, axis: { format: ",.6~g", tickCount: 7, labelOverlap: true } },
        color: { field: "colour", type: "nominal", title: word(colour), sort: named, scale: { domain: named, range } },
        stroke: { field: "colour", type: "nominal", title: word(colour), sort: named, scale: { domain: named, range } },
        shape: { field: "shape", type: "nominal", title: word(shape), scale: { domain: shapes.map((v) => titled(shape, v)), range: shapes.map((_, n) => symbol[n % symbol.length]) }, legend: { symbolFillColor: "transparent", symbolStrokeColor: getComputedStyle(section).color } },
        ...looks, ...hinted,
      },
    };
    const view = await embed($("x-chart"), spec, drawPoints);
    if (!current()) return;
    view.addEventListener("click", (_, item) => { if (item?.datum?.run) picked(item.datum.run); });
    const most = 250;
    $("x-table").replaceChildren(table(["data", "board", "network", "settings", right(axisTitle(x)), right(axisTitle(y)), ""],
      there.slice(0, most).map((row) => {
        const show = make("button", "show", { type: "button", className: "x-act", onclick: () => picked(row.run) });
        return [badge(row.kind), titled("device", row.device), titled("model", row.model), runTitle(row), number(row[x]), number(row[y]), show];
      })));
  }
  function zoomBy(share) {
    const view = drawn.get($("x-chart"))?.result.view;
    if (!view) return;
    const log = $("x-log").checked;
    for (const axis of ["x", "y"]) {
      const [low, high] = view.scale(axis).domain().map((v) => (log ? Math.log(v) : v));
      const middle = (low + high) / 2, half = ((high - low) / 2) * share;
      view.signal(`zoom_${axis}`, [middle - half, middle + half].map((v) => (log ? Math.exp(v) : v)));
    }
    view.runAsync();
  }
  function picked(run) {
    const row = rows[place.get(run)], list = make("dl"), seen = hover(row, true);
    for (const name of Object.keys(seen).filter((key) => key !== "run" && key !== "data")) {
      const part = make("div");
      part.append(make("dt", name), make("dd", seen[name]));
      list.append(part);
    }
    const act = (text, id, tab) => make("button", text, { type: "button", className: "x-act", onclick: () => {
      $(id).value = run;
      $(id).dispatchEvent(new Event("change"));
      if (tab) show(tab);
    } });
    const acts = make("p");
    acts.append(act("compare as A", "x-a", "x-pair"), " ", act("compare as B", "x-b", "x-pair"));
    if (data.epochs[run]) acts.append(" ", act("one epoch of it", "x-run", "x-epoch"));
    const head = make("p");
    head.append(badge(row.kind), " ", make("code", run));
    $("x-picked").replaceChildren(head, list, acts);
    $("x-picked").hidden = false;
  }
  function buildFilters() {
    $("x-filters").replaceChildren(...FILTERS.map((name) => {
      const set = make("fieldset");
      set.append(make("legend", word(name)), ...ordered(rows.map((row) => row[name])).map((value) => {
        const chip = make("button", titled(name, value), { type: "button", className: "x-chip", ariaPressed: "false" });
        chip.dataset.factor = name;
        chip.onclick = () => {
          if (wanted[name].has(value)) wanted[name].delete(value); else wanted[name].add(value);
          chip.ariaPressed = String(wanted[name].has(value));
          drawPoints();
        };
        return chip;
      }));
      return set;
    }));
  }

  // -- power modes within a budget --------------------------------------------------------------
  const COSTS = { power_mean_w: "Least power", e2e_s: "Fastest", energy_wh: "Least energy" };
  let field = null; // what the budget's chart shows: rows, cost, goal
  const comparable = [...groups.entries()].filter(([, group]) => group.filter((row) => row.n_epochs).length > 1);
  function budgetRows() {
    const group = groups.get($("x-workload").value) ?? [];
    const picks = [...$("x-settings").querySelectorAll("select")].map((s) => [s.dataset.factor, s.value]);
    return group.filter((row) => row.n_epochs && picks.every(([name, value]) => value === "" || String(row[name]) === value));
  }
  // At first the settings with the most power modes; what follows from the others needs no choice.
  function buildSettings() {
    const group = groups.get($("x-workload").value) ?? [], key = (names) => (row) => names.map((name) => row[name]).join("|");
    const all = WITHIN.filter((name) => name !== "power_mode" && varies(name, group)), sets = new Map();
    const chosenNames = all.filter((name, n) => new Set(group.map(key(all.slice(0, n)))).size < new Set(group.map(key(all.slice(0, n + 1)))).size);
    for (const row of group) sets.set(key(all)(row), [...(sets.get(key(all)(row)) ?? []), row]);
    const most = [...sets.values()].sort((a, b) => b.length - a.length)[0]?.[0];
    $("x-settings").replaceChildren(...chosenNames.map((name) => {
      const label = make("label", word(name)), select = make("select", "", { onchange: drawBudget });
      select.dataset.factor = name;
      options(select, [["", "any"], ...ordered(group.map((row) => row[name])).map((v) => [String(v), titled(name, v)])], sets.size < group.length ? String(most[name]) : "");
      label.append(select);
      return label;
    }));
  }
  const limitOf = () => Number($("x-limit").value);
  function setLimit(value, fromSlider) {
    $("x-limit").value = String(Number(value.toPrecision(6)));
    if (!fromSlider && field?.cost.length) {
      const [low, high] = [Math.min(...field.cost), Math.max(...field.cost)];
      $("x-range").value = String(high > low ? Math.round((400 * (value - low)) / (high - low)) : 400);
    }
  }
  const modeName = (row, among) => {
    const also = WITHIN.filter((name) => name !== "power_mode" && varies(name, among) && row[name] !== null);
    return `mode ${row.power_mode}` + (also.length ? ` (${also.map((name) => phrase(name, row[name])).join(", ")})` : "");
  };
  // Labels that would stand on another are left out; the front's and the strongest come first.
  // one slow mode would crush all others on a linear axis
  const isWide = (numbers) => Math.min(...numbers) > 0 && Math.max(...numbers) > 5 * Math.min(...numbers);
  function labelled(values, width, height) {
    const placed = (axis, v) => (axis === "y" && isWide(values.map((w) => w.y)) ? Math.log(v) : v);
    const taken = [], at = (axis, number) => { const all = values.map((w) => placed(axis, w[axis])), v = placed(axis, number), low = Math.min(...all), high = Math.max(...all); return high > low ? (v - low) / (high - low) : 0.5; };
    for (const value of [...values].sort((a, b) => b.front - a.front)) {
      const [left, top] = [at("x", value.x) * width, at("y", value.y) * height], room = 6 * value.mode.length + 6;
      value.label = taken.some(([l, t, r]) => Math.abs(l - left) < (room + r) / 2 && Math.abs(t - top) < 14) ? "" : value.mode;
      if (value.label) taken.push([left, top, room]);
    }
  }
  async function drawBudget() {
    const current = latest("budget");
    const [limited, least] = [$("x-limited").value, $("x-least").value];
    const all = budgetRows(), among = all.filter((row) => row[limited] !== null && row[least] !== null);
    const watts = (id, isShown) => { $(id).parentElement.hidden = !isShown; return isShown ? Math.max(0, Number($(id).value) || 0) : 0; };
    const rest = watts("x-rest", least === "energy_wh"), idle = watts("x-idle", least === "energy_wh" && limited === "e2e_s");
    field = { rows: among, limited, least, rest, idle, cost: among.map((row) => row[limited]), n: all.length };
    $("x-unit").textContent = unit(limited);
    const usable = among.length > 0 && limited !== least;
    for (const id of ["x-range", "x-limit"]) $(id).disabled = !usable;
    if (!usable) {
      drawn.get($("x-budget-chart"))?.result?.finalize();
      $("x-budget-chart").replaceChildren();
      $("x-front").replaceChildren();
      $("x-answer").textContent = limited === least ? "Choose two different quantities."
        : `No run of this workload has ${word(limited)} and ${word(least)}: its power was not measured. Choose another workload.`;
      return;
    }
    const [low, high] = [Math.min(...field.cost), Math.max(...field.cost)];
    if (!(limitOf() >= low && limitOf() <= high)) setLimit(low + 0.5 * (high - low), false); else setLimit(limitOf(), false);
    field.goal = among.map((row) => (rest || idle ? counted(row, rest, idle, limitOf()) : row[least]));
    const onFront = front(field.cost, field.goal), isFront = new Set(onFront);
    const values = among.map((row, n) => ({ ...point(row, limited, least), y: field.goal[n], mode: String(row.power_mode), front: isFront.has(n) }));
    labelled(values, $("x-budget-chart").clientWidth - 110, narrow() ? 250 : 340);
    const scale = (costs) => ({ domain: [Math.min(...costs), Math.max(...costs)], zero: false, padding: 22, nice: false });
    const x = { field: "x", type: "quantitative", title: axisTitle(limited), scale: scale(field.cost), axis: { format: ",.6~g", tickCount: narrow() ? 4 : 8 } };
    const y = { field: "y", type: "quantitative", title: axisTitle(least), scale: { ...scale(field.goal), type: isWide(field.goal) ? "log" : "linear" }, axis: { format: ",.6~g", tickCount: 7 } };
    const shape = { value: SHAPES[among[0].kind] };
    const colour = { condition: { test: "datum.front", value: p("clock_class_1") }, value: p("missing") };
    const spec = {
      width: "container", height: narrow() ? 320 : 420, autosize: { type: "fit", contains: "padding" },
      layer: [
        { data: { name: "limit", values: [{ limit: limitOf() }] }, mark: { type: "rect", opacity: 0.09, color: p("warning") },
          encoding: { x: { field: "limit", type: "quantitative" }, x2: { value: "width" } } },
        { data: { name: "limit" }, mark: { type: "rule", strokeWidth: 2, strokeDash: [6, 4], color: p("warning") }, encoding: { x: { field: "limit", type: "quantitative" } } },
        { data: { name: "front", values: onFront.map((n) => values[n]) }, mark: { type: "line", interpolate: "step-after", strokeWidth: 2.2, color: p("clock_class_1") }, encoding: { x, y } },
        { data: { name: "points", values }, mark: marks, encoding: { x, y, shape, color: colour, stroke: colour, ...looks, ...hinted } },
        { data: { name: "points" }, mark: { type: "text", dy: -12, fontSize: 11 },
          encoding: { x, y, text: { field: "label" }, opacity: { condition: { test: "datum.front", value: 1 }, value: 0.6 } } },
        { data: { name: "best", values: [] }, mark: { type: "point", shape: "circle", size: 420, strokeWidth: 3.2, color: p("hdd"), filled: false }, encoding: { x, y, ...hinted } },
      ],
    };
    field.view = await embed($("x-budget-chart"), spec, drawBudget);
    if (!current()) return;
    field.view.addEventListener("click", (_, item) => { if (item?.datum?.run) { picked(item.datum.run); show("x-points"); } });
    field.values = values;
    $("x-front").replaceChildren(table(["setting", ...Object.keys(COSTS).map((name) => right(axisTitle(name))), "data"],
      onFront.map((n) => [modeName(among[n], among), ...Object.keys(COSTS).map((name) => number(among[n][name])), badge(among[n].kind)])));
    const sets = all.length - among.length;
    $("x-budget-note").textContent = `${groupTitle(among)}. Line and blue marks: the Pareto front, the modes that no other beats in both ${word(limited)} and ${word(least)}. `
      + `Ring: the best within the budget. ${among[0].kind === "measured" ? "Measured." : KINDS[among[0].kind][0].toUpperCase() + KINDS[among[0].kind].slice(1) + "."}`
      + (rest ? ` ${rest} W of the rest of the board count as energy.` : "") + (idle ? ` From the end of the epoch to the budget the board idles at ${idle} W.` : "")
      + (sets ? ` ${sets} runs without these numbers are left out.` : "");
    answer();
  }
  function answer() {
    if (!field?.values) return;
    const limit = limitOf(), { rows: among, limited, least } = field;
    const n = best(field.cost, field.goal, limit), within = `${number(limit)} ${unit(limited)}`;
    field.view.data("limit", [{ limit }]).data("best", n < 0 ? [] : [field.values[n]]).runAsync();
    const where = `${titled("device", among[0].device)}, ${titled("model", among[0].model)}`;
    if (n < 0) {
      const first = front(field.cost, field.goal)[0];
      $("x-answer").textContent = `None of ${among.length} settings stays within ${within}; the least is ${quantity(limited, among[first][limited])}, ${modeName(among[first], among)}, ${KINDS[among[0].kind]}.`;
      return;
    }
    const { rest, idle, goal } = field, row = among[n], numbers = ["e2e_s", "energy_wh", "power_mean_w"].filter((name) => row[name] !== null).map((name) => quantity(name, row[name]));
    if (rest || idle) numbers.push(`${quantity("energy_wh", goal[n])} with all that counts`);
    const paced = among.map((_, m) => m).filter((m) => field.cost[m] > PACED * limit && field.cost[m] <= limit).map((m) => goal[m]);
    const races = idle && row.e2e_s <= PACED * limit && paced.length
      ? ` Racing to idle wins: what just meets the budget costs ${number(100 * (Math.min(...paced) / goal[n] - 1))} % more.` : "";
    $("x-answer").textContent = `${COSTS[least]} within ${within}: ${modeName(row, among)}, ${numbers.join(", ")}, ${KINDS[row.kind]}.${races} ${where}; best of ${field.cost.filter((c) => c <= limit).length} settings within the budget, of ${among.length}.`;
  }

  // -- two runs ---------------------------------------------------------------------------------
  const percent = (share) => (share === null ? "–" : `${share >= 0 ? "+" : "−"}${Math.abs(100 * share).toFixed(1)} %`);
  async function drawPair() {
    const one = place.get($("x-a").value), other = place.get($("x-b").value), margin = Math.max(0.001, Number($("x-margin").value) / 100 || 0.05);
    if (one === undefined || other === undefined) return;
    const parts = Object.keys(data.compared).map((part) => compared(one, other, part, margin));
    const [a, b] = [rows[one], rows[other]], head = $("x-pair-head");
    head.replaceChildren(make("strong", "A "), `${titled("device", a.device)}, ${titled("model", a.model)}, ${runTitle(a)} `, badge(a.kind), make("br"),
      make("strong", "B "), `${titled("device", b.device)}, ${titled("model", b.model)}, ${runTitle(b)} `, badge(b.kind));
    if (a.kind !== b.kind) head.append(make("br"), make("em", `A is ${SHORT[a.kind]}, B is ${SHORT[b.kind]}: a comparison of the two kinds of data, not of two settings alone.`));
    $("x-pair-table").replaceChildren(table(["quantity", right("A"), right("B"), right("epochs"), right("B against A"), right("95 % interval"), "verdict"],
      parts.map((q) => [word(data.quantities[q.part]), quantity(data.quantities[q.part], q.a), quantity(data.quantities[q.part], q.b), `${q.nA}, ${q.nB}`,
        percent(q.ratio === null ? null : q.ratio - 1), q.low === null ? "–" : `${percent(q.low - 1)} to ${percent(q.high - 1)}`, q.verdict + (q.reason ? ` (${q.reason})` : "")])));
    const differing = [...FACTORS, ...CLOCKS].filter((name) => a[name] !== b[name]);
    $("x-pair-settings").replaceChildren(differing.length ? table(["differs in", "A", "B"], differing.map((name) => [word(name), titled(name, a[name]), titled(name, b[name])]))
      : make("p", "The same settings."));
    $("x-pair-note").textContent = `B against A: ratio of the means over the valid epochs after the first, minus 1; Welch's interval of its logarithm covers how epochs of a run differ, not how runs differ that are measured again. The same from the shell: epochwatt compare ${a.run} ${b.run} --margin ${number(100 * margin)}`;
    const values = parts.filter((q) => q.ratio !== null).map((q) => ({ ...q, name: word(data.quantities[q.part]), change: 100 * (q.ratio - 1), from: q.low === null ? null : 100 * (q.low - 1), to: q.high === null ? null : 100 * (q.high - 1), text: percent(q.ratio - 1) }));
    if (!values.length) {
      drawn.get($("x-pair-chart"))?.result?.finalize();
      $("x-pair-chart").replaceChildren();
      return;
    }
    const known = values.filter((v) => v.from !== null);
    const y = { field: "name", type: "nominal", title: null, sort: values.map((v) => v.name) };
    const farthest = Math.max(...values.flatMap((v) => [v.change, v.from ?? 0, v.to ?? 0].map(Math.abs)));
    const x = { type: "quantitative", title: "B against A (%)", ...(farthest > 1000 ? { scale: { type: "symlog", constant: 100, nice: false }, axis: { values: [-90, -50, 0, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5] } } : {}) };
    const said = ["name", "change", "from", "to", "verdict"].map((name) => ({ field: name, ...(["name", "verdict"].includes(name) ? {} : { format: "+.2f" }) }));
    const colour = { field: "verdict", type: "nominal", title: null, scale: { domain: ["equivalent", "different", "not enough epochs"], range: [p("resnet"), p("lenet"), p("overhead")] } };
    await embed($("x-pair-chart"), {
      width: "container", height: 60 + 36 * values.length, autosize: { type: "fit", contains: "padding" },
      layer: [
        { data: { values: [{ from: 100 * (1 / (1 + margin) - 1), to: 100 * margin }] }, mark: { type: "rect", opacity: 0.13, color: p("overhead") }, encoding: { x: { field: "from", ...x }, x2: { field: "to" } } },
        { data: { values: [{ x: 0 }] }, mark: { type: "rule", opacity: 0.6 }, encoding: { x: { field: "x", ...x } } },
        ...(known.length ? [{ data: { values: known }, mark: { type: "rule", strokeWidth: 3 }, encoding: { y, x: { field: "from", ...x }, x2: { field: "to" }, color: colour, tooltip: said } }] : []),
        { data: { values }, mark: { type: "point", filled: true, size: 90, opacity: 1 }, encoding: { y, x: { field: "change", ...x }, color: colour, tooltip: said } },
        { data: { values }, mark: { type: "text", dy: -13, fontSize: 11 }, encoding: { y, x: { field: "change", ...x }, text: { field: "text" } } },
      ],
    }, drawPair);
  }

  // -- one epoch --------------------------------------------------------------------------------
  const LANES = data.lanes; // lane -> title of its axis
  let chosenEpochs = [];
  async function chooseRun() {
    const current = latest("run"), packed = data.epochs[$("x-run").value];
    if (!packed) return;
    const lines = await unpacked(packed);
    if (!current()) return;
    chosenEpochs = lines;
    options($("x-number"), lines.map((line) => [String(line.epoch), `epoch ${line.epoch}${line.epoch === 0 ? ", the first" : ""}`]), String(lines.at(-1).epoch));
    await drawEpoch();
  }
  function minibatchBars(line) {
    const m = line.minibatches, bars = [], tall = m.start_s.map((_, n) => m.wait_ms[n] + m.copy_ms[n] + m.compute_ms[n]);
    const sorted = [...m.high_ms].sort((a, b) => a - b), usual = sorted[Math.floor(0.95 * (sorted.length - 1))];
    const top = Math.min(sorted.at(-1), 2.5 * usual);
    m.start_s.forEach((start, n) => {
      const first = n * line.together + 1, last = Math.min(line.n_minibatches, first + line.together - 1);
      const which = first === last ? `mini-batch ${first}` : `mini-batches ${first} to ${last}, means`;
      let base = 0;
      for (const part of ["wait", "copy", "compute"]) {
        const ms = m[`${part}_ms`][n];
        bars.push({ which, part, from: start, to: m.end_s[n], low: base, high: base + ms, wait: m.wait_ms[n], copy: m.copy_ms[n], compute: m.compute_ms[n], total: tall[n], least: m.low_ms[n], most: m.high_ms[n], middle: (start + m.end_s[n]) / 2 });
        base += ms;
      }
    });
    return { bars, top, cut: m.high_ms.filter((v) => v > top).length, longest: sorted.at(-1) };
  }
  async function drawEpoch() {
    const current = latest("epoch"), row = rows[place.get($("x-run").value)];
    const line = chosenEpochs.find((l) => String(l.epoch) === $("x-number").value);
    if (!line) return;
    const { bars, top, cut, longest } = minibatchBars(line), room = narrow() ? 62 : 150;
    const width = Math.max(200, $("x-epoch-chart").clientWidth - room);
    const xScale = { domain: [0, line.e2e_s], nice: false };
    const x = (field, last) => ({ field, type: "quantitative", scale: xScale, title: last ? "time since the epoch's start (s)" : null, axis: last ? {} : { labels: false, ticks: false } });
    const zoom = { name: "time", bind: "scales", select: { type: "interval", encodings: ["x"], zoom: "wheel![event.ctrlKey]", translate: "[pointerdown[event.pointerType !== 'touch'], window:pointerup] > window:pointermove!" } };
    const legend = { title: null, orient: narrow() ? "top" : "right", columns: narrow() ? 4 : 1, labelLimit: 110 };
    const parts = { domain: ["wait", "copy", "compute"], range: [p("stall"), mixed(p("stall").startsWith("rgb") ? p("stall") : data.palette.stall, isDark() ? "#000000" : "#ffffff", 0.5), p("compute")] };
    const ms = ["wait", "copy", "compute", "total", "least", "most"].slice(0, line.together > 1 ? 6 : 4).map((name) => ({ field: name, title: `${name} (ms)`, format: ".3~f" }));
    const lanes = Object.keys(LANES).map((lane) => [lane, line.series.filter((s) => s.lane === lane)]).filter(([, s]) => s.length);
    const yScale = { scale: { domain: [0, top * 1.05], nice: false } };
    const views = [{
      width, height: 120,
      layer: [
        { params: [zoom], data: { values: bars }, mark: { type: "rect", clip: true }, encoding: { x: x("from", !lanes.length), x2: { field: "to" }, y: { field: "low", type: "quantitative", title: "mini-batch (ms)", ...yScale }, y2: { field: "high" }, color: { field: "part", type: "nominal", scale: parts, legend }, tooltip: [{ field: "which", title: " " }, { field: "from", title: "from (s)", format: ".3~f" }, ...ms] } },
        ...(line.together > 1 ? [{ data: { values: bars.filter((bar) => bar.part === "wait") }, mark: { type: "rule", clip: true, opacity: 0.45, strokeWidth: 0.8 }, encoding: { x: x("middle", !lanes.length), y: { field: "least", type: "quantitative" }, y2: { field: "most" } } }] : []),
      ],
    }];
    const shades = ["lenet", "mobilenet", "resnet", "vgg11", "ssd", "hdd", "disk", "emmc", "baseload", "epoch_0"].map(p);
    lanes.forEach(([lane, series], at) => {
      const last = at === lanes.length - 1, domain = series.map((s) => s.name);
      const values = series.flatMap((s) => s.t_s.map((t, n) => ({ t, v: s.value[n], name: s.name, rate: s.is_rate })));
      const encoding = { x: x("t", last), y: { field: "v", type: "quantitative", title: LANES[lane], axis: { tickCount: 4 },
        scale: lane === "utilisation" ? { domain: [0, 100] } : values.every((value) => value.v === 0) ? { domain: [0, 1] } : { zero: !["clock", "temperature"].includes(lane) } },
        color: { field: "name", type: "nominal", scale: { domain, range: domain.map((name, n) => shades[n % shades.length]) }, legend: domain.length > 1 ? legend : null },
        tooltip: [{ field: "name", title: lane }, { field: "t", title: "at (s)", format: ".3~f" }, { field: "v", title: LANES[lane], format: ".5~g" }] };
      const few = values.length / series.length <= 40;
      views.push({ width, height: lane === "power" ? 120 : 76, data: { values },
        layer: [true, false].filter((rate) => series.some((s) => s.is_rate === rate)).map((rate) => ({
          transform: [{ filter: `datum.rate === ${rate}` }], mark: { type: "line", clip: true, strokeWidth: 1.4, interpolate: rate ? "step-before" : "linear", point: few ? { size: 22 } : false }, encoding })) });
    });
    await embed($("x-epoch-chart"), { vconcat: views, spacing: 8, resolve: { scale: { x: "shared", color: "independent" } }, config: { axisY: { minExtent: 34, titlePadding: 6 } } }, drawEpoch);
    if (!current()) return;
    $("x-epoch-head").replaceChildren(`${titled("device", row.device)}, ${titled("model", row.model)}, ${runTitle(row)}: epoch ${line.epoch}, ${number(line.e2e_s)} s, ${line.n_minibatches} mini-batches `, badge(row.kind));
    const thin = line.series.some((s) => s.t_s.length >= 199);
    $("x-epoch-note").textContent = [
      line.together > 1 ? `Groups of ${line.together} mini-batches: the bars are means, thin lines go from the shortest to the longest mini-batch.` : "Every mini-batch is drawn.",
      line.is_placed ? "" : "When they were is not known: they are drawn one after another.",
      cut ? `${cut} taller than the axis are cut; the longest took ${number(longest)} ms.` : "",
      thin ? "Of long series the least and the greatest reading of each piece are drawn." : "",
      line.missing.length ? `Not recorded here: ${line.missing.map((lane) => LANES[lane]).join(", ")}.` : "",
      "Drag along the time to move, Ctrl and the wheel to zoom.",
    ].filter(Boolean).join(" ");
  }

  // -- tabs, start ------------------------------------------------------------------------------
  const TABS = ["points", "budget", "pair", "epoch"].map((name) => [$(`x-tab-${name}`), $(`x-${name}`)]);
  const DRAW = { "x-points": drawPoints, "x-budget": drawBudget, "x-pair": drawPair, "x-epoch": chooseRun };
  const ready = new Set();
  function show(id, focus = false) {
    for (const [tab, panel] of TABS) {
      const chosen = panel.id === id;
      tab.ariaSelected = String(chosen);
      tab.tabIndex = chosen ? 0 : -1;
      panel.hidden = !chosen;
      if (chosen && focus) tab.focus();
    }
    if (!ready.has(id)) { ready.add(id); DRAW[id](); }
  }
  TABS.forEach(([tab, panel], n) => {
    tab.onclick = () => show(panel.id);
    tab.onkeydown = (event) => {
      const to = { ArrowRight: n + 1, ArrowLeft: n - 1, Home: 0, End: TABS.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      show(TABS[(to + TABS.length) % TABS.length][1].id, true);
    };
  });
  // what differs from the first one of its kind, so that a first look shows a comparison
  function start() {
    const axes = QUANTITIES.map((name) => [name, axisTitle(name)]), energies = rows.every((row) => row.energy_wh !== null || !row.n_epochs);
    options($("x-x"), axes, energies ? "energy_wh" : "stall_pct");
    options($("x-y"), axes, "e2e_s");
    const factors = [...FACTORS, ...CLOCKS].filter((name) => name in data.runs && (varies(name) || name === "kind"));
    options($("x-colour"), factors.map((name) => [name, word(name)]), varies("model") ? "model" : "kind");
    options($("x-shape"), factors.filter((name) => new Set(rows.map((row) => row[name])).size <= 8).map((name) => [name, word(name)]), "kind");
    for (const id of ["x-x", "x-y", "x-colour", "x-shape", "x-log"]) $(id).onchange = drawPoints;
    $("x-in").onclick = () => zoomBy(0.7);
    $("x-out").onclick = () => zoomBy(1 / 0.7);
    $("x-reset").onclick = drawPoints;
    buildFilters();

    const modes = (group) => new Set(group.filter((row) => row.power_mean_w !== null).map((row) => row.power_mode)).size;
    const sorted = [...comparable].sort(([, a], [, b]) => modes(b) - modes(a));
    options($("x-workload"), sorted.map(([key, group]) => [key, `${groupTitle(group)} (${group.length} runs)`]), sorted[0]?.[0]);
    const costs = Object.keys(COSTS).map((name) => [name, word(name)]);
    options($("x-limited"), costs, "power_mean_w");
    options($("x-least"), costs, "e2e_s");
    $("x-workload").onchange = () => { buildSettings(); $("x-limit").value = ""; drawBudget(); };
    for (const id of ["x-limited", "x-least"]) $(id).onchange = () => { $("x-limit").value = ""; drawBudget(); };
    $("x-range").oninput = () => {
      const [low, high] = [Math.min(...field.cost), Math.max(...field.cost)], at = Number($("x-range").value);
      setLimit(at === 400 ? high : low + (at / 400) * (high - low), true);
      if (at === 400) $("x-limit").value = String(high); // all of them, however the number is rounded
      moved();
    };
    const moved = () => (field.idle ? drawBudget() : answer()); // idling takes the energy up to the budget
    $("x-limit").onchange = () => { setLimit(limitOf(), false); moved(); };
    for (const id of ["x-rest", "x-idle"]) $(id).onchange = drawBudget;
    buildSettings();

    const full = rows.filter((row) => row.n_epochs), a = (full.find((row) => row.kind === "measured") ?? full[0])?.run;
    const mate = full.find((row) => row.run !== a && groupOf(row) === groupOf(rows[place.get(a)])) ?? full.find((row) => row.run !== a);
    runOptions($("x-a"), () => true, a);
    runOptions($("x-b"), () => true, mate?.run);
    for (const id of ["x-a", "x-b", "x-margin"]) $(id).onchange = () => { ready.add("x-pair"); drawPair(); };
    $("x-swap").onclick = () => { [$("x-a").value, $("x-b").value] = [$("x-b").value, $("x-a").value]; drawPair(); };
    runOptions($("x-run"), (row) => row.run in data.epochs, Object.keys(data.epochs)[0]);
    $("x-run").onchange = () => { ready.add("x-epoch"); chooseRun(); };
    $("x-number").onchange = drawEpoch;
  }
  window.epochwattExplorer = { front, best, studentT, ratio, compared, rows, data };
  // A figure of the gallery as an interactive one; false where it has none. Name: backend-panel
  window.epochwattSpec = async (name, element) => {
    if (!data.specs[name]) return false;
    const spec = await unpacked(data.specs[name]);
    const red = spec.title.subtitleColor ? { color: spec.title.subtitleColor } : {}; // claims that do not hold
    spec.title = { text: spec.title.subtitle, anchor: "start", fontWeight: "normal", fontSize: 12, ...red }; // the gallery shows the other
    const draw = () => {
      if (spec.facet) spec.columns = Math.max(1, Math.min(3, Math.floor(element.clientWidth / 330)));
      const large = spec.data.values.length > 300_000; // as marks of a picture it is drawn at once
      return embed(element, spec, draw, large ? "canvas" : "svg");
    };
    await draw();
    return true;
  };
  if (!rows.length) { section.append(make("p", "No runs yet.")); return; }
  start();
  const seen = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) { seen.disconnect(); show("x-points"); }
  }, { rootMargin: "600px" });
  seen.observe(section);
  let waiting = 0, before = `${section.clientWidth} ${isDark()}`;
  const redraw = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      section.classList.toggle("x-dark", isDark());
      const now = `${section.clientWidth} ${isDark()}`;
      if (now === before) return;
      before = now;
      for (const [element, { again }] of drawn) if (element.clientWidth) again();
    }, 200);
  };
  section.classList.toggle("x-dark", isDark());
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  new MutationObserver(redraw).observe(document.documentElement, { attributes: true });
})();
