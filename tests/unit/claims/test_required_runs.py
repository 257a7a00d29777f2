"""Which runs the claims ask for."""

from types import SimpleNamespace

import pytest

from epochwatt.claims.number_sources import key_of
from epochwatt.claims.required_runs import needed, questions_of
from epochwatt.study.settings import load_settings


@pytest.fixture(scope="module")
def table(request):
    """Both papers' grids on the twin."""
    return load_settings({"studies": ["simulated"]}, request.config.rootpath).table


def test_runs_of_a_predicate_are_asked_for_and_remembered(claim, terms):
    asked = questions_of([claim("all(e2e_s(agx, lenet, w=n) > 1 for n in (0, 1))")], terms)
    base = {"setup": "sigmetrics2023", **terms.factors("agx", "lenet", {})}
    assert asked.runs == {key_of({**base, "num_workers": n}) for n in (0, 1)}
    assert asked.clocks == set()


def test_clocks_and_series_and_fronts_are_seen(claim, terms):
    one = claim("gpu_freq_mhz(agx, lenet, dvfs=on) > 1")
    long = claim("max(epoch_values('e2e_s', agx, resnet, 'd3')) > 1")
    front = claim("'g' in pareto(agx, resnet)")
    assert len(questions_of([one], terms).clocks) == 1
    (key,) = questions_of([long], terms).runs
    assert "d3" in key
    assert len(questions_of([front], terms).runs) == 10


def test_predictions_ask_for_the_runs_they_learn_from(claim, terms):
    asked = questions_of([claim("time_mape_pct(agx, vgg11, pm='b') < 10")], terms)
    assert asked.predicted_for == {"agx"}
    base = {"setup": "sigmetrics2023", **terms.factors("agx", "lenet", {"pm": "j"})}
    assert key_of(base) in asked.runs
    assert len(asked.runs) == 40


def test_every_run_that_a_claim_asks_for_is_in_the_grid(table, request, claims, terms):
    asked = questions_of(claims.values(), terms)
    assert asked.runs == {key_of(r.factors) for r in needed(table, request.config.rootpath).runs}


def test_needed_of_the_grid(table, request):
    found = needed(table, request.config.rootpath)
    assert found.backends == ["twin"]
    assert found.models == ["lenet", "mobilenet", "resnet", "vgg11"]
    assert {len(path.split("/")) for path in found.records.values()} == {3}
    assert all(table[run].factors["model"] != "vgg11" for run in found.records)
    assert found.power_modes["agx"]["g"]["cpu_mhz"] == 2265


def test_of_measured_runs_all_are_needed(table, request):
    run = next(iter(table.runs.values()))
    own = {**run.factors, "setup": "own", "backend": "host"}
    other = SimpleNamespace(**{**vars(run), "factors": own}, is_simulated=False)
    both = SimpleNamespace(runs={"a": other})
    found = needed(both, request.config.rootpath)
    assert (found.runs, found.models, found.records) == ([other], [], {})
