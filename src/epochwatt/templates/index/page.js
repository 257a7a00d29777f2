// The landing page: pictures, search, sorting, filters. Nothing is loaded from anywhere.
(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const data = JSON.parse(document.getElementById("data").textContent);

  // -- pictures: compressed in the page, unpacked when they come into view -----------------------
  const unpacked = new Map();

  function picture(id) {
    if (!unpacked.has(id)) unpacked.set(id, unpack(id));
    return unpacked.get(id);
  }

  async function unpack(id) {
    const bytes = Uint8Array.from(atob(data.images[id]), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const svg = await new Response(stream).blob();
    return URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  }

  async function show(image, id) {
    const link = document.querySelector(`a[data-figure="${id}"]`);
    // an old browser takes the file that lies beside the page
    image.src = "DecompressionStream" in window ? await picture(id) : link.getAttribute("href");
  }

  const nearby = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((entry) => entry.isIntersecting)) {
      nearby.unobserve(entry.target);
      show(entry.target, entry.target.dataset.figure);
    }
  }, { rootMargin: "600px" });
  all("img[data-figure]").forEach((image) => nearby.observe(image));
  addEventListener("beforeprint", () => all("img[data-figure]").forEach((i) => show(i, i.dataset.figure)));

  const lightbox = document.getElementById("lightbox");
  all("a.open").forEach((link) => link.addEventListener("click", (event) => {
    event.preventDefault();
    const thumb = link.closest(".thumb");
    show(lightbox.querySelector("img"), link.dataset.figure);
    lightbox.querySelector("img").alt = link.querySelector("img").alt;
    const caption = lightbox.querySelector("figcaption");
    const beside = all("h3, .differing, .caption", thumb).map((element) => element.cloneNode(true));
    beside.forEach((element) => { if (element.tagName === "DETAILS") element.open = true; });
    caption.replaceChildren(...beside);
    lightbox.showModal();
    interact(link.dataset.figure);
  }));

  // the same numbers to hover over, where the explorer has them; the drawn panel is one click away
  async function interact(id) {
    const [plot, swap, image] = [".plot", ".swap", "img"].map((name) => lightbox.querySelector(name));
    const choose = (isPlot) => {
      plot.hidden = !isPlot;
      image.hidden = isPlot;
      swap.textContent = isPlot ? "show it as drawn" : "show it interactive";
    };
    swap.hidden = true;
    choose(false);
    if (!window.epochwattSpec) return;
    plot.hidden = false; // a hidden one has no width
    swap.hidden = !(await window.epochwattSpec(id, plot));
    choose(!swap.hidden);
    swap.onclick = () => choose(plot.hidden);
  }
  lightbox.addEventListener("click", (event) => { if (event.target === lightbox || event.target.closest("figcaption a")) lightbox.close(); });

  // -- tables: sorting, filters ------------------------------------------------------------------
  function value(cell) {
    const text = cell ? cell.textContent.trim() : "";
    const number = /^[≈<≤≥×\s]*([−+-]?[\d.,]+)/.exec(text);
    return number ? parseFloat(number[1].replace("−", "-").replace(/,/g, "")) : text === "–" ? "" : text.toLowerCase();
  }

  function compare(one, other) {
    const kinds = [one, other].map((v) => (v === "" ? 2 : typeof v === "string" ? 1 : 0));
    if (kinds[0] !== kinds[1]) return kinds[0] - kinds[1];
    return typeof one === "number" ? one - other : one.localeCompare(other);
  }

  function sort(table, column, descends) {
    const header = all("th", table)[column];
    all("th", table).forEach((th) => th.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", descends ? "descending" : "ascending");
    const rows = all("tbody tr", table).map((row) => [value(row.cells[column]), row]);
    const isEmpty = ([key]) => key === "";
    rows.sort((a, b) => isEmpty(a) || isEmpty(b) ? isEmpty(a) - isEmpty(b) : compare(a[0], b[0]) * (descends ? -1 : 1));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }

  all("table.data").forEach((table) => all("th", table).forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => sort(table, column, header.getAttribute("aria-sort") === "ascending"));
  }));

  // a phone shows rows as cards: there the order is chosen from a list
  function sorter(table) {
    const select = Object.assign(document.createElement("select"), { className: "order" });
    select.setAttribute("aria-label", "order of rows");
    select.append(new Option("order by", ""));
    all("th:not(.bars)", table).forEach((header) => ["ascending", "descending"].forEach((direction) => {
      select.append(new Option(`${header.textContent}, ${direction}`, `${header.cellIndex} ${direction}`));
    }));
    select.addEventListener("change", () => {
      const [column, direction] = select.value.split(" ");
      if (direction) sort(table, Number(column), direction === "descending");
    });
    return select;
  }

  const tools = all(".tools").map((box) => {
    const table = document.getElementById(box.dataset.for);
    const input = Object.assign(document.createElement("input"), { type: "search", placeholder: "filter rows" });
    input.setAttribute("aria-label", "filter rows");
    const count = Object.assign(document.createElement("span"), { className: "count" });
    box.prepend(input);
    box.append(sorter(table));
    box.append(count);
    input.addEventListener("input", refresh);
    all("button", box).forEach((button) => button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") !== "true");
      refresh();
    }));
    return { box, table, input, count };
  });

  // -- search over the whole page ----------------------------------------------------------------
  const search = document.getElementById("search");
  const words = (input) => input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const holds = (element, wanted) => wanted.every((word) => element.dataset.find.includes(word));

  function refresh() {
    const wanted = words(search);
    const shown = { runs: 0, takeaways: 0, claims: 0, numbers: 0, figures: 0 };
    for (const { box, table, input, count } of tools) {
      const also = [...wanted, ...words(input)];
      const needed = all("button[aria-pressed=true]", box).map((button) => button.dataset.has);
      let n = 0;
      for (const row of table.tBodies[0].rows) {
        const has = (row.dataset.has || "").split(" ");
        row.hidden = !(holds(row, also) && needed.every((word) => has.includes(word)));
        n += !row.hidden;
      }
      const total = table.tBodies[0].rows.length;
      count.textContent = n === total ? `${total} rows` : `${n} of ${total} rows`;
      const kind = table.id.split("-")[0];
      if (kind in shown) shown[kind] += n;
    }
    all(".card").forEach((card) => { card.hidden = !holds(card, wanted); });
    for (const group of all(".group")) {
      const thumbs = all(".thumb", group);
      thumbs.forEach((thumb) => { thumb.hidden = !holds(thumb, wanted); });
      group.hidden = thumbs.every((thumb) => thumb.hidden);
      shown.figures += thumbs.filter((thumb) => !thumb.hidden).length;
    }
    document.getElementById("found").textContent = wanted.length
      ? `${shown.runs} measured runs, ${shown.takeaways} take-aways, ${shown.claims} claims, ${shown.numbers} published numbers, ${shown.figures} figures for “${search.value.trim()}”`
      : "";
  }

  search.addEventListener("input", refresh);
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !/INPUT|TEXTAREA|SELECT/.test(document.activeElement.tagName)) {
      event.preventDefault();
      search.focus();
    }
  });
  refresh();
})();
