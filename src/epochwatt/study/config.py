"""Describe the configuration files by closed schemas.

Every model here forbids keys it does not know. `make docs` renders the descriptions to
`config/README.md`.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from epochwatt import columns
from epochwatt.board.device.kinds import KINDS
from epochwatt.columns import CLOCKS


class Closed(BaseModel):
    """A mapping that accepts the keys it describes and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Backend = Literal["host", "jetson", "twin"]


def _without_markup(title: str) -> str:
    """Refuse markup, as Snakemake writes titles into the report's scripts unescaped."""
    if re.search(r"<\s*[/!?a-zA-Z]", title):
        raise ValueError("no markup: no `<` before a letter, `/`, `!` or `?`")
    return title


Title = Annotated[str, AfterValidator(_without_markup)]


def _board_kind(kind: str) -> str:
    """Return the current name of a board kind; ValueError: there is no such kind."""
    name = columns.FORMER_BOARDS.get(kind, kind)
    if name and name not in KINDS:
        raise ValueError(", ".join(map(repr, KINDS)))
    return name


BoardKind = Annotated[
    str, AfterValidator(_board_kind), Field(json_schema_extra={"enum": ["", *KINDS]})
]


class Config(Closed):
    """config/config.yaml: what this checkout measures."""

    studies: str | list[str] = Field(
        description="names of the studies to run, in order of priority; `paper`: all studies of "
        "the two papers; `simulated`: all studies that the twin may run, on the twin; `imported`: "
        "runs taken over by `contrib/import_2023`; `starter`: made for the board at hand; "
        "`auto`: `starter` on a Jetson board, else `host-pipeline`, `host-photographs` and "
        "`simulated`",
    )
    sweeps: str | list[str] = Field(
        default_factory=list,
        description="names of the sweeps of config/sweeps.yaml to run as well, after the "
        "studies; a name that ends in .yaml is a file of such sweeps, all of which are run",
    )


Axis = Any  # a scalar or a list of scalars; checked against FactorValues once expanded


class Pairs(Closed):
    """Two values of a factor that each row of a study is measured with, one after the other."""

    factor: Literal["container", "model", "seed", "cache_policy", "gpu_timing", "compile"] = Field(
        description="what is compared; blocks of `sweep` do not name it"
    )
    values: list[str | int] = Field(
        min_length=2,
        max_length=2,
        description="its two values, A and B; which of them is measured first alternates from "
        "pair to pair",
    )
    margin_pct: float = Field(
        gt=0, description="difference that would still be called none, % of A's mean"
    )

    @model_validator(mode="after")
    def _check_values(self) -> "Pairs":
        if self.values[0] == self.values[1]:
            raise ValueError("values has to be two different ones")
        return self


class Study(Closed):
    """config/studies.yaml: one study, a name and what it sweeps."""

    title: Title = Field(description="what the study asks, in a line")
    setup: Literal["own", "sigmetrics2023", "hipcw2021"] = Field(
        "own", description="whose protocol it follows"
    )
    backend: Backend = Field(
        description="where it runs: on the machine at hand, on a Jetson board, or simulated"
    )
    twin: bool = Field(
        default=False, description="`simulated` in config.yaml runs the same rows on the twin"
    )
    device: str = Field(
        "",
        description="device type: a file of config/devices/; a block of `sweep` may name its own",
    )
    epochs: int = Field(
        ge=1, le=100_000, description="epochs of each run; raising it continues the runs"
    )
    ceilings: bool = Field(
        default=False,
        description="measure in each power mode, too, what the device reaches at best: memory, "
        "arithmetic, launches; some ten seconds a mode",
    )
    pairs: Pairs | None = Field(
        default=None,
        description="measures each row twice, as a pair, and tests whether the two sides are "
        "equivalent",
    )
    sweep: list[dict[str, Axis]] = Field(
        min_length=1,
        description="blocks of factors; a list sweeps its values, a block is the product of its "
        "lists, the study is all blocks together",
    )


