"""One adapter per peer: its own loop and its own integral, with our meter as its only sensor.

What is replaced is named in each docstring, and nothing else is. An adapter imports its peer inside
the function; it runs in the peer's environment (`python -m benchmarks.peers.one`).
"""
# mypy: disable-error-code="import-not-found"

import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks.peers.meter import Found, Meter, cpu_s

Adapter = Callable[[Meter, float], Found]  # (meter, seconds to measure)

PERIOD_S = 0.1


class Window:
    """Notes when something began and ended, and the CPU time of sampling in between."""

    def __init__(self) -> None:
        self._used_s: float | None = None
        self._cpu_s = cpu_s()
        self._start_s = time.monotonic()

    def sampled(self) -> None:
        """Take the CPU time now: what the peer does to end is not sampling."""
        self._used_s = cpu_s() - self._cpu_s

    def found(self, energy_j: Callable[[], float]) -> Found:
        """Close the window, then ask for the energy."""
        end_s = time.monotonic()
        if self._used_s is None:
            self.sampled()
        return Found(float(energy_j()), self._start_s, end_s, self._used_s or 0.0)


def perun(meter: Meter, seconds: float) -> Found:
    """`_monitoringLoop` over one `Sensor`, stopped as its subprocess does; `processEnergyData`."""
    import numpy as np
    from perun.data_model.data import RawData
    from perun.data_model.measurement_type import Magnitude, MetricMetaData, Unit
    from perun.data_model.sensor import DeviceType, Sensor
    from perun.monitoring.subprocess import _monitoringLoop
    from perun.processing import processEnergyData

    def described(unit: Any) -> Any:
        kind = np.dtype("float32")
        return MetricMetaData(unit, Magnitude.ONE, kind, 0, np.finfo("float32").max, -1)

    sensor = Sensor("meter", DeviceType.OTHER, {}, described(Unit.WATT), meter.watts)
    t_ns: list[int] = []
    values: list[list[float]] = [[]]
    stop = threading.Event()
    threading.Timer(seconds, stop.set).start()
    window = Window()
    _monitoringLoop([sensor], t_ns, values, lambda d: stop.wait(PERIOD_S - d), PERIOD_S)

    def energy_j() -> float:
        t_s = np.array(t_ns) - t_ns[0]  # as createNode does it
        t_s = t_s.astype("float32")
        t_s *= 1e-9
        data = RawData(t_s, np.array(values[0]), described(Unit.SECOND), sensor.dataType)
        return float(processEnergyData(data)[0])

    return window.found(energy_j)


def wattameter(meter: Meter, seconds: float) -> Found:
    """`Tracker` over a `BaseReader`; it has no integral: a trapezoid over its own samples."""
    import numpy as np
    from wattameter.readers import BaseReader
    from wattameter.readers.utils import Power, Watt
    from wattameter.tracker import Tracker

    class Reader(BaseReader):
        def __init__(self) -> None:
            super().__init__((Power,))

        @property
        def tags(self) -> list[str]:
            return ["meter"]

        def get_unit(self, quantity: Any) -> Any:
            return Watt()

        def read(self) -> list[float]:
            return [meter.watts()]

    tracker = Tracker(Reader(), dt_read=PERIOD_S, freq_write=0)
    window = Window()
    tracker.start(0)
    time.sleep(seconds)
    window.sampled()
    tracker.stop(0)

    def energy_j() -> float:
        t_s = np.array(tracker.time_series, dtype=np.int64) / 1e9
        return float(np.trapezoid(np.array(tracker.data)[:, 0], t_s))

    return window.found(energy_j)


