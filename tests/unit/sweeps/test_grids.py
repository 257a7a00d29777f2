"""Grids of modes: printed sizes, rules on other tables, samples, and what is refused."""

from pathlib import Path

import pytest
from cpufreq_tree import make_cpufreq
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.device.kinds import KINDS
from epochwatt.errors import ConfigError
from epochwatt.sweeps import grids
from epochwatt.sweeps.config import Grid
from epochwatt.sweeps.grids import NAMED, Steps
from epochwatt.sweeps.modes import SweepMode

ORIN = grids.steps_of_kind("agx_orin")


def modes_of(steps: Steps, **grid: object) -> list[SweepMode]:
    """Return the modes of a grid; without keys all of them."""
    return grids.grid_modes(Grid.model_validate(grid), "agx_orin", steps)


SIZES = {  # as the papers print them
    **{"powertrain-orin": 4368, "powertrain-orin-yolo": 3744, "fulcrum-orin": 441},
    **{"orin-nano": 180, "all-orin": 18096, "all-xavier": 29232, "all-orin-nano": 1800},
}


@pytest.mark.parametrize("name", NAMED)
def test_a_named_grid_has_its_printed_size_and_no_mode_twice(name: str) -> None:
    board = NAMED[name].board
    modes = grids.named_grid(name, board, grids.steps_of_kind(board))
    assert len(modes) == len(set(modes)) == NAMED[name].size == SIZES[name]


def test_other_clocks_than_the_printed_ones_are_refused_or_taken_by_the_rule() -> None:
    jetpack_6 = KINDS["agx_orin"].releases[-1].gpu_hz
    board = ORIN._replace(gpu_mhz=tuple(hz / 1e6 for hz in jetpack_6))
    with pytest.raises(ConfigError) as refused:
        grids.named_grid("powertrain-orin", "agx_orin", board)
    assert "3,696 modes" in refused.value.problem
    assert "4,368" in refused.value.problem
    assert refused.value.found == "11 steps of gpu_mhz, 13 in the printed grid's tables"
    assert len(grids.named_grid("powertrain-orin", "agx_orin", board, any_size=True)) == 3696


def test_a_grid_of_another_board_is_refused_with_those_of_this_one() -> None:
    nano = grids.steps_of_kind("orin_nano")
    with pytest.raises(ConfigError) as refused:
        grids.named_grid("fulcrum-orin", "orin_nano", nano)
    assert refused.value.allowed == ["all", "orin-nano", "all-orin-nano"]
    with pytest.raises(ConfigError, match="unknown grid 'powertrain'"):
        grids.named_grid("powertrain", "agx_orin", ORIN)
    with pytest.raises(ConfigError, match="cpu_mhz, gpu_mhz, emc_mhz are not known"):
        modes_of(grids.steps_of_kind("orin_nx"))


def test_a_host_without_clocks_has_a_mode_for_each_number_of_threads(tmp_path: Path) -> None:
    steps = grids.steps_of_host(str(tmp_path))
    modes = modes_of(steps)
    assert [mode.cores for mode in modes] == list(range(1, len(modes) + 1))
    assert {mode[1:] for mode in modes} == {(None, None, None)}
    assert modes_of(steps, parts={"cpu_mhz": []}) == modes
    for part in ("cpu_mhz", "gpu_mhz"):
        with pytest.raises(ConfigError, match=f"{part} cannot be set on the machine at hand"):
            modes_of(steps, parts={part: [1000]})


def test_a_host_has_its_cpu_clocks_where_they_can_be_set(tmp_path: Path) -> None:
    steps = grids.steps_of_host(make_cpufreq(tmp_path))
    modes = modes_of(steps)
    assert [mode.cpu_mhz for mode in modes[:5]] == [1200, 1800, 2400, 3000, 1200][: len(modes)]
    assert len(modes) == 4 * len(steps.cores)
    assert {mode[2:] for mode in modes} == {(None, None)}
    assert modes_of(steps, parts={"cores": [1], "cpu_mhz": [1790]}) == [SweepMode(1, 1800)]
    threads = modes_of(steps, parts={"cpu_mhz": []})
    assert [mode.settings() for mode in threads] == [{"cores": n} for n in steps.cores]
    with pytest.raises(ConfigError, match="cpu_mhz: 1500 MHz is not a step"):
        modes_of(steps, parts={"cpu_mhz": [1500]})


def test_nominal_clocks_become_the_boards_own_steps() -> None:
    wanted = {"cores": [4], "cpu_mhz": [2200], "gpu_mhz": [1300], "emc_mhz": [3200]}
    assert modes_of(ORIN, parts=wanted) == [SweepMode(4, 2201.6, 1300.5, 3199)]
    assert modes_of(ORIN, parts={"cores": [4, 4]})[0].cpu_mhz == 115.2
    assert len(modes_of(ORIN, parts={"cores": [4, 4]})) == 29 * 13 * 4
    with pytest.raises(ConfigError, match="cpu_mhz: 300 MHz is not a step"):
        modes_of(ORIN, parts={"cpu_mhz": [300]})
    with pytest.raises(ConfigError, match="cannot be set to 13 cores"):
        modes_of(ORIN, modes=[{"cores": 13}])

    modes = modes_of(ORIN, modes=[{"cores": 2, "gpu_mhz": 1300}, {"cores": 2, "gpu_mhz": 1301}])
    assert modes == [SweepMode(2, None, 1300.5, None)]
    assert modes[0].settings() == {"cores": 2, "gpu_mhz": 1300.5}


steps = st.builds(
    Steps,
    st.just("a board"),
    st.integers(1, 4).map(lambda n: tuple(range(1, n + 1))),
    *[
        st.lists(st.integers(100, 4000), min_size=1, max_size=4, unique=True).map(
            lambda clocks: tuple(map(float, sorted(clocks)))
        )
    ]
    * 3,
)


@given(steps, st.data())
def test_a_larger_sample_of_a_seed_begins_with_a_smaller_one(
    steps: Steps, data: st.DataObject
) -> None:
    modes = modes_of(steps)
    assert len(modes) == len(set(modes))
    n = data.draw(st.integers(1, len(modes)))
    seed = data.draw(st.integers(0, 2**32))
    drawn = modes_of(steps, random=n, seed=seed)
    assert len(set(drawn)) == n
    assert set(drawn) <= set(modes)
    assert modes_of(steps, random=len(modes), seed=seed)[:n] == drawn
    with pytest.raises(ConfigError, match="random modes"):
        modes_of(steps, random=len(modes) + 1)
