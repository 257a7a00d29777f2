"""Names, units and order of every column, factor and flag (board side: Python 3.6 grammar).

The one place where a column is named. `FACTORS` are the settings of a run, `EPOCH_COLUMNS` the
results of one measured epoch. The tables in `results/`, the records in `measured/` and the pages
made by `make docs` all take names, order and meaning from here.

Source of the definitions: SIGMETRICS 2023 paper (doi 10.1145/3570604), sections 4.4 and 4.5;
`docs/reference/words.md` says them at length.
"""

from typing import Any, Dict, Iterable, List, NamedTuple, Tuple

# Of the records in measured/ and of the tables made from them; docs/explanation/energy.md has them.
SCHEMA_VERSION = 2
READABLE_SCHEMAS = (1, 2)  # of records: 1 differs from 2 in the tables' columns of energy only
TWIN = "twin"  # the backend whose runs are simulated
FORMER_BOARDS = {"orin_agx": "agx_orin"}  # kinds in records and configuration, old -> new name
PROTOCOL = 1  # of the measuring procedure; part of every run id (docs/decisions/0002)

Factors = Dict[str, Any]  # of a run: those of `FACTORS` by name, with what belongs to their values

# A factor without a default: it stands in every hash and has to be resolved for every run.
REQUIRED = None


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: str  # str, int, float or bool
    unit: str  # as people write it; empty: none
    description: str
    default: Any  # of a factor; REQUIRED: it has none
    label: str  # what people call it on pages and axes, without the unit


# what a name ends in -> the unit as people write it
UNIT_OF_ENDING = {
    "s": "s",
    "ms": "ms",
    "wh": "Wh",
    "j": "J",
    "w": "W",
    "pct": "%",
    "mhz": "MHz",
    "mib": "MiB",
    "gib": "GiB",
    "mb": "MB",
    "iops": "1/s",
    "x": "times",
}
_WRITTEN = {
    "cpu": "CPU",
    "cpus": "CPUs",
    "gpu": "GPU",
    "emc": "memory",
    "ram": "memory",
    "dvfs": "DVFS",
}


def _column(
    name: str, kind: str, unit: str, description: str, default: Any = REQUIRED, label: str = ""
) -> Column:
    return Column(name, kind, unit, description, default, label or _words(name))


def _words(name: str) -> str:
    """Return the label of a name without one: its words, without the unit at its end."""
    words = name.split("_")
    if len(words) > 1 and words[-1] in UNIT_OF_ENDING:
        words = words[:-1]
    if len(words) > 1 and words[0] == "n":  # a number of something
        words = words[1:]
    return " ".join(_WRITTEN.get(word, word) for word in words)


