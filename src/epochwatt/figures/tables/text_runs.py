"""Select runs of the text of SIGMETRICS 2023 that no figure shows: sections 5.1 and 5.6.

The Snakefile asks for them, so nothing that draws is imported here.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from epochwatt.study.runs import Run

EXPERIMENTS = (  # in the order of the text
    *("8 workers", "page cache dropped", "AGX Orin"),
    *("GPU at 114.75 MHz", "modes e and f without workers"),
)
STUDIES = {
    "sigmetrics-pipeline",
    "sigmetrics-cache-dropped",
    "sigmetrics-power-modes",
    "sigmetrics-orin",
}


def experiment_of(run: Mapping[str, Any]) -> str:
    """Return which of the text's experiments a run belongs to; empty: none."""
    belongs = (
        run["num_workers"] == 8,
        "dropped" in (run.get("cache_policy"), run.get("cache")),
        run["device"] == "orin",
        run["power_mode"] == "gpu114",
        run["num_workers"] == 0 and run["power_mode"] in ("e", "f"),
    )
    return next(
        (name for name, is_member in zip(EXPERIMENTS, belongs, strict=True) if is_member), ""
    )


def text_runs(runs: Iterable[Run]) -> list[Run]:
    """Return the runs of the studies that hold what the text describes."""
    return [run for run in runs if not STUDIES.isdisjoint(run.studies)]


def text_backends(runs: Iterable[Run]) -> list[str]:
    """Return the backends with a run of one of the text's experiments."""
    described = [run.factors for run in text_runs(runs) if experiment_of(run.factors)]
    return sorted({factors["backend"] for factors in described})
