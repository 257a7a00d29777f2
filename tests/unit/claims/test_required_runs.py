"""Which runs the claims ask for, and which published numbers tell of what they read."""

import csv
import shutil
from types import SimpleNamespace

import pytest

from epochwatt.claims.number_sources import key_of
from epochwatt.claims.numbers_read import points_read, write_numbers_read
from epochwatt.claims.required_runs import needed, questions_of
from epochwatt.published.folds import READ_BY_CLAIMS
from epochwatt.study.settings import load_settings


@pytest.fixture(scope="module")
def table(request):
    """Both papers' grids on the twin."""
    return load_settings({"studies": ["simulated"]}, request.config.rootpath).table


def test_needed_of_the_grid(table, request, claims, terms):
    found = needed(table, request.config.rootpath)
    asked = questions_of(claims.values(), terms)
    assert asked.runs == {key_of(r.factors) for r in found.runs}  # each is in the grid
    assert found.backends == ["twin"]
    assert found.models == ["lenet", "mobilenet", "resnet", "vgg11"]
    assert {len(path.split("/")) for path in found.records.values()} == {3}
    assert all(table[run].factors["model"] != "vgg11" for run in found.records)
    assert found.power_modes["agx"]["g"]["cpu_mhz"] == 2265


def test_of_measured_runs_all_are_needed(table, request):
    run = next(iter(table.runs.values()))
    own = {**run.factors, "setup": "own", "backend": "host"}
    other = SimpleNamespace(**{**vars(run), "factors": own}, is_simulated=False)
    found = needed(SimpleNamespace(runs={"a": other}), request.config.rootpath)
    assert (found.runs, found.models, found.records) == ([other], [], {})


def test_committed_numbers_are_what_the_claims_read(tmp_path, request, claims):
    root = request.config.rootpath / "config"
    for name in ("published", "twin"):
        shutil.copytree(root / name, tmp_path / "config" / name)
    shutil.copy(root / "claims.yaml", tmp_path / "config")
    path = tmp_path / "config/twin" / READ_BY_CLAIMS
    before = path.read_bytes()
    path.unlink()
    write_numbers_read(tmp_path)
    assert path.read_bytes() == before
    rows = {row["takeaway"]: row for row in csv.DictReader(before.decode("utf-8").splitlines())}
    assert set(rows) == {
        *("5.4.2", "5.4.3", "5.4.4", "5.6.1", "5.7.1", "5.7.2", "5.7.3"),
        *("A.0.1", "A.0.2", "A.0.3", "A.0.4"),
    }
    assert set(rows) <= {claim.fold for claim in claims.values()}
    assert [name for name, row in rows.items() if not row["published_ids"]] == ["5.4.4"]
    assert rows["5.4.4"]["why"] == "its claims read no simulated run"
    assert rows["A.0.3"]["why"] == "its claims read e2e_s of 10 runs"


@pytest.mark.parametrize(
    ("predicate", "metrics", "n_runs"),
    [
        ("stall_s(agx, resnet, pm='b') < e2e_s(nx, lenet, epoch='0')", {"stall_s", "e2e_s"}, 2),
        ("max(epoch_values('energy_wh', agx, resnet, 'd3')) > 1", {"energy_wh"}, 1),
        ("time_mape_pct(agx, vgg11, pm='b') < 10", {"e2e_s"}, 40),
        ("best_mode_set(agx) == 'efij'", {"e2e_s"}, 40),
        ("energy_mape_pct(agx, vgg11, pm='b') < 10", {"e2e_s", "energy_wh"}, 40),
    ],
)
def test_runs_and_metrics_that_a_predicate_reads(predicate, metrics, n_runs, claim, terms):
    points = points_read([claim(predicate)], terms)
    assert {at[-1] for at in points} == metrics
    assert len({at[:-1] for at in points}) == n_runs
