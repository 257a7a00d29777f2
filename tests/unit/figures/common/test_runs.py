"""Runs as a figure reads them: numbers, reasons of missing ones, the corner note."""

import json

import pytest
from panels import INVALID

from epochwatt.errors import EpochwattError
from epochwatt.figures.common.runs import csv_row, measured_note, note, read_runs


def test_number_is_the_mean_of_the_valid_epochs_of_a_set(made_up):
    (run,) = read_runs([made_up({"wait_s": 9.5}, {"wait_s": 1.0}, {"wait_s": 2.0}, INVALID)], [])
    assert run.number("stall_s") == (2.0, 2, "")
    assert run.number("stall_s", "0") == (10.0, 1, "")
    assert run.number("stall_s", "all", "median") == (2.5, 3, "")


@pytest.mark.parametrize(
    ("epochs", "column", "epoch_set", "why"),
    [
        (({}, INVALID), "stall_s", "1+", "no valid epoch after the first"),
        ((INVALID, {}), "stall_s", "0", "no valid first epoch"),
        ((INVALID, INVALID), "stall_s", "all", "no valid epoch"),
        (({}, {}), "energy_paper_wh", "1+", "not measured"),
    ],
)
def test_missing_number_says_why(made_up, epochs, column, epoch_set, why):
    (run,) = read_runs([made_up(*epochs)], [])
    assert run.number(column, epoch_set) == (None, 0, why)


def test_run_that_cannot_be_had_says_so_in_every_number(gone):
    (run,) = read_runs([], [gone("no such board")])
    assert run.number("e2e_s").missing == "no such board"


def test_factors_have_their_types_and_none_where_nothing_is(made_up):
    (run,) = read_runs([made_up(num_workers=0, prefetch_factor=None, dataset_scale=4)], [])
    assert [run.factors[k] for k in ("num_workers", "prefetch_factor", "dataset_scale")] == [
        *(0, None, 4.0)
    ]


def test_runs_of_two_backends_are_refused(made_up):
    with pytest.raises(EpochwattError, match="several backends: host, twin"):
        read_runs([made_up(), made_up(backend="host", device="host")], [])


def test_note_says_where_from_which_boards_and_how_many_epochs(made_up, gone):
    paths = [made_up(), made_up({}, INVALID, instance="d2"), made_up(device="nano")]
    assert note(read_runs(paths, [gone()]), ["a-study"]) == (
        "simulated, not measured: agx/d1+d2, nano/d1; 3 runs, 6 epochs, "
        "1 not valid and left out; lacks a-study"
    )


def test_note_of_nothing(gone):
    assert note(read_runs([], [gone()])) == "no epochs"


def test_row_names_the_run_and_the_number(made_up):
    (run,) = read_runs([made_up()], [])
    told = csv_row(run, "e2e_s", run.number("e2e_s"), epoch=3)
    assert told["backend"] == "twin"
    assert (told["run"], told["model"], told["epoch_set"], told["epoch"]) == (
        *("run-0", "lenet", "1+", 3),
    )
    assert (told["quantity"], told["value"], told["n_epochs"]) == ("e2e_s", 4.0, 1)


def test_measured_note_names_machine_and_whiskers(made_up, tmp_path):
    run = read_runs([made_up({}, {}, backend="host", device="host")], [])[0]
    assert (
        measured_note([run], {}) == "; no GPU: training and loader workers share the CPUs"
        "; whiskers: lowest to highest epoch, none on a bar of one epoch"
    )
    folder = tmp_path / "records"
    (folder / "epoch-0").mkdir(parents=True)
    record = {"machine": {"cpu_model": "A CPU"}, "software": {"torch": "2.9.1+cu128"}}
    (folder / "epoch-0/record.json").write_text(json.dumps(record), encoding="utf-8")
    told = measured_note([run], {run.id: str(folder)})
    assert told.startswith("; A CPU, PyTorch 2.9.1; no GPU: training and ")
    record["machine"]["n_cpus"] = 2
    (folder / "epoch-0/record.json").write_text(json.dumps(record), encoding="utf-8")
    cold = read_runs([made_up({}, {"cold_process": True}, backend="host", device="host")], [])[0]
    told = measured_note([cold], {cold.id: str(folder)})
    assert told.startswith("; A CPU, 2 CPUs, PyTorch 2.9.1; every epoch in a process of its own;")
    simulated = read_runs([made_up()], [])
    assert measured_note(simulated, {simulated[0].id: str(folder)}) == ""
