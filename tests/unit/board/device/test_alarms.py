"""Heat and current: what slows a board down is seen, what does not is left out."""

import pytest

from epochwatt.board.device.alarms import Alarm, over_current, throttling


@pytest.fixture
def write(tmp_path):
    """Return a function that writes files of a made-up board: folder, then name=content."""

    def files(folder, **contents):
        path = tmp_path / "sys/class" / folder
        for name, content in contents.items():
            file = path / name.replace("__", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{content}\n")
        return str(tmp_path)

    return files


def test_states_and_transitions_of_what_limits_clocks_count(write):
    # types as boards show them: JetPack 5 and 6, then the governors' own
    write("thermal/cooling_device0", type="cpu-throttle-alert", cur_state=1, stats__total_trans=3)
    write("thermal/cooling_device1", type="gpu-throttle-alert", cur_state=0, stats__total_trans=0)
    write("thermal/cooling_device2", type="cpufreq-cpu0", cur_state=7)
    root = write("thermal/cooling_device3", type="devfreq-17000000.gpu", cur_state=0)
    assert throttling(root) == Alarm(events=3, active=2)


def test_counters_of_soctherm_and_alarms_of_the_sensor_count(write):
    write("hwmon/hwmon3", name="soctherm_oc", oc1_event_cnt=0, oc2_event_cnt=15, oc3_event_cnt=37)
    write("hwmon/hwmon3", oc1_throt_en=1)
    write("hwmon/hwmon1", name="ina3221", curr1_crit_alarm=1, curr1_max_alarm=0, curr2_max_alarm=1)
    root = write("hwmon/hwmon0", name="another", curr1_crit_alarm=1, oc1_event_cnt=9)
    assert over_current(root) == Alarm(events=52, active=2)


def test_an_agx_thor_that_is_too_hot_and_one_that_is_not(write):
    """SOURCE: cooling devices, their highest states and those at 109 degrees: ThorFAN (MIT)."""
    states = {"cpu-throttle-alert": 0, "gpu-throttle-alert": 1, "devfreq-gpu-gpc-0": 18}
    states |= {"soc012-throttle-alert": 0, "cpufreq-cpu12": 0, "devfreq-gpu-nvd-0": 0}
    for n, kind in enumerate(["pwm-fan", "hot-surface-alert"]):
        root = write(f"thermal/cooling_device{n}", type=kind, cur_state=1)
    for n, (kind, state) in enumerate(states.items(), 2):
        write(f"thermal/cooling_device{n}", type=kind, cur_state=state)
    assert throttling(root) == Alarm(events=0, active=2)
    for n in range(2, 2 + len(states)):
        write(f"thermal/cooling_device{n}", cur_state=0)
    assert throttling(root) == Alarm(events=0, active=0)
