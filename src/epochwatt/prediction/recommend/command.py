"""`epochwatt recommend`: from a question to the fitted workload, its board, the mode to take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epochwatt.device.board_files import strongest
from epochwatt.errors import EpochwattError
from epochwatt.fields import FACTOR_DEFAULTS, TWIN
from epochwatt.prediction.data.modes import Board, Mode, PredictionError
from epochwatt.prediction.models.model_store import TIME_FILE, Fit, load_fits
from epochwatt.prediction.recommend.board_tables import BoardFiles, board_files
from epochwatt.prediction.recommend.new_runs import NewRuns, place
from epochwatt.prediction.recommend.recommend import (
    LEAST_MODES,
    UNITS,
    Recommendation,
    modes_to_measure,
    nvpmodel_block,
    recommend,
)
from epochwatt.published.numbers import DEFAULTS, DEVICE_DEFAULTS, PAPERS
from epochwatt.study.config import Config, Device, FactorValues, WorkloadRow
from epochwatt.study.devices import Devices, read_rows
from epochwatt.study.place import MEASURED
from epochwatt.study.settings import CONFIG
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml
from epochwatt.text import counted

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
    device : the board's configuration
    fit : the models that answer
    others : fitted workloads that the question would fit too
    files : the board's tables and configuration
    told : what the models say
    """

    asked: Asked
    device: Device
    fit: Fit
    others: tuple[Fit, ...]
    files: BoardFiles
    told: Recommendation

    @property
    def title(self) -> str:
        """Of the board, with its instance."""
        return f"{self.device.title} {self.fit.workload['instance']}"

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
        budgets = (f"{name}-{most:g}" for name, most in self.asked.budgets.items())
        return ANSWERS / place(self.fit.workload) / "-".join([self.asked.aim, *budgets])

    @property
    def profiled(self) -> tuple[Mode, ...]:
        """Modes that the models were fitted to, on the board's own steps."""
        return _profiled(self.fit, self.files.board)

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
    EpochwattError : an unknown name or number, no fitted model, several, too few modes behind it,
        energy that was not measured, or budgets that no mode keeps
    """
    if asked.backend not in BACKENDS:
        raise EpochwattError(
            f"--backend is {asked.backend!r}\n  allowed: {', '.join(BACKENDS)}; power modes are of "
            "Jetson boards, and no other machine has any"
        )
    device = Devices(root).get(asked.factors["device"], "--device")
    _check(asked, device, root)
    fits = _fits(asked.backend, root)
    fit, others = _chosen(fits, asked, device, root)
    found = board_files(asked.backend, device, fit.runs, root)
    _need_modes(fit, device, found.board, root)
    told = recommend(found.board, fit.time, fit.power, asked.aim, asked.budgets)
    return Advice(asked, device, fit, others, found, told)


def _check(asked: Asked, device: Device, root: Path) -> None:
    """Refuse names and numbers that no run can have, whatever is fitted."""
    told = asked.factors
    if not device.board:
        raise EpochwattError(
            f"--device is {told['device']!r}, which is no Jetson board: it has no power modes"
        )
    instance = told.get("instance", device.instances[0])
    models = read_rows(WorkloadRow, root / "config/workloads.yaml")
    for option, found, allowed in (
        ("--device names the instance", instance, device.instances),
        ("--model is", asked.model, models),
        ("--storage is", told.get("storage", next(iter(device.storage))), device.storage),
    ):
        if found not in allowed:
            raise EpochwattError(f"{option} {found!r}\n  allowed: {', '.join(allowed)}")
    for name, option in OPTIONS.items():
        if name in told:
            validated(FactorValues, {"model": asked.model, name: told[name]}, option)


def _fits(backend: str, root: Path) -> list[Fit]:
    """Return the fits of a backend; PredictionError: none, or nothing that could be fitted."""
    folder = root / MODELS / backend
    runs = (root / MEASURED).glob(f"{backend}-*")
    if backend != TWIN and not (folder / TIME_FILE).is_file() and next(runs, None) is None:
        where = {"jetson": "on the board", "fake": "make a fake board"}[backend]
        raise PredictionError(
            f"{MEASURED}/ has no run of backend {backend}: there is nothing to fit models to\n"
            f"  do: {where} (docs/tutorials/jetson.md), run .venv/bin/snakemake --profile "
            f"profiles/jetson, and ask there, or copy its {MEASURED}/ here\n"
            f"  without a board: --backend {TWIN}, whose answers are simulated"
        )
    return load_fits(folder)


def _profiled(fit: Fit, board: Board) -> tuple[Mode, ...]:
    modes = (board.resolve(Mode(*mode)) for mode in fit.time.trained_on.tolist())
    return tuple(dict.fromkeys(modes))


def _need_modes(fit: Fit, device: Device, board: Board, root: Path) -> None:
    """Refuse a fit of too few modes. Raises PredictionError: how to make further ones."""
    profiled = _profiled(fit, board)
    if len(profiled) < LEAST_MODES:
        further = modes_to_measure(board, fit.time.processes, profiled)
        raise PredictionError(
            f"the model of {fit.workload['model']} on {device.title}, {described(fit.workload)}, "
            f"knows {counted(len(profiled), 'power modes')}; needed: {LEAST_MODES} or more\n"
            + "\n".join(_to_make(fit.workload, further, device, board, root))
        )


def _chosen(
    fits: Sequence[Fit], asked: Asked, device: Device, root: Path
) -> tuple[Fit, tuple[Fit, ...]]:
    """Return the fit that is asked, the paper's default where open, and others it could be."""
    told = asked.factors
    matching = [fit for fit in fits if told.items() <= fit.workload.items()]
    if not matching:
        raise _nothing_fitted(fits, asked, device, root)
    left = _usual(matching, told["device"], device)
    if len(left) > 1:
        raise _several(left, asked)
    return left[0], tuple(fit for fit in matching if fit is not left[0])


