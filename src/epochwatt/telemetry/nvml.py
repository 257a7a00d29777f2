"""Power and load of an NVIDIA GPU through its management library (board side: Python 3.6 grammar).

`pynvml` (nvidia-ml-py) is imported only where a GPU is looked for. On Jetson boards it starts and
then answers NotSupported to every question: each such answer is a NaN, and a GPU that tells
neither power nor utilisation is no source.

Source: NVML API reference, nvmlDeviceGetPowerUsage and nvmlFieldValueEnums.
"""

import importlib
import os
from typing import Any, Callable, Dict, List, Optional, Tuple

from epochwatt.telemetry.source import NAN, Source

_POWER_INSTANT = 186  # NVML_FI_DEV_POWER_INSTANT; older modules do not name it


def open_gpu(visible: Optional[str] = None) -> Optional["NvmlSource"]:
    """Return the source of the GPU that CUDA calls 0; None where there is none to read.

    ASSUME: CUDA and NVML count the GPUs alike (CUDA_DEVICE_ORDER=PCI_BUS_ID, or all of one kind).

    Parameters
    ----------
    visible : CUDA_VISIBLE_DEVICES; None takes it from the environment
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
    first = "0" if visible is None else visible.split(",")[0].strip()
    if first in ("", "-1", "NoDevFiles"):
        return None  # CUDA sees no GPU, so the training is not on it
    try:
        pynvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        if first.isdigit():
            handle = pynvml.nvmlDeviceGetHandleByIndex(int(first))
        else:
            handle = pynvml.nvmlDeviceGetHandleByUUID(first)
    except (pynvml.NVMLError, OSError):
        return None
    source = NvmlSource(pynvml, handle)
    if all(value != value for value in source.read()[:3]):
        source.close()
        return None
    return source


class NvmlSource(Source):
    """One GPU.

    Parameters
    ----------
    nvml : the module `pynvml`, initialised, or what stands for it in a test
    handle : the GPU's NVML handle
    """

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
    scope = "gpu"
    total = "power_gpu_w"

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._instant = self._power_instant_w() is not None
        power = self._power_instant_w if self._instant else self._power_usage_w
        self._questions: Tuple[Callable[[], Optional[float]], ...] = (
            power,
            lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3,  # mJ
            lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
            lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_GRAPHICS),
            lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
            lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
        )
        self._not_supported: Dict[int, bool] = {}

    def _power_usage_w(self) -> float:
        return float(self._nvml.nvmlDeviceGetPowerUsage(self._handle)) / 1e3  # mW

    def _power_instant_w(self) -> Optional[float]:
        """Return the power at this moment; None where the card tells only its mean over 1 s."""
        try:
            answer = self._nvml.nvmlDeviceGetFieldValues(self._handle, [_POWER_INSTANT])[0]
        except (self._nvml.NVMLError, AttributeError, LookupError):
            return None
        if answer.nvmlReturn != 0 or not answer.value.uiVal:
            return None
        return float(answer.value.uiVal) / 1e3  # mW

    def read(self) -> List[float]:
        """Ask all questions; what is not supported, or fails now, is NaN."""
        values = []
        for n, question in enumerate(self._questions):
            if n in self._not_supported:
                values.append(NAN)
                continue
            try:
                value = question()
            except (self._nvml.NVMLError, AttributeError) as error:
                if self._never(error):
                    self._not_supported[n] = True
                value = None
            values.append(NAN if value is None else float(value))
        return values

    def _never(self, error: Exception) -> bool:
        """Say whether asking again is of no use: the card or the module has no such thing."""
        unknown = getattr(self._nvml, "NVML_ERROR_NOT_SUPPORTED", 3)
        return isinstance(error, AttributeError) or getattr(error, "value", None) == unknown

    def settings(self) -> Dict[str, Any]:
        """Return which GPU it is and what its power is a mean of."""
        instant, mean = "instant", "as the driver averages it (over 1 s from Ampere on)"
        return {
            "power": instant if self._instant else mean,
            "gpu": self._told("nvmlDeviceGetName"),
            "uuid": self._told("nvmlDeviceGetUUID"),
            "power_limit_mw": self._told("nvmlDeviceGetEnforcedPowerLimit"),
            "not_supported": [self.columns[n] for n in sorted(self._not_supported)],
        }

    def _told(self, question: str) -> Any:
        try:
            answer = getattr(self._nvml, question)(self._handle)
        except (self._nvml.NVMLError, AttributeError):
            return None
        return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer

    def close(self) -> None:
        """Let the library go."""
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError:
            pass
