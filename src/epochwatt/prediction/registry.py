"""Registry of prediction methods: those of this package and those of config/predictors.yaml.

Methods are named by reference and imported when they are used.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from epochwatt.board.training.references import resolve
from epochwatt.errors import ConfigError
from epochwatt.study.config import PredictorRow
from epochwatt.study.devices import read_rows
from epochwatt.study.yaml_files import read_yaml

if TYPE_CHECKING:
    from epochwatt.prediction.predictor import Method

CONFIG = Path("config/predictors.yaml")

METHODS = {  # name -> module.NAME of a `Method`
    "paper": "epochwatt.prediction.models.paper.PAPER",
    "paper_standardised": "epochwatt.prediction.models.paper.STANDARDISED_FEATURES",
    "paper_observed_time": "epochwatt.prediction.models.paper.OBSERVED_TIME",
    "paper_four_modes": "epochwatt.prediction.models.paper.FOUR_MODES",
    "paper_four_modes_observed_time": "epochwatt.prediction.models.paper.FOUR_MODES_OBSERVED_TIME",
    "log": "epochwatt.prediction.models.physical.LOG",
    "physical": "epochwatt.prediction.models.physical.PHYSICAL",
    "roofline": "epochwatt.prediction.models.roofline_prior.METHOD",
    "twin_prior": "epochwatt.prediction.models.physical.ON_PRIOR",
    "gaussian_process": "epochwatt.prediction.models.gaussian_process.METHOD",
    "utilisation": "epochwatt.prediction.models.utilisation.METHOD",
    "stacked": "epochwatt.prediction.models.stacked.METHOD",
    "utilisation_transfer": "epochwatt.prediction.models.utilisation.TRANSFERRED",
    "gradient_boosting": "epochwatt.prediction.models.gradient_boosting.METHOD",
    "powertrain": "epochwatt.prediction.models.powertrain.METHOD",
    "powertrain_paper_split": "epochwatt.prediction.models.powertrain.PAPER_SPLIT",
    "powertrain_by_row": "epochwatt.prediction.models.powertrain.BY_ROW",
    "powertrain_kept_scaler": "epochwatt.prediction.models.powertrain.KEPT_SCALER",
    "powertrain_cross_board": "epochwatt.prediction.models.powertrain.CROSS_BOARD",
    "powertrain_log": "epochwatt.prediction.models.powertrain.LOG",
    "powertrain_scratch": "epochwatt.prediction.models.powertrain.SCRATCH",
    "powertrain_scratch_best": "epochwatt.prediction.models.powertrain.SCRATCH_BEST",
}
RECOMMENDED = "stacked"  # of `epochwatt recommend` where --method is not given


def references(root: Path = Path()) -> dict[str, str]:
    """Return all methods by name, each as `module.NAME`; nothing is imported.

    Raises ConfigError: config/predictors.yaml below `root` is wrong, or takes a name of `METHODS`.
    """
    path = root / CONFIG
    has_rows = path.is_file() and read_yaml(path) is not None
    rows = read_rows(PredictorRow, path) if has_rows else {}
    if taken := sorted(rows.keys() & METHODS.keys()):
        raise ConfigError(
            "this name belongs to a method of epochwatt",
            where=f"{CONFIG}: {taken[0]}",
            do="give your method another name",
        )
    return METHODS | {name: row.method for name, row in rows.items()}


def method_title(name: str) -> str:
    """Return a method's name for people; of one that is not in the registry its name."""
    return load_method(name).title if name in references() else name


def load_method(name: str, root: Path = Path(), option: str = "--method") -> Method:
    """Import a method by its name in the registry; `option` is for messages.

    Raises ConfigError: no such name, or what it stands for is no `Method`.
    """
    from epochwatt.prediction.predictor import Method  # here: names alone need no numpy

    names = references(root)
    if name not in names:
        raise ConfigError(f"unknown method {name!r}", where=option, allowed=list(names))
    where = f"{CONFIG}: {name}"
    method = resolve(names[name], where)
    if not isinstance(method, Method):
        raise ConfigError(
            f"{names[name]!r} is not a prediction method",
            where=where,
            found=type(method).__name__,
            allowed="an epochwatt.prediction.predictor.Method",
        )
    return replace(method, name=name)


def load_methods(root: Path = Path()) -> dict[str, Method]:
    """Import all methods: by name, in the registry's order. Raises as `load_method`."""
    return {name: load_method(name, root) for name in references(root)}


def method_modules(root: Path = Path()) -> list[str]:
    """Return the importable modules of all methods: jobs depend on their code."""
    modules = {reference.rpartition(".")[0] for reference in references(root).values()}

    def is_importable(module: str) -> bool:
        try:
            return find_spec(module) is not None
        except ImportError:  # the job that needs it will say so
            return False

    return sorted(filter(is_importable, modules))
