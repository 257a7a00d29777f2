"""Runs as a figure reads them: numbers, reasons of missing ones, the note below."""

import pytest
from panels import INVALID

from epochwatt.errors import EpochwattError
from epochwatt.figures.common.runs import read_runs


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
