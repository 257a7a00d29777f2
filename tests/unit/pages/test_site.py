"""The landing page: every number is the cell that it names, and what is missing is said."""

import html
import re
import shutil
from dataclasses import replace
from pathlib import Path

import planted_page
import pytest
from page_numbers import Page, differing
from planted_page import (
    DRAWN,
    EXPLAINED,
    JUDGED,
    METERED,
    SCOPES,
    TITLES,
    UNDRAWN,
    claim,
    plant,
)

from epochwatt.claims.takeaway_counts import takeaway_counts
from epochwatt.pages import machine, site
from epochwatt.pages.gallery import not_drawn
from epochwatt.pages.papers import figure_title, quantity_words, run_words
from epochwatt.published.numbers import load_published


@pytest.fixture
def page(checkout, write_epochs):
    """Return a function that writes the page of runs, each a list of epochs; it gives its text."""

    def call(*runs, **planted):
        for folder in ("results/tables", "results/runs"):
            shutil.rmtree(folder, ignore_errors=True)
        path = plant(list(zip(checkout.runs, runs, strict=False)), write_epochs, **planted)
        assert differing(path, Path()) == []
        return path.read_text("utf-8")

    return call


def numbers_of(text, column):
    return [item.text for item in Page(text).shown if item.column == column]


def row_of(name, text):
    """Return the texts of the cells of the row of a published number."""
    (row,) = re.findall(f'<tr [^>]*data-id="{name}".*?</tr>', text, re.S)
    return [plain(cell) for cell in re.findall("<td.*?</td>", row, re.S)]


def plain(markup):
    return html.unescape(re.sub("<.*?>", "", markup)).replace("\u2009", " ").strip()


# -- the machine at hand --------------------------------------------------------------------------


def test_all_numbers_are_the_cells_that_they_name(page):
    """The page's own check is in the fixture; here: that it shows what it has to."""
    text = page(
        [{}, METERED, METERED],
        [{}, {"e2e_s": 3.0, "compute_s": 1.0}, {"e2e_s": 3.0, "compute_s": 1.0}],
        findings=[claim(), claim(claim="T5.1.2a", takeaway="5.1.2", status="does_not_hold")],
        figures=[{}],
        drawn=DRAWN,
        judged=JUDGED,
        undrawn=UNDRAWN,
        scopes=SCOPES,
    )
    assert numbers_of(text, "e2e_s") == ["3.00", "4.00", "3.00"]  # the card, then the runs
    assert numbers_of(text, "energy_wh") == ["0.0500"]
    assert numbers_of(text, "published") == ["22", "2.5", "1.8"]
    assert numbers_of(text, "held_out_prediction") == ["\u22129.1", "\u00d7\u20090.747"]
    assert len(Page(text).shown) > 25
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', text)  # it loads nothing
    assert "@import" not in text


def test_a_number_that_is_changed_afterwards_is_found(page):
    text, path = page([{}, {}]), Path("results/index.html")
    path.write_text(text.replace(">4.00</span>", ">4.01</span>", 1))
    assert len(differing(path, Path())) == 1
    path.write_text(text.replace("<td data-label", '<td class="n">9</td><td data-label', 1))
    assert differing(path, Path()) == ["'9' names no cell"]


def test_energy_is_stacked_by_the_sensors_that_tell(page):
    text = page([{}, METERED, METERED], scopes=SCOPES)
    assert "energy of the GPU" in text
    assert '<i class="part gpu" style="width:83.33%">' in text
    assert '<i class="part cpu" style="width:16.67%">' in text
    assert "No power sensor" not in text


def test_what_holds_a_run_back_by_its_ceilings_stands_beside_it(page):
    text = page([{}, {}], explanations=EXPLAINED)
    assert "Bound by compute, its limit is memory." in text
    assert "2 cores: 10 % less time" in text
    assert '<i class="part bandwidth" style="width:30.00%">' in text
    assert '<i class="part stall" style="width:30.00%">' in text  # loader and copy
    assert "ceilings of this machine were not measured" not in text