class FactorValues(Closed):
    """The factors a sweep may set, with what is allowed."""

    device: str | None = None
    instance: str | None = None
    model: str
    dataset_source: str | None = None
    dataset_scale: float = Field(
        columns.FACTOR_DEFAULTS["dataset_scale"], gt=0, allow_inf_nan=False, strict=True
    )
    storage: str | None = None
    num_workers: int = Field(columns.FACTOR_DEFAULTS["num_workers"], ge=0, le=256, strict=True)
    prefetch_factor: int = Field(
        columns.FACTOR_DEFAULTS["prefetch_factor"], ge=1, le=1024, strict=True
    )
    batch_size: int = Field(columns.FACTOR_DEFAULTS["batch_size"], ge=1, strict=True)
    power_mode: str | None = None
    dvfs: Literal["on", "off"] | None = None
    torch_threads: int | None = Field(None, ge=0, le=1024, strict=True)
    cache_policy: Literal["kept", "dropped"] = columns.FACTOR_DEFAULTS["cache_policy"]
    gpu_timing: Literal["synchronised", "pooled"] = columns.FACTOR_DEFAULTS["gpu_timing"]
    seed: int = Field(columns.FACTOR_DEFAULTS["seed"], ge=0, strict=True)
    epochs_per_job: int = Field(columns.FACTOR_DEFAULTS["epochs_per_job"], ge=1, strict=True)
    task: Literal["train", "infer"] = columns.FACTOR_DEFAULTS["task"]
    precision: Literal["fp32", "tf32", "fp16", "bf16"] = columns.FACTOR_DEFAULTS["precision"]
    compile: Literal["on", "off"] = columns.FACTOR_DEFAULTS["compile"]
    container: str = columns.FACTOR_DEFAULTS["container"]


class Storage(Closed):
    """A storage medium of a device."""

    title: Title = Field(description="what it is")
    root: str = Field(
        description="folder that holds data sets; relative to the checkout or absolute"
    )
    mount: str = Field(
        "", description="mount point that has to be mounted and to hold `root`; none: not looked at"
    )
    block_device: str = Field(
        "",
        description="how the name of its block device begins, such as nvme or mmcblk1; none: not "
        "looked at",
    )


class PowerMode(Closed):
    """Settings of a power mode; what is not named is as in the board's strongest mode."""

    nvpmodel: str | None = Field(
        None,
        description="name of a mode that the board's nvpmodel knows; beside it nothing, or all its "
        "numbers, for the models",
    )
    cores: int | None = Field(None, ge=1, strict=True, description="CPU cores that are on")
    cpu_mhz: float | None = Field(None, gt=0, description="CPU clock, to 2 % a step of the board's")
    gpu_mhz: float | None = Field(None, gt=0, description="GPU clock, likewise")
    emc_mhz: float | None = Field(None, gt=0, description="memory clock, likewise")
    gpu_share: float | None = Field(
        None, gt=0, le=1, description="share of the GPU (TPCs) that an nvpmodel mode leaves on"
    )

    @model_validator(mode="after")
    def _check_definition(self) -> "PowerMode":
        """Refuse a mode that is given by name and by some numbers at once."""
        numbers = self.model_dump(exclude_none=True).keys() - {"nvpmodel"}
        if self.nvpmodel is not None and numbers and not numbers >= set(CLOCKS):
            raise ValueError(
                "either the name of an nvpmodel mode or numbers, not both, except all of "
                f"{', '.join(CLOCKS)}: they say what the named mode is"
            )
        if self.gpu_share is not None and self.nvpmodel is None:
            raise ValueError(
                "gpu_share goes with an nvpmodel mode: only a start of the board sets it"
            )
        return self


class Container(Closed):
    """A container that runs may train in; exactly one of `image` and `rootfs`."""

    engine: Literal["podman", "docker", "none"] = Field(
        description="program that runs it; `none`: the machine itself under another name, which "
        "shows how two equal sides of a comparison differ"
    )
    image: str = Field("", description="image, as `make container-image` names it")
    rootfs: str = Field(
        "",
        description="with podman: a folder that holds a root file system; `/` is the machine's "
        "own, so that all software is the same. What is written in it goes to an overlay",
    )
    runtime: str = Field("", description="OCI runtime, such as nvidia; empty: the engine's default")

    @model_validator(mode="after")
    def _check_origin(self) -> "Container":
        """Refuse a container without an image or root file system, or with both."""
        n_origins = bool(self.image) + bool(self.rootfs)
        if n_origins != (self.engine != "none"):
            raise ValueError("image or rootfs, one of them; with engine none neither")
        if self.rootfs and self.engine != "podman":
            raise ValueError("rootfs is podman's: docker needs an image")
        for value in (self.image, self.rootfs, self.runtime):
            if value.startswith("-"):
                raise ValueError(
                    f"{value!r} begins with -, so {self.engine} takes it for an option"
                )
        return self


