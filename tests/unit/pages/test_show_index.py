"""The landing page: every number is the cell that it names, and what is missing is said."""

import re
import shutil
from pathlib import Path

import planted_page
import pytest
from page_numbers import Page, differing
from planted_page import DRAWN, EXPLAINED, JUDGED, METERED, SCOPES, TITLES, claim, plant

from epochwatt.pages import show_index
from epochwatt.pages.gallery import not_drawn, takeaway_counts
from epochwatt.pages.papers import figure_title, quantity_words, run_words, unit_of


@pytest.fixture
def page(checkout, write_epochs):
    """Return a function that writes the page of runs, each a list of epochs; it gives its text."""

    def call(*runs, **planted):
        path = plant(list(zip(checkout.runs, runs, strict=False)), write_epochs, **planted)
        assert differing(path, Path()) == []
        return path.read_text("utf-8")

    return call


def numbers_of(text, column):
    return [item.text for item in Page(text).shown if item.column == column]


def test_all_numbers_are_the_cells_that_they_name(page):
    """The page's own check is in the fixture; here: that it shows what it has to."""
    text = page(
        [{}, METERED, METERED],
        [{}, {"e2e_s": 3.0, "compute_s": 1.0}, {"e2e_s": 3.0, "compute_s": 1.0}],
        findings=[claim(), claim(claim="T5.1.2a", takeaway="5.1.2", status="does_not_hold")],
        figures=[{}],
        drawn=DRAWN,
        judged=JUDGED,
        scopes=SCOPES,
    )
    assert numbers_of(text, "e2e_s") == ["3.00", "4.00", "3.00"]  # the card, then the runs
    assert numbers_of(text, "energy_wh") == ["0.0500"]
    assert numbers_of(text, "published") == ["22"]
    assert numbers_of(text, "held_out_error_pct") == ["9.1", "29.1"]
    assert len(Page(text).shown) > 25


def test_a_number_that_is_changed_afterwards_is_found(page):
    text = page([{}, {}])
    changed = text.replace(">4.00</span>", ">4.01</span>", 1)
    assert changed != text
    Path("results/index.html").write_text(changed)
    assert len(differing(Path("results/index.html"), Path())) == 1
    Path("results/index.html").write_text(
        text.replace("<td data-label", '<td class="n">9</td><td data-label', 1)
    )
    assert differing(Path("results/index.html"), Path()) == ["'9' names no cell"]


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


def test_without_ceilings_a_sentence_says_how_to_measure_them(page):
    text = page([{}, {}])
    assert "the ceilings of this machine were not measured" in text
    assert "ceilings: true" in text
    assert "by its ceilings" not in text


def test_what_others_disturbed_is_said_so_at_the_run_its_card_and_below(page):
    shared = {"flags": {"machine_shared"}}
    mark, words = "(while others used the machine)", "this machine can do better"
    undisturbed = page([{}, {}], [{}, {"e2e_s": 5.0}])
    assert mark not in undisturbed
    assert words not in undisturbed
    for folder in (Path("results/tables"), Path("results/figures/twin")):
        shutil.rmtree(folder)
    text = page([{}, shared], [{}, {"e2e_s": 5.0}])
    assert text.count(mark) == 2  # its row, and its card: it is the fastest
    assert "while 1 epoch of 1 run were measured: this machine can do better" in text
    assert "epochwatt discard --shared" in text


def test_what_failed_is_named_with_its_reason_and_log_and_is_not_linked(page):
    failed = {
        "rule": "show_claims",
        "outputs": ["results/claims.html"],
        "log": "results/logs/show_claims.log",
        "reason": "it <b>cannot</b> be\n  do: this",
        "waiting": ["results/other.svg"],
    }
    text = page([{}, {}], not_made=[failed])
    part = text.partition('id="not-made"')[2].partition("</section>")[0]
    assert "it &lt;b&gt;cannot&lt;/b&gt; be\n  do: this" in part
    assert 'href="logs/show_claims.log"' in part
    assert "results/other.svg" in part
    assert '<a href="claims.html">' not in text
    assert '<a href="summary.html">' in text


