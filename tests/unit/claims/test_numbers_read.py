"""Which published numbers tell of what claims read: the committed file is what the claims say."""

import csv
import shutil
from types import SimpleNamespace

import pytest

from epochwatt.claims import numbers_read
from epochwatt.claims.numbers_read import numbers_read_by_claims, points_read, write_numbers_read
from epochwatt.published.folds import READ_BY_CLAIMS


@pytest.fixture(scope="module")
def rows(request):
    return {row.takeaway: row for row in numbers_read_by_claims(request.config.rootpath)}


def test_committed_file_is_what_the_claims_read(rows, request):
    with open(request.config.rootpath / "config/twin" / READ_BY_CLAIMS, encoding="utf-8") as handle:
        assert [tuple(row.values()) for row in csv.DictReader(handle)] == list(rows.values())


def test_takeaways_that_no_fold_of_numbers_holds_out_have_a_row(rows, claims):
    assert set(rows) == {
        *("5.4.2", "5.4.3", "5.4.4", "5.6.1", "5.7.1", "5.7.2", "5.7.3"),
        *("A.0.1", "A.0.2", "A.0.3", "A.0.4"),
    }
    assert set(rows) <= {claim.fold for claim in claims.values()}
    assert [name for name, row in rows.items() if not row.published_ids] == ["5.4.4"]
    assert rows["5.4.4"].why == "its claims read no simulated run"
    assert rows["A.0.3"].why == "its claims read e2e_s of 10 runs"


def test_what_a_predicate_reads(claim, terms):
    one = claim("stall_s(agx, resnet, pm='b') < e2e_s(nx, lenet, epoch='0')")
    told = {(at[0], at[1], at[3], at[-1]) for at in points_read([one], terms)}
    assert told == {
        ("sigmetrics2023", "agx", "resnet", "stall_s"),
        ("sigmetrics2023", "nx", "lenet", "e2e_s"),
    }
    long = claim("max(epoch_values('energy_wh', agx, resnet, 'd3')) > 1")
    ((*_, metric),) = points_read([long], terms)
    assert metric == "energy_wh"


def test_a_prediction_reads_what_its_model_has_learned_from(claim, terms):
    time = points_read([claim("time_mape_pct(agx, vgg11, pm='b') < 10")], terms)
    assert {at[-1] for at in time} == {"e2e_s"}
    assert len(time) == len(terms.sets["MODELS4"]) * len(terms.sets["COMMON_MODES"])
    assert time == points_read([claim("best_mode_set(agx) == 'efij'")], terms)
    energy = points_read([claim("energy_mape_pct(agx, vgg11, pm='b') < 10")], terms)
    assert {at[-1] for at in energy} == {"e2e_s", "energy_wh"}


def test_is_written_from_the_checkout(rows, tmp_path, request):
    root = request.config.rootpath / "config"
    for name in ("published", "twin"):
        shutil.copytree(root / name, tmp_path / "config" / name)
    shutil.copy(root / "claims.yaml", tmp_path / "config")
    path = tmp_path / "config/twin/numbers_read_by_claims.csv"
    before = path.read_bytes()
    path.unlink()
    write_numbers_read(tmp_path)
    assert path.read_bytes() == before


def test_runs_are_counted_by_all_that_tells_them_apart():
    """What differs in one factor is another run; two metrics of one are one."""
    runs = [("sigmetrics2023", "agx", mode) for mode in "ab"]
    read = {(*run, metric) for run in runs for metric in ("e2e_s", "stall_s")}
    row = numbers_read._row("fold", read, SimpleNamespace(facts=dict))
    assert row.why == "its claims read e2e_s, stall_s of 2 runs"