# Defaults are those of SIGMETRICS 2023, section 4.4. They may never change: a run's hash leaves out
# what equals the default, so a changed default would give an old id a new meaning.
FACTORS = (
    _column(
        "setup",
        "str",
        "",
        "whose protocol the run follows: own, sigmetrics2023, hipcw2021",
        "own",
        label="protocol",
    ),
    _column(
        "backend", "str", "", "host, jetson: measured; twin: simulated; fake: a board of files"
    ),
    _column("device", "str", "", "device type, a file of config/devices/", label="board"),
    _column("instance", "str", "", "which unit of that device type", label="unit"),
    _column("model", "str", "", "network, a row of config/workloads.yaml", label="network"),
    _column("dataset", "str", "", "data set the network trains on", label="data set"),
    _column("dataset_source", "str", "", "where its samples come from", label="source of data"),
    _column(
        "dataset_scale",
        "float",
        "",
        "number of samples relative to the source",
        1,
        label="size of the data set",
    ),
    _column("storage", "str", "", "storage medium that holds the data set, named by the device"),
    _column(
        "num_workers",
        "int",
        "",
        "loader worker processes; 0 loads in the training process",
        4,
        label="loader workers",
    ),
    _column(
        "prefetch_factor",
        "int",
        "mini-batches",
        "mini-batches each worker loads ahead; none at 0 workers",
        2,
        label="prefetch",
    ),
    _column(
        "batch_size",
        "int",
        "samples",
        "samples of a mini-batch; the last of an epoch may be smaller",
        16,
        label="mini-batch size",
    ),
    _column("power_mode", "str", "", "cores, CPU, GPU and memory clock, named by the device"),
    _column(
        "dvfs",
        "str",
        "",
        "off: clocks pinned at the mode's values; on: the governors choose",
        "off",
    ),
    _column(
        "torch_threads", "int", "", "threads of torch's CPU operators; 0 leaves it to torch", 0
    ),
    _column(
        "cache_policy",
        "str",
        "",
        "page cache: kept (dropped before epoch 0) or dropped",
        "kept",
        label="page cache",
    ),
    _column(
        "gpu_timing",
        "str",
        "",
        "synchronised (the papers' way) or pooled",
        "synchronised",
        label="GPU timing",
    ),
    _column("seed", "int", "", "seed of weights, order and augmentation", 0),
    _column("epochs_per_job", "int", "epochs", "epochs measured by one process before it ends", 1),
    _column(
        "imported",
        "str",
        "",
        "program whose logs the run was made from; empty: measured by us",
        "",
        label="imported from",
    ),
    _column("task", "str", "", "train, or infer: forward passes alone, without gradients", "train"),
    _column(
        "precision",
        "str",
        "",
        "fp32: as torch computes by default; tf32; fp16 and bf16 by autocast",
        "fp32",
    ),
    _column(
        "compile", "str", "", "on: the network goes through torch.compile before the epoch", "off"
    ),
    _column(
        "container",
        "str",
        "",
        "container that trains, named by the device; none: no container",
        "none",
    ),
)

FACTOR_NAMES = tuple(f.name for f in FACTORS)
FACTOR_DEFAULTS: Dict[str, Any] = {f.name: f.default for f in FACTORS if f.default is not REQUIRED}

# Columns of minibatches.npy, one row per mini-batch: shape (n, 3), float32 seconds.
MINIBATCH_COLUMNS = ("wait_s", "copy_s", "compute_s")

RUN_COLUMN = _column(
    "run", "str", "", "id of the run: everything that would cause a new measurement"
)
STUDIES_COLUMN = _column("studies", "str", "", "studies the run belongs to, separated by spaces")

# Of one power scope: in epochs.csv the widest that was measured, in energy.csv every one.
ENERGY_COLUMNS = (
    _column(
        "power_scope",
        "str",
        "",
        "module, socket, gpu or cpu_package; empty: no sensor",
        label="power of",
    ),
    _column(
        "energy_method", "str", "", "trapezoid, or counter where the sensor counts energy itself"
    ),
    _column("sampler_period_s", "float", "s", "mean period of the power samples"),
    _column(
        "energy_wh",
        "float",
        "Wh",
        "trapezoid to the epoch's bounds, or the counter",
        label="energy",
    ),
    _column(
        "energy_error_pct",
        "float",
        "%",
        "bound of that energy's error, 95 of 100 cases",
        label="bound of energy's error",
    ),
    _column(
        "energy_paper_wh",
        "float",
        "Wh",
        "right-rectangle sum at 1 Hz, as in the papers",
        label="energy, the papers' sum",
    ),
    _column(
        "energy_paper_missing_pct", "float", "%", "of the epoch, without a reading in that sum"
    ),
    _column(
        "stall_energy_j",
        "float",
        "J",
        "energy spent while stalled; none where not resolved",
        label="energy of stalls",
    ),
    _column(
        "stall_energy_error_pct",
        "float",
        "%",
        "bound of its error, 95 of 100 cases",
        label="bound of the stalls' energy's error",
    ),
    _column("power_mean_w", "float", "W", "`energy_wh` / `e2e_s`", label="mean power"),
)

