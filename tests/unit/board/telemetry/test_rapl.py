"""The processor's energy counters: every package once, across a wrap."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.telemetry.rapl import MAX_W, RaplSource


@pytest.fixture
def zone(root):
    """Return a function that sets a zone's counter."""

    def write(name, kind, energy_uj, range_uj=1000000):
        root.write(f"sys/class/powercap/{name}/name", f"{kind}\n")
        root.write(f"sys/class/powercap/{name}/energy_uj", f"{energy_uj}\n")
        root.write(f"sys/class/powercap/{name}/max_energy_range_uj", f"{range_uj}\n")

    return write


@pytest.fixture
def source(root, zone, clock):
    """Two packages with their sub-zones, and the platform zone that counts them again."""
    zone("intel-rapl:0", "package-0", 1000)
    zone("intel-rapl:0:0", "core", 500)
    zone("intel-rapl:1", "package-1", 2000)
    zone("intel-rapl:2", "psys", 9000)
    zone("intel-rapl-mmio:0", "package-0", 1000)
    source = RaplSource(str(root), clock, clock.sleep)
    source.start()
    yield source
    source.close()


def test_power_is_energy_of_all_packages_over_time(source, zone, clock):
    zone("intel-rapl:0", "package-0", 301000)
    zone("intel-rapl:1", "package-1", 202000)
    zone("intel-rapl:2", "psys", 999999)
    clock.t_s = source._marks[1][0] + 0.1 - 1e-6
    power_w, energy_j = source.read()
    assert energy_j == pytest.approx(0.5)
    assert power_w == pytest.approx(5.0)


def test_source_is_usable_only_where_every_package_can_be_read(root, zone, clock):
    assert not RaplSource(str(root)).usable()
    zone("intel-rapl:0", "package-0", 0)
    assert RaplSource(str(root)).usable()
    zone("intel-rapl:1", "package-1", 0)
    (root.path / "sys/class/powercap/intel-rapl:1/energy_uj").unlink()
    assert not RaplSource(str(root)).usable()


RANGE_UJ = 262_143_328_850  # of an Intel processor


class Processor:
    """Two packages whose counters a test moves; each reading shows what they are then."""

    def __init__(self, root, clock, counters_uj):
        self.counters_uj = list(counters_uj)
        for n, name in enumerate(("package-0", "package-1")):
            zone = root / f"sys/class/powercap/intel-rapl:{n}"
            zone.mkdir(parents=True)
            (zone / "name").write_text(name)
            (zone / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")
        self.root, self.clock = root, clock
        self.show()

    def show(self):
        for n, counter_uj in enumerate(self.counters_uj):
            path = self.root / f"sys/class/powercap/intel-rapl:{n}/energy_uj"
            path.write_text(f"{counter_uj}\n")

    def work(self, seconds, watts):
        self.clock.sleep(seconds)
        for n, each_w in enumerate(watts):
            self.counters_uj[n] = (self.counters_uj[n] + round(1e6 * each_w * seconds)) % RANGE_UJ
        self.show()


STEPS = st.lists(
    st.tuples(st.floats(0.02, 2.0), st.floats(0.0, 600.0), st.floats(0.0, 600.0)),
    min_size=2,
    max_size=30,
)
SET_BACK = pytest.mark.parametrize(
    "to_uj", [0, 12_345_678, None], ids=["to zero", "to little", "by one count"]
)


@given(steps=STEPS, below_wrap_uj=st.integers(0, 10**9))
def test_energy_is_what_was_spent_however_often_the_counters_wrap(
    tmp_path_factory, steps, below_wrap_uj
):
    clock = _Clock()
    start_uj = RANGE_UJ - 1 - below_wrap_uj
    processor = Processor(tmp_path_factory.mktemp("rapl"), clock, [start_uj, start_uj // 2])
    source = RaplSource(str(processor.root), clock, clock.sleep)
    source.start()
    spent_j = 0.0
    for seconds, *watts in steps:
        processor.work(seconds, watts)
        spent_j += seconds * sum(watts)
        power_w, energy_j = source.read()
        assert energy_j == pytest.approx(spent_j, abs=1e-3)
        assert power_w == pytest.approx(sum(watts), rel=1.0, abs=1.0)  # start() waits 10 ms
    assert source.settings()["counter_restarts"] == 0
    source.close()


@SET_BACK
@given(steps=STEPS, place=st.integers(0, 28), started_uj=st.integers(10**10, RANGE_UJ // 2))
def test_counter_that_is_set_back_adds_nothing_and_ends_the_count(
    tmp_path_factory, to_uj, steps, place, started_uj
):
    clock = _Clock()
    processor = Processor(tmp_path_factory.mktemp("rapl"), clock, [started_uj, started_uj])
    source = RaplSource(str(processor.root), clock, clock.sleep)
    source.start()
    is_set_back = False
    for n, (seconds, *watts) in enumerate(steps):
        if n == min(place, len(steps) - 1):
            counter_uj = processor.counters_uj[0]
            clock.sleep(seconds)
            processor.counters_uj[0] = counter_uj - 1 if to_uj is None else to_uj
            processor.show()
            with pytest.raises(OSError, match="set back"):
                source.read()
            is_set_back = True
            continue
        processor.work(seconds, watts)
        power_w, energy_j = source.read()
        assert 0.0 <= power_w <= 2 * MAX_W
        assert math.isnan(energy_j) == is_set_back
    assert source.settings()["counter_restarts"] == 1
    source.start()
    assert source.read()[1] == 0.0
    source.close()


class _Clock:
    def __init__(self):
        self.t_s = 1000.0

    def __call__(self):
        return self.t_s

    def sleep(self, seconds):
        self.t_s += seconds
