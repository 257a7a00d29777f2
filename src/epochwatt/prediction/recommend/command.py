"""Answer `epochwatt recommend`: find the fitted workload and its board, choose the mode."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epochwatt.columns import FACTOR_DEFAULTS, TWIN
from epochwatt.device.board_files import strongest
from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Board, Mode, PredictionError
from epochwatt.prediction.models.model_store import TIME_FILE, FittedWorkload, load_fitted
from epochwatt.prediction.predictor import Method
from epochwatt.prediction.recommend.board_tables import BoardFiles, board_files
from epochwatt.prediction.recommend.new_runs import profiling_recipe, run_prefix
from epochwatt.prediction.recommend.recommend import (
    LEAST_MODES,
    UNITS,
    Recommendation,
    modes_to_measure,
    nvpmodel_block,
    recommend,
)
from epochwatt.prediction.registry import RECOMMENDED, load_method
from epochwatt.published.numbers import DEFAULTS, DEVICE_DEFAULTS, PAPERS
from epochwatt.study.config import Device, FactorValues, WorkloadRow
from epochwatt.study.devices import Devices, read_rows
from epochwatt.study.place import MEASURED
from epochwatt.study.validation import validated
from epochwatt.text import counted

MODELS = Path("results/models")
ANSWERS = Path("results/recommend")
ORIGINS = {
    "jetson": "from measured runs",
    "fake": "NOT MEASURED, from a fake board",
    TWIN: "SIMULATED, not measured",
}
OPTIONS = {"storage": "--storage", "num_workers": "--workers", "batch_size": "--batch-size"}
NAMES = {"epoch_s": "epoch", "power_w": "power", "energy_wh": "energy"}
AIMS = {"time": "time", "energy": "energy", "edp": "energy x time"}
# factors that every answer shows, or that need not be shown
_NOT_ODD = {"setup", "backend", "device", "model", "dataset", "dataset_source", "dvfs", "instance"}


@dataclass(frozen=True)
class Request:
    """What to recommend; None: left open."""

    backend: str  # whose models answer
    device: str  # name of a device file, or that and one of its instances: `agx-d1`
    model: str
    objective: str | None = None  # None: time, or energy where the only budget is one of time
    # `power_w`, `epoch_s`, `energy_wh` -> highest expected value
    budgets: Mapping[str, float] = field(default_factory=dict)
    storage: str | None = None
    workers: int | None = None
    batch_size: int | None = None
    method: str = RECOMMENDED  # name in the registry of prediction methods
    # highest probability that the mean power of training breaks its budget; None: expected values
    # keep the budgets
    max_risk: float | None = None

    @property
    def aim(self) -> str:
        """What to minimise."""
        return self.objective or ("energy" if set(self.budgets) == {"epoch_s"} else "time")

    @property
    def factors(self) -> dict[str, Any]:
        """Factors of the workload that are not left open."""
        device, _, instance = self.device.partition("-")
        factors = {
            "device": device,
            "instance": instance or None,
            "model": self.model,
            "storage": self.storage,
            "num_workers": self.workers,
            "batch_size": self.batch_size,
        }
        return {name: value for name, value in factors.items() if value is not None}


@dataclass(frozen=True)
class Advice:
    """The mode to take, and all that it rests on."""

    request: Request  # what was to be recommended
    device: Device  # the board's configuration
    method: Method  # that fitted the predictors
    fitted: FittedWorkload  # the workload and its predictors
    others: tuple[FittedWorkload, ...]  # fitted workloads that the request would fit too
    files: BoardFiles  # the board's tables and configuration
    recommendation: Recommendation  # mode, estimates, risks, front

    @property
    def title(self) -> str:
        """Title of the board, with its instance."""
        return f"{self.device.title} {self.fitted.workload['instance']}"

    @property
    def headline(self) -> str:
        """Origin of the answer, network and board."""
        origin = ORIGINS[self.request.backend]
        return f"{origin}: a power mode for {self.request.model} on {self.title}"

    @property
    def aim(self) -> str:
        """Objective and budgets in words."""
        budgets = [f"{NAMES[k]} at most {v:g} {UNITS[k]}" for k, v in self.request.budgets.items()]
        risk = [] if self.request.max_risk is None else [f"risk at most {self.request.max_risk:g}"]
        return "; ".join([f"least {AIMS[self.request.aim]}", *budgets, *risk])

    @property
    def folder(self) -> Path:
        """Where the files of the answer go, below the checkout."""
        budgets = (f"{name}-{most:g}" for name, most in self.request.budgets.items())
        methods = [self.method.name] if self.method.name != RECOMMENDED else []
        risk = [] if self.request.max_risk is None else [f"risk-{self.request.max_risk:g}"]
        name = "-".join([self.request.aim, *budgets, *risk, *methods])
        return ANSWERS / run_prefix(self.fitted.workload) / name

    @property
    def profiled(self) -> tuple[Mode, ...]:
        """Modes that the models were fitted to, on the board's own steps."""
        return _profiled(self.fitted, self.files.board)

    @property
    def mode_id(self) -> int | None:
        """Id that nvpmodel calls the mode by; None: the board's configuration is not known."""
        return strongest(self.files.conf).id if self.files.conf else None

    @property
    def block(self) -> str | None:
        """Nvpmodel configuration of the mode; None: the board's own is not known."""
        if self.files.conf is None:
            return None
        estimates = self.recommendation.estimates
        expected = [f"{e.value:.4g} {UNITS[name]}" for name, e in estimates.items()]
        comment = [
            self.headline,
            f"recommended by epochwatt: {self.aim}; expected {', '.join(expected)}",
            f"made of the nvpmodel configuration of {self.files.source}",
        ]
        if self.request.backend != "jetson":
            comment.append("not for a board: ask there with --backend jetson")
        board, mode = self.files.board, self.recommendation.mode
        return nvpmodel_block(self.files.conf, board, mode, "\n".join(comment))