EPOCH_COLUMNS = (
    _column("protocol", "int", "", "version of the measuring procedure"),
    _column("schema_version", "int", "", "version of the columns of this table"),
    _column("epoch", "int", "", "number of the epoch, the first is 0"),
    _column("t_start_unix_s", "float", "s", "wall clock just before iter(loader)"),
    _column("t_end_unix_s", "float", "s", "wall clock when the loop had ended"),
    _column(
        "e2e_s",
        "float",
        "s",
        "whole epoch, worker start and shut-down included",
        label="epoch time",
    ),
    _column("wait_s", "float", "s", "training loop blocked on the next mini-batch"),
    _column("copy_s", "float", "s", "moving mini-batches to the device"),
    _column("stall_s", "float", "s", "wait + copy"),
    _column("compute_s", "float", "s", "launch, forward, backward and optimiser step"),
    _column("overhead_s", "float", "s", "E2E - stall - compute"),
    _column(
        "fetch_s",
        "float",
        "s",
        "read and decode, summed over the loader workers",
        label="fetch, all workers",
    ),
    _column(
        "preprocess_s",
        "float",
        "s",
        "transform and collate, summed over the loader workers",
        label="pre-process, all workers",
    ),
    _column(
        "n_minibatches", "int", "mini-batches", "mini-batches of the epoch", label="mini-batches"
    ),
    _column("n_samples", "int", "samples", "samples trained on", label="samples"),
    _column(
        "loss",
        "float",
        "",
        "mean training loss of the epoch, over samples; none where simulated, or in inference",
    ),
    _column(
        "timing_method",
        "str",
        "",
        "host_clock, cuda_events_synchronised, cuda_events_pooled, imported_cuda_events, "
        "imported_bounds, simulated",
    ),
    _column(
        "host_wait_s",
        "float",
        "s",
        "host blocked on the loader, where that is not the wait",
        label="wait of the host",
    ),
    *ENERGY_COLUMNS,
    _column("cpu_util_pct", "float", "%", "mean CPU utilisation", label="CPU utilisation"),
    _column(
        "cpu_util_median_pct",
        "float",
        "%",
        "median CPU utilisation",
        label="median CPU utilisation",
    ),
    _column("gpu_util_pct", "float", "%", "mean GPU utilisation", label="GPU utilisation"),
    _column(
        "gpu_util_median_pct",
        "float",
        "%",
        "median GPU utilisation",
        label="median GPU utilisation",
    ),
    _column("ram_used_mib", "float", "MiB", "mean memory in use", label="memory in use"),
    _column(
        "read_iops",
        "float",
        "1/s",
        "reads from the data set's block device",
        label="disk reads per second",
    ),
    _column(
        "read_mib_s",
        "float",
        "MiB/s",
        "bytes read from the data set's block device",
        label="disk reads",
    ),
    _column(
        "cached_pct",
        "float",
        "%",
        "share of the data set in the page cache before the epoch",
        label="cached before",
    ),
    _column("cached_after_pct", "float", "%", "the same after the epoch", label="cached after"),
    _column("cold_process", "bool", "", "first epoch measured by its process"),
    _column("valid", "bool", "", "counts in means; false when a flag says so"),
    _column("flags", "str", "", "what is known against or about the epoch, separated by spaces"),
)

# What `epochs.csv` of one run holds; the export in results/tables/ puts `studies` in front.
RUN_EPOCH_COLUMNS = (RUN_COLUMN, *FACTORS, *EPOCH_COLUMNS)

# What `energy.csv` of one run holds: one row per epoch and power scope.
RUN_ENERGY_COLUMNS = (
    RUN_COLUMN,
    *(f for f in EPOCH_COLUMNS if f.name == "epoch"),
    *ENERGY_COLUMNS,
    *(f for f in EPOCH_COLUMNS if f.name == "flags"),
)