def test_what_others_disturbed_is_said_so_at_the_run_its_card_and_below(page):
    mark, words = "(while others used the machine)", "this machine can do better"
    undisturbed = page([{}, {}], [{}, {"e2e_s": 5.0}])
    assert mark not in undisturbed
    assert words not in undisturbed
    text = page([{}, {"flags": {"machine_shared"}}], [{}, {"e2e_s": 5.0}])
    assert text.count(mark) == 2  # its row, and its card: it is the fastest
    assert f"while 1 epoch of 1 run were measured: {words}" in text
    assert "epochwatt discard --shared" in text


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        (
            [],
            ["Nothing was measured yet", "make run", "No figure is drawn", "config/plotting.yaml"],
        ),
        (  # as the studies of docs/tutorials/own-network.md are
            [[{}], [{}]],
            ["No epoch counts yet", "2 runs have no valid epoch after the first",
             "two or more epochs in config/studies.yaml"],
        ),
        (
            [[{}, {}], [{}]],
            ["1 run has no valid epoch after the first", "No power sensor was found on this",
             'held back by</dt><dd><span class="word">compute', "ceilings: true",
             "the ceilings of this machine were not measured", "No run of the papers is here"],
        ),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_and_how_to_get_it(page, runs, said):
    text = page(*runs)
    assert [words for words in said if words not in text] == []
    assert '<th class="n">energy' not in text
    assert "by its ceilings" not in text
    assert ("Nothing was measured" in text) is not bool(runs)


def test_the_advice_of_a_run_stands_beside_it(page):
    slow = [{}, *[{"e2e_s": 10.0, "wait_s": 8.0, "compute_s": 1.0}] * 2]
    fast = [{}, *[{"e2e_s": 3.0, "wait_s": 1.0, "compute_s": 1.0}] * 2]
    text = page(slow, [{}], fast)  # the third run has two workers and the same batch
    assert "Bound by the loader: 2 workers hide 88 % of the wait (measured)." in text
    assert "10 s here, 3 s there: 70 % less" in text


@pytest.mark.parametrize(
    ("backend", "says"),
    [("fake", "a fake board, not measured"), ("twin", "Nothing was measured")],
)
def test_a_fake_board_is_called_one_and_simulated_runs_are_not_of_this_machine(
    page, checkout, monkeypatch, backend, says
):
    run = checkout.runs[0]
    monkeypatch.setitem(run.factors, "backend", backend)
    monkeypatch.setattr(type(checkout), "runs", [run])
    text = page([{}, {}])
    assert says in text
    assert "measured, host" not in text


def test_a_further_quantity_is_one_row(page, monkeypatch):
    further = machine.Quantity("cpu_util_pct", on_card=True)
    monkeypatch.setattr(machine, "QUANTITIES", (*machine.QUANTITIES, further))
    text = page([{}, {"cpu_util_pct": 40.0}])
    assert numbers_of(text, "cpu_util_pct") == ["40.0", "40.0"]  # the card, then the run
    assert text.count(">CPU utilisation</") == 2


# -- what failed, and what is linked --------------------------------------------------------------


def test_what_failed_is_named_with_its_reason_and_log_and_is_not_linked(page, monkeypatch):
    failed = {
        "rule": "advise_runs",
        "outputs": ["results/tables/advice.csv"],
        "log": "results/logs/advise_runs.log",
        "reason": "it <b>cannot</b> be\n  do: this",
        "waiting": ["results/other.svg"],
    }
    text = page([{}, {}], not_made=[failed])
    part = text.partition('id="not-made"')[2].partition("</section>")[0]
    assert "it &lt;b&gt;cannot&lt;/b&gt; be\n  do: this" in part
    assert 'href="logs/advise_runs.log"' in part
    assert "results/other.svg" in part
    assert '<a href="tables/advice.csv">' not in text
    assert '<a href="tables/runs.csv">' in text

    def without_tables(results, *others):
        none = {**dict.fromkeys(results.tables, ""), "published": results.tables["published"]}
        site.write_index(replace(results, tables=none), *others)

    monkeypatch.setattr(planted_page, "write_index", without_tables)
    text = page([{}, {}])
    assert "What was measured lies in measured/ and is kept." in text
    assert "Nothing was measured yet" not in text