class Settling(Closed):
    """Limits of a board's settling before epoch 0 of a run."""

    max_s: float = Field(gt=0, description="time limit, s; a board still restless then is flagged")
    window_s: float = Field(
        20, gt=0, description="time over which temperature and power have to be steady, s"
    )
    temp_c: float = Field(1.0, gt=0, description="largest change of the hottest sensor in it, K")
    power_w: float = Field(0.5, gt=0, description="largest change of the module's power in it, W")

    @model_validator(mode="after")
    def _check_window(self) -> "Settling":
        if self.max_s < self.window_s:
            raise ValueError("max_s has to be at least window_s: nothing is steady before")
        return self


class Device(Closed):
    """config/devices/{device}.yaml: one device type."""

    title: Title = Field(description="its name for people")
    backends: list[Backend] = Field(min_length=1, description="backends that can run it")
    board: BoardKind = Field("", description="kind of the Jetson board")
    sysroot: str = Field(
        "/",
        description="where the board's files are; another folder than / is a fake board, and its "
        "runs are of backend `fake`",
    )
    instances: list[str] = Field(min_length=1, description="units; the first is the default")
    units: dict[str, str] = Field(
        default_factory=dict,
        description="instance -> serial number or host name of the one machine that may measure it",
    )
    python: list[str] = Field(
        default_factory=list,
        description="words of the command that starts the interpreter which owns torch; empty: the "
        "workflow's own",
    )
    remote: bool = Field(
        False,
        description="`python` runs on another machine (over ssh), which checks by itself that it "
        "is the right board; the checkout has the same path there",
    )
    constraint: str = Field(
        "",
        pattern=r"^(\w[\w.-]*(&\w[\w.-]*)*)?$",
        description="features of the Slurm nodes that are such boards, joined by `&`; a run's "
        "`instance` is a feature of its one node, too, which checks by itself that it is the right "
        "board (profiles/README.md)",
    )
    power_source: Literal["auto", "jtop", "sysfs", "tegrastats"] = Field(
        "auto",
        description="where a board's power is read; `auto`: from sysfs where your user may, ten "
        "times a second, else from jtop, once a second",
    )
    settle: Settling | None = Field(
        None, description="what a board waits for before epoch 0 of a run"
    )
    idle_s: float = Field(
        60, ge=0, description="how long a board's idle power is measured in each mode, s; 0: never"
    )
    check_memory: bool = Field(
        True,
        description="refuse a run that will not fit into memory, by a forecast, before it is "
        "measured; false: run it anyway",
    )
    storage: dict[str, Storage] = Field(min_length=1, description="media; the first is the default")
    power_modes: dict[str, PowerMode] = Field(
        min_length=1,
        description="modes; the first is the default; an empty mode leaves the machine as it is",
    )
    dvfs: list[Literal["on", "off"]] = Field(
        min_length=1, description="what is possible; the first is the default"
    )
    containers: dict[str, Container] = Field(
        default_factory=dict, description="containers that runs may train in (factor `container`)"
    )
    torch_threads: int = Field(0, ge=0, description="default of the factor of that name")
    guess_samples_per_s: dict[str, float] = Field(
        default_factory=dict,
        description="model -> a guess for `epochwatt plan`, better than the workload's own; that "
        "of mobilenet sets how large the starter study's data set is, and so the ids of its runs",
    )
    out_of_memory: list[str] = Field(
        default_factory=list,
        description="models that ran out of memory on it in the papers: `epochwatt plan` warns",
    )


REFERENCE = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$"  # module.name, anywhere on the Python path