def advise(request: Request, root: Path = Path()) -> Advice:
    """Return the answer to a request.

    Raises EpochwattError: an unknown name or number, no fitted model, several, too few modes behind
    it, energy that was not measured, or budgets that no mode keeps.
    """
    method = load_method(request.method, root)
    device = Devices(root).get(request.factors["device"], "--device")
    _check(request, device, root)
    fits = _fits(request.backend, method, root)
    fitted, others = _chosen(fits, request, device, root)
    files = board_files(request.backend, device, fitted.runs, root)
    _need_modes(fitted, device, files.board, root)
    recommendation = recommend(
        files.board,
        fitted.time,
        fitted.power,
        request.aim,
        request.budgets,
        max_risk=request.max_risk,
    )
    return Advice(request, device, method, fitted, others, files, recommendation)


def _check(request: Request, device: Device, root: Path) -> None:
    """Refuse names and numbers that no run can have, whatever is fitted."""
    factors = request.factors
    if not device.board:
        raise EpochwattError(
            f"--device is {factors['device']!r}, which is no Jetson board: it has no power modes"
        )
    instance = factors.get("instance", device.instances[0])
    models = read_rows(WorkloadRow, root / "config/workloads.yaml")
    for option, value, allowed in (
        ("--device names the instance", instance, device.instances),
        ("--model is", request.model, list(models)),
        ("--storage is", factors.get("storage", next(iter(device.storage))), list(device.storage)),
    ):
        if value not in allowed:
            raise EpochwattError(f"{option} {value!r}", allowed=allowed)
    for name, option in OPTIONS.items():
        if name in factors:
            validated(FactorValues, {"model": request.model, name: factors[name]}, option)


def _fits(backend: str, method: Method, root: Path) -> list[FittedWorkload]:
    """Return the fits of a backend; PredictionError: none, or nothing that could be fitted."""
    folder = root / MODELS / backend
    runs = (root / MEASURED).glob(f"{backend}-*")
    if backend != TWIN and not (folder / TIME_FILE).is_file() and next(runs, None) is None:
        where = {"jetson": "on the board", "fake": "make a fake board"}[backend]
        raise PredictionError(
            f"{MEASURED}/ has no run of backend {backend}: there is nothing to fit models to",
            do=f"{where} (docs/tutorials/jetson.md), run .venv/bin/snakemake --profile "
            f"profiles/jetson, and ask there, or copy its {MEASURED}/ here; or use --backend "
            f"{TWIN}, whose answers are simulated",
        )
    return load_fitted(folder, method)


def _profiled(fitted: FittedWorkload, board: Board) -> tuple[Mode, ...]:
    modes = (board.resolve(Mode(*mode)) for mode in fitted.time.trained_on.tolist())
    return tuple(dict.fromkeys(modes))


def _need_modes(fitted: FittedWorkload, device: Device, board: Board, root: Path) -> None:
    """Refuse a fit of too few modes. Raises PredictionError: how to make further ones."""
    profiled = _profiled(fitted, board)
    if len(profiled) < LEAST_MODES:
        further = modes_to_measure(board, fitted.workload["num_workers"] + 1, profiled)
        raise PredictionError(
            f"too few power modes of {fitted.workload['model']} on {device.title}, "
            f"{described(fitted.workload)}, were run",
            found=counted(len(profiled), "modes"),
            allowed=f"{LEAST_MODES} or more",
            do=profiling_recipe(fitted.workload, further, device, board, root),
        )


