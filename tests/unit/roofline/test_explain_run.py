"""Explanations of runs: rows of the table, lines of the terminal, what is said without ceilings."""

import re

import pytest
from planted_runs import ONE_KNOB, kernels

from epochwatt.cli import main
from epochwatt.errors import EpochwattError
from epochwatt.roofline.explain import explain_run, observed, table_rows
from epochwatt.roofline.find_run import find_run
from epochwatt.roofline.points import RunInMode

COLUMNS = {
    "provenance": "measured", "device": "planted", "instance": "d1", "cores": 4, "cpu_mhz": 1000.0,
    "gpu_mhz": 500.0, "emc_mhz": 800.0, "precision": "fp32", "workload": "lenet", "task": "train",
    "batch_size": 16,
}  # fmt: skip
EPOCH = {
    "valid": True, "epoch": 1, "e2e_s": 10.0, "wait_s": 1.0, "copy_s": 0.5, "compute_s": 8.0,
    "overhead_s": 0.5, "n_minibatches": 100, "n_samples": 1600, "num_workers": 1,
    "energy_wh": 0.05, "power_scope": "module", "fetch_s": None, "preprocess_s": None,
    "timing_method": "cuda_events_synchronised",
}  # fmt: skip
WORK = kernels(*[(1e10, 1e6)] * 5, (1e3, 1e8))


def explained(epochs=(EPOCH,), fits=ONE_KNOB, **changes):
    """Return the explanation of a run."""
    run = RunInMode(run="a-run", **{**COLUMNS, **changes})
    return explain_run(run, list(epochs), WORK, fits)


def test_the_first_epoch_and_invalid_ones_do_not_count():
    first, broken = {**EPOCH, "epoch": 0, "e2e_s": 99.0}, {**EPOCH, "valid": False, "e2e_s": 77.0}
    assert observed([first, EPOCH, broken]).e2e_s == 10.0
    assert observed([first]).e2e_s == 99.0
    assert observed([broken]) is None
    with pytest.raises(EpochwattError, match="no valid epoch"):
        explained([broken])


def test_energy_counts_only_where_the_same_sensor_saw_the_ceilings():
    assert observed([EPOCH], "module").energy_j == pytest.approx(180.0)
    assert observed([EPOCH], "gpu").energy_j is None
    assert observed([EPOCH]).energy_j is None


def test_shares_of_operators_add_up_to_those_of_the_run():
    rows = table_rows(explained()).set_index("operators")
    assert rows.index.tolist() == ["all", "gemm", "elementwise"]
    parts = ["launches_pct", "arithmetic_pct", "memory_pct"]
    others = ["below_the_roof_pct", "loader_pct", "copy_pct", "overhead_pct"]
    whole = rows.loc["all"]
    assert whole[[*parts, *others]].sum() == pytest.approx(100.0)
    sums = rows.loc[["gemm", "elementwise"], parts].sum()
    assert sums.tolist() == pytest.approx(whole[parts].tolist())
    assert whole["explanation"].startswith("Bound by compute, its limit is arithmetic")
    assert "GPU at 1000 MHz" in whole["next_mode"]


@pytest.mark.parametrize(
    "changes", [{"precision": "fp16"}, {"device": "other"}, {"gpu_mhz": 555.0}, {"cores": None}]
)
def test_without_ceilings_of_its_mode_it_says_what_to_type(changes):
    with pytest.raises(EpochwattError, match=r"never measured(.|\n)*ceilings: true.*make run"):
        explained(**changes)


def test_a_measured_run_without_any_ceilings_says_what_to_type(
    checkout, write_epochs, monkeypatch, capsys
):
    run = checkout.runs[0]
    write_epochs(run.id, run.factors, {}, {})
    monkeypatch.chdir(checkout.path)
    found, _ = find_run(run.id)
    assert (found.run, found.workload, found.provenance) == (run.id, "lenet", "measured")
    assert main(["explain", run.id]) == 1
    assert re.search(r"no ceilings were measured\n.*ceilings: true", capsys.readouterr().err)