def test_a_page_without_any_table_is_a_page(page, monkeypatch):
    monkeypatch.setattr(planted_page, "write_index", _without_tables)
    text = page([{}, {}])
    assert "What was measured lies in measured/ and is kept." in text
    assert "Nothing was measured yet" not in text


def _without_tables(tables, *others, **more):
    show_index.write_index(
        {**dict.fromkeys(tables, ""), "published": tables["published"]}, *others, **more
    )


def test_without_a_sensor_a_sentence_says_so_and_there_is_no_energy(page):
    text = page([{}, {}])
    assert "No power sensor was found on this machine" in text
    assert '<th class="n">energy</th>' not in text
    assert 'held back by</dt><dd><span class="word">compute' in text


def test_a_run_with_nothing_after_its_first_epoch_is_counted(page):
    text = page([{}, {}], [{}])
    assert "1 run has no valid epoch after the first" in text


def test_without_a_measured_run_the_page_says_how_to_get_one(page):
    text = page()
    assert "Nothing was measured yet" in text
    assert "make run" in text
    assert "No figure is drawn" in text
    assert "config/plotting.yaml" in text
    assert "No run of the papers is here" in text


def test_runs_of_one_epoch_each_are_not_called_unmeasured(page):
    """As the studies of docs/tutorials/own-network.md are."""
    text = page([{}], [{}])
    assert "Nothing was measured" not in text
    assert "No epoch counts yet" in text
    assert "2 runs have no valid epoch after the first" in text
    assert "two or more epochs in config/studies.yaml" in text


def test_the_advice_of_a_run_stands_beside_it(page):
    slow = [{}, *[{"e2e_s": 10.0, "wait_s": 8.0, "compute_s": 1.0}] * 2]
    fast = [{}, *[{"e2e_s": 3.0, "wait_s": 1.0, "compute_s": 1.0}] * 2]
    text = page(slow, [{}], fast)  # the third run has two workers and the same batch
    assert "Bound by the loader: 2 workers hide 88 % of the wait (measured)." in text
    assert "10 s here, 3 s there: 70 % less" in text


def test_a_fake_board_is_called_one_and_simulated_runs_are_not_of_this_machine(
    page, checkout, monkeypatch
):
    for backend, says in (("fake", "a fake board, not measured"), ("twin", "Nothing was measured")):
        run = checkout.runs[0]
        monkeypatch.setitem(run.factors, "backend", backend)
        monkeypatch.setattr(type(checkout), "runs", [run])
        text = page([{}, {}])
        assert says in text
        assert "measured, host" not in text
        for path in (Path("results/figures/twin"), Path("results/tables")):
            path.rename(f"{path}-{backend}")


def test_published_numbers_stand_beside_ours_with_deviation_and_whether_they_were_seen(page):
    text = page(drawn=DRAWN, judged=JUDGED)
    (row,) = re.findall('<tr data-find="[^"]* s5.1.3-01".*?</tr>', text, re.S)
    cells = [re.sub("<.*?>", "", cell) for cell in re.findall("<td.*?</td>", row, re.S)]
    assert cells[1] == "AGX Xavier d1, LeNet-5, hdd, 0 workers, batch 16, mode g, epochs 1+"
    assert cells[2:6] == ["stall", "22.1&thinsp;s", "22&thinsp;s", "+0.4&thinsp;%"]
    assert cells[6:] == ["9.1&thinsp;%", "yes", "Fig. 2a "]
    assert 'href="#fig-twin-fig02a"' in row
    assert "1.3..2.7" in text  # a range, which is no number


