"""General forms: on boards, media and modes that the papers never saw."""

import pytest

from epochwatt.claims.evaluate import TAKEAWAYS, evaluate_boards
from epochwatt.claims.number_sources import EpochTable
from epochwatt.errors import ConfigError

MODES = {
    "orin.nano": {
        "max": {"cores": 6, "cpu_mhz": 1510, "gpu_mhz": 624},
        "halfcores": {"cores": 3, "cpu_mhz": 1510, "gpu_mhz": 624},
        "halfgpu": {"cores": 6, "cpu_mhz": 1510, "gpu_mhz": 306},
        "half": {"cores": 3, "cpu_mhz": 730, "gpu_mhz": 306},
        "7W": {"nvpmodel": "7W"},
    }
}
OWN = {"setup": "own", "device": "orin.nano", "model": "mobilenet", "power_mode": "max"}
WORKER = "stall_s(w=1) < stall_s(w=0)"
APART = "all(e2e_s({0}pm=high) < e2e_s({0}pm=low) {1}for low,high in modes_apart_in('gpu_mhz'))"


@pytest.fixture
def verdicts(claim, terms):
    """Return a function that judges one general form on rows: a list, one verdict per board."""

    def call(form, *runs):
        table = EpochTable([row for run in runs for row in run], power_modes=MODES)
        return evaluate_boards([claim(general_form=form), claim()], table, terms)

    return call


@pytest.fixture
def run(epochs):
    """Return a function that makes a run on an own board: factors, then columns of all epochs."""

    def make(factors, **columns):
        return epochs({**OWN, **factors}, *[columns] * 3)

    return make


def test_form_is_judged_in_every_case_that_has_the_runs(verdicts, run):
    none = {"num_workers": 0, "prefetch_factor": ""}
    (verdict,) = verdicts(
        WORKER,
        run(none, stall_s=9.0),
        run({"num_workers": 1}, stall_s=3.0),
        run({**none, "storage": "sd"}, stall_s=9.0),
        run({"num_workers": 1, "storage": "sd"}, stall_s=8.1),
        run({**none, "power_mode": "half"}, stall_s=9.0),
    )
    assert (verdict.board, verdict.status, verdict.n_cases) == ("own orin.nano d1", "holds", 2)
    assert verdict.margin_pct == pytest.approx(10.0)
    assert verdict.sides == f"{WORKER} [model=mobilenet, storage=sd]: 8.1 < 9"
    assert len(verdict.inputs) == 4


def test_one_case_against_it_is_enough_and_is_named(verdicts, run):
    (verdict,) = verdicts(
        WORKER,
        *(run({"num_workers": w, "batch_size": 16}, stall_s=9.0 - w) for w in (0, 1)),
        *(run({"num_workers": w, "batch_size": 32}, stall_s=9.0 + w) for w in (0, 1)),
    )
    assert verdict.status == "does_not_hold"
    assert "[model=mobilenet, batch_size=32]: 10 < 9" in verdict.sides


@pytest.mark.parametrize(
    ("form", "factor", "e2e_s", "least"),
    [
        (WORKER.replace("stall", "e2e"), "num_workers", {1: 3.0}, "one run with num_workers=0 (0 "),
        (
            "all(e2e_s(bs=y) <= e2e_s(bs=x) for x,y in neighbours('bs'))",
            *("batch_size", {64: 1.0, 8: 9.0, 16: 5.0}, "two values of bs (mobilenet, ssd, max)"),
        ),
        (
            "all(e2e_s(storage=fast) < e2e_s(storage=slow) for fast,slow in media())",
            *("storage", {"sd": 2.0, "ssd": 1.0, "usb": 9.0}, "runs on two media"),
        ),
        (
            APART.format("", ""),
            *("power_mode", {"max": 1.0, "halfgpu": 2.0, "half": 0.5, "7W": 0.1}, "runs in two po"),
        ),
        (
            "e2e_s(pm=strongest_mode()) <= min([e2e_s(pm=p) for p in modes()])",
            *("power_mode", {"max": 1.0, "half": 2.0}, "runs in several power modes, one of"),
        ),
    ],
)
def test_a_form_is_about_what_is_there_and_the_least_that_is_missing_is_named(
    form, factor, e2e_s, least, verdicts, run
):
    there = [run({factor: value}, e2e_s=s) for value, s in e2e_s.items()]
    if len(there) > 1:
        assert verdicts(form, *there)[0].status == "holds"
    (alone,) = verdicts(form, there[0])
    assert alone.status == "not_evaluable"
    assert alone.missing[0].startswith(least)


def test_power_scopes_are_not_mixed(verdicts, run):
    there = [
        run({"num_workers": w}, power_mean_w=1.0 + w, power_scope=s)
        for w, s in ((0, "gpu"), (4, "module"))
    ]
    (verdict,) = verdicts("power_w(w=4) > power_w(w=0)", *there)
    assert "one power scope, not gpu and module" in verdict.missing[0]


def test_wrong_form_names_claim_and_column(verdicts, run):
    with pytest.raises(ConfigError, match="baseload_wh is not a known function") as caught:
        verdicts("baseload_wh() < 1", run({}, e2e_s=1.0))
    assert caught.value.where == f"{TAKEAWAYS}, T, general_form, character 1"


def test_the_projects_general_forms_can_be_asked_of_any_board(claims, terms, run):
    pure = [c for c in claims.values() if c.role == "core" and c.threshold_source == "none"]
    assert all(claim.general_form for claim in pure)
    found = evaluate_boards(claims.values(), EpochTable(run({}, e2e_s=1.0)), terms)
    assert len(found) == 20
    assert {v.status for v in found} == {"not_evaluable"}
    assert all(v.missing for v in found)
