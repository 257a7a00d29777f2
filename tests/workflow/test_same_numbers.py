"""Landing page, figures and claims of a paper's simulated runs say one number for one thing."""

import contextlib

import pytest
from page_numbers import contradicting, differing, papers_rows

from epochwatt.claims.claims_table import read_claims_table
from epochwatt.twin.calibrate_twin import MODELS, write_validation

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.thorough]
STUDY = "sigmetrics-pipeline"


@pytest.fixture(scope="module")
def made(shop):
    """A checkout in which the runs of Fig. 2 were simulated, of three epochs each."""
    checkout = shop.checkout()
    study = checkout.read_yaml("config/studies.yaml")[STUDY] | {"epochs": 3}
    checkout.configure(drawn=(STUDY,), **{STUDY: study})
    checkout.write_yaml("config/config.yaml", {"studies": ["simulated"]})
    checkout.make()
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
    assert ours["RS5.1.7-03"].replace("\u2212", "-") in claims["T5.1.7b"].in_words
    assert ours["RS5.1.4-03"].replace("\u2212", "-") in claims["T5.1.4c"].in_words
    drawn = [row for row in rows(made) if row.section in ("5.1.3", "5.1.4", "5.1.7")]
    assert {row.id[0] for row in drawn if row.figures} == {"R", "S"}
    assert [row.id for row in drawn if not row.figures] == []


def test_the_validation_is_that_of_the_committed_refits(made, tmp_path):
    paths = [f"results/twin/workloads/{model}.json" for model in MODELS]
    found = [tmp_path / name for name in ("validation.csv", "groupings.csv", "validation.txt")]
    with contextlib.chdir(made):
        write_validation(paths, *map(str, found))
    for path in found:
        assert (made / "results/twin" / path.name).read_bytes() == path.read_bytes()
