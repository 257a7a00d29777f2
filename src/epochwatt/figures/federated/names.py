"""Name the figures of the study of federated rounds, and the looks of its rules; nothing draws."""

from collections.abc import Iterable
from pathlib import Path

from epochwatt.figures.entries import FigureEntry, study_entries

STUDY = "Federated rounds"
TITLES = {
    "federated_timeline": "A round in the strongest modes, and planned",
    "federated_deadlines": "Energy of a sample by the deadline of a round",
    "federated_waiting": "Energy saved, and time that boards wait",
}
RULES = {  # of the study -> words, colour, mark
    "maxn": ("strongest modes", "#8C4A00", "*"),
    "maxn_lowest": ("strongest, lowest while waiting", "#E69F00", "s"),
    "one_level": ("one level of clocks for all", "#CC79A7", "D"),
    "fedcs": ("only boards in time (as FedCS)", "#56B4E9", "^"),
    "random": ("random modes in time", "#777777", "X"),
    "plan": ("plan", "#000000", "o"),
    "plan_few": ("plan, half known from few modes", "#009E73", "v"),
    "plan_work": ("plan, boards may train less or more", "#0072B2", "P"),
    "oracle": ("oracle", "#882255", "."),
    "plan_once": ("planned once", "#0072B2", "o"),
    "plan_again": ("planned anew", "#000000", "o"),
}
DATA = {"equal": "equal", "proportional": "by speed"}


def stems() -> list[str]:
    """Return the paths of the figures below results/figures/, without endings."""
    return [f"twin/{name}" for name in TITLES]


def gallery_entries(drawn: Iterable[str]) -> list[FigureEntry]:
    """Return figures as the gallery takes them."""
    return study_entries("federated", STUDY, {stem: TITLES[Path(stem).name] for stem in drawn})


def data_title(data: str) -> str:
    """Return in words how data are spread: `log-normal 0.5` for `lognormal_0.5`."""
    return DATA.get(data, data.replace("lognormal_", "log-normal ").replace("_", " "))
