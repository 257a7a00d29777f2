"""Name the figures of the study of schedules, and the looks of its solvers.

Without what draws, so rules and pages may ask.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from epochwatt.figures.entries import FigureEntry, study_entries

STUDY = "Fulcrum (arXiv 2509.20205)"


class Origin(NamedTuple):
    """Words for where a figure's numbers are from."""

    provenance: str  # of the rows that they draw
    first: str  # begins a title
    note: str  # in the corner
    ending: str  # last paragraph of a caption


ORIGINS = {  # folder in results/figures/ -> origin of its figures
    "twin": Origin(
        "simulated",
        "simulated",
        "simulated AGX Orin, not measured",
        "simulated boards, not measured",
    ),
    "public": Origin(
        "public",
        "planned on what others measured",
        "computed from what others measured on V100 and RTX 6000; a mini-batch of requests is"
        " assumed to take what one of training does",
        "computed from what others measured, with the assumptions above",
    ),
    "host": Origin(
        "measured",
        "measured",
        "measured on the machine at hand; dashed: simulated with the same times",
        "measured on the machine at hand; dashed lines are simulated",
    ),
}
REPLANNING = "fulcrum_replanning"  # of simulated boards alone, where the study has changing rates
TITLES = {
    "fulcrum_solvers": "Training and inference on one board: profiles, answers, loss",
    "fulcrum_power": "Training beside a stream of requests, over power budgets",
    "fulcrum_latency": "How long requests wait beside training",
    REPLANNING: "Planned anew as the rate of requests changes",
}
JOBS = {
    "train": "training",
    "infer": "inference",
    "train_and_infer": "training beside inference",
    "two_infer": "two streams of inference",
}
LOOKS = {  # beginning of a solver's name -> words, colour, mark; the first that fits
    "exhaustive": ("all modes", "#555555", "."),
    "gmd": ("GMD (our reading)", "#0072B2", "o"),
    "gain": ("expected gain (ours)", "#000000", "d"),
    "als": ("ALS (our reading)", "#56B4E9", "s"),
    "neural": ("networks of random modes", "#D55E00", "D"),
    "powertrain": ("PowerTrain, transferred", "#882255", "P"),
    "maxn": ("MAXN", "#8C4A00", "*"),
    "presets": ("preset modes", "#777777", "h"),
    "random": ("best of random modes", "#E69F00", "X"),
    "physical": ("physical terms", "#009E73", "^"),
    "utilisation": ("utilisation", "#CC79A7", "v"),
}
HOLLOW = "_verified"  # end of a solver's name: its answers were run


def stems(has_public: bool, has_records: bool) -> list[str]:
    """Return the paths of a study's figures below results/figures/, without endings.

    It may have jobs on devices that others swept, and records of training beside requests.
    """
    folders = ["twin", "public"] if has_public else ["twin"]
    drawn = [f"{folder}/{name}" for folder in folders for name in TITLES if name != REPLANNING]
    return [*drawn, "host/fulcrum_latency"] if has_records else drawn


def gallery_entries(drawn: Iterable[str]) -> list[FigureEntry]:
    """Return figures as the gallery takes them."""
    return study_entries("fulcrum", STUDY, {stem: TITLES[Path(stem).name] for stem in drawn})


def look(solver: str) -> tuple[str, str, str]:
    """Return words, colour and mark of a solver."""
    fitting = (shown for name, shown in LOOKS.items() if solver.startswith(name))
    return next(fitting, (solver.rpartition("_")[0] or solver, "#332288", "p"))
