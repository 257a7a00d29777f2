"""jtop's samples in the shapes of 3.1, 4.x and 7.x, through stand-ins for its client."""

import datetime
import math
import sys
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.records.samples import read_samples
from epochwatt.board.telemetry import jtop_source
from epochwatt.board.telemetry.jtop_source import Feed, JtopSource, open_jtop
from epochwatt.board.telemetry.sampler import Recorder

ORIN_MW = {"VDD_GPU_SOC": 8000, "VDD_CPU_CV": 4000, "VIN_SYS_5V0": 9000, "VDDQ_VDD2_1V8AO": 2000}


def rail(power_mw):
    return {"volt": 5000, "curr": power_mw // 5, "power": power_mw, "avg": 1, "online": True}


class Client:
    """A client of 4.x or 7.x; a test changes what it shows and lets a sample come by `show`."""

    interval = 1.0

    def __init__(self, interval=1.0):
        self.uptime = datetime.timedelta(seconds=100)
        self.power = {
            "rail": {label: rail(mw) for label, mw in ORIN_MW.items()},
            "tot": {"power": 23000, "avg": 1},
        }
        self.gpu = {"ga10b": {"status": {"load": 62.5}, "freq": {"cur": 918000, "max": 1300500}}}
        self.memory = {"RAM": {"tot": 1}, "EMC": {"cur": 2133000, "val": 30}}
        self.fan = {"pwmfan": {"speed": [20.0], "profile": "quiet"}}
        self.temperature = {
            "CPU": {"temp": 48.5, "online": True},
            "CV0": {"temp": -256, "online": False},
        }
        self.board = {}
        self.observers = []
        self.error = None
        self.closed = False

    def attach(self, observer):
        self.observers.append(observer)

    def show(self):
        for observer in self.observers:
            observer(self)

    def start(self):
        self.show()

    def ok(self, spin=False):
        assert spin, "this would wait for the next sample"
        if self.error is not None:
            raise self.error
        return True

    def close(self):
        self.closed = True


class ThorClient(Client):
    """A client of 7.2.2 on AGX Thor; 7.2.0 does not know an INA238, so VIN is missing.

    SOURCE: what core/power.py of jetson_stats 7.2.2 returned for the files of our fake Thor;
    its thor_gpu.py and memory.py.
    """

    def __init__(self, *without):
        super().__init__()
        mw = {"VDD_GPU": 5956, "VDD_CPU_SOC_MSS": 7148, "VIN_SYS_5V0": 6807}
        self.power["rail"] = {label: rail(power) for label, power in mw.items()}
        self.power["tot"] = {"power": sum(mw.values()), "avg": 1}
        if "VIN" not in without:
            self.power["tot"] = {**rail(25530), "name": "VIN"}
        clocks = {"governor": "nvhost_podgov", "cur": 314000, "max": 1575000, "min": 54000}
        self.gpu = {
            "Thor": {
                "type": "integrated",
                "status": {"load": None, "railgate": None, "tpc_pg_mask": None, "3d_scaling": None},
                "freq": {**clocks, "GPC": [314000, 314000, 314000]},
                "power_control": "nvml",
            }
        }
        self.memory = {"EMC": {"cur": 665600, "max": 4266000, "min": 204000, "val": 0}}


class OldClient(Client):
    """A client of 3.1: power is a pair, labels lack a part, clocks and loads stand elsewhere."""

    def __init__(self, total, rails):
        super().__init__()
        self.power = ({"cur": total, "avg": 1}, {k: {"cur": v, "avg": 1} for k, v in rails.items()})
        self.gpu = {"val": 17, "frq": 921600, "min_freq": 76800}
        self.emc = {"val": 6, "frq": 1600000}
        self.fan = types.SimpleNamespace(measure=33.5)
        self.temperature = {"CPU": 31.5, "thermal": 30.0}


@pytest.fixture(autouse=True)
def supplies(monkeypatch):
    """The power supplies that Linux knows: none, unless a test puts some there."""
    names = []
    monkeypatch.setattr(jtop_source, "power_supplies", lambda: names)
    return names


@pytest.fixture
def opened(clock):
    """Return a function that makes a source of a client and shows it the first sample."""

    def make(client, kind="agx_orin", interval_s=1.0):
        feed = Feed(client, kind, interval_s, clock)
        client.start()
        return JtopSource(feed, kind, "7.2.2")

    return make


def row(source):
    return dict(zip(source.columns, source.read(), strict=True))


def test_rails_our_total_and_jtops(opened):
    source = opened(Client())
    assert (source.name, source.scope, source.total) == ("jtop", "module", "power_module_w")
    values = row(source)
    age_s = values.pop("sample_way_s")
    assert 0 < age_s < 0.01
    assert math.isnan(values.pop("temp_cv0_c"))
    assert values == {
        "rail_vdd_gpu_soc_w": 8.0,
        "rail_vdd_cpu_cv_w": 4.0,
        "rail_vin_sys_5v0_w": 9.0,
        "rail_vddq_vdd2_1v8ao_w": 2.0,
        "power_module_w": 21.0,
        "power_jtop_w": 23.0,
        "gpu_mhz": 918.0,
        "gpu_util_pct": 62.5,
        "emc_mhz": 2133.0,
        "emc_util_pct": 30.0,
        "fan_pct": 20.0,
        "temp_cpu_c": 48.5,
    }


def test_7_2_of_agx_thor(opened):
    source = opened(ThorClient(), "agx_thor")
    assert (source.scope, source.total) == ("board", "power_board_w")
    values = row(source)
    assert values["rail_vin_w"] == values["power_board_w"] == values["power_jtop_w"] == 25.53
    assert (values["gpu_mhz"], values["emc_mhz"]) == (314.0, 665.6)
    assert math.isnan(values["gpu_util_pct"])
    without = opened(ThorClient("VIN"), "agx_thor")
    assert without.total is None
    assert "VIN" in without.settings()["no_total"]


def test_3_1_of_a_nano(opened):
    """It tells the input rail as the total and cuts POM_ and VDD_ off the labels."""
    client = OldClient(2746, {"5V GPU": 123, "5V CPU": 456})
    assert row(opened(client, "nano")) == {
        "rail_pom_5v_in_w": 2.746,
        "rail_pom_5v_gpu_w": 0.123,
        "rail_pom_5v_cpu_w": 0.456,
        "power_module_w": 2.746,
        "power_jtop_w": 2.746,
        "gpu_mhz": 921.6,
        "gpu_util_pct": 17.0,
        "emc_mhz": 1600.0,
        "emc_util_pct": 6.0,
        "fan_pct": 33.5,
        "temp_cpu_c": 31.5,
        "temp_thermal_c": 30.0,
        "sample_way_s": pytest.approx(0, abs=0.01),
    }


class Service:
    """A service on the simulated clock: a sweep each interval, as jtop's timer makes it.

    It notes the uptime, reads the power `READ_S` later and has brought the sample to the client
    another `READ_S` and now and then some more after that. `truth` are the instants of the power.
    """

    READ_S = 0.02
    SUSPENDED_S = 5000.0

    def __init__(self, client, clock, interval_s=1.0, late_s=(0.0,), power_w=lambda t_s: 21.0):
        self.client, self.clock, self.interval_s = client, clock, interval_s
        self.late_s, self.power_w = late_s, power_w
        self.truth = []
        self.next_s = clock.t_s + 0.4
        self.asleep = False

    def uptime(self):
        return self.clock() + self.SUSPENDED_S

    def sleep(self, seconds):
        """Let time pass on the clock, and the service do its work in it."""
        end_s = self.clock.t_s + seconds
        while True:
            late_s = self.late_s[len(self.truth) % len(self.late_s)]
            comes_s = self.next_s + 2 * self.READ_S + late_s
            if self.asleep or comes_s > end_s:
                break
            read_s = self.next_s + self.READ_S
            self.clock.t_s = max(self.clock.t_s, comes_s)
            self.truth.append(read_s)
            ticks = math.floor((self.next_s + self.SUSPENDED_S) * 100) / 100
            self.client.uptime = datetime.timedelta(seconds=ticks)
            self.client.power["rail"]["VDD_GPU_SOC"] = rail(int(1e3 * self.power_w(read_s)) - 13000)
            self.client.show()
            self.next_s += self.interval_s + 0.003
        self.clock.t_s = max(self.clock.t_s, end_s)


@pytest.fixture
def served(clock):
    """Return a function that makes a service, and the source that listens to it."""

    def make(**options):
        client = Client()
        client.interval = options.get("interval_s", 1.0)
        service = Service(client, clock, **options)
        feed = Feed(client, "agx_orin", 1.0, clock, service.uptime)
        service.sleep(1.5 * client.interval)
        return service, JtopSource(feed, "agx_orin", "7.2.2")

    return make


@pytest.fixture
def recorded(clock, folder):
    """Return a function that records a source for some seconds; gives statistics and rows."""

    def run(service, source, seconds=60.0, during=lambda t_s: None):
        recorder = Recorder([source], 0, clock, clock.wall, service.sleep)
        recorder.begin(folder)
        start_s = clock.t_s
        while clock.t_s < start_s + seconds:
            service.sleep(min(recorder.step(), 0.1))
            during(clock.t_s - start_s)
        end_s = clock.t_s
        return recorder.end(folder), read_samples(folder, "jtop"), (start_s, end_s)

    return run


@pytest.mark.parametrize("interval_s", [0.5, 1.0, 5.0])
def test_each_sample_of_the_service_stands_in_the_file_once_at_its_own_instant(
    served, recorded, clock, interval_s
):
    late_s = (0.0, 0.004, 0.3 * interval_s, 0.03, 0.0, 0.01, 0.1)
    service, source = served(interval_s=interval_s, late_s=late_s)
    service.sleep(0.7 * interval_s)
    statistics, rows, (start_s, end_s) = recorded(service, source)
    t_s, truth_s = rows["t_mono_s"], np.array(service.truth)
    # from the last one before the window to the first one after it
    assert t_s[0] <= start_s < t_s[2]  # one more where it was still on its way
    assert t_s[-2] < end_s <= t_s[-1]
    expected = truth_s[(truth_s > t_s[0] - 0.1) & (truth_s < t_s[-1] + 0.1)]
    assert len(t_s) == len(expected)
    assert np.abs(t_s - expected).max() < 0.012  # the service's clock has ticks of 10 ms
    np.testing.assert_allclose(rows["t_unix_s"] - t_s, clock.wall_ahead_s, atol=1e-5)
    assert rows["sample_way_s"].max() == pytest.approx(max(late_s) + Service.READ_S, abs=0.012)
    assert clock.t_s - end_s < 1.5 * interval_s  # what it cost to wait
    about = statistics["sources"]["jtop"]
    assert (about["n_samples"], about["n_gaps"], about["error"]) == (len(t_s), 0, None)
    assert about["period_s"] == about["settings"]["service_interval_s"] == interval_s
    assert about["step_mean_s"] == pytest.approx(interval_s + 0.003, abs=0.01)


def test_service_that_is_silent_for_a_while_leaves_a_gap_that_is_counted(served, recorded):
    service, source = served()

    def during(t_s):
        service.asleep = 20.0 < t_s < 30.0
        if service.asleep:
            service.next_s = max(service.next_s, service.clock.t_s)

    statistics, rows, _ = recorded(service, source, 60.0, during)
    about = statistics["sources"]["jtop"]
    assert np.diff(rows["t_mono_s"]).max() > 9.0
    assert about["n_failed"] == about["n_gaps"] == pytest.approx(10, abs=2)
    assert about["error"].startswith("no sample for 1")  # a bit more than ten seconds


def test_service_that_ends_is_not_waited_for_long_and_the_end_is_missing(served, recorded, clock):
    service, source = served()

    def during(t_s):
        if t_s > 30.0:
            service.asleep = True
            service.client.error = RuntimeError("Lost connection")

    statistics, rows, (_, end_s) = recorded(service, source, 60.0, during)
    about = statistics["sources"]["jtop"]
    assert rows["t_mono_s"][-1] < end_s - 28.0
    assert clock.t_s - end_s < 1.7
    assert about["n_failed"] == pytest.approx(30, abs=2)
    assert about["error"].endswith("RuntimeError: Lost connection")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["rail", "tot", "power", "name", "EMC", "cur", "freq", "speed"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(
    st.sampled_from(["power", "gpu", "memory", "fan", "temperature", "uptime"]),
    ANYTHING,
    st.booleans(),
)
def test_whatever_the_service_sends_never_raises_in_the_clients_thread(name, sent, old):
    client = OldClient(1, {"5V GPU": 1}) if old else Client()
    setattr(client, name, sent)
    feed = Feed(client, "nano", 1.0, lambda: 0.0)
    client.show()
    try:
        sample, _ = feed.newest()
    except OSError:
        return
    values = list(sample.rails_w.values()) + list(sample.others.values())
    assert all(isinstance(value, float) for value in values)


def test_open_without_the_service(monkeypatch):
    def refuse(self):
        raise RuntimeError("The service is not active. Please run:\nsudo jtop")

    package = types.SimpleNamespace(__version__="4.3.2", jtop=Client)
    monkeypatch.setitem(sys.modules, "jtop", package)
    monkeypatch.setattr(Client, "start", refuse)
    with pytest.raises(OSError, match=r"^jtop: RuntimeError: The service.*run: sudo jtop$"):
        open_jtop("agx_orin")