# What a run's statistic is taken of (results/tables/runs.csv).
STATISTIC_COLUMNS = tuple(
    f.name
    for f in EPOCH_COLUMNS
    if f.kind == "float" and f.name not in ("t_start_unix_s", "t_end_unix_s", "sampler_period_s")
)
STATISTICS = ("mean", "median")
RUNS_COLUMNS = (
    STUDIES_COLUMN,
    RUN_COLUMN,
    *FACTORS,
    _column(
        "epoch_set",
        "str",
        "",
        "0: the first epoch; 1+: those after it; all: every epoch",
        label="epochs",
    ),
    _column("statistic", "str", "", "mean (as SIGMETRICS 2023 reports) or median (as HiPCW 2021)"),
    _column(
        "n_epochs", "int", "epochs", "valid epochs the statistic is taken over", label="epochs"
    ),
    _column(
        "n_invalid",
        "int",
        "epochs",
        "epochs of the set left out because they are not valid",
        label="epochs left out",
    ),
    *(f for f in EPOCH_COLUMNS if f.name in STATISTIC_COLUMNS),
    _column("flags", "str", "", "all flags of the set's epochs, separated by spaces"),
)

# results/tables/idle.csv: what boards draw while they do nothing.
IDLE_COLUMNS = (
    *(f for f in FACTORS if f.name in ("backend", "device", "instance", "power_mode", "dvfs")),
    _column(
        "state",
        "str",
        "",
        "i: metrics are logged, nothing else runs; ii to iv: the paper's, from a plug meter",
    ),
    _column("power_scope", "str", "", "module; socket: at the plug", label="power of"),
    _column("power_w", "float", "W", "mean power", label="mean power"),
    _column("power_error_pct", "float", "%", "bound of its error, 95 of 100 cases"),
    _column("duration_s", "float", "s", "how long it was measured"),
)

# results/sweeps/{sweep}.csv and the tables that others measured: one row per mode and repeat.
PROVENANCES = ("measured", "public", "simulated", "fake")
TASKS = ("train", "infer")
SWEEP_COLUMNS = (
    _column("sweep", "str", "", "name of the sweep"),
    _column("provenance", "str", "", "measured: by this tool; public: by others; simulated; fake"),
    _column("device", "str", "", "board kind, as agx_orin, or GPU, as V100", label="board"),
    _column("instance", "str", "", "which unit of that device; empty: not known", label="unit"),
    _column("workload", "str", "", "network, and what else tells it from others of the sweep"),
    _column("task", "str", "", "train or infer"),
    _column(
        "batch_size",
        "int",
        "samples",
        "samples of a mini-batch; empty: not known",
        label="mini-batch size",
    ),
    _column("precision", "str", "", "fp32, tf32, fp16 or bf16; empty: not known"),
    _column("work", "str", "", "what `time_s` is the time of: mini-batch, epoch, 5000 images, ..."),
    _column(
        "cores",
        "int",
        "",
        "CPU cores online; on a host, threads of the training process",
        label="CPU cores",
    ),
    _column("cpu_mhz", "float", "MHz", "CPU clock", label="CPU clock"),
    _column("gpu_mhz", "float", "MHz", "GPU clock", label="GPU clock"),
    _column("emc_mhz", "float", "MHz", "memory clock", label="memory clock"),
    _column(
        "gpu_share", "float", "", "share of the GPU's parts that are on", label="share of the GPU"
    ),
    _column(
        "power_limit_w",
        "float",
        "W",
        "limit that the device keeps by itself; empty: none",
        label="power limit",
    ),
    _column("repeat", "int", "", "which repeat of the mode, the first is 0"),
    _column(
        "n_minibatches",
        "int",
        "mini-batches",
        "mini-batches that the mean is taken over",
        label="mini-batches",
    ),
    _column("time_s", "float", "s", "mean time of the work"),
    _column("time_sd_s", "float", "s", "standard deviation of one mini-batch's time"),
    _column(
        "power_w",
        "float",
        "W",
        "mean power during the work; empty: not measured",
        label="mean power",
    ),
    _column(
        "power_scope",
        "str",
        "",
        "socket: at the plug; board: at its DC input; module, gpu, cpu_package; empty: no power",
        label="power of",
    ),
    _column("valid", "bool", "", "counts in fits and scores; false when a flag says so"),
    _column("flags", "str", "", "what is known against or for the row, separated by spaces"),
)
# The parts of a mode in that table; an empty cell: not known, or not a part of the device's modes.
MODE_PARTS = ("cores", "cpu_mhz", "gpu_mhz", "emc_mhz", "gpu_share", "power_limit_w")

