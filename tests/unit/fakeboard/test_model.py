import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakeboard.kinds import KINDS
from tests.fakeboard.model import FAULTS, Model, parts_w

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


def test_an_input_rail_is_never_below_its_children(board):
    if len(board.kind.total) > 1:
        pytest.skip("no input rail")
    model = Model(str(board.root))
    for load in (0.0, 0.3, 1.0):
        total = model.step(0.05, load)
        currents = [board.files.number(rail["curr"]) for rail in board.files.facts["rails"]]
        assert 5.0 * currents[0] / 1e3 == pytest.approx(total, abs=2e-3)
        assert currents[0] > sum(currents[1:])


def test_cpu_time_passes_on_the_cpus_that_are_on(agx):
    model = Model(str(agx.root))
    agx.set_fault("busy", 0.25)
    for _ in range(100):
        model.step(0.1, 0.5)
    rows = [line.split() for line in agx.files.text("proc/stat").splitlines()]
    assert [row[0] for row in rows] == ["cpu", "cpu0", "cpu1", "cpu2", "cpu3"]
    assert [(int(row[1]), int(row[4])) for row in rows[1:]] == [(750, 250)] * 4
    agx.run("usr/sbin/nvpmodel", "-m", "6")
    model.step(0.1, 0.5)
    assert len(agx.files.text("proc/stat").splitlines()) == 3


def test_work_warms_and_the_fan_follows_until_its_control_is_stopped(board):
    model, fan = Model(str(board.root)), board.files.facts["fan"]
    zones = board.files.facts["zones"]
    zone = next(n for n, zone in enumerate(zones) if zone["place"] == "cpu")
    cool = board.files.number(f"sys/class/thermal/thermal_zone{zone}/temp")
    board.run("usr/bin/jetson_clocks")
    for _ in range(100):
        model.step(1.0, 1.0)
    assert board.files.number(f"sys/class/thermal/thermal_zone{zone}/temp") > cool + 5000
    assert 0 < board.files.number(fan["now"]) < 255
    board.run("usr/bin/jetson_clocks", "--fan")
    model.step(1.0, 0.0)
    assert board.files.number(fan["now"]) == 255
    assert board.files.number(fan["rpm"]) == 5100


def test_clocks_follow_the_load_within_the_mode(board):
    files = board.files
    lowest, highest = files.set_clocks(0.0, 0.0), files.set_clocks(1.0, 1.0)
    folder, gpu = files.clusters()[0][0], files.facts["gpu"]
    assert files.number(folder + "scaling_cur_freq") == files.number(folder + "scaling_max_freq")
    assert files.number(gpu + "/cur_freq") == files.number(gpu + "/max_freq")
    assert files.number(files.emc["now"]) == files.emc_limit_hz()
    assert all(lowest[part] <= highest[part] <= 1.0 for part in highest)


def test_each_fault_is_described():
    assert set(FAULTS) == {"rail_stops", "throttling", "gpu_held", "swap_growth", "busy"}


def test_a_gpu_that_is_held_does_not_exceed_its_share_whatever_is_set(agx):
    model = Model(str(agx.root))
    folder, steps = agx.files.facts["gpu"] + "/", agx.files.facts["gpu_hz"]
    for name in ("min_freq", "max_freq"):
        agx.files.write(folder + name, steps[-1])
    model.step(0.05, 1.0)
    assert agx.files.number(folder + "cur_freq") == steps[-1]
    agx.set_fault("gpu_held", 0.5)
    model.step(0.05, 1.0)
    assert 0.4 * steps[-1] < agx.files.number(folder + "cur_freq") <= 0.5 * steps[-1]
