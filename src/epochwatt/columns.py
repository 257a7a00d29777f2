"""Names, units and order of every column, factor and flag (board side: Python 3.6 grammar).

Each column and factor is a row of `columns.csv`, each flag one of `flags.csv`: they are named
nowhere else. `FACTORS` are the settings of a run, `EPOCH_COLUMNS` the results of one measured
epoch. The tables in `results/`, the records in `measured/`, figures, pages and what `make docs`
writes take names, order, units, labels and meaning from here.

Source of the definitions: SIGMETRICS 2023 paper (doi 10.1145/3570604), sections 4.4 and 4.5;
`docs/reference/words.md` says them at length.
"""

import csv
import os
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

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
    sampled_by: Tuple[str, ...] = ()  # sources that sample it; the column is an epoch's mean


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


def _label_from(name: str) -> str:
    """Return a label for a name that is no column: its words, without `n_` and unit."""
    words = name.split("_")
    if len(words) > 1 and words[-1] in UNIT_OF_ENDING:
        words = words[:-1]
    if len(words) > 1 and words[0] == "n":  # a number of something
        words = words[1:]
    return " ".join(_WRITTEN.get(word, word) for word in words)


def _rows(name: str) -> List[Dict[str, str]]:
    """Return the rows of a CSV file beside this module, column -> text."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def _column(row: Dict[str, str]) -> Column:
    """Return a column from its row of columns.csv; only factors have a default."""
    default: Any = REQUIRED
    if row["table"] == "factors" and row["default"] != "required":
        is_number = row["kind"] in ("int", "float")
        default = int(row["default"]) if is_number else row["default"]
    return Column(
        name=row["name"],
        kind=row["kind"],
        unit=row["unit"],
        description=row["description"],
        default=default,
        label=row["label"],
        sampled_by=tuple(row["sampled_by"].split()),
    )


_LISTED = [(row["table"], _column(row)) for row in _rows("columns.csv")]


def _of(*tables: str) -> Tuple[Column, ...]:
    """Return the columns that `columns.csv` lists for these tables."""
    return tuple(column for table, column in _LISTED if table in tables)


# Defaults are those of SIGMETRICS 2023, section 4.4. They may never change: a run's hash leaves out
# what equals the default, so a changed default would give an old id a new meaning.
FACTORS = _of("factors")
FACTOR_NAMES = tuple(f.name for f in FACTORS)
FACTOR_DEFAULTS: Factors = {f.name: f.default for f in FACTORS if f.default is not REQUIRED}

# Parts of an epoch that figures, pages and summaries stack: names of their colours; `{part}_s`.
TIME_PARTS = ("stall", "compute", "overhead")

# Columns of minibatches.npy, one row per mini-batch: shape (n, 3), float32 seconds.
MINIBATCH_COLUMNS = ("wait_s", "copy_s", "compute_s")

RUN_COLUMN, STUDIES_COLUMN = _of("ids")

# Of one power scope: in epochs.csv the widest that was measured, in energy.csv every one.
ENERGY_COLUMNS = _of("energy")
EPOCH_COLUMNS = _of("epochs", "energy")

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
    *(f for f in _of("runs") if f.name != "flags"),
    *(f for f in EPOCH_COLUMNS if f.name in STATISTIC_COLUMNS),
    *(f for f in _of("runs") if f.name == "flags"),
)

# results/tables/idle.csv: what boards draw while they do nothing.
IDLE_COLUMNS = (
    *(f for f in FACTORS if f.name in ("backend", "device", "instance", "power_mode", "dvfs")),
    *_of("idle"),
)

POWER_SCOPES = ("board", "module", "socket", "gpu", "cpu_package")  # the widest first

# results/sweeps/{sweep}.csv and the tables that others measured: one row per mode and repeat.
PROVENANCES = ("measured", "public", "simulated", "fake")
TASKS = ("train", "infer")
SWEEP_COLUMNS = _of("sweeps")
# The parts of a mode in that table; an empty cell: not known, or not a part of the device's modes.
MODE_PARTS = ("cores", "cpu_mhz", "gpu_mhz", "emc_mhz", "gpu_share", "power_limit_w")

CLOCKS = MODE_PARTS[:4]  # those that a board sets: cores online and three clocks

# results/roofline/ceilings.csv: what a device reached with micro-kernels, a row for each.
CEILING_KERNELS = ("copy", "triad", "matmul", "fma", "launch")
CEILING_COLUMNS = (
    *(f for f in SWEEP_COLUMNS if f.name in ("provenance", "device", "instance", *CLOCKS)),
    *_of("ceilings"),
)

# results/federated/*.csv: rounds of simulated fleets; summaries have _p10 and _p90 of percentages.
ROUND_COLUMNS = _of("rounds")

# Quantities that figures, claims and printed numbers derive from those of an epoch.
DERIVED_COLUMNS = _of("derived")

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
            *ROUND_COLUMNS,
        )
    )
}


def label(name: str) -> str:
    """Return what people call a column, without its unit: `epoch time` for `e2e_s`."""
    return COLUMNS[name].label if name in COLUMNS else _label_from(name)


def unit(name: str) -> str:
    """Return a column's unit as people write it; empty: none."""
    return COLUMNS[name].unit if name in COLUMNS else UNIT_OF_ENDING.get(name.split("_")[-1], "")


def axis_title(name: str) -> str:
    """Return a column's label with its unit: `epoch time (s)`."""
    return "{} ({})".format(label(name), unit(name)) if unit(name) else label(name)


class Flag(NamedTuple):
    """Something known against or about an epoch."""

    effect: str  # INVALIDATES, VOIDS_ENERGY or INFORMS
    meaning: str


INVALIDATES = "invalidates"  # the epoch is left out of every mean
VOIDS_ENERGY = "voids_energy"  # its energy is left empty
INFORMS = "informs"  # nothing

# Every flag there is. config/flags.yaml may give some of them another effect.
FLAGS: Dict[str, Flag] = {
    row["name"]: Flag(row["effect"], row["meaning"]) for row in _rows("flags.csv")
}
FLAG_EFFECTS: Dict[str, str] = {name: flag.effect for name, flag in FLAGS.items()}

# of what was measured while other programs used the machine: it can do better
SHARED_FLAGS = frozenset(("machine_shared", "machine_busy"))


def with_defaults(factors: Factors) -> Factors:
    """Complete a run's canonical factors (those that differ from the default) to all of `FACTORS`.

    Returns a new dict in the order of `FACTORS`; extra keys such as `recipe` follow. Raises
    ValueError when a factor without a default is missing.
    """
    complete: Factors = {}
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
    """Return the columns of a table of epochs by today's names; schema 1 had others."""
    header = list(header)
    if not {"energy_wh_missing_pct", "energy_trapezoid_wh"} & set(header):
        return header
    return [_SCHEMA_1.get(name, name) for name in header]


def names(columns: Tuple[Column, ...]) -> Tuple[str, ...]:
    """Return the names of the columns, in order."""
    return tuple(f.name for f in columns)


def widest_scope(measured: Iterable[Optional[str]]) -> Optional[str]:
    """Return the widest power scope of those that were measured; None: there is none."""
    scopes = set(measured)
    return next((scope for scope in POWER_SCOPES if scope in scopes), None)