def _usual(fits: Sequence[Fit], name: str, device: Device) -> Sequence[Fit]:
    """Return those fits that are nearest to the paper's default."""
    default = {
        **FACTOR_DEFAULTS,
        **{"setup": PAPERS[0], "storage": next(iter(device.storage))},
        **DEFAULTS,
        **DEVICE_DEFAULTS.get(name, {}),
        "instance": device.instances[0],
    }
    for factor in fits[0].workload:
        fits = [fit for fit in fits if fit.workload[factor] == default.get(factor)] or fits
    return fits


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


def fitted(fit: Fit) -> str:
    """Return a fitted workload in words; how many modes it knows where they are too few."""
    n_modes = len(fit.time.trained_on)
    few = f" ({counted(n_modes, 'modes')}; {LEAST_MODES} needed)" if n_modes < LEAST_MODES else ""
    return described(fit.workload) + few


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
        + "\n  ".join(map(fitted, fits))
        + f"\n  {do}"
    )


def _nothing_fitted(
    fits: Sequence[Fit], asked: Asked, device: Device, root: Path
) -> EpochwattError:
    """Return the error that says what is fitted, and how to make the runs of what is not."""
    told = asked.factors
    options = [f"{opt} {told[name]}" for name, opt in OPTIONS.items() if name in told]
    lines = [
        f"no model of {' '.join([asked.model, 'on', asked.device, *options])} was fitted",
        f"  fitted: {_listed(fits, told)}",
    ]
    wanted = _wanted(fits, asked, device)
    unit = {name: wanted[name] for name in ("device", "instance")}
    runs = (run for fit in fits if unit.items() <= fit.workload.items() for run in fit.runs)
    try:
        board = board_files(asked.backend, device, runs, root).board
    except EpochwattError as error:  # which clocks it has is not known
        return PredictionError("\n".join([*lines, f"  {error}"]))
    modes = modes_to_measure(board, wanted["num_workers"] + 1)
    lines.append(f"  needed: {LEAST_MODES} power modes or more")
    return PredictionError("\n".join([*lines, *_to_make(wanted, modes, device, board, root)]))


def _wanted(fits: Sequence[Fit], asked: Asked, device: Device) -> dict[str, Any]:
    """Return the factors of runs that would answer: else as what the board ran of the network."""
    told = asked.factors
    at = {"instance": device.instances[0]} | {
        name: told[name] for name in ("device", "instance", "model") if name in told
    }
    own = [fit for fit in fits if at.items() <= fit.workload.items()]
    like = _usual(own, told["device"], device)[0].workload if own else {}
    default = {"backend": asked.backend, "storage": next(iter(device.storage))}
    return {**FACTOR_DEFAULTS, **default, **at, **like, **told}


def _to_make(
    workload: Mapping[str, Any], modes: Sequence[Mode], device: Device, board: Board, root: Path
) -> list[str]:
    """Return what to add to `config/` for runs that answer a question, and the commands."""
    simulated = workload["backend"] == TWIN
    study = f"profile-{place(workload)}"
    title = f"Profile {workload['model']} for epochwatt recommend"
    new = NewRuns(study, title, workload, modes, device, board)
    studies = validated(Config, read_yaml(root / CONFIG), CONFIG).studies
    names = dict.fromkeys([*([studies] if isinstance(studies, str) else studies), study])
    models = MODELS / workload["backend"] / "scores.html"
    first, *others = new.lines()
    return [
        f"{'simulate' if simulated else 'measure'}: {first}",
        *others,
        f"in {CONFIG}, in place of its studies:",
        "",
        f"studies: [{', '.join(names)}]",
        "",
        "then, and after it this question again:",
        "  .venv/bin/epochwatt plan",
        f"  .venv/bin/snakemake --profile {new.profile} {models}",
    ]


def _listed(fits: Sequence[Fit], told: Mapping[str, Any]) -> str:
    """Return the fitted workloads of the network on the board, else which networks on which."""
    at = {name: told[name] for name in ("device", "instance", "model") if name in told}
    own = [fitted(fit) for fit in fits if at.items() <= fit.workload.items()]
    if own:
        return "; ".join(own)
    boards: dict[str, list[str]] = {}
    for fit in fits:
        w = fit.workload
        boards.setdefault(f"{w['device']}-{w['instance']}", []).append(w["model"])
    return "; ".join(f"{', '.join(dict.fromkeys(of))} on {board}" for board, of in boards.items())
