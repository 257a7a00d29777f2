"""Runs as a figure reads them: numbers, reasons of missing ones, the note below."""

import json

import pytest
from panels import INVALID

from epochwatt.errors import EpochwattError
from epochwatt.figures.common.runs import csv_row, measured_on, mode_setting, note, read_runs


@pytest.mark.parametrize(
    ("epochs", "ask", "number"),
    [
        (({"wait_s": 9.5}, {"wait_s": 1.0}, {"wait_s": 2.0}, INVALID), ("stall_s",), (2.0, 2, "")),
        (({"wait_s": 9.5}, {}), ("stall_s", "0"), (10.0, 1, "")),
        (({"wait_s": 9.5}, {}, {"wait_s": 2.0}), ("stall_s", "all", "median"), (2.5, 3, "")),
        (({}, INVALID), ("stall_s",), (None, 0, "no valid epoch after the first")),
        ((INVALID, {}), ("stall_s", "0"), (None, 0, "no valid first epoch")),
        ((INVALID, INVALID), ("stall_s", "all"), (None, 0, "no valid epoch")),
        (({}, {}), ("energy_paper_wh",), (None, 0, "not measured")),
    ],
)
def test_number_is_of_the_valid_epochs_of_a_set_or_says_why_there_is_none(
    made_up, epochs, ask, number
):
    (run,) = read_runs([made_up(*epochs)], [])
    assert run.number(*ask) == number


def test_runs_have_typed_factors_one_backend_and_the_reason_of_those_that_are_gone(made_up, gone):
    (run,) = read_runs([made_up(num_workers=0, prefetch_factor=None, dataset_scale=4)], [])
    assert [run.factors[k] for k in ("num_workers", "prefetch_factor", "dataset_scale")] == [
        *(0, None, 4.0)
    ]
    assert read_runs([], [gone("no such board")])[0].number("e2e_s").missing == "no such board"
    with pytest.raises(EpochwattError, match="several backends: host, twin"):
        read_runs([made_up(), made_up(backend="host", device="host")], [])


def test_note_says_where_from_which_boards_and_how_many_epochs(made_up, gone):
    paths = [made_up(), made_up({}, INVALID, instance="d2"), made_up(device="nano")]
    assert note(read_runs(paths, [gone()]), ["a-study"]) == (
        "simulated, not measured: agx, nano, 1 to 2 boards each; 3 runs of lenet, 6 epochs, "
        "1 not valid and left out; lacks a-study"
    )
    two = note(read_runs([paths[0], made_up(model="resnet")], []), titles={"agx": "AGX Xavier"})
    assert two == "simulated, not measured: AGX Xavier; 2 runs, 4 epochs"
    assert note(read_runs([], [gone()])) == "no epochs"


def test_row_names_the_run_and_the_number(made_up):
    (run,) = read_runs([made_up()], [])
    told = csv_row(run, "e2e_s", run.number("e2e_s"), epoch=3)
    assert [told[name] for name in ("run", "backend", "model", "epoch_set", "epoch")] == [
        *("run-0", "twin", "lenet", "1+", 3)
    ]
    assert (told["quantity"], told["value"], told["n_epochs"]) == ("e2e_s", 4.0, 1)


def test_measured_note_names_machine_and_whiskers_and_records_have_the_modes_settings(
    made_up, tmp_path
):
    host = {"backend": "host", "device": "host"}
    warm, cold = (made_up({}, {"cold_process": cold}, **host) for cold in (False, True))
    (run, later) = read_runs([warm, cold], [])
    assert measured_on([run], {}) == "no GPU: training and loader workers share the CPUs"
    assert note([run]).endswith("; whiskers: lowest to highest epoch, none where there is one")
    record = {"machine": {"cpu_model": "A CPU", "n_cpus": 2}, "software": {"torch": "2.9.1+cu128"}}
    record["factors"] = {"power_mode_settings": {"cores": 8}}
    (tmp_path / "epoch-0").mkdir()
    (tmp_path / "epoch-0/record.json").write_text(json.dumps(record), encoding="utf-8")
    told = measured_on([later], {later.id: str(tmp_path)})
    assert told.startswith("A CPU, 2 CPUs, PyTorch 2.9.1; no GPU")
    assert told.endswith("every epoch in a process of its own")
    simulated = read_runs([made_up()], [])
    assert measured_on(simulated, {simulated[0].id: str(tmp_path)}) == ""
    assert mode_setting(run, str(tmp_path), "cores") == 8
    assert mode_setting(run, str(tmp_path), "cpu_mhz") is mode_setting(run, "", "cores") is None