CLOCKS = MODE_PARTS[:4]  # those that a board sets: cores online and three clocks

# results/roofline/ceilings.csv: what a device reached with micro-kernels, a row for each.
CEILING_KERNELS = ("copy", "triad", "matmul", "fma", "launch")
CEILING_COLUMNS = (
    *(f for f in SWEEP_COLUMNS if f.name in ("provenance", "device", "instance")),
    *(f for f in SWEEP_COLUMNS if f.name in CLOCKS),
    _column("processor", "str", "", "cpu or gpu: which of them computed"),
    _column("precision", "str", "", "fp32, tf32, fp16 or bf16"),
    _column(
        "kernel", "str", "", "copy, triad, matmul, fma (chains of multiply-adds) or launch (empty)"
    ),
    _column("size", "int", "", "elements of one array; of matmul the rows of its square matrices"),
    _column(
        "intensity_flop_per_byte",
        "float",
        "FLOP/B",
        "`flops` / `bytes`; empty: an empty launch",
        label="intensity",
    ),
    _column(
        "flops", "float", "", "floating-point operations of one call, a multiply-add being two"
    ),
    _column(
        "bytes", "float", "B", "of all its arrays, each read or written once; they may be cached"
    ),
    _column("repeats", "int", "", "blocks of calls that were timed"),
    _column("time_s", "float", "s", "of one call: median of the blocks"),
    _column("time_sd_s", "float", "s", "standard deviation of the blocks' times of one call"),
    _column("best_s", "float", "s", "of one call: the fastest block"),
    _column(
        "power_w",
        "float",
        "W",
        "mean power during the blocks; empty: not measured",
        label="mean power",
    ),
    _column(
        "power_scope",
        "str",
        "",
        "module, socket, gpu or cpu_package; empty: no power",
        label="power of",
    ),
    _column(
        "clock_mhz", "float", "MHz", "mean clock of the processor during the blocks; empty: unknown"
    ),
    _column("valid", "bool", "", "counts in fits; false when a flag says so"),
    _column("flags", "str", "", "what is known against the row, separated by spaces"),
)

# Quantities that figures, claims and printed numbers derive from those of an epoch.
DERIVED_COLUMNS = (
    _column("stall_pct", "float", "%", "`stall_s` / `e2e_s`", label="stall share"),
    _column("stall_ms_per_minibatch", "float", "ms", "mean stall", label="stall of a mini-batch"),
    _column(
        "compute_ms_per_minibatch", "float", "ms", "mean compute", label="compute of a mini-batch"
    ),
    _column("e2e_ms_per_minibatch", "float", "ms", "its share", label="epoch time per mini-batch"),
    _column(
        "stall_ms_per_minibatch_implied",
        "float",
        "",  # ms; by itself, so that no axis has both
        "what a published share of stall implies",
        label="stall of a mini-batch, implied (ms)",
    ),
    _column("n_epochs_in_15h", "float", "", "epochs in 15 h of training", label="epochs in 15 h"),
    _column(
        "e2e_s_linear",
        "float",
        "s",
        "epoch time, if it grew as the data do",
        label="epoch time, if it grew as the data do",
    ),
    _column("predicted_e2e_s", "float", "s", "predicted", label="predicted epoch time"),
    _column("predicted_energy_paper_wh", "float", "Wh", "predicted", label="predicted energy"),
    _column("mape_pct", "float", "%", "mean error of predictions", label="mean error"),
    _column("baseload_pct", "float", "%", "`baseload_wh` / energy", label="share of base load"),
    _column("flop_per_s", "float", "FLOP/s", "operations a second", label="rate"),
    _column("flop_per_j", "float", "FLOP/J", "operations a joule", label="rate"),
    _column("slower_pct", "float", "%", "more time than a reference", label="slower"),
    _column("saved_pct", "float", "%", "less energy than a reference", label="energy saved"),
    _column("time_share_pct", "float", "%", "of an epoch", label="share of the time"),
    _column(
        "gpu_freq_mhz", "float", "MHz", "mean of what the GPU told", label="GPU clock, as told"
    ),
    _column(
        "cpu_below_peak_time_pct",
        "float",
        "%",
        "time with the CPU clock below 90 % of its peak",
        label="time below 90 % of the CPU clock",
    ),
    _column(
        "emc_below_max_time_pct",
        "float",
        "%",
        "time with the memory clock below its highest",
        label="time below the highest memory clock",
    ),
    _column(
        "baseload_wh", "float", "Wh", "what the idle board draws, over the epoch", label="base load"
    ),
    _column("idle_power_w", "float", "W", "power of the idle board"),
    _column(
        "time_mape_pct",
        "float",
        "%",
        "mean error of predicted times",
        label="error of predicted time",
    ),
    _column(
        "energy_mape_pct",
        "float",
        "%",
        "mean error of predicted energies",
        label="error of predicted energy",
    ),
)

