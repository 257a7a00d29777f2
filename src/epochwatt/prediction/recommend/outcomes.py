"""What runs gave in the modes of a recommendation: means over the valid epochs after the first."""

from collections.abc import Iterable, Mapping
from fnmatch import filter as matching
from pathlib import Path

import numpy as np

from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.data.workloads import read_workloads
from epochwatt.prediction.recommend.command import Advice
from epochwatt.prediction.recommend.new_runs import labels, place

RUNS = Path("results/runs")
EPOCHS_CSV = "epochs.csv"


def run_patterns(advice: Advice, mode: Mode) -> list[str]:
    """Return patterns of the ids of a mode's runs: `study.runs.run_id` but for the hash."""
    names = labels(mode, advice.device, advice.files.board)
    return [f"{place(advice.fit.workload)}-{name.lower()}-p*-*" for name in names]


def means(observed: Observations) -> dict[Mode, dict[str, float]]:
    """Return mode -> epoch_s and, where power was measured, power_w and energy_wh."""
    later = observed.after_first().per_mode()
    rows = zip(
        later.mode_of_row, later.time_s.tolist(), later.power_w.tolist(), later.energy_wh.tolist(),
        strict=True,
    )  # fmt: skip
    return {
        mode: {"epoch_s": s} | ({} if np.isnan(w) else {"power_w": w, "energy_wh": wh})
        for mode, s, w, wh in rows
    }


def profiled_means(advice: Advice, root: Path) -> Mapping[Mode, Mapping[str, float]]:
    """Return what was observed in the profiled modes, of those runs whose epochs are here."""
    modes = {
        run: mode
        for mode in advice.profiled
        for pattern in run_patterns(advice, mode)
        for run in matching(advice.fit.runs, pattern)
    }
    paths = (root / RUNS / run / EPOCHS_CSV for run in modes)
    return _merged(means(of.metered) for of in read_workloads(_there(paths), modes))


def _there(paths: Iterable[Path]) -> list[str]:
    return [str(path) for path in paths if path.is_file()]


def _merged(parts: Iterable[dict[Mode, dict[str, float]]]) -> dict[Mode, dict[str, float]]:
    return {mode: found for part in parts for mode, found in part.items()}
