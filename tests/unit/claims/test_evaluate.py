"""Verdicts: of made-up epochs, and of the papers' own numbers."""

from dataclasses import replace
from pathlib import Path

import pytest
from published_table import PublishedTable

from epochwatt import columns
from epochwatt.claims import expression
from epochwatt.claims.evaluate import TAKEAWAYS, evaluate, load_claims, namespace
from epochwatt.claims.number_sources import EpochTable
from epochwatt.errors import ConfigError
from epochwatt.study.settings import load_settings
from epochwatt.tables import read_cells

ROOT = Path(__file__).resolve().parents[3]
EVALUABLE = 35  # of the 113 predicates, on the printed numbers alone


@pytest.fixture(scope="module")
def printed(claims, measurements, terms):
    """Verdicts on the printed numbers, by id."""
    table = PublishedTable(measurements.values())
    return {v.claim.id: v for v in evaluate(claims.values(), table, terms)}


def test_takeaways_are_complete_and_of_the_language(claims, terms):
    names = namespace(EpochTable(), "sigmetrics2023", terms)
    for claim in claims.values():
        expression.parse(claim.predicate, claim.id, names)
        assert claim.claim
        assert claim.threshold_source
    assert len(claims) == 113
    assert len({claim.takeaway for claim in claims.values()}) == 42  # 37 numbered, 5 side notes
    assert {claim.role for claim in claims.values()} == {"core", "quant", "support", "side"}
    assert len({c.takeaway for c in claims.values() if c.role == "core"}) == 37


# it compares shares, as the paper speaks of them: its bound is ours
STRICTER = {"T5.6-baseloadb"}


def test_ids_and_takeaways_are_those_of_a_second_transcription(claims, request):
    path = request.config.rootpath / "tests/data/published/takeaways.csv"
    rows = {row["id"]: row for row in read_cells(path)}
    for key in ("takeaway", "paper", "section", "role", "threshold_source"):
        ours = {i: getattr(c, key) for i, c in claims.items()}
        theirs = {i: row[key] for i, row in rows.items()}
        different = {i for i in theirs if ours[i] != theirs[i]}
        assert different <= (STRICTER if key == "threshold_source" else set())
        assert ours.keys() == theirs.keys()


def test_predicates_agree_with_the_printed_numbers(printed):
    told = {i: v.sides for i, v in printed.items() if v.status == "does_not_hold"}
    assert told == {}
    assert sum(v.status == "holds" for v in printed.values()) == EVALUABLE


def test_each_evaluable_predicate_turns_with_a_changed_number(claims, printed, measurements, terms):
    def turns(name, read, change):
        other = replace(measurements[read], value=change(measurements[read].value))
        table = PublishedTable({**measurements, read: other}.values())
        return evaluate([claims[name]], table, terms)[0].status == "does_not_hold"

    changes = (lambda x: 100 * x + 100, lambda x: x / 100, lambda x: x - 50)
    for name, verdict in printed.items():
        if verdict.status == "holds":
            assert any(turns(name, read, c) for read in verdict.inputs for c in changes), name


def test_verdict_names_the_printed_numbers_it_rests_on_and_what_is_not_printed(printed):
    assert printed["T5.1.1a"].inputs == ("S5.1.1-01", "S5.1.1-02")
    assert printed["T5.1.1a"].margin_pct == pytest.approx(100 * (23.2 - 12.9) / 23.2)
    verdict = printed["T5.1.3c"]
    assert verdict.status == "not_evaluable"
    assert any("agx d1 resnet hdd w=0" in need for need in verdict.missing)


@pytest.fixture
def verdict(claim, terms):
    """Return a function that judges one predicate on rows."""

    def of(predicate, rows, paper="sigmetrics2023", **tables):
        return evaluate([claim(predicate, paper=paper)], EpochTable(rows, **tables), terms)[0]

    return of


@pytest.fixture
def modes(epochs):
    """Return a function that makes runs of LeNet in all modes: mode -> (Wh, s), else (50, 50)."""

    def make(**costs):
        rows = []
        for mode in "abcdefghijklmn":
            energy_wh, e2e_s = costs.get(mode, (50.0, 50.0))
            told = {"energy_paper_wh": energy_wh, "e2e_s": e2e_s, "power_mean_w": energy_wh / e2e_s}
            rows += epochs({"power_mode": mode}, *[told] * 6)
        return rows

    return make


@pytest.mark.parametrize(
    ("predicate", "status", "margin", "sides"),
    [
        ("stall_s(agx,lenet,w=4) < stall_s(agx,lenet,w=0)", "holds", 100 * 6 / 9, ": 3 < 9"),
        (
            "stall_s(agx,lenet,w=0) < 2 * stall_s(agx,lenet)",
            *("does_not_hold", -100 * 3 / 9, ": 9 < 6"),
        ),
    ],
)
def test_a_verdict_tells_both_sides(verdict, epochs, predicate, status, margin, sides):
    rows = epochs({"num_workers": 0}, *[{"stall_s": 9.0}] * 2) + epochs({}, *[{"stall_s": 3.0}] * 2)
    found = verdict(predicate, rows)
    assert (found.status, found.margin_pct, found.missing) == (status, pytest.approx(margin), ())
    assert found.sides.endswith(sides)
    assert len(found.inputs) == 2


def test_base_load_is_idle_power_by_the_module_times_the_epoch(verdict, modes):
    place = {"device": "agx", "instance": "d1", "power_mode": "g", "state": "i"}
    idle = [{**place, "power_scope": "module", "power_w": 7.2}]
    rows = modes(g=(0.2, 50.0))
    found = verdict(
        "near(share(baseload_wh(agx,lenet,pm='g'), energy_wh(agx,lenet)), 50)", rows, idle=idle
    )
    assert (found.status, found.comparisons[0].left) == ("holds", pytest.approx(50.0))


def test_every_predicate_finds_its_runs_in_the_papers_studies(claims, terms, epochs):
    """Made-up epochs of all simulated runs: no run is missing but what no study can have."""
    metrics = ("stall_s", "compute_s", "e2e_s", "energy_paper_wh", "power_mean_w", "cached_pct")
    rows = [
        row
        for run in load_settings({"studies": "simulated"}, ROOT).table.runs.values()
        for row in epochs(
            columns.with_defaults(run.factors), *[dict.fromkeys(metrics, 1.0)] * run.epochs
        )
    ]
    found = evaluate(claims.values(), EpochTable(rows), terms)
    missing = {need for v in found for need in v.missing}
    lacking = ("run sigmetrics2023 ", "run hipcw2021 ", "more epochs", "valid epoch", "several")
    assert [need for need in missing if any(word in need for word in lacking)] == []
    assert "preprocess_s" in " ".join(missing)  # a column that was not made up
    assert len(rows) > 5000


@pytest.fixture
def takeaways(tmp_path, request):
    path = tmp_path / TAKEAWAYS
    path.parent.mkdir(parents=True)
    path.write_text((request.config.rootpath / TAKEAWAYS).read_text("utf-8"), "utf-8")
    return path


def test_damaged_takeaways_are_refused(takeaways, tmp_path):
    text = takeaways.read_text("utf-8")
    takeaways.write_text(text + text.splitlines(keepends=True)[1], "utf-8")
    with pytest.raises(ConfigError, match=r"T5\.1\.1a is there twice"):
        load_claims(tmp_path)
    takeaways.write_text(text.replace("predicate,", "", 1), "utf-8")
    with pytest.raises(ConfigError, match="more or fewer cells"):
        load_claims(tmp_path)
    takeaways.unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        load_claims(tmp_path)