# Every column by its name; where tables share a name, what an epoch's says.
COLUMNS: Dict[str, Column] = {
    column.name: column
    for column in reversed(
        (
            *FACTORS,
            RUN_COLUMN,
            STUDIES_COLUMN,
            *EPOCH_COLUMNS,
            *RUNS_COLUMNS,
            *SWEEP_COLUMNS,
            *CEILING_COLUMNS,
            *IDLE_COLUMNS,
            *DERIVED_COLUMNS,
        )
    )
}


def label(name: str) -> str:
    """Return what people call a column, without its unit: `epoch time` for `e2e_s`."""
    return COLUMNS[name].label if name in COLUMNS else _words(name)


def unit(name: str) -> str:
    """Return a column's unit as people write it; empty: none."""
    return COLUMNS[name].unit if name in COLUMNS else UNIT_OF_ENDING.get(name.split("_")[-1], "")


def axis_title(name: str) -> str:
    """Return a column's label with its unit: `epoch time (s)`."""
    return "{} ({})".format(label(name), unit(name)) if unit(name) else label(name)


Flag = NamedTuple(
    "Flag",
    [
        ("effect", str),  # INVALIDATES, VOIDS_ENERGY or INFORMS
        ("meaning", str),
    ],
)
INVALIDATES = "invalidates"  # the epoch is left out of every mean
VOIDS_ENERGY = "voids_energy"  # its energy is left empty
INFORMS = "informs"  # nothing

