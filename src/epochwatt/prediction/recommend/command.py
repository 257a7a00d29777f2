"""Answer `epochwatt recommend`: find the fitted workload and its board, choose the mode."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from epochwatt import columns
from epochwatt.columns import FACTOR_DEFAULTS, TWIN, Factors
from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Mode, PredictionError
from epochwatt.prediction.models.model_store import TIME_FILE, FittedWorkload, load_fitted
from epochwatt.prediction.predictor import LEVEL, Method
from epochwatt.prediction.recommend.board_tables import BoardFiles, board_files
from epochwatt.prediction.recommend.recommend import (
    LEAST_MODES,
    MAX_RISK,
    Recommendation,
    modes_to_measure,
    recommend,
)
from epochwatt.prediction.registry import RECOMMENDED, load_method
from epochwatt.published.numbers import DEFAULTS, DEVICE_DEFAULTS, PAPERS
from epochwatt.study.config import Device, FactorValues, WorkloadRow
from epochwatt.study.devices import Devices, read_rows
from epochwatt.study.place import MEASURED
from epochwatt.study.validation import validated
from epochwatt.text import ORIGINS, counted

MODELS = Path("results/models")
ANSWERS = Path("results/recommend")
OPTIONS = {"storage": "--storage", "num_workers": "--workers", "batch_size": "--batch-size"}
NAMES = {"epoch_s": "epoch", "power_w": "power", "energy_wh": "energy"}
AIMS = {"time": "time", "energy": "energy", "edp": "energy x time"}
# factors that every answer shows, or that need not be shown
_NOT_ODD = {"setup", "backend", "device", "model", "dataset", "dataset_source", "dvfs", "instance"}


@dataclass(frozen=True)
class Request:
    """A question of `epochwatt recommend`; None: left open."""

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
    # highest probability that the mean power of training breaks its budget; None: that of
    # `recommend`, or more where no mode is as safe
    max_risk: float | None = None
    idle_w: float = 0.0  # power while nothing runs, until `epoch_s` is over
    rest_w: float = 0.0  # power of what the sensor does not see

    @property
    def aim(self) -> str:
        """Objective: given, or the one that the budgets suggest."""
        return self.objective or ("energy" if set(self.budgets) == {"epoch_s"} else "time")

    @property
    def factors(self) -> Factors:
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

    request: Request
    device: Device  # the board's configuration
    method: Method  # that fitted the predictors
    fitted: FittedWorkload
    others: tuple[FittedWorkload, ...]  # fitted workloads that the request would fit too
    files: BoardFiles  # the board's tables and configuration
    profiled: tuple[Mode, ...]  # that the models were fitted to, on the board's own steps
    recommendation: Recommendation

    @property
    def title(self) -> str:
        """Title of the board, with its instance."""
        return f"{self.device.title} {self.fitted.workload['instance']}"

    @property
    def headline(self) -> str:
        """Origin of the answer, network and board."""
        origin = ORIGINS[self.request.backend].answer
        return f"{origin}: a power mode for {self.request.model} on {self.title}"

    @property
    def aim(self) -> str:
        """Objective and budgets in words."""
        budgets = [
            f"{NAMES[k]} at most {v:g} {columns.unit(k)}" for k, v in self.request.budgets.items()
        ]
        risk = []
        if "power_w" in self.request.budgets:
            most = MAX_RISK if self.request.max_risk is None else self.request.max_risk
            risk = [f"risk of exceeding it at most {100 * most:g} %"]
        return "; ".join([f"least {AIMS[self.request.aim]}", *budgets, *risk])

    @property
    def folder(self) -> Path:
        """Folder of the answer's files, below the checkout."""
        budgets = (f"{name}-{most:g}" for name, most in self.request.budgets.items())
        methods = [self.method.name] if self.method.name != RECOMMENDED else []
        risk = [] if self.request.max_risk is None else [f"risk-{self.request.max_risk:g}"]
        asked = {"idle": self.request.idle_w, "rest": self.request.rest_w}
        others = [f"{name}-{watts:g}" for name, watts in asked.items() if watts]
        name = "-".join([self.request.aim, *budgets, *risk, *others, *methods])
        return ANSWERS / run_prefix(self.fitted.workload) / name