@pytest.mark.parametrize("further", [(), ("powertrain/index.html",), ("sweeps/sweep_scores.html",)])
def test_pages_that_few_starts_make_are_linked_where_they_are(page, further):
    text = page([{}, {}], further=further)
    paths = ("powertrain/index.html", "sweeps/sweep_scores.html")
    assert [path for path in paths if f'href="{path}"' in text] == [*further]


def test_the_page_is_the_same_from_the_same_tables_and_the_overview_a_part_of_it(page):
    made = {"figures": [{}], "drawn": DRAWN, "overview": "results/overview.html"}
    text = page([{}, {}], **made)
    overview = Path("results/overview.html").read_text("utf-8")
    assert page([{}, {}], **made) == text
    assert 'id="figures"' in text
    assert 'id="figures"' not in overview
    assert Page(overview).shown == Page(text).shown


# -- published numbers beside ours ----------------------------------------------------------------


def test_published_numbers_stand_beside_ours_with_deviation_and_whether_they_were_seen(page):
    twice = "twin,stall_s,99,,22,,S5.1.3-01,exact,True\n"  # that a figure draws, too
    text = page(drawn=3 * DRAWN, judged=JUDGED, undrawn=UNDRAWN + twice, figures=[{}])
    assert row_of("S5.1.3-01", text)[1:] == [
        *("AGX Xavier d1, LeNet-5, hdd, 0 workers, batch 16, mode g, epochs 1+", "stall"),
        *("22 s", "22.1 s", "+0.4 %", "\u22129.1 %", "yes", "Fig. 2a"),
    ]
    assert row_of("RS5.1.3-01", text)[-1] == ""


def change(name, here, published, qualifier="exact", model=""):
    """Return the row of a figure's table of a change between runs."""
    return f",twin,,,{model},,,,,,{name},{here},,{published},,{name},{qualifier},True\n"


@pytest.mark.parametrize(
    ("name", "here", "published", "qualifier", "paper", "ours", "deviation"),
    [  # a change in %, a factor, bounds that are met and not
        ("RS5.1.7-04", -16.686, -20.1, "exact", "\u221220.1 %", "\u221216.7 %", "+3.4 points"),
        ("RS5.1.4-03", -22.702, -17.7, "exact", "\u221217.7 %", "\u221222.7 %", "\u22125.0 points"),
        ("RS5.1.3-03", 1.8987, 2.4, "exact", "2.4 \u00d7", "1.90 \u00d7", "\u00d7 0.791"),
        ("RS5.5.1-02", 16.69, 3, "at_most", "\u22643 %", "16.7 %", "+13.7 points"),
        ("RS5.5.1-01", 0.25, 2.6, "at_most", "\u22642.6 %", "0.2 %", "within"),
        (
            *("RS5.6.6-12", -7.0, -6.8, "at_least", "\u2265\u22126.8 %", "\u22127.0 %"),
            "\u22120.2 points",
        ),
    ],
)
def test_a_deviation_says_in_what_it_is(
    page, name, here, published, qualifier, paper, ours, deviation
):
    text = page(figures=[{}], drawn=change(name, here, published, qualifier))
    row = row_of(name, text)
    assert row[3:6] == [paper, ours, deviation]
    assert row[-1] == "Fig. 2a"  # brackets are drawn, too