# Every flag there is. config/flags.yaml may give some of them another effect.
FLAGS: Dict[str, Flag] = {
    # with one epoch per job every epoch has it; the warm-up compensates
    "cold_process": Flag(INFORMS, "first epoch measured by its process"),
    # where its columns come from: docs/how-to/import-2023.md, import-a-power-log.md
    "imported": Flag(
        INFORMS, "taken over from logs of other programs; mode and medium as told, not verified"
    ),
    # docs/how-to/use-public-sweeps.md
    "no_dependence_on_mode": Flag(
        INVALIDATES, "of a public sweep: neither its time nor its power follows a clock"
    ),
    # the time is good
    "power_of_some_rails": Flag(
        INFORMS, "of a public sweep: too little for the whole module, so power is empty"
    ),
    # harmless alone; possible damage has separate flags
    "resumed": Flag(
        INFORMS, "an unfinished attempt was found, or something else was measured in between"
    ),
    "warmup_skipped": Flag(
        INVALIDATES, "the process started here, after epoch 0, without a warm-up"
    ),
    "fresh_weights": Flag(INVALIDATES, "the checkpoint of the epoch before was missing or damaged"),
    # so the weights were fresh
    "checkpoint_damaged": Flag(
        INVALIDATES, "the checkpoint of the epoch before could not be used; it was set aside"
    ),
    # from the change on
    "machine_changed": Flag(
        INVALIDATES,
        "machine, CPU, container, a library, its threads, its environment or the way to a board's "
        "power differs from the first epoch's",
    ),
    # the clocks contradict each other
    "overhead_negative": Flag(INVALIDATES, "stall + compute exceed E2E by more than 0.1 %"),
    # the arithmetic takes the same time
    "loss_not_finite": Flag(INFORMS, "the mean loss is infinite or not a number"),
    # the usual case for who is not root
    "cache_advised": Flag(
        INFORMS, "the page cache may not be dropped: only the data set's pages were forgotten"
    ),
    # only looked for in a resumed epoch
    "cache_changed": Flag(
        INVALIDATES, "resumed, and the cached share is not what the epoch before left (5 points)"
    ),
    # its times hold the pause
    "stopped": Flag(
        INVALIDATES, "training or machine stood still for a while: stopped, frozen or suspended"
    ),
    # its mini-batches are right
    "left_early": Flag(INFORMS, "of a loop of one's own: its last mini-batch is not counted"),
    # the usual case on a host with other users or programs
    "machine_shared": Flag(
        INFORMS, "other programs took more than 10 % of the CPUs during the epoch"
    ),
    # the times are good; there is no energy
    "sampler_lost": Flag(
        INFORMS, "the sampler died, fell silent or could not write: no telemetry of this epoch"
    ),
    "sampler_gap": Flag(INFORMS, "a sensor failed for a while, or rows were dropped"),
    # nothing is computed from the wall clock
    "clock_jumped": Flag(
        INFORMS, "the wall clock was set during the epoch; the monotonic clock counts"
    ),
    "not_begun": Flag(VOIDS_ENERGY, "of a window of one's own: it was ended and never begun"),
    "power_missing": Flag(VOIDS_ENERGY, "a power sensor gave no reading at all"),
    # the error bound covers what was bridged
    "power_gap": Flag(INFORMS, "power readings are missing for more than three periods"),
    "power_elsewhere": Flag(
        INFORMS, "of one process of several: the first of its machine has the energy"
    ),
    # there is no error bound, and no energy of the papers' sum
    "power_lost": Flag(
        INFORMS, "no power reading in over 10 % of the epoch: no bound holds what was there"
    ),
    "power_end_held": Flag(
        INFORMS, "no power reading at or beyond a bound of the epoch: the nearest was held"
    ),
    # it costs these readings; many are power_lost
    "power_negative": Flag(INFORMS, "a power sensor gave negative readings, which are left out"),
    # the bound holds it or is empty
    "power_sampling_regular": Flag(
        INFORMS,
        "power was not read at random instants: the bound holds aliasing with the mini-batches, "
        "and there is none where the readings keep to them",
    ),
    "power_resolution_unknown": Flag(
        INFORMS, "too few different readings to see the sensor's steps: no bound"
    ),
    "power_stuck": Flag(
        VOIDS_ENERGY,
        "a power sensor repeated one value far longer than its others, or for over 30 s",
    ),
    # there is no error bound
    "power_still": Flag(
        INFORMS, "the same of a sensor of coarse steps: the load may have rested; no bound"
    ),
    # there is no energy of the stalls
    "stall_power_unresolved": Flag(
        INFORMS, "the sensor cannot tell the stalls' power from the rest's"
    ),
    # labels on the wrong channels: no rail can be trusted
    "power_contradicted": Flag(
        VOIDS_ENERGY, "a rail told more than the one above it, in over 5 % of the readings"
    ),
    # there is no energy, rather than a wrong one
    "power_total_unknown": Flag(
        INFORMS, "the board's rails are not known well enough to add them up"
    ),
    # no energy of a GPU rather than another's; the log says why
    "gpu_power_unknown": Flag(
        INFORMS, "NVML does not know the GPU that trained, or tells the power of more"
    ),
    # A100, H100: 25 of each 100 ms; docs/explanation/gpu-times.md
    "power_part_time": Flag(
        INFORMS, "the sensor looks at a part of the time only; no bound holds the rest of it"
    ),
    # stall_energy_j is empty; times and energy are good
    "stalls_not_placed": Flag(
        INFORMS,
        "when the GPU stalled is not known: an old record of pooled timing, or an imported log",
    ),
    # power_scope and sampler_period_s say what was read
    "power_source_replaced": Flag(
        INFORMS, "the power source asked for could not be used; another was"
    ),
    # a few ms of each such wait
    "gpu_slept": Flag(
        INFORMS, "DVFS on, waits of over 0.5 s: they may hold some ms in which the GPU woke up"
    ),
    # not the mode that was asked for
    "clock_below_request": Flag(
        INVALIDATES, "DVFS off, and a clock's mean was below 95 % of what it was pinned to"
    ),
    "throttled": Flag(INVALIDATES, "the board slowed itself down for heat during the epoch"),
    "over_current": Flag(
        INVALIDATES, "the board counted over-current events, or a power sensor gave an alarm"
    ),
    # Xavier NX and Nano live with it
    "swap_grown": Flag(INFORMS, "more memory was swapped out after the epoch than before"),
    "machine_busy": Flag(
        INVALIDATES, "other programs took more than 10 % of the CPUs before the start"
    ),
    "mode_not_verified": Flag(INVALIDATES, "a setting of the power mode cannot be read back"),
    # of a sweep; elsewhere nothing is measured then
    "mode_not_met": Flag(
        INVALIDATES, "cores, or a clock that was too high, were not as the mode wants them"
    ),
    # the usual case where no sensor is; docs/explanation/sweep-measuring.md
    "transition_not_found": Flag(
        INFORMS, "no sensor showed how power followed the training: a fixed warm-up"
    ),
    # it was waited for
    "sensor_lagged": Flag(
        INFORMS, "power followed the training only after seconds; what came before is left out"
    ),
    # the time is good
    "few_power_samples": Flag(
        INFORMS, "fewer readings of power than a mean of a mode is taken over"
    ),
    "settle_timeout": Flag(INFORMS, "temperature or power were not steady within the time allowed"),
}