def run_prefix(workload: Factors) -> str:
    """Return how the ids of a workload's runs begin (`study.runs.run_id`), up to the power mode."""
    words = [str(workload[name]) for name in ("backend", "device", "instance", "model", "storage")]
    n_workers, batch_size = workload["num_workers"], workload["batch_size"]
    return "-".join([*words, f"w{n_workers}", f"bs{batch_size}"]).lower()


def advise(request: Request, root: Path = Path()) -> Advice:
    """Answer a request.

    Raises EpochwattError: an unknown name or number, no fitted model, several, too few modes behind
    it, energy that was not measured, or budgets that no mode keeps.
    """
    method, backend = load_method(request.method, root), request.backend
    device = Devices(root).get(request.factors["device"], "--device")
    _check(request, device, root)
    folder, runs = root / MODELS / backend, (root / MEASURED).glob(f"{backend}-*")
    if backend != TWIN and not (folder / TIME_FILE).is_file() and next(runs, None) is None:
        where = {"jetson": "on the board", "fake": "make a fake board"}[backend]
        raise PredictionError(
            f"{MEASURED}/ has no run of backend {backend}: there is nothing to fit models to",
            do=f"{where} (docs/tutorials/jetson.md), run .venv/bin/snakemake --profile "
            f"profiles/jetson, and ask there, or copy its {MEASURED}/ here; or use --backend "
            f"{TWIN}, whose answers are simulated",
        )
    fitted, others = _requested(load_fitted(folder, method), request, device, root)
    files = board_files(backend, device, fitted.runs, root)
    resolved = (files.board.resolve(Mode(*mode)) for mode in fitted.time.trained_on.tolist())
    profiled = tuple(dict.fromkeys(resolved))
    if len(profiled) < LEAST_MODES:
        from epochwatt.prediction.recommend.runs import profiling_recipe

        further = modes_to_measure(files.board, fitted.workload["num_workers"] + 1, profiled)
        raise PredictionError(
            f"too few power modes of {fitted.workload['model']} on {device.title}, "
            f"{described(fitted.workload)}, were run",
            found=counted(len(profiled), "modes"),
            allowed=f"{LEAST_MODES} or more",
            do=profiling_recipe(fitted.workload, further, device, files.board, root),
        )
    budgets, max_risk = request.budgets, request.max_risk
    if request.idle_w and "epoch_s" not in budgets:
        raise EpochwattError("--idle-w counts until a deadline", do="add --max-epoch-s")
    models, others_w = (fitted.time, fitted.power), (request.idle_w, request.rest_w)
    recommendation = recommend(
        files.board, *models, request.aim, budgets, LEVEL, max_risk, *others_w
    )
    return Advice(request, device, method, fitted, others, files, profiled, recommendation)


def _check(request: Request, device: Device, root: Path) -> None:
    """Refuse names and numbers that no run can have, whatever is fitted."""
    factors = request.factors
    if not device.board:
        raise EpochwattError(
            f"--device is {factors['device']!r}, which is no Jetson board: it has no power modes"
        )
    if (instance := factors.get("instance", device.instances[0])) not in device.instances:
        raise EpochwattError(
            f"--device {request.device}: {factors['device']} has no instance {instance!r}",
            allowed=device.instances,
        )
    models = list(read_rows(WorkloadRow, root / "config/workloads.yaml"))
    media = list(device.storage)
    storage = factors.get("storage", media[0])
    for option, value, allowed in (
        ("--model", request.model, models),
        ("--storage", storage, media),
    ):
        if value not in allowed:
            raise EpochwattError(f"{option} is {value!r}", allowed=allowed)
    for name, option in OPTIONS.items():
        if name in factors:
            validated(FactorValues, {"model": request.model, name: factors[name]}, option)


