"""The explorer in a real browser without a network: clicked through, and its numbers checked."""

import contextlib
import csv
import itertools
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from offline_page import REPOSITORY, WIDTHS, opened
from playwright.sync_api import Browser, Page, expect
from scipy.special import stdtrit

from epochwatt import columns
from epochwatt.analysis.collect_study import export_tables, read_epochs, summarise_runs
from epochwatt.analysis.compare import compare, find_runs, interval, verdict_of
from epochwatt.analysis.pareto import pareto_front
from epochwatt.figures.common.interactive import write_spec
from epochwatt.pages.explorer import explorer, vega_bundle
from epochwatt.study.yaml_files import read_yaml
from epochwatt.sweeps.other_power import OtherPower
from epochwatt.templates import asset, inline_json

OLD = REPOSITORY / "tests/data/schema-1"
OLD_RUN = "host-local-slow-ssd-w0-bs16-native-p1-0123abcd"
TITLES = {"agx": "AGX Xavier", "lenet": "LeNet-5", "resnet": "ResNet-18", "host": "this machine"}
BOARD = {
    **{"backend": "twin", "device": "agx", "instance": "d1", "model": "lenet", "dataset": "mnist"},
    **{"dataset_source": "official", "storage": "ssd", "power_mode": "g"},
}
MODES = {  # power mode -> mean power, W, and time of an epoch, s
    **{"a": (10.0, 80.0), "b": (12.0, 70.0), "c": (14.0, 75.0), "d": (18.0, 50.0)},
    **{"e": (19.5, 41.25), "f": (30.0, 40.0), "g": (32.0, 38.5)},
}
SHELL = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>explorer</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>body { font-family: sans-serif; margin: 1em; color: #222 }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #111 } } %s</style></head>
<body><section id="explorer">%s</section><div id="spec" style="width: 90vw"></div>
<script type="application/json" id="explorer-data">%s</script>
<script type="text/plain" id="vega">%s</script><script>%s</script></body></html>"""

pytestmark = pytest.mark.workflow


def epochs_of(n, e2e_s, power_w=None):
    """Return n epochs whose times and powers differ a little."""
    rows = []
    for k in range(n):
        row = {"e2e_s": e2e_s * (1 + 0.01 * ((7 * k) % 5 - 2)), "wait_s": 0.2 * e2e_s}
        row |= {"copy_s": 0.01 * e2e_s * (1 + 0.1 * (k % 3)), "compute_s": 0.7 * e2e_s}
        if power_w is not None:
            row |= {"power_scope": "module", "power_mean_w": power_w}
            row |= {"energy_wh": power_w * row["e2e_s"] / 3600}
        rows.append(row)
    return rows


@pytest.fixture(scope="module")
def tables(tmp_path_factory, write_epochs) -> Path:
    """A folder with results/runs of three kinds of data, and the tables exported from them."""
    root = tmp_path_factory.mktemp("explorer")
    for n, (mode, (power_w, e2e_s)) in enumerate(MODES.items()):
        factors = columns.with_defaults({**BOARD, "power_mode": mode})
        write_epochs(f"twin-{mode}", factors, *epochs_of(3 + n % 3, e2e_s, power_w), root=root)
        if mode in "abd":  # beats them all, but was not simulated: never on their front
            fake = {**factors, "backend": "fake", "model": "resnet"}
            epochs = epochs_of(4, e2e_s / 2, power_w / 2)
            write_epochs(f"fake-{mode}", fake, *epochs, root=root)
    host = columns.with_defaults({**BOARD, "backend": "host", "device": "host", "dvfs": "on"})
    for w in (0, 1, 2):
        write_epochs(f"host-w{w}", {**host, "num_workers": w}, *epochs_of(2 + w, 4 - w), root=root)
    old = root / "results/runs" / OLD_RUN / "epochs.csv"
    old.parent.mkdir()
    shutil.copy(OLD / "tables/epochs.csv", old)
    export_tables(epochs_paths(root), {}, str(root / "epochs.csv"), str(root / "runs.csv"))
    return root


def epochs_paths(root):
    return sorted(map(str, root.glob("results/runs/*/epochs.csv")))


@pytest.fixture(scope="module")
def written(tables) -> Path:
    """The explorer alone on a page, with one figure."""
    palette = read_yaml(REPOSITORY / "config/plotting.yaml")["palette"]
    stem = tables / "results/figures/twin/fig02a"
    stem.parent.mkdir(parents=True)
    rows = [f"twin-{m},agx,lenet,{m},e2e_s,{s},,{s + 1}" for m, (_, s) in MODES.items()]
    header = "run,device,model,power_mode,quantity,value,missing,published"
    stem.with_suffix(".csv").write_text("\n".join([header, *rows]) + "\n")
    write_spec(str(stem), "Power modes", "twin", TITLES, palette)
    records = {OLD_RUN: str(OLD / "measured" / OLD_RUN)}
    epochs = read_epochs(epochs_paths(tables))
    runs = summarise_runs(epochs, {})
    data = explorer(epochs, runs, records, TITLES, palette, [f"{stem}.vl.json"])
    return write_page(tables / "index.html", data)


def write_page(page: Path, data: dict) -> Path:
    """Write the explorer alone on a page."""
    parts = [asset(f"index/explorer.{kind}") for kind in ("css", "html", "js")]
    texts = (*parts[:2], inline_json(data), vega_bundle(), parts[2])
    page.write_text(SHELL % texts, "utf-8")
    return page


@pytest.fixture(
    params=[WIDTHS["desk"], pytest.param(WIDTHS["phone"], marks=pytest.mark.thorough)], ids=WIDTHS
)
def page(request, browser, written) -> Iterator[Page]:
    """The page in one of two widths; whatever is done there, it says nothing and loads nothing."""
    with drawn(browser, written, request.param) as page:
        yield page


@pytest.fixture
def desk(browser, written) -> Iterator[Page]:
    """The wide page, for what does not depend on the width."""
    with drawn(browser, written, WIDTHS["desk"]) as page:
        yield page


@contextlib.contextmanager
def drawn(browser: Browser, written: Path, width: int) -> Iterator[Page]:
    """Open the page and wait for its chart; in the end it must not scroll sideways."""
    with opened(browser, written, width) as page:
        page.locator("#x-chart svg.marks").wait_for()
        yield page
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def mean_of(tables: Path, run: str) -> dict[str, float]:
    """Return the row of runs.csv that the explorer shows of a run."""
    with (tables / "runs.csv").open(newline="", encoding="utf-8") as handle:
        return next(
            row
            for row in csv.DictReader(handle)
            if (row["run"], row["epoch_set"], row["statistic"]) == (run, "1+", "mean")
        )


def workload(page: Page, kind: str) -> str:
    """Return the first workload of a kind of data, as the explorer names it."""
    texts = page.locator("#x-workload option").all_inner_texts()
    return next(text for text in texts if text.startswith(kind))


def shown(value: str) -> str:
    """Return a number as the explorer and `epochwatt compare` write it."""
    return f"{float(f'{float(value):.4g}'):g}"


def test_points_are_chosen_by_filters_and_axes_and_tell_of_their_run_at_a_click(page, tables):
    assert page.locator("#x-count").inner_text() == "14 of 14 runs shown"
    labels = page.locator("#x-chart .role-axis-label text")
    before = labels.all_inner_texts()
    page.locator("#x-chart [aria-roledescription=point]").first.click(force=True)
    card = page.locator("#x-picked")
    assert re.search(r"measured|fake board", card.locator(".x-kind").inner_text())
    assert "mini-batch size" in card.inner_text()
    page.click("#x-in")
    page.wait_for_timeout(300)
    assert labels.all_inner_texts() != before
    page.select_option("#x-x", "energy_wh")
    assert "3 without energy left out" in page.locator("#x-count").inner_text()
    page.click(".x-filters summary")
    page.locator(".x-chip[data-factor=kind]", has_text="simulated").click()
    page.wait_for_function(
        "document.querySelectorAll('#x-chart [aria-roledescription=point]').length === 7"
    )
    assert "7 of 14 runs shown" in page.locator("#x-count").inner_text()
    page.click(".x-rows summary")
    cells = page.locator("#x-table tr", has_text="mode e").locator("td").all_inner_texts()
    mean = mean_of(tables, "twin-e")
    assert cells[0] == "simulated, not measured"
    assert cells[4:6] == [shown(mean[name]) for name in ("energy_wh", "e2e_s")]
    run = card.locator("code").inner_text()
    card.get_by_text("compare as B").click()
    assert page.input_value("#x-b") == run
    assert page.locator("#x-tab-pair").get_attribute("aria-selected") == "true"


def test_the_best_mode_within_a_budget_is_that_of_the_tables(desk, tables):
    desk.click("#x-tab-budget")
    desk.select_option("#x-workload", label=workload(desk, "simulated"))
    answer = desk.locator("#x-answer")
    for limit in (9.0, 10.0, 13.5, 19.5, 31.0, 40.0):
        desk.fill("#x-limit", str(limit))
        desk.locator("#x-limit").blur()
        inside = {m: mean_of(tables, f"twin-{m}") for m, (w, _) in MODES.items() if w <= limit}
        if inside:
            mode, row = min(inside.items(), key=lambda item: float(item[1]["e2e_s"]))
            units = {"e2e_s": "s", "energy_wh": "Wh", "power_mean_w": "W"}
            numbers = ", ".join(f"{shown(row[name])} {unit}" for name, unit in units.items())
            expected = (
                f"Fastest within {limit:g} W: mode {mode}, {numbers}, simulated, not measured."
            )
        else:
            expected = f"None of 7 settings stays within {limit:g} W; the least is 10 W"
        assert answer.inner_text().startswith(expected)
    desk.locator("#x-range").focus()
    desk.keyboard.press("End")
    assert "best of 7 settings within the budget, of 7" in answer.inner_text()
    desk.keyboard.press("Home")
    assert "best of 1 settings within" in answer.inner_text()
    desk.select_option("#x-limited", "e2e_s")
    desk.select_option("#x-least", "energy_wh")
    assert answer.inner_text().startswith("Least energy within")
    means = {mode: mean_of(tables, f"twin-{mode}") for mode in MODES}
    costs = {m: (float(row["e2e_s"]), float(row["energy_wh"])) for m, row in means.items()}
    deadline_s = 76.0
    desk.fill("#x-limit", str(deadline_s))
    desk.locator("#x-limit").blur()
    for rest_w, idle_w in ((50.0, 0.0), (3.0, 4.0)):
        desk.fill("#x-rest", str(rest_w))
        desk.fill("#x-idle", str(idle_w))
        desk.locator("#x-idle").blur()
        other = OtherPower(rest_w, idle_w, deadline_s)
        totals = {
            m: other.energy_j(t, 3600 * wh / t) / 3600 for m, (t, wh) in costs.items() if t <= 76
        }
        mode = min(totals, key=totals.get)
        expect(answer).to_contain_text(f"mode {mode}, ")
        expect(answer).to_contain_text(f"{shown(totals[mode])} Wh with all that counts")
    desk.select_option("#x-limited", "power_mean_w")
    desk.select_option("#x-workload", label=workload(desk, "measured"))
    assert "was not measured" in answer.inner_text()
    assert desk.locator("#x-range").is_disabled()


def test_two_runs_differ_as_the_command_says(desk, tables, monkeypatch):
    monkeypatch.chdir(tables)
    desk.click("#x-tab-pair")
    desk.select_option("#x-a", "host-w0")
    desk.select_option("#x-b", "host-w2")
    rows = desk.locator("#x-pair-table tbody tr")
    texts = [row.locator("td").all_inner_texts() for row in rows.all()]
    expected = compare(find_runs("host-w0"), find_runs("host-w2"), 0.05)
    assert len(texts) == len(expected) + 1  # and the mean power
    for cells, row in zip(texts, expected, strict=False):
        if row.ratio is None:
            assert cells[4:6] == ["–", "–"]
        else:
            assert cells[4] == f"{100 * (row.ratio - 1):+.1f} %".replace("-", "−")
        assert cells[6] == row.verdict + (f" ({row.reason})" if row.reason else "")
    assert "workers" in desk.locator("#x-pair-settings").inner_text()
    desk.click("#x-swap")
    assert desk.input_value("#x-a") == "host-w2"
    desk.select_option("#x-b", "twin-a")
    assert "A is measured, B is simulated" in desk.locator("#x-pair-head").inner_text()

    runs = desk.evaluate("epochwattExplorer.rows.map((row) => row.run)")
    epochs = {run: find_runs(run) for run in runs}
    for (n, a), (m, b) in list(itertools.combinations(enumerate(runs), 2))[::9]:
        expected = [row for row in compare(epochs[a], epochs[b], 0.02) if row.part]
        drawn = desk.evaluate(
            "([a, b]) => Object.keys(epochwattExplorer.data.compared)"
            ".map((part) => epochwattExplorer.compared(a, b, part, 0.02))",
            [n, m],
        )
        for row, got in zip(expected, drawn, strict=False):
            for name in ("part", "verdict", "reason"):
                assert got[name] == getattr(row, name)
            for name in ("a", "b", "ratio", "low", "high"):
                wanted = getattr(row, name)
                assert got[name] == (wanted if wanted is None else pytest.approx(wanted, rel=1e-9))


def test_quantiles_intervals_and_fronts_agree_with_python(desk):
    freedoms = [1.0, 1.2, 2.0, 2.7, 5.5, 12.0, 80.0, 1000.5, 1e5]
    got = desk.evaluate("(f) => f.map(epochwattExplorer.studentT)", freedoms)
    assert got == pytest.approx([float(stdtrit(f, 0.975)) for f in freedoms], rel=1e-9)
    rng, pairs = np.random.default_rng(0), []
    for _ in range(300):
        sizes, spread = rng.integers(2, 40, 2), rng.uniform(0.001, 0.3, 2)
        pairs.append([rng.lognormal(2, s, n) for n, s in zip(sizes, spread, strict=True)])
    sides = [
        [{"n": v.size, "mean": v.mean(), "variance": v.var(ddof=1)} for v in pair] for pair in pairs
    ]
    drawn = desk.evaluate("(s) => s.map(([a, b]) => epochwattExplorer.ratio(a, b))", sides)
    for (a, b), got in zip(pairs, drawn, strict=True):
        low, high = interval(a, b)
        assert (got["low"], got["high"]) == (pytest.approx(low), pytest.approx(high))
        assert verdict_of(got["low"], got["high"], 0.05) == verdict_of(low, high, 0.05)
    for n in (1, 2, 5, 40):
        planes = rng.integers(0, 12, (2, n)).astype(float)
        got = desk.evaluate("([x, y]) => epochwattExplorer.front(x, y)", planes.tolist())
        assert got == pareto_front(*planes).tolist()


def test_one_epoch_and_a_figure_are_drawn_and_say_what_they_are(page):
    page.click("#x-tab-epoch")
    page.locator("#x-epoch-chart svg.marks").wait_for()
    head = page.locator("#x-epoch-head")
    assert "epoch 1" in head.inner_text()
    assert head.locator(".x-kind").inner_text() == "measured"
    assert "power (W)" in page.locator("#x-epoch-chart").inner_text()
    note = page.locator("#x-epoch-note").inner_text()
    assert "Every mini-batch is drawn." in note
    assert "Not recorded here: clock (MHz), temp." in note
    page.select_option("#x-number", "0")
    page.wait_for_function("document.querySelector('#x-epoch-head').innerText.includes('epoch 0')")
    call = "(name) => epochwattSpec(name, document.getElementById('spec'))"
    assert page.evaluate(call, "twin-fig02a") is True
    assert page.locator("#spec svg [aria-roledescription=bar]").count() == len(MODES)
    assert "simulated, not measured" in page.locator("#spec").inner_text()
    assert page.evaluate(call, "twin-none") is False


def test_a_run_with_its_first_epoch_alone_is_no_point(browser, tables):
    """A point is a mean of valid epochs after the first, whatever the axes are."""
    rows = read_epochs(epochs_paths(tables))
    first = rows[rows.epoch == 0]
    data = explorer(first, summarise_runs(first, {}), {}, TITLES, {})
    page = write_page(tables / "first.html", data)
    n_runs = first.run.nunique()
    with opened(browser, page) as desk:
        desk.locator("#x-count", has_text="runs shown").wait_for()
        assert desk.locator("#x-count").inner_text() == (
            f"0 of {n_runs} runs shown; {n_runs} without a valid epoch after the first left out"
        )
        assert desk.locator("#x-chart svg").count() == 0
