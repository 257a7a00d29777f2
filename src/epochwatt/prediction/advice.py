"""`epochwatt recommend`: from a question to the fitted workload, its board, the mode to take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epochwatt.device.reading import strongest
from epochwatt.errors import EpochwattError
from epochwatt.fields import FACTOR_DEFAULTS, TWIN
from epochwatt.prediction.boards import BoardFiles, board_files
from epochwatt.prediction.fits import Fit, load_fits
from epochwatt.prediction.modes import Mode, PredictionError
from epochwatt.prediction.recommend import (
    LEAST_MODES,
    UNITS,
    Recommendation,
    modes_to_measure,
    nvpmodel_block,
    recommend,
)
from epochwatt.study.config import Device, WorkloadRow
from epochwatt.study.devices import Devices, read_rows
from epochwatt.study.published import DEFAULTS, DEVICE_DEFAULTS, PAPERS

MODELS = Path("results/models")
ANSWERS = Path("results/recommend")
BACKENDS = ("jetson", "fake", TWIN)
ORIGINS = {
    "jetson": "from measured runs",
    "fake": "NOT MEASURED, from a fake board",
    TWIN: "SIMULATED, not measured",
}
OPTIONS = {"storage": "--storage", "num_workers": "--workers", "batch_size": "--batch-size"}
_SHOWN = ("instance", *OPTIONS)
_TOLD = ("setup", "backend", "device", "model", "dataset", "dataset_source", "dvfs", *_SHOWN)


@dataclass(frozen=True)
class Asked:
    """A question as the options tell it; None: not told.

    Attributes
    ----------
    backend : whose models answer
    device : name of a device file, or that and one of its instances: `agx-d1`
    objective : None: time, or energy where the only budget is one of time
    budgets : `power_w`, `epoch_s`, `energy_wh` -> the highest that is expected
    """

    backend: str
    device: str
    model: str
    objective: str | None = None
    budgets: Mapping[str, float] = field(default_factory=dict)
    storage: str | None = None
    workers: int | None = None
    batch_size: int | None = None

    @property
    def aim(self) -> str:
        """What is to be least."""
        return self.objective or ("energy" if set(self.budgets) == {"epoch_s"} else "time")

    @property
    def factors(self) -> dict[str, Any]:
        """Factors of the workload that are told."""
        device, _, instance = self.device.partition("-")
        told = {
            **{"device": device, "instance": instance or None, "model": self.model},
            **{"storage": self.storage, "num_workers": self.workers},
            "batch_size": self.batch_size,
        }
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class Advice:
    """The mode to take, and all that it stands on.

    Attributes
    ----------
    asked : the question
    title : of the board, with its instance
    fit : the models that answer
    others : fitted workloads that the question would fit too
    files : the board's tables and configuration
    told : what the models say
    """

    asked: Asked
    title: str
    fit: Fit
    others: tuple[Fit, ...]
    files: BoardFiles
    told: Recommendation

    @property
    def headline(self) -> str:
        """Where the answer comes from, and what it is about."""
        return f"{ORIGINS[self.asked.backend]}: a power mode for {self.asked.model} on {self.title}"

    @property
    def aim(self) -> str:
        """What was asked for, in words."""
        told = [f"{NAMES[k]} at most {v:g} {UNITS[k]}" for k, v in self.asked.budgets.items()]
        return "; ".join([f"least {AIMS[self.asked.aim]}", *told])

    @property
    def folder(self) -> Path:
        """Where the files of the answer go, below the checkout."""
        w, asked = self.fit.workload, self.asked
        workload = [str(w[name]) for name in ("backend", "device", "instance", "model", "storage")]
        question = [asked.aim, *(f"{name}-{most:g}" for name, most in asked.budgets.items())]
        place = "-".join([*workload, f"w{w['num_workers']}", f"bs{w['batch_size']}"]).lower()
        return ANSWERS / place / "-".join(question)

    @property
    def profiled(self) -> tuple[Mode, ...]:
        """Modes that the models were fitted to, on the board's own steps."""
        modes = self.fit.time.trained_on.tolist()
        return tuple(self.files.board.resolve(Mode(*mode)) for mode in modes)

    @property
    def mode_id(self) -> int | None:
        """Id that nvpmodel calls the mode by; None: the board's configuration is not known."""
        return strongest(self.files.conf).id if self.files.conf else None

    @property
    def block(self) -> str | None:
        """An nvpmodel configuration of the mode; None: the board's own is not known."""
        if self.files.conf is None:
            return None
        expected = [f"{e.value:.4g} {UNITS[name]}" for name, e in self.told.estimates.items()]
        says = [
            self.headline,
            f"recommended by epochwatt: {self.aim}; expected {', '.join(expected)}",
            f"made of the nvpmodel configuration of {self.files.source}",
        ]
        if self.asked.backend != "jetson":
            says.append("not for a board: ask there with --backend jetson")
        return nvpmodel_block(self.files.conf, self.files.board, self.told.mode, "\n".join(says))


