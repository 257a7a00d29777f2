"""Read power and load of an NVIDIA GPU by its library NVML (board side: Python 3.6 grammar).

`pynvml` (nvidia-ml-py) is imported only where a GPU is looked for. On Jetson boards it starts and
then answers NotSupported to every question: each such answer is a NaN, and a GPU that reports
neither power nor utilisation does not count as a source.

Source: NVML API reference, nvmlDeviceGetPowerUsage and nvmlFieldValueEnums; what a card's power is:
Yang, Adamek, Armour, SC 2024 (arXiv 2312.02741), 70 cards beside a meter.
"""

import importlib
import math
import time
from statistics import median_high
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry import which_gpu
from epochwatt.board.telemetry.source import NAN, Source, sensor_facts

_POWER_INSTANT = 186  # NVML_FI_DEV_POWER_INSTANT; older modules do not name it
REFRESH_S = 0.6  # how long a new source is looked at: six values of a counter that is slow
LOOK_S = 0.001  # between two looks
FEWEST = 3  # times between new values say how long these last


class Sensor(NamedTuple):
    """Times by which a card renews its power, and over which it averages.

    Where the second is the shorter one, the rest of the time is not seen by the sensor at all.
    """

    update_s: float
    averaging_s: float


# SOURCE: arXiv 2312.02741, by NVML's number of the architecture; others are not known
_SENSORS = {
    4: Sensor(0.020, 0.010),  # Pascal
    5: Sensor(0.020, 0.010),  # Volta
    6: Sensor(0.100, 0.100),  # Turing
    7: Sensor(0.100, 0.100),  # Ampere: RTX 3090
    9: Sensor(0.100, 0.025),  # Hopper: H100
}
_SENSORS_BY_NAME = (  # ASSUME: cards of the same chip are alike
    ("GH200", Sensor(0.100, 0.020)),
    ("A100", Sensor(0.100, 0.025)),
    ("A800", Sensor(0.100, 0.025)),
    ("A30", Sensor(0.100, 0.025)),
)
_AMPERE, _GA100 = 7, ("A100", "A800", "A30")
_MEAN_S = 1.0  # SOURCE: NVML: power of Ampere (but GA100) and later is averaged over 1 s


def _started() -> Any:
    """Return pynvml, started; None: the package, or NVIDIA's library, is not there."""
    try:
        pynvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except (pynvml.NVMLError, OSError):
        return None
    return pynvml


def open_gpu(gpu: str = which_gpu.ANY) -> Optional["NvmlSource"]:
    """Return the source of a GPU (`which_gpu.choose`); None where there is none to read.

    Raises ValueError: there is one, but its power cannot be attributed: why.
    """
    pynvml = _started()
    if pynvml is None:
        return None
    try:
        handle = which_gpu.choose(pynvml, gpu)
    except ValueError:
        _shut_down(pynvml)
        raise
    except pynvml.NVMLError:
        handle = None
    source = None if handle is None else NvmlSource(pynvml, handle)
    if source is None or all(value != value for value in source.read()[:3]):
        _shut_down(pynvml)
        return None
    source.watch()
    return source


def open_load() -> Optional[Callable[[], float]]:
    """Return what reads the load of the machine's first GPU, %; None: NVML does not tell it.

    BOARD: Thor's GPU is a PCI device of nvidia.ko without a file of its load; a query takes 2 ms
    (stored index 69545150365). Of its power and clocks NVML knows nothing there, and on Orin it
    opens and answers no query at all (HazyResearch/intelligence-per-watt issue 40).
    """
    pynvml = _started()
    if pynvml is None:
        return None
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        pynvml.nvmlDeviceGetUtilizationRates(handle)
    except pynvml.NVMLError:
        _shut_down(pynvml)
        return None

    def load_pct() -> float:
        try:
            return float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        except pynvml.NVMLError:
            return NAN

    return load_pct


def _shut_down(nvml: Any) -> None:
    try:
        nvml.nvmlShutdown()
    except nvml.NVMLError:
        pass