def test_a_group_of_figures_says_which_take_aways_hold_and_what_does_not(page):
    failing = claim(
        claim="T5.1.2a",
        takeaway="5.1.2",
        status="does_not_hold",
        claim_text="c < d",
        comparison="2 < 1",
    )
    text = page(figures=[{}, {"claims": ["T5.1.2a"]}], findings=[claim(), failing], drawn=DRAWN)
    assert "SIGMETRICS 2023, 5.1 Loader workers and page cache" in text
    assert "simulated, twin: 1 of 2 take-aways holds" in text
    assert "<li>T5.1.2a (simulated, twin): c &lt; d. 2 &lt; 1</li>" in text
    assert text.count("T5.1.2a does not hold") == 1
    assert 'href="figures/twin/fig02a.csv"' in text


def test_a_panel_without_a_value_is_named_with_its_reason(page):
    empty = DRAWN.replace("22.0871,", ",not measured").replace("22.0,,S5.1.3-01,exact,True", ",,,,")
    text = page(figures=[{}], drawn=empty)
    assert "Not drawn: not measured" in text
    assert '"images":{}' in text


def test_what_a_panel_lacks_is_said_once(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("value,missing\n,no sensor\n,no sensor\n,excluded\n")
    assert not_drawn(str(path)) == "no sensor; excluded"
    path.write_text("value,missing\n,no sensor\n1,\n")
    assert not_drawn(str(path)) == ""


def test_a_take_away_holds_if_its_core_claims_do_and_counts_if_it_can_be_judged():
    rows = [
        claim(takeaway="1"),
        claim(takeaway="1", role="quant", status="does_not_hold"),
        claim(takeaway="2", role="support", status="does_not_hold"),
        claim(takeaway="3", status="not_evaluable"),
    ]
    assert takeaway_counts(rows) == (1, 2)


def test_the_page_is_the_same_from_the_same_tables(page):
    text = page([{}, {}], figures=[{}], drawn=DRAWN)
    for path in (Path("results/figures/twin"), Path("results/tables")):
        path.rename(f"{path}-before")
    assert page([{}, {}], figures=[{}], drawn=DRAWN) == text


def test_the_page_loads_nothing(page):
    text = page([{}, {}], figures=[{}], drawn=DRAWN)
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', text)
    assert "@import" not in text


@pytest.mark.parametrize(
    ("quantity", "words", "unit"),
    [
        ("stall_s", "stall", "s"),
        ("energy_paper_wh", "energy paper", "Wh"),
        ("stall_ms_per_minibatch", "stall per mini-batch", "ms"),
        ("e2e_s", "E2E", "s"),
        ("stall_s/e2e_s", "stall / E2E", "s"),
    ],
)
def test_quantities_are_in_words(quantity, words, unit):
    assert (quantity_words(quantity, ""), unit_of(quantity)) == (words, unit)


def test_panels_have_the_papers_numbers():
    assert [figure_title(p) for p in ("fig02a", "hipcw_fig06d", "fig10b", "validation")] == [
        *("Fig. 2a", "Fig. 6d", "Fig. 10b", "validation")
    ]


def test_a_run_is_in_words():
    cells = {"device": "agx", "model": "lenet", "num_workers": "1", "dataset_scale": "0.25"}
    assert run_words(cells, TITLES) == "AGX Xavier, LeNet-5, 1 worker, data x0.25"


def test_the_caption_that_a_figure_wrote_beside_it_is_taken_and_its_reason_too(page):
    Path("results/figures/twin").mkdir(parents=True)
    text = "fig02a: Time.\n\nNot drawn: no power\ncould be read.\n\nWhat it\nwould show.\n"
    Path("results/figures/twin/fig02a.txt").write_text(text)
    shown = page(figures=[{}], drawn=DRAWN)
    assert "Not drawn: no power could be read." in shown
    assert "<p>What it would show.</p>" in shown
    assert "What one sees" not in shown


@pytest.mark.parametrize("further", [(), ("external.html",), ("sweeps/sweep_scores.html",)])
def test_pages_that_few_starts_make_are_linked_where_they_are(page, further):
    text = page([{}, {}], further=further)
    paths = ("external.html", "sweeps/sweep_scores.html")
    assert [path for path in paths if f'href="{path}"' in text] == [*further]