NAMES = {"epoch_s": "epoch", "power_w": "power", "energy_wh": "energy"}
AIMS = {"time": "time", "energy": "energy", "edp": "energy x time"}


def advise(asked: Asked, root: Path = Path()) -> Advice:
    """Return the answer to a question.

    Parameters
    ----------
    asked : the question
    root : the checkout

    Raises
    ------
    EpochwattError : an unknown name, no fitted model, several, too few modes behind it, energy that
        was not measured, or budgets that no mode keeps
    """
    name = asked.factors["device"]
    device = Devices(root).get(name, "--device")
    if (instance := asked.factors.get("instance", device.instances[0])) not in device.instances:
        raise EpochwattError(
            f"--device names the instance {instance!r}\n  {name} has: {', '.join(device.instances)}"
        )
    fits = load_fits(root / MODELS / asked.backend)
    fit, others = _chosen(fits, asked, device, root)
    found = board_files(asked.backend, device, fit.runs, root)
    told = recommend(found.board, fit.time, fit.power, asked.aim, asked.budgets)
    title = f"{device.title} {fit.workload['instance']}"
    return Advice(asked, title, fit, others, found, told)


def _chosen(
    fits: Sequence[Fit], asked: Asked, device: Device, root: Path
) -> tuple[Fit, tuple[Fit, ...]]:
    """Return the fit that is asked, the paper's default where open, and others it could be."""
    told = asked.factors
    matching = [fit for fit in fits if told.items() <= fit.workload.items()]
    if not matching:
        raise _nothing_fitted(fits, asked, device, root)
    default = {
        **FACTOR_DEFAULTS,
        **{"setup": PAPERS[0], "storage": next(iter(device.storage))},
        **DEFAULTS,
        **DEVICE_DEFAULTS.get(told["device"], {}),
        "instance": device.instances[0],
    }
    left = matching
    for name in matching[0].workload:
        left = [fit for fit in left if fit.workload[name] == default.get(name)] or left
    if len(left) > 1:
        raise _several(left, asked)
    return left[0], tuple(fit for fit in matching if fit is not left[0])


def described(workload: Mapping[str, Any]) -> str:
    """Return a workload in words: storage, workers, mini-batch, and what is not as usual."""
    n = workload["num_workers"]
    usual = [workload["storage"], f"{n} worker{'' if n == 1 else 's'}"]
    odd = [
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in workload.items()
        if name not in _TOLD and value not in (None, FACTOR_DEFAULTS.get(name))
    ]
    return ", ".join([*usual, f"batch {workload['batch_size']}", *odd])


def _several(fits: Sequence[Fit], asked: Asked) -> EpochwattError:
    names = fits[0].workload
    differ = [k for k in names if len({fit.workload[k] for fit in fits}) > 1]
    options = [OPTIONS[name] for name in differ if name in OPTIONS]
    do = f"say which: {', '.join(options)}"
    if not options:
        do = (
            f"they differ in {', '.join(differ) or 'where their runs come from'}: select one of "
            "their studies in config/config.yaml and make the models again"
        )
    return PredictionError(
        f"several workloads of {asked.model} on {asked.device} were fitted\n  "
        + "\n  ".join(described(fit.workload) for fit in fits)
        + f"\n  {do}"
    )


def _nothing_fitted(
    fits: Sequence[Fit], asked: Asked, device: Device, root: Path
) -> EpochwattError:
    """Return the error that says what is fitted, and which modes to measure for what is not."""
    models = read_rows(WorkloadRow, root / "config/workloads.yaml")
    if asked.model not in models:
        return EpochwattError(f"--model is {asked.model!r}\n  allowed: {', '.join(models)}")
    told = asked.factors
    options = [f"{opt} {told[name]}" for name, opt in OPTIONS.items() if name in told]
    lines = [
        f"no model of {' '.join([asked.model, 'on', asked.device, *options])} was fitted",
        f"  fitted: {_listed(fits, told)}",
    ]
    try:
        board = board_files(asked.backend, device, (), root).board
    except EpochwattError:  # not at hand: which clocks it has is not known
        return PredictionError("\n".join(lines))
    modes = modes_to_measure(board, told.get("num_workers", DEFAULTS["num_workers"]) + 1)
    lines.append(f"  needed: its runs under {LEAST_MODES} or more power modes, such as")
    return PredictionError("\n".join([*lines, *(f"    {mode}" for mode in modes)]))


def _listed(fits: Sequence[Fit], told: Mapping[str, Any]) -> str:
    """Return the fitted workloads of the network on the board, else which networks on which."""
    place = {name: told[name] for name in ("device", "instance", "model") if name in told}
    own = [described(fit.workload) for fit in fits if place.items() <= fit.workload.items()]
    if own:
        return "; ".join(own)
    boards: dict[str, list[str]] = {}
    for fit in fits:
        w = fit.workload
        boards.setdefault(f"{w['device']}-{w['instance']}", []).append(w["model"])
    return "; ".join(f"{', '.join(dict.fromkeys(of))} on {board}" for board, of in boards.items())