def carbontracker(meter: Meter, seconds: float) -> Found:
    """`CarbonTrackerThread` over a `Component` with another handler; `energy_usage`, no PUE."""
    from carbontracker.components.component import Component
    from carbontracker.components.handler import Handler
    from carbontracker.loggerutil import Logger
    from carbontracker.tracker import CarbonTrackerThread

    class MeterHandler(Handler):
        def devices(self) -> list[str]:
            return ["meter"]

        def available(self) -> bool:
            return True

        def power_usage(self) -> list[float]:
            return [meter.watts()]

        def init(self) -> None:
            pass

        def shutdown(self) -> None:
            pass

    logger = Logger(log_dir=None, verbose=0)
    component = Component("cpu", [], False, logger, sim_cpu="meter", sim_cpu_tdp=1.0)
    component._handler = MeterHandler([], False)
    thread = CarbonTrackerThread([component], logger, False, lambda: None, PERIOD_S)
    time.sleep(0.5)  # its start is not the epoch's
    window = Window()
    thread.epoch_start()
    time.sleep(seconds)
    window.sampled()
    thread.epoch_end()
    found = window.found(lambda: 3.6e6 * component.energy_usage(thread.epoch_times)[0])
    thread.stop()
    return found


class Rail:
    """A rail of a Jetson as Zeus sees it."""

    def __init__(self) -> None:
        self._meter: Meter | None = None

    def measure_power(self) -> float:
        """Return mW."""
        if self._meter is None:  # in the child that polls
            self._meter = Meter()
        return self._meter.milliwatts()


def zeus_soc(meter: Meter, seconds: float) -> Found:
    """`Jetson` with one made-up rail for the total; `begin_window`, `end_window`."""
    from zeus.device.soc import jetson

    jetson.jetson_is_available = lambda: True
    jetson.Jetson._discover_available_metrics = lambda self: {"total_power_mw": Rail()}
    soc = jetson.Jetson()
    soc.get_total_energy_consumption()  # the child is there
    window = Window()
    soc.begin_window("window")
    time.sleep(seconds)
    window.sampled()
    measured = soc.end_window("window")
    found = window.found(lambda: measured.total_energy_mj / 1000.0)
    soc._stop_process()
    return found


class Gpus:
    """One GPU as Zeus sees it."""

    def __init__(self) -> None:
        self._meter = Meter()

    def __len__(self) -> int:
        return 1

    def get_instant_power_usage(self, index: int) -> float:
        """Return mW."""
        return self._meter.milliwatts()

    get_average_power_usage = get_average_memory_power_usage = get_instant_power_usage


def patch_zeus() -> None:
    """Put our meter in the place of the GPUs; the child that polls has to do so as well."""
    from zeus.monitor import power

    power.get_gpus = lambda ensure_homogeneous=False: Gpus()


def zeus_power_monitor(meter: Meter, seconds: float) -> Found:
    """`PowerMonitor` over one made-up GPU; `get_energy`."""
    from zeus.monitor.power import PowerMonitor

    monitor = PowerMonitor(update_period=PERIOD_S, power_domains=["device_instant"])
    time.sleep(0.5)
    window = Window()
    start_unix_s = time.time()
    time.sleep(seconds)
    end_unix_s = time.time()
    found = window.found(lambda: (monitor.get_energy(start_unix_s, end_unix_s) or {0: 0.0})[0])
    monitor.stop()
    return found


def codecarbon(meter: Meter, seconds: float) -> Found:
    """`OfflineEmissionsTracker` as it is by default (15 s, power each second) over one `CPU`."""
    from codecarbon import OfflineEmissionsTracker
    from codecarbon.core.units import Power
    from codecarbon.external.hardware import CPU

    class MeterCpu(CPU):
        def _get_power_from_cpus(self) -> Any:
            return Power.from_watts(meter.watts())

    tracker = OfflineEmissionsTracker(
        country_iso_code="FRA", save_to_file=False, log_level="error", allow_multiple_runs=True
    )
    tracker._ensure_hardware_ready()
    tracker._hardware = [MeterCpu(".", "constant", "meter", 1)]
    window = Window()
    tracker.start()
    time.sleep(seconds)
    window.sampled()
    tracker.stop()
    return window.found(lambda: 3.6e6 * tracker._total_energy.kWh)


ADAPTERS: dict[str, Adapter] = {
    "perun": perun,
    "wattameter": wattameter,
    "carbontracker": carbontracker,
    "zeus_soc": zeus_soc,
    "zeus_power_monitor": zeus_power_monitor,
    "codecarbon": codecarbon,
}