def _requested(
    fits: Sequence[FittedWorkload], request: Request, device: Device, root: Path
) -> tuple[FittedWorkload, tuple[FittedWorkload, ...]]:
    """Return the requested fit, the paper's default where left open, and others it could be."""
    matching = [fit for fit in fits if request.factors.items() <= fit.workload.items()]
    if not matching:
        raise _nothing_fitted(fits, request, device, root)
    nearest = _nearest_to_default(matching, device, str(request.factors["device"]))
    if len(nearest) == 1:
        return nearest[0], tuple(fit for fit in matching if fit is not nearest[0])
    names = nearest[0].workload
    differ = [name for name in names if len({fit.workload[name] for fit in nearest}) > 1]
    others = ", ".join(differ) or "where their runs come from"
    do = f"they differ in {others}: select one of their studies in config/config.yaml and make "
    do += "the models again"
    if options := [OPTIONS[name] for name in differ if name in OPTIONS]:
        do = f"choose by {', '.join(options)}"
    raise PredictionError(
        f"several workloads of {request.model} on {request.device} were fitted",
        found="; ".join(map(described_fit, nearest)),
        do=do,
    )


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


def described(workload: Factors) -> str:
    """Return a workload in words: storage, workers, mini-batch, factors that are not default."""
    odd = [
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in workload.items()
        if name not in {*_NOT_ODD, *OPTIONS} and value not in (None, FACTOR_DEFAULTS.get(name))
    ]
    workers = counted(workload["num_workers"], "workers")
    return ", ".join([str(workload["storage"]), workers, f"batch {workload['batch_size']}", *odd])


def described_fit(fit: FittedWorkload) -> str:
    """Return a fitted workload in words, with its number of modes where they are too few."""
    n_modes = len(fit.time.trained_on)
    few = f" ({counted(n_modes, 'modes')}; {LEAST_MODES} needed)" if n_modes < LEAST_MODES else ""
    return described(fit.workload) + few


def _nothing_fitted(
    fits: Sequence[FittedWorkload], request: Request, device: Device, root: Path
) -> EpochwattError:
    """Return the error that lists what is fitted, and how to make the missing runs."""
    from epochwatt.prediction.recommend.runs import profiling_recipe

    factors = request.factors
    options = [f"{opt} {factors[name]}" for name, opt in OPTIONS.items() if name in factors]
    # runs that would answer: what is left open is as in the board's own runs of the network
    unit = {k: factors[k] for k in ("device", "instance", "model") if k in factors}
    place = {"instance": device.instances[0]} | unit
    same = [fit for fit in fits if place.items() <= fit.workload.items()]
    like = _nearest_to_default(same, device, str(unit["device"]))[0].workload if same else {}
    usual = {"backend": request.backend, "storage": next(iter(device.storage))}
    wanted = {**FACTOR_DEFAULTS, **usual, **place, **like, **factors}
    board_place = {name: wanted[name] for name in ("device", "instance")}
    runs = [run for fit in fits if board_place.items() <= fit.workload.items() for run in fit.runs]
    try:
        board = board_files(request.backend, device, runs, root).board
    except EpochwattError as error:  # its clocks are not known
        do = str(error)
    else:
        modes = modes_to_measure(board, wanted["num_workers"] + 1)
        do = profiling_recipe(wanted, modes, device, board, root)
    found = [described_fit(fit) for fit in fits if unit.items() <= fit.workload.items()]
    if not found:  # all networks, by board
        boards: dict[str, dict[object, None]] = {}
        for fit in fits:
            name = f"{fit.workload['device']}-{fit.workload['instance']}"
            boards.setdefault(name, {})[fit.workload["model"]] = None
        found = [f"{', '.join(map(str, models))} on {board}" for board, models in boards.items()]
    return PredictionError(
        f"no model of {' '.join([request.model, 'on', request.device, *options])} was fitted",
        found="; ".join(found),
        allowed=f"workloads that were run in {LEAST_MODES} power modes or more",
        do=do,
    )
