"""The claims for people, by take-away."""

import re

import pytest

from epochwatt.claims.claims_table import ClaimRow, write_claims_table
from epochwatt.pages.show_claims import write_claims

TWIN = {"backend": "twin", "status_held_out": "holds", "rests_on": "mechanism", "fragile": "no"}
HOST = {"backend": "host", "status_held_out": "", "rests_on": "", "fragile": ""}


@pytest.fixture
def shown(tmp_path, pytestconfig):
    """Return a function that shows findings, each what differs from a claim that holds."""

    def call(*findings):
        told = dict.fromkeys(ClaimRow._fields, "") | {"claim": "T1a", "takeaway": "1"}
        told |= {"paper": "sigmetrics2023", "role": "core", "claim_text": "a < b", "form": "paper"}
        rows = [
            ClaimRow(**told | {"status": "holds", "comparison": "a < b: 1 < 2"} | f)
            for f in findings
        ]
        write_claims_table(str(tmp_path / "claims.csv"), rows)
        published = str(pytestconfig.rootpath / "config/published")
        write_claims(str(tmp_path / "claims.csv"), published, str(tmp_path / "claims.html"))
        return (tmp_path / "claims.html").read_text("utf-8")

    return call


def rows(page):
    """Return the texts of the cells of each row below a header."""
    found = re.findall("<tr[^>]*><td.*?</tr>", page, re.S)
    return [
        [re.sub("<.*?>", " ", cell).split() for cell in re.findall("<td.*?</td>", row, re.S)]
        for row in found
    ]


def test_claims_stand_below_their_takeaway_in_the_papers_order(shown):
    page = shown(
        HOST | {"status": "not_evaluable", "claim": "T1a"},
        TWIN | {"claim": "T2a", "takeaway": "2"},
        TWIN | {"claim": "T1a"},
        TWIN | {"claim": "TH-IIIa", "takeaway": "H-III", "paper": "hipcw2021"},
    )
    headings = re.findall("<h[23]>(.*?)</h[23]>", page)[:-1]
    assert [heading.strip() for heading in headings] == [
        *("SIGMETRICS 2023", "1", "2", "HiPCW 2021", "H-III")
    ]


def test_a_take_away_stands_with_the_papers_sentence_and_its_numbers(shown):
    quote = "Enabling DVFS has negligible effect on the E2E time or the energy consumed per epoch."
    page = shown(TWIN | {"takeaway": "5.5.1", "claim": "T5.5.1b"})
    assert f"<h3>5.5.1 “{quote}”</h3>" in page
    assert "at most 2 % in time and 3 % in energy" in page
    assert page.count(quote) == 2  # in the contents, too, and whole


def test_links_of_other_pages_lead_to_the_row_of_a_claim_and_back(shown):
    page = shown(
        HOST | {"form": "general", "board": "own host local"}, TWIN, TWIN | {"claim": "T1b"}
    )
    assert re.findall('<tr[^>]* id="(.*?)">', page) == ["T1a", "T1b"]
    assert '<a href="index.html#papers">' in page


def test_a_simulated_claim_says_how_it_was_judged_and_on_what_it_rests(shown):
    (row,) = rows(shown(TWIN | {"status_held_out": "does_not_hold", "fragile": "yes"}))
    assert [" ".join(cell) for cell in row] == [
        *("T1a (core)", "a &lt; b", "simulated, twin", "holds", "does not hold"),
        *("mechanism, fragile", "as computed a &lt; b: 1 &lt; 2"),
    ]


def test_a_claim_that_fails_shows_in_words_by_what_and_why_in_view(shown):
    words = {"in_words": "published as more, here 1 s against 2 s; our tolerance: 3 points"}
    page = shown(TWIN | {"status": "does_not_hold", "why": "missing: x; contradiction: y"} | words)
    in_view = re.sub("<details.*?</details>", "", page, flags=re.S)
    assert "<div>published as more, here 1 s against 2 s</div>" in in_view
    assert "<div>our tolerance: 3 points</div>" in in_view
    assert "a &lt; b: 1 &lt; 2" in page
    assert "a &lt; b: 1 &lt; 2" not in in_view
    assert "missing: x</div>" in page
    assert "contradiction: y</div>" in page


def test_a_simulated_claim_that_cannot_be_evaluated_says_what_is_missing(shown):
    page = shown(TWIN | {"status": "not_evaluable", "comparison": "", "missing": "software stacks"})
    assert rows(page)[0][3] == ["not", "evaluable"]
    assert rows(page)[0][-1] == ["software", "stacks"]


@pytest.mark.parametrize(
    ("backend", "where"), [("host", "measured, host"), ("fake", "not measured, fake board")]
)
def test_a_board_is_named_with_where_its_data_are_from_and_held_out_of_nothing(
    backend, where, shown
):
    page = shown(HOST | {"backend": backend, "form": "general", "board": "own host local"})
    assert " ".join(rows(page)[0][2]) == f"own host local; {where}"
    assert "held out</th>" not in page


def test_measured_runs_that_are_missing_are_folded_together(shown):
    gone = {"status": "not_evaluable", "comparison": "", "missing": "run sigmetrics2023 agx"}
    page = shown(HOST | gone, HOST | gone | {"claim": "T1b"}, TWIN)
    above, _, below = page.partition("What further measurements would show")
    assert "T1b" not in above
    assert "claims" not in re.findall("<summary>.*?</summary>", below)[0]  # no count of one's own
    assert below.count("run sigmetrics2023 agx") == 2


def test_without_findings_the_page_says_only_what_it_is(shown):
    page = shown()
    assert "<h1>Claims</h1>" in page
    assert "<table" not in page


def test_claims_are_listed_and_may_be_chosen_by_status(shown):
    page = shown(TWIN, TWIN | {"claim": "T2a", "takeaway": "2", "status": "does_not_hold"})
    for takeaway in ("1", "2"):
        assert f'<a href="#takeaway-{takeaway}">' in page
        assert f'<section id="takeaway-{takeaway}">' in page
    assert re.findall('id="only-(.*?)"', page) == ["holds", "does_not_hold"]
    assert re.findall('<tr data-status="(.*?)"', page) == ["holds", "does_not_hold"]
