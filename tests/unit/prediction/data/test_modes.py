"""Power modes as numbers, and all that a board's tables allow."""

import numpy as np
import pytest

from epochwatt.board.device.board_files import Tables
from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.prediction.data.modes import NO_LIMIT, Board, Mode, PredictionError, as_rows


def test_agx_xavier_has_as_many_modes_as_the_paper_says(agx):
    modes = agx.all_modes()
    assert modes.shape == (29_232, 6)
    assert len(np.unique(modes, axis=0)) == 29_232


def test_board_without_a_table_of_memory_clocks_is_refused():
    board = Board("orin_nx", 8, Tables((729_600,), (306_000_000,), ()))
    with pytest.raises(PredictionError, match="orin_nx: the steps of emc_mhz are not known"):
        board.all_modes()


def test_nominal_mode_stands_for_the_steps_of_the_board(agx):
    assert agx.resolve(Mode(8, 2100, 900, 1333)) == Mode(8, 2112, 905.25, 1331.2)


@pytest.mark.parametrize(
    ("mode", "error", "named"),
    [
        (
            Mode(8, 2265, 1000, 1600),
            ConfigError,
            "gpu_mhz: 1000 MHz is not a step.*905.25 and 1032.75",
        ),
        (Mode(9, 2265, 1377, 1600), PredictionError, "found: 9 cores\n  allowed: 1 to 8"),
        (Mode(2.5, 2265, 1377, 1600), PredictionError, "found: 2.5 cores"),
    ],
)
def test_mode_outside_the_tables_is_refused(agx, mode, error, named):
    assert issubclass(error, EpochwattError)
    with pytest.raises(error, match="(?s)" + named):
        agx.resolve(mode)


@pytest.mark.parametrize(
    "modes", [[[8, 2265, 1377]], [1, 2, 3, 4], [[[8, 1, 1, 1]]], [[8, 1, 1, 1, 1, 1, 1]]]
)
def test_modes_have_four_to_six_numbers(modes):
    with pytest.raises(PredictionError, match="power modes of shape") as caught:
        as_rows(modes)
    assert "power_limit_w; the last two may be left out" in caught.value.allowed


def test_a_mode_of_four_numbers_has_the_whole_gpu_on_and_no_limit():
    """As every mode had before there was a fifth number, and a sixth."""
    assert as_rows([[8, 2265, 1377, 2133]]).tolist() == [[8, 2265, 1377, 2133, 1, NO_LIMIT]]
    assert as_rows([[8, 2265, 1377, 2133, 0.5]]).tolist() == [[8, 2265, 1377, 2133, 0.5, NO_LIMIT]]
    assert as_rows([Mode(8, 2265, 1377, 2133)]).tolist() == [[8, 2265, 1377, 2133, 1, NO_LIMIT]]
    assert as_rows([Mode(2, 1190, 522, 1065, 0.5)])[0, 4] == 0.5
    assert as_rows([Mode(2, 1190, 522, 1065, 1, 150)])[0, 5] == 150
    assert str(Mode(2, 1190, 522, 1065)).endswith("memory 1065 MHz")
    assert str(Mode(2, 1190, 522, 1065, 0.5)).endswith("memory 1065 MHz, 50 % of the GPU on")
    assert str(Mode(2, 1190, 522, 1065, 1, 150)).endswith("memory 1065 MHz, limit 150 W")


def test_a_limit_below_zero_is_refused():
    with pytest.raises(PredictionError, match="limit -1 W"):
        as_rows([Mode(2, 1190, 522, 1065, 1, -1)])


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf")])
def test_numbers_of_a_mode_are_above_zero(bad):
    with pytest.raises(PredictionError, match="allowed: numbers above zero"):
        as_rows([[8, 2265, 1377, 2133], [8, 2265, bad, 2133]])
