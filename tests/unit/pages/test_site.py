"""The landing page: every number is the cell that it names, and what is missing is said."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import planted_page
import pytest
from page_numbers import Page, differing
from planted_page import DRAWN, EXPLAINED, JUDGED, METERED, SCOPES, UNDRAWN, claim, plant

from epochwatt.pages import site


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


def test_what_is_counted_of_predictions_is_judged_as_other_published_numbers_are(page):
    """Within 3 points or a bound it is good; counts are judged by claims alone."""
    about = "twin,agx,d1,paper,paper,all,all"
    path = Path("statistics.csv")
    path.write_text(
        "backend,device,instance,method,learned_from,modes,networks,target,statistic,"
        "value,n_predictions,published,n_published,published_id\n"
        f'{about},time_s,"mean MAPE, %",14.9,,12,,S5.7-02\n'
        f'{about},energy_wh,"worst MAPE, %",21.9,,25,,S5.7.3-01\n'
        f'{about},energy_wh,"worst MAPE, %",30,,55,,S5.7.3-05\n'
        f"{about},time_s,below 10 %,1,40,31,40,S5.7.2-01\n"
    )
    text = page([{}], figures=[{}], drawn=DRAWN, further_numbers=[str(path)])
    lines = dict(re.findall(r'<tr[^>]*data-id="(S5.7[^"]*)"[^>]*>(.*?)</tr>', text, re.S))
    grades = {
        name: re.findall(r'class="(?:value )?(good|bad)"', line) for name, line in lines.items()
    }
    assert grades == {
        **{"S5.7-02": ["good"], "S5.7.3-01": ["bad"], "S5.7.3-05": ["good"], "S5.7.2-01": []}
    }


def test_a_number_that_is_changed_afterwards_is_found(page):
    text, path = page([{}, {}]), Path("results/index.html")
    path.write_text(text.replace(">4.00</span>", ">4.01</span>", 1))
    assert len(differing(path, Path())) == 1
    path.write_text(text.replace("<td data-label", '<td class="n">9</td><td data-label', 1))
    assert differing(path, Path()) == ["'9' names no cell"]


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
    assert "its ceilings" not in text
    assert ("Nothing was measured" in text) is not bool(runs)


@pytest.mark.parametrize(
    ("backend", "says"), [("fake", "a fake board, not measured"), ("twin", "Nothing was measured")]
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


def test_the_page_is_the_same_from_the_same_tables_and_the_overview_a_part_of_it(page):
    made = {"figures": [{}], "drawn": DRAWN, "overview": "results/overview.html"}
    text = page([{}, {}], **made)
    overview = Path("results/overview.html").read_text("utf-8")
    assert page([{}, {}], **made) == text
    assert 'id="figures"' in text
    assert 'id="figures"' not in overview
    assert Page(overview).shown == Page(text).shown


# -- take-aways and figures -----------------------------------------------------------------------