class NvmlSource(Source):
    """One GPU, by its handle of `nvml`, the module `pynvml` or what stands for it in a test."""

    name = "nvml"
    period_s = 0.1
    columns = (
        "power_gpu_w",
        "energy_gpu_j",  # the card's own counter, since its driver was loaded
        "gpu_util_pct",
        "gpu_mhz",
        "mem_mhz",
        "gpu_temp_c",
        "throttle_reasons",  # bit mask: nvmlClocksThrottleReason*
    )
    scope: Optional[str] = "gpu"
    total: Optional[str] = "power_gpu_w"

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._has_instant_power = self._power_instant_w() is not None
        power = self._power_instant_w if self._has_instant_power else self._power_usage_w
        self._queries: Tuple[Callable[[], Optional[float]], ...] = (
            power,
            lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3,  # mJ
            lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
            lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_GRAPHICS),
            lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
            lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
        )
        self._not_supported: Set[int] = set()
        self._refreshed_s: Dict[str, List[float]] = {}  # times between new values, by column

    def _power_usage_w(self) -> float:
        return float(self._nvml.nvmlDeviceGetPowerUsage(self._handle)) / 1e3  # mW

    def _power_instant_w(self) -> Optional[float]:
        """Return the power at this moment; None where the card reports only its mean over 1 s."""
        try:
            answer = self._nvml.nvmlDeviceGetFieldValues(self._handle, [_POWER_INSTANT])[0]
        except (self._nvml.NVMLError, AttributeError, LookupError):
            return None
        if answer.nvmlReturn != 0 or not answer.value.uiVal:
            return None
        return float(answer.value.uiVal) / 1e3  # mW

    def read(self) -> List[float]:
        """Return one value per column; what is not supported, or fails now, is NaN."""
        return [self._ask(n) for n in range(len(self._queries))]

    def _ask(self, n: int) -> float:
        if n in self._not_supported:
            return NAN
        try:
            value = self._queries[n]()
        except (self._nvml.NVMLError, AttributeError) as error:
            unknown = getattr(self._nvml, "NVML_ERROR_NOT_SUPPORTED", 3)
            if isinstance(error, AttributeError) or getattr(error, "value", None) == unknown:
                self._not_supported.add(n)  # the card or the module has no such thing
            return NAN
        return NAN if value is None else float(value)

    def watch(self, clock: Any = time.monotonic, sleep: Any = time.sleep) -> None:
        """Poll power and counter for `REFRESH_S` and note how long their values last.

        Where the card has neither, the source no longer claims a scope or total.
        """
        latest: Dict[str, Tuple[float, float]] = {}  # by column: value and since when, s
        until_s = clock() + REFRESH_S
        while clock() < until_s:
            for n, column in enumerate(self.columns[:2]):
                value, now_s = self._ask(n), clock()
                if math.isnan(value) or (column in latest and value == latest[column][0]):
                    continue
                if column in latest:
                    lasted_s = now_s - latest[column][1]
                    self._refreshed_s.setdefault(column, []).append(lasted_s)
                latest[column] = value, now_s
            sleep(LOOK_S)
        if {0, 1} <= self._not_supported:
            self.scope = self.total = None

    def _refresh_s(self, column: str, statistic: Callable[[List[float]], float]) -> Optional[float]:
        """Return a statistic of the times that a column's values lasted, s; None: too few seen.

        The first is left out: its value was there before `watch` began.
        """
        lasted_s = self._refreshed_s.get(column, [])[1:]
        return statistic(lasted_s) if len(lasted_s) >= FEWEST else None

    def sensor(self) -> Document:
        """Return `sensor_facts` of the card's power, for the bound of the energy.

        `update_s` and `counter_update_s` are what `watch` saw (of the counter the longest time),
        else `update_s` is what is known of the card. `seen_share` is the share of the time that
        the sensor averages over. None: not known.
        """
        name = str(self._property("nvmlDeviceGetName"))
        architecture = self._property("nvmlDeviceGetArchitecture") or 0
        known = _SENSORS.get(architecture)
        for word, sensor in _SENSORS_BY_NAME:
            if _has_word(name, (word,)):
                known = sensor
                break
        is_mean = architecture >= _AMPERE and not _has_word(name, _GA100)
        is_mean = is_mean and not self._has_instant_power
        averaging_s = update_s = share = None
        if known is not None:
            averaging_s, update_s = known.averaging_s, known.update_s
            share = round(min(1.0, known.averaging_s / known.update_s), 3)
        if is_mean:
            averaging_s, share = _MEAN_S, None
        return dict(
            sensor_facts(
                "mean" if is_mean else "held",
                averaging_s,
                self._refresh_s("power_gpu_w", median_high) or update_s,
            ),
            seen_share=share,
            counter_update_s=self._refresh_s("energy_gpu_j", max),
        )

    def settings(self) -> Document:
        """Return which GPU it is and what its power is a mean of."""
        instant, mean = "instant", "as the driver averages it (over 1 s from Ampere on)"
        return {
            "sensor": self.sensor(),
            "power": instant if self._has_instant_power else mean,
            "gpu": self._property("nvmlDeviceGetName"),
            "uuid": self._property("nvmlDeviceGetUUID"),
            "power_limit_mw": self._property("nvmlDeviceGetEnforcedPowerLimit"),
            "not_supported": [self.columns[n] for n in sorted(self._not_supported)],
        }

    def _property(self, question: str) -> Any:
        """Return what the card answers to a question; None: nothing."""
        try:
            answer = getattr(self._nvml, question)(self._handle)
        except (self._nvml.NVMLError, AttributeError):
            return None
        return which_gpu.text(answer) if isinstance(answer, bytes) else answer

    def close(self) -> None:
        """Let the library go."""
        _shut_down(self._nvml)


def _has_word(name: str, parts: Tuple[str, ...]) -> bool:
    """Say whether one of the parts is a word of a card's name: `A30` is none of `RTX A3000`."""
    words = name.replace("-", " ").split()
    return any(part in words for part in parts)
