"""Rules of ceilings: modes that are measured, measured runs as points beside them, explained."""

import csv
import json
from pathlib import Path

import pytest

from epochwatt.counting.count_workload import write_workload
from epochwatt.roofline.fits import FitRow
from epochwatt.roofline.points import read_points
from epochwatt.roofline.wanted import wanted_ceilings
from epochwatt.study.settings import load_settings
from epochwatt.sweeps.table import load_sweeps
from epochwatt.tables import write_entries

CONFIG = {"studies": ["small"]}


@pytest.fixture
def settings(checkout):
    """A study of one run that asks for ceilings."""
    checkout.sweep({"torch_threads": 1, "batch_size": 32}, ceilings=True)
    return load_settings(CONFIG, checkout.path)


def test_modes_are_listed(settings, run_rule, checkout):
    (job,) = wanted_ceilings(settings, load_sweeps(CONFIG, checkout.path)).values()
    run_rule("list_ceiling_modes", job.modes_file)
    assert json.loads(Path(job.modes_file).read_text("utf-8")) == [{"cores": 1}]


def test_a_measured_run_becomes_a_point(settings, run_rule, write_epochs):
    (run,) = settings.table.runs.values()
    write_epochs(run.id, run.factors, {"compute_s": 1.0})
    write_workload({"model": "lenet"}, run.counts)
    run_rule("place_points", "results/roofline/points.csv")
    (point,) = read_points("results/roofline/points.csv")
    assert (point.workload, point.batch_size, point.cores) == ("lenet", 32, 1)
    assert point.time_s == 0.5  # two mini-batches
    assert point.flops > 1e6


def test_each_run_is_judged_by_the_counts_of_its_own_work(checkout, run_rule, write_epochs):
    """Training in fp32, training in bf16 and inference: other kernels, bytes and operations."""
    arithmetic = ({}, {"precision": "bf16"}, {"task": "infer"})
    checkout.sweep(*({"torch_threads": 1, **changes} for changes in arithmetic), ceilings=True)
    runs = load_settings(CONFIG, checkout.path).table.runs.values()
    for run in runs:
        write_epochs(run.id, run.factors, {"compute_s": 1.0})
    run_rule("place_points count_work count_workload", "results/roofline/points.csv")
    train, half, infer = read_points("results/roofline/points.csv")
    assert [p.precision for p in (train, half, infer)] == ["fp32", "bf16", "fp32"]
    assert 0 < infer.flops < 0.5 * train.flops  # no way back, no optimiser
    assert infer.launches < 0.3 * train.launches
    assert half.launches > train.launches  # casts
    assert half.bytes != train.bytes


def test_runs_are_explained_by_the_rooflines_of_their_mode(settings, run_rule, write_epochs):
    (run,) = settings.table.runs.values()
    write_epochs(run.id, run.factors, {}, {"compute_s": 1.0, "e2e_s": 4.0})
    write_workload({"model": "lenet"}, run.counts)
    place = {"provenance": "measured", "device": "host", "instance": "local", "cores": 1}
    fit = FitRow(
        **{**place, "processor": "cpu", "precision": "fp32", "ridge_flop_per_byte": 10.0, "n": 9},
        **{"flops_per_s": 1e9, "bytes_per_s": 1e8, "launch_s": 1e-6},
    )
    fits = Path("results/roofline/fits_measured.csv")
    fits.parent.mkdir()
    write_entries(fits, "fits", FitRow, [fit], ".9g")
    run_rule("explain_runs", "results/tables/explanations.csv")
    with open("results/tables/explanations.csv", newline="", encoding="utf-8") as handle:
        whole, *classes = csv.DictReader(handle)
    assert (whole["run"], whole["operators"]) == (run.id, "all")
    shares = {name: float(whole[f"{name}_pct"]) for name in ("loader", "copy", "overhead")}
    assert shares == {"loader": 25.0, "copy": 12.5, "overhead": 37.5}  # of 4 s
    computing = ("launches", "arithmetic", "memory", "below_the_roof")
    assert sum(float(whole[f"{part}_pct"]) for part in computing) == pytest.approx(25.0, rel=1e-4)
    assert all(float(whole[f"{part}_pct"]) > 0 for part in computing)
    assert {row["operators"] for row in classes} >= {"convolution", "gemm", "optimiser"}
    for column in ("launches", "gflop", "mb"):
        assert sum(float(row[column]) for row in classes) == pytest.approx(
            float(whole[column]), rel=1e-4
        )
