"""Landing page, figures and claims of a paper's simulated runs say one number for one thing."""

import re

import pytest
from page_numbers import contradicting, differing, papers_rows

from epochwatt.claims.claims_table import read_claims_table

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
STUDY = "sigmetrics-pipeline"


@pytest.fixture(scope="module")
def made(shop):
    """A checkout in which the runs of Fig. 2 were simulated, of three epochs each."""
    checkout = shop.checkout()
    study = checkout.read_yaml("config/studies.yaml")[STUDY] | {"epochs": 3}
    checkout.configure(drawn=(STUDY,), **{STUDY: study})
    checkout.write_yaml("config/config.yaml", {"studies": ["simulated"]})
    outcome = checkout.make()
    assert outcome.status == 0, outcome.text
    return checkout.root


def rows(root):
    return papers_rows((root / "results/index.html").read_text("utf-8"))


def test_the_papers_table_the_figures_and_the_claims_do_not_contradict_each_other(made):
    page = made / "results/index.html"
    assert contradicting(page, made) == []
    assert differing(page, made) == []
    claims = {c.claim: c for c in read_claims_table(str(made / "results/claims.csv"))}
    assert claims["T5.1.7b"].status == "does_not_hold"
    ours = {row.id: row.ours for row in rows(made)}
    assert ours["RS5.1.7-05"].replace("\u2212", "-") in claims["T5.1.7b"].in_words
    assert ours["RS5.1.4-03"].replace("\u2212", "-") in claims["T5.1.4c"].in_words


def test_what_a_figure_draws_is_linked_changes_too(made):
    drawn = [row for row in rows(made) if row.section in ("5.1.3", "5.1.4", "5.1.7")]
    assert {row.id[0] for row in drawn if row.figures} == {"R", "S"}
    assert [row.id for row in drawn if not row.figures] == []


def test_a_number_that_differs_is_found(made):
    """Else the test above could not fail."""
    table = made / "results/figures/twin/fig02c.csv"
    page, was = made / "results/index.html", table.read_text()
    (line,) = [line for line in was.splitlines() if "RS5.1.7-04" in line]
    here = re.search(r"-1\d\.\d+", line)[0]
    try:
        table.write_text(was.replace(here, f"{float(here) - 2}"))
        assert any("RS5.1.7-04" in text for text in contradicting(page, made))
    finally:
        table.write_text(was)
    claims = made / "results/claims.csv"
    was = claims.read_text()
    changed = re.sub(r": -3\d\.\d+ % near -38.9 %", ": -28.4 % near -38.9 %", was)
    assert changed != was
    try:
        claims.write_text(changed)
        assert any("T5.1.7b" in text for text in contradicting(page, made))
    finally:
        claims.write_text(was)
