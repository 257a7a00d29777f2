import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakeboard.kinds import KINDS
from tests.fakeboard.model import Model, parts_w

SHARE = st.floats(0.0, 1.0)
CLOCKS = st.fixed_dictionaries(dict.fromkeys(("cpu", "gpu", "emc"), SHARE))
WATTS = KINDS["agx_xavier"].watts


def total_w(clocks, cpu, gpu, online=1.0):
    return sum(parts_w(WATTS, clocks, cpu, gpu, online).values())


def test_full_load_at_the_highest_clocks_is_the_board_s_highest_power():
    assert total_w(dict.fromkeys(("cpu", "gpu", "emc"), 1.0), 1.0, 1.0) == pytest.approx(44.2)


@given(CLOCKS, SHARE, SHARE, SHARE, st.sampled_from(["cpu", "gpu", "emc"]))
def test_more_load_or_a_higher_clock_never_takes_less_power(clocks, cpu, gpu, online, raised):
    power_w = total_w(clocks, cpu, gpu, online)
    assert 9.0 <= power_w <= 44.2 + 1e-9
    assert total_w({**clocks, raised: 1.0}, cpu, gpu, online) >= power_w - 1e-9
    assert total_w(clocks, 1.0, gpu, online) >= power_w - 1e-9
    assert total_w(clocks, cpu, 1.0, online) >= power_w - 1e-9


def test_rails_add_up_to_the_power_that_a_step_returns(board):
    model = Model(str(board.root))
    for load in (0.0, 0.5, 1.0):
        power_w = model.step(0.05, load)
        clocks = board.files.set_clocks(load, load)
        online = len(board.files.online()) / len(board.files.cpus())
        wanted_w = sum(parts_w(board.kind.watts, clocks, load, load, online).values())
        losses = 1.12 if len(board.kind.total) == 1 else 1.0
        assert power_w == pytest.approx(losses * wanted_w, abs=0.05)  # a current is whole mA


def test_clocks_follow_the_load_within_the_mode(board):
    files = board.files
    lowest, highest = files.set_clocks(0.0, 0.0), files.set_clocks(1.0, 1.0)
    folder, gpu = files.clusters()[0][0], files.facts["gpu"]
    assert files.number(folder + "scaling_cur_freq") == files.number(folder + "scaling_max_freq")
    assert files.number(gpu + "/cur_freq") == files.number(gpu + "/max_freq")
    assert files.number(files.emc["now"]) == files.emc_limit_hz()
    assert all(lowest[part] <= highest[part] <= 1.0 for part in highest)