class WorkloadRow(Closed):
    """config/workloads.yaml: one network and what it trains on."""

    title: Title = Field(description="its name for people")
    dataset: str = Field(description="data set it trains on")
    dataset_source: str = Field(description="default source of that data set")
    guess_samples_per_s: float = Field(
        gt=0, description="only for `epochwatt plan`, before anything was measured"
    )
    build: str = Field(
        "",
        pattern=REFERENCE,
        description="your own network: module.function (docs/tutorials/own-network.md)",
    )
    like: str = Field(
        "", description="with `build`: the network of the package whose input it takes"
    )
    transform: str = Field(
        "",
        pattern=REFERENCE,
        description="with `build`: an own module.function, from a raw sample to the input, instead "
        "of that of `like`",
    )
    loss: str = Field(
        "",
        pattern=REFERENCE,
        description="with `build`: an own module.function, which takes network, inputs and targets "
        "of a mini-batch and returns the loss, instead of that of `like`",
    )
    made_up: str = Field(
        "",
        pattern=REFERENCE,
        description="with `build`: an own module.function, which returns a raw sample for the "
        "warm-up, instead of that of `like`",
    )


class PredictorRow(Closed):
    """config/predictors.yaml: one's own way to predict time and power of a power mode."""

    method: str = Field(
        pattern=REFERENCE,
        description="module.NAME of an `epochwatt.prediction.predictor.Method`",
    )


class Flag(Closed):
    """config/flags.yaml: another effect than a flag has by itself."""

    effect: Literal["invalidates", "voids_energy", "informs"] = Field(
        description="invalidates: the epoch is left out of every mean; voids_energy: its energy is "
        "left empty; informs: it is only said"
    )


class Exclusion(Closed):
    """config/exclusions.yaml: rows of the run table that cannot run."""

    where: dict[str, str | int | float] = Field(
        min_length=1, description="factors and the values that select the rows"
    )
    reason: str = Field(description="why; shown in the plan and in the figures")


class Panel(Closed):
    """Settings of one panel."""

    title: Title = Field(description="its title")
    width_in: float = Field(gt=0, description="width in inches")
    height_in: float = Field(gt=0, description="height in inches")
    claims: list[str] = Field([], description="claims on what it shows")
    caption: str = Field("", description="what it shows, for the report")


class Figure(Closed):
    """A figure: the studies it draws, its panels and parameters."""

    draw: str = Field(
        pattern=REFERENCE,
        description="module.function that draws it: of `epochwatt.figures`, or your own in `src/` "
        "(docs/how-to/add-a-figure.md)",
    )
    parameters: dict[str, str | int | float | bool | list[str]] = Field(
        {}, description="keyword arguments of that function"
    )
    paper: Literal["sigmetrics2023", "hipcw2021", "none"] = Field(
        "sigmetrics2023",
        description="whose figure it is: the marks are the numbers that this paper prints; `none`: "
        "your own figure, without marks",
    )
    section: str = Field("", description="section of the paper that describes it")
    reads: list[Literal["epochs", "records", "idle", "predictions"]] = Field(
        ["epochs"],
        description="what it is drawn from: tables of its runs' epochs, the records of these "
        "epochs (telemetry, mini-batches), the table of idle powers, the models' predictions",
    )
    studies: list[str] = Field(description="studies whose runs it draws, where they are selected")
    where: dict[str, list[str | int | float]] = Field(
        default_factory=dict,
        description="factor -> the values that it draws; other runs of its studies are left out",
    )
    caption: str = Field("", description="what holds for all its panels, for the report")
    simulated: str = Field(
        "", description="what to know of its simulated runs, added to their caption"
    )
    panels: dict[str, Panel] = Field(
        description="panel, which is also its file name -> its settings"
    )


class Plotting(Closed):
    """config/plotting.yaml: colours and figure settings."""

    palette: dict[str, str] = Field(description="colour of each thing that is drawn")
    spare: list[str] = Field(
        default=[],
        description="colours of networks and storage media that the palette does not name, in the "
        "order of workloads.yaml, then of the runs",
    )
    notes: bool = Field(
        True, description="two lines below each panel; false: for print, without them"
    )
    figures: dict[str, Figure] = Field(description="figure -> its settings")
