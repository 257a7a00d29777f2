"""Name methods, workloads and provenances for people, and give methods colour, mark and dash.

Which figures there are is here too, for rules and pages that draw nothing.
"""

from collections.abc import Iterable
from typing import NamedTuple

from epochwatt.figures.entries import FigureEntry, study_entries

STUDY = "PowerTrain (FGCS 2024)"
PAPER = "#000000"  # of published numbers; nothing else is black
CONTEXT = "#B0B0B0"  # of what is no method


class Look(NamedTuple):
    """Title, colour, mark and line of a method."""

    title: str
    colour: str
    mark: str
    line: str | tuple[int, tuple[int, ...]]


DOTS, DASHES, MIXED = (0, (1, 1)), (0, (4, 2)), (0, (4, 1, 1, 1))
METHODS = {
    "powertrain": Look("PowerTrain, transferred", "#0072B2", "o", "-"),
    "powertrain_cross_board": Look("PowerTrain across boards", "#0072B2", "P", MIXED),
    "powertrain_scratch": Look("same network from scratch", "#D55E00", "s", DASHES),
    "powertrain_log": Look("PowerTrain, log clocks and targets", "#56B4E9", "D", MIXED),
    "powertrain_all": Look("same network on all modes", "#555555", "d", DOTS),
    "physical": Look("physical terms", "#009E73", "^", "-"),
    "gaussian_process": Look("Gaussian process", "#CC79A7", "v", MIXED),
    "random_front": Look("best of the profiled modes", "#E69F00", "X", DASHES),
    "maxn": Look("MAXN", "#8C4A00", "*", DOTS),
    "stock_modes": Look("preset modes", "#777777", "h", DOTS),
    "observed": Look("observed: front and best mode", "#555555", ".", "-"),
}
OTHERS = (  # of methods that have no look, in the order of their names
    ("#332288", "p", DASHES),
    ("#117733", "<", DOTS),
    ("#AA4499", ">", MIXED),
    ("#44AA99", "8", DASHES),
    ("#882255", "H", DOTS),
)
WORKLOADS = {  # sweep -> network on data, and the paper's where it is another
    "pt-resnet-imagenet": "ResNet-18 on ImageNet",
    "pt-mobilenet-gld": "MobileNetV3 on GLD23k",
    "pt-ssdlite-coco": "SSDLite320 on COCO",
    "pt-lstm-wikitext": "LSTM on WikiText",
    "pt-bert-squad": "BERT-base on SQuAD",
    "pt-resnet-gld": "ResNet-18 on GLD23k",
    "pt-mobilenet-imagenet": "MobileNetV3 on ImageNet",
    "translucence-tx1-5000": "Jetson TX1, 5,000 images",
    "translucence-tx2-5000": "Jetson TX2, 5,000 images",
    "translucence-tx2-20000": "Jetson TX2, 20,000 images",
}
STAND_INS = {"pt-ssdlite-coco": "YOLOv8n"}  # what the paper ran instead
PROVENANCES = {
    "simulated": "simulated boards, not measured",
    "public": "real boards, measured by others",
    "measured": "measured here",
}
SHORT = {"simulated": "simulated", "public": "measured by others", "measured": "measured here"}
FOLDERS = {"simulated": "twin", "public": "public"}  # provenance -> folder in results/figures/
FIGURES = {  # figure -> title in the gallery
    "twin/powertrain_learning_time": "Error of predicted time by profiled modes",
    "twin/powertrain_learning_power": "Error of predicted power by profiled modes",
    "twin/powertrain_transfer": "From which workload to which",
    "twin/powertrain_example": "The fastest mode under one power limit",
    "twin/powertrain_limits": "Under power limits: time lost, and limits broken",
    "public/powertrain_learning_time": "Error of predicted time by profiled modes",
    "public/powertrain_learning_power": "Error of predicted power by profiled modes",
    "public/powertrain_limits": "Under power limits: time lost, and limits broken",
}
BOARDS = {"agx_orin": "AGX Orin", "orin": "AGX Orin", "tx1": "Jetson TX1", "tx2": "Jetson TX2"}
TARGETS = {"time_s": "time", "power_w": "power"}


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Return method -> look, in the order of `METHODS`; methods without a look follow."""
    wanted = set(names)
    chosen = {name: METHODS[name] for name in METHODS if name in wanted}
    for n, name in enumerate(sorted(wanted - METHODS.keys())):
        chosen[name] = Look(name.replace("_", " "), *OTHERS[n % len(OTHERS)])
    return chosen


def workload(name: str) -> str:
    """Return a workload's name for people."""
    return WORKLOADS.get(name, name)


def note(provenance: str, *more: str) -> str:
    """Return the corner note of a figure: where its numbers are from comes first."""
    return "; ".join((PROVENANCES.get(provenance, provenance), *filter(None, more)))


def gallery_entries(stems: Iterable[str]) -> list[FigureEntry]:
    """Return the study's figures as the gallery takes them."""
    titles = {stem: FIGURES["/".join(stem.split("/")[-2:])] for stem in stems}
    return study_entries("powertrain", STUDY, titles)