def test_changes_name_their_run_and_ranges_are_in_words(page):
    models = {"lenet": 16.69, "resnet": 0.93}
    rows = [change("RS5.5.1-02", here, 3, "at_most", m) for m, here in models.items()]
    wide = "twin,energy_wh,27.4,,27,,RS5.6.3-01,approx,True\n"
    text = page(drawn="".join(rows), undrawn=UNDRAWN + wide)
    names = re.findall(
        'data-id="RS5.5.1-02".*?data-label="run, or change"[^>]*>(.*?)</td>', text, re.S
    )
    assert names == [
        f"AGX Xavier, {m}, ssd, mode g, DVFS off \u2192 on" for m in ("LeNet-5", "resnet")
    ]
    assert row_of("RS5.1.7-06", text)[3:6] == [
        "1.8 \u00d7 to 3.9 \u00d7",
        "1.90 \u00d7 to 2.70 \u00d7",
        "within",
    ]
    assert "modes a to f, k to n" in row_of("RS5.6.3-01", text)[1]
    assert "|" not in "".join(re.findall("<tr data-find.*?</tr>", text, re.S))


def test_what_a_paper_counts_of_its_predictions_is_a_row(page):
    columns = "backend,device,instance,target,method,networks,modes,learned_from,statistic,value,"
    columns += "published,published_id,n_predictions,n_published\n"
    table = Path("results/models/twin/statistics.csv")
    table.parent.mkdir(parents=True)
    row = "twin,agx,d1,time_s,{},all,{},{},below 10 %,{},31,S5.7.2-01,{},40\n"
    rows = [("paper", "all", "paper", 35, 40), ("paper", "not trained on", "paper", 19, 24)]
    rows += [("log", "all", "paper", 34, 40), ("paper", "all", "published", 32, 40)]
    table.write_text(columns + "".join(row.format(*cells) for cells in rows))
    cells = row_of("S5.7.2-01", page(drawn=DRAWN, further_numbers=[str(table)]))
    assert cells[:6] == [
        *("5.7.2", "AGX Xavier d1, all networks", "predicted times: below 10 %"),
        *("31 of 40", "35 of 40", "+4"),
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("S5.1.3-01", "stall"),
        ("S5.1.6-02", "stall per mini-batch"),
        ("RS5.1.4-01", "stall / E2E, share"),
        ("RS5.1.4-03", "E2E, mean change"),
        ("RS5.1.3-01", "stall, factor"),
        ("S5.3.1-06", "GPU util"),
        ("S5.4.1-01", "epochs in 15 h"),
    ],
)
def test_quantities_are_in_words(name, words, pytestconfig):
    facts = load_published(pytestconfig.rootpath / "config/published").facts()
    assert quantity_words(facts[name]) == words


def test_panels_have_the_papers_numbers_and_runs_are_in_words():
    assert [figure_title(p) for p in ("fig02a", "hipcw_fig06d", "fig10b", "validation")] == [
        *("Fig. 2a", "Fig. 6d", "Fig. 10b", "validation")
    ]
    cells = {"device": "agx", "model": "lenet", "num_workers": "1", "dataset_scale": "0.25"}
    assert run_words(cells, TITLES) == "AGX Xavier, LeNet-5, 1 worker, data x0.25"


# -- take-aways and figures -----------------------------------------------------------------------


def test_the_papers_words_are_searched_and_each_take_away_stands_with_its_sentence(page):
    words = "Xavier NX: published a factor of 2.4, here 1.9; our tolerance: 15 %"
    failing = claim(
        claim="T5.1.3c",
        takeaway="5.1.3",
        role="quant",
        status="does_not_hold",
        claim_text="By how much",
        comparison="near(a, 2.4): 1.9 near 2.4",
        in_words=words,
        why="the simulation lacks: x",
    )
    holding = claim(claim="T5.1.3a", takeaway="5.1.3")
    text = page(drawn=DRAWN, figures=[{"claims": ["T5.1.3c"]}], findings=[holding, failing])
    assert "1 of 1 take-away holds as simulated" in text
    rows = re.findall("<tr .*?</tr>", text.partition('id="takeaways-sigmetrics2023"')[2], re.S)
    shown = plain(next(row for row in rows if "takeaway-5.1.3" in row))
    for said in ("\u201cPipelining reduces the stall time.\u201d", "holds, with exceptions", words):
        assert said in shown
    for kind in ("takeaways", "numbers"):
        (body,) = re.findall(f'id="{kind}-sigmetrics2023".*?</table>', text, re.S)
        assert re.search('data-find="[^"]*pipelining', body)
    assert re.search('class="thumb"[^>]*data-find="[^"]*pipelining', text)
    assert '<a href="#T5.1.3c">T5.1.3c</a>' in text.partition('class="thumb"')[2]


