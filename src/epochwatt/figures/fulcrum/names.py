"""Name the figures of the study of schedules, and the looks of its solvers.

Without what draws, so rules and pages may ask.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

STUDY = "Fulcrum (arXiv 2509.20205)"
PROVENANCES = {  # folder in results/figures/ -> provenance
    "twin": "simulated",
    "public": "public",
    "host": "measured",
}
FIGURES = {  # figure -> title
    "fulcrum_solvers": "Training and inference on one board: profiles, answers, loss",
    "fulcrum_power": "Training beside a stream of requests, over power budgets",
    "fulcrum_latency": "How long requests wait beside training",
}
REPLANNING = (
    "fulcrum_replanning"  # of simulated boards alone, where the study has rates that change
)
TITLES = FIGURES | {REPLANNING: "Planned anew as the rate of requests changes"}
FIRST = {  # provenance -> what a title begins with
    "simulated": "simulated",
    "public": "planned on tables of others",
    "measured": "measured",
}
NOTES = {  # provenance -> corner note
    "simulated": "simulated AGX Orin, not measured",
    "public": "computed from what others measured on V100 and RTX 6000; a mini-batch of requests is"
    " assumed to take what one of training does",
    "measured": "measured on the machine at hand; dashed: simulated with the same times",
}
ENDINGS = {  # provenance -> last paragraph of a caption
    "simulated": "simulated boards, not measured",
    "public": "computed from what others measured, with the assumptions above",
    "measured": "measured on the machine at hand; dashed lines are simulated",
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
ASSUMED = """The power is the GPU's. The sweeps time epochs of training, so it is assumed that a
mini-batch takes an equal part of its epoch, and that one of inference takes and draws what one of
training does."""


def stems(has_public: bool, has_records: bool) -> list[str]:
    """Return the paths of a study's figures below results/figures/, without endings.

    Parameters
    ----------
    has_public : whether it has jobs on devices that others swept
    has_records : whether training beside requests was measured on the machine at hand
    """
    return [
        *(f"twin/{figure}" for figure in FIGURES),
        *(f"public/{figure}" for figure in FIGURES if has_public),
        *(["host/fulcrum_latency"] if has_records else []),
    ]


def gallery_entries(drawn: Iterable[str]) -> list[dict[str, Any]]:
    """Return figures as the gallery takes them."""
    shared = {"paper": "fulcrum", "section": STUDY, "caption": "", "claims": []}
    return [
        {
            **shared,
            **{"stem": stem, "backend": (place := Path(stem)).parent.name},
            **{"title": TITLES[place.name], "words": ["fulcrum", place.parent.name]},
        }
        for stem in drawn
    ]


def look(solver: str) -> tuple[str, str, str]:
    """Return words, colour and mark of a solver."""
    fitting = (some for name, some in LOOKS.items() if solver.startswith(name))
    return next(fitting, (solver.rpartition("_")[0] or solver, "#332288", "p"))