FLAG_EFFECTS: Dict[str, str] = {name: flag.effect for name, flag in FLAGS.items()}

# of what was measured while other programs used the machine: it can do better
SHARED_FLAGS = frozenset(("machine_shared", "machine_busy"))


def with_defaults(factors: Dict[str, Any]) -> Dict[str, Any]:
    """Complete a run's canonical factors (those that differ from the default) to all of `FACTORS`.

    Returns a new dict in the order of `FACTORS`; extra keys such as `recipe` follow. Raises
    ValueError when a factor without a default is missing.
    """
    complete: Dict[str, Any] = {}
    for field in FACTORS:
        if field.name in factors:
            complete[field.name] = factors[field.name]
        elif field.default is not REQUIRED:
            complete[field.name] = field.default
        else:
            raise ValueError(f"factor {field.name!r} is missing; it has no default")
    complete.update((k, v) for k, v in factors.items() if k not in complete)
    return complete


# What columns were called in tables of schema version 1, where one of these was among them.
_SCHEMA_1 = {
    "energy_wh": "energy_paper_wh",
    "energy_wh_missing_pct": "energy_paper_missing_pct",
    "energy_trapezoid_wh": "energy_wh",
}


def current_names(header: Iterable[str]) -> List[str]:
    """Return today's names of the columns of a table of epochs, whatever version wrote it."""
    header = list(header)
    if not {"energy_wh_missing_pct", "energy_trapezoid_wh"} & set(header):
        return header
    return [_SCHEMA_1.get(name, name) for name in header]


def names(columns: Tuple[Column, ...]) -> Tuple[str, ...]:
    """Return the names of the columns, in order."""
    return tuple(f.name for f in columns)