def _chosen(
    fits: Sequence[FittedWorkload], request: Request, device: Device, root: Path
) -> tuple[FittedWorkload, tuple[FittedWorkload, ...]]:
    """Return the requested fit, the paper's default where left open, and others it could be."""
    factors = request.factors
    matching = [fit for fit in fits if factors.items() <= fit.workload.items()]
    if not matching:
        raise _nothing_fitted(fits, request, device, root)
    left = _nearest_to_default(matching, device, factors["device"])
    if len(left) > 1:
        raise _several(left, request)
    return left[0], tuple(fit for fit in matching if fit is not left[0])


def _nearest_to_default(
    fits: Sequence[FittedWorkload], device: Device, name: str
) -> Sequence[FittedWorkload]:
    """Return those fits that are nearest to the paper's default."""
    default = {
        **FACTOR_DEFAULTS,
        "setup": PAPERS[0],
        "storage": next(iter(device.storage)),
        **DEFAULTS,
        **DEVICE_DEFAULTS.get(name, {}),
        "instance": device.instances[0],
    }
    for factor in fits[0].workload:
        fits = [fit for fit in fits if fit.workload[factor] == default.get(factor)] or fits
    return fits


def described(workload: Mapping[str, Any]) -> str:
    """Return a workload in words: storage, workers, mini-batch, factors that are not default."""
    usual = [workload["storage"], counted(workload["num_workers"], "workers")]
    odd = [
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in workload.items()
        if name not in {*_NOT_ODD, *OPTIONS} and value not in (None, FACTOR_DEFAULTS.get(name))
    ]
    return ", ".join([*usual, f"batch {workload['batch_size']}", *odd])


def described_fit(fit: FittedWorkload) -> str:
    """Return a fitted workload in words, with its number of modes where they are too few."""
    n_modes = len(fit.time.trained_on)
    few = f" ({counted(n_modes, 'modes')}; {LEAST_MODES} needed)" if n_modes < LEAST_MODES else ""
    return described(fit.workload) + few


def _several(fits: Sequence[FittedWorkload], request: Request) -> EpochwattError:
    names = fits[0].workload
    differ = [name for name in names if len({fit.workload[name] for fit in fits}) > 1]
    options = [OPTIONS[name] for name in differ if name in OPTIONS]
    selection = "select one of their studies in config/config.yaml and make the models again"
    others = ", ".join(differ) or "where their runs come from"
    return PredictionError(
        f"several workloads of {request.model} on {request.device} were fitted",
        found="; ".join(map(described_fit, fits)),
        do=f"choose by {', '.join(options)}"
        if options
        else f"they differ in {others}: {selection}",
    )


def _nothing_fitted(
    fits: Sequence[FittedWorkload], request: Request, device: Device, root: Path
) -> EpochwattError:
    """Return the error that lists what is fitted, and how to make the missing runs."""
    factors = request.factors
    options = [f"{opt} {factors[name]}" for name, opt in OPTIONS.items() if name in factors]
    wanted = _wanted(fits, request, device)
    unit = {name: wanted[name] for name in ("device", "instance")}
    runs = [run for fit in fits if unit.items() <= fit.workload.items() for run in fit.runs]
    try:
        board = board_files(request.backend, device, runs, root).board
    except EpochwattError as error:  # its clocks are not known
        do = str(error)
    else:
        modes = modes_to_measure(board, wanted["num_workers"] + 1)
        do = profiling_recipe(wanted, modes, device, board, root)
    return PredictionError(
        f"no model of {' '.join([request.model, 'on', request.device, *options])} was fitted",
        found=_listed(fits, factors),
        allowed=f"workloads that were run in {LEAST_MODES} power modes or more",
        do=do,
    )


def _wanted(fits: Sequence[FittedWorkload], request: Request, device: Device) -> dict[str, Any]:
    """Return the factors of runs that would answer: those left open as in the board's own runs."""
    factors = request.factors
    at = {"instance": device.instances[0]} | _unit(factors)
    same = [fit for fit in fits if at.items() <= fit.workload.items()]
    like = _nearest_to_default(same, device, factors["device"])[0].workload if same else {}
    default = {"backend": request.backend, "storage": next(iter(device.storage))}
    return {**FACTOR_DEFAULTS, **default, **at, **like, **factors}


def _unit(factors: Mapping[str, Any]) -> dict[str, Any]:
    return {k: factors[k] for k in ("device", "instance", "model") if k in factors}


def _listed(fits: Sequence[FittedWorkload], factors: Mapping[str, Any]) -> str:
    """Return the fitted workloads of the network on the board, else all networks by board."""
    at = _unit(factors)
    same = [described_fit(fit) for fit in fits if at.items() <= fit.workload.items()]
    if same:
        return "; ".join(same)
    boards: dict[str, dict[str, None]] = {}
    for fit in fits:
        w = fit.workload
        boards.setdefault(f"{w['device']}-{w['instance']}", {})[w["model"]] = None
    return "; ".join(f"{', '.join(models)} on {board}" for board, models in boards.items())