def test_a_group_of_figures_says_which_take_aways_hold_and_what_does_not(page):
    failing = claim(
        claim="T5.1.2a",
        takeaway="5.1.2",
        status="does_not_hold",
        claim_text="c < d",
        in_words="published < 1 s, here 2 s",
    )
    text = page(figures=[{}, {"claims": ["T5.1.2a"]}], findings=[claim(), failing], drawn=DRAWN)
    assert "SIGMETRICS 2023, 5.1 Loader workers and page cache" in text
    assert "simulated, twin: 1 of 2 take-aways holds" in text
    group = text.partition('class="group"')[2]
    (line,) = re.findall("<li>(.*?)</li>", group.partition("</details>")[0], re.S)
    assert plain(line) == "T5.1.2a c < d: published < 1 s, here 2 s"
    assert group.count("does not hold:") == 1
    assert 'href="figures/twin/fig02a.csv"' in text


def test_a_take_away_holds_if_its_core_claims_do_and_counts_if_it_can_be_judged():
    rows = [
        claim(takeaway="1"),
        claim(takeaway="1", role="quant", status="does_not_hold"),
        claim(takeaway="2", role="support", status="does_not_hold"),
        claim(takeaway="3", status="not_evaluable"),
    ]
    assert takeaway_counts(rows) == "1 of 2 take-aways holds"


def test_a_panel_without_a_value_is_named_with_its_reason(page, tmp_path):
    empty = DRAWN.replace("22.0871,", ",not measured").replace("22.0,,S5.1.3-01,exact,True", ",,,,")
    text = page(figures=[{}], drawn=empty)
    assert "Not drawn: not measured" in text
    assert '"images":{}' in text
    path = tmp_path / "p.csv"
    path.write_text("value,missing\n,no sensor\n,no sensor\n,excluded\n")
    assert not_drawn(str(path)) == "no sensor; excluded"
    path.write_text("value,missing\n,no sensor\n1,\n")
    assert not_drawn(str(path)) == ""


def test_what_a_figure_wrote_beside_it_is_taken(page):
    stem = Path("results/figures/twin/fig02a")
    stem.parent.mkdir(parents=True)
    stem.with_suffix(".claims.csv").write_text(
        "claim,takeaway,sentence,subject,published,here,tolerance,published_id\n"
        "T5.1.3c,5.1.3,By how much,Xavier NX,a factor of 2.4,1.9,15 %,RS5.1.3-03\n"
    )
    thumb = page(figures=[{}], drawn=DRAWN).partition('class="thumb"')[2]
    table = re.search('class="differing".*?</table>', thumb, re.S)[0]
    texts = [plain(cell) for cell in re.findall("<td.*?</td>", table)]
    assert texts == ["T5.1.3c By how much", "Xavier NX", "a factor of 2.4", "1.9", "15 %"]
    text = "fig02a: Time.\n\nNot drawn: no power\ncould be read.\n\nWhat it\nwould show.\n"
    stem.with_suffix(".txt").write_text(text)
    shown = page(figures=[{}], drawn=DRAWN)
    assert "Not drawn: no power could be read." in shown
    assert '<p class="caption">What it would show.</p>' in shown
    assert "What one sees" not in shown
