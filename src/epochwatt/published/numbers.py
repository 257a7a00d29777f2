"""Read `config/published/`: the papers' printed numbers, with parsed configurations.

A measurement is one absolute value of one run, idle state or part of the protocol. A relation is a
ratio, a change, a share or a spread of one run or two. `config/published/README.md` describes the
columns, the sources and what was normalised.

Units: seconds, milliseconds where the metric's name says so, watts, watt-hours, per cent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from epochwatt.columns import FACTOR_DEFAULTS
from epochwatt.tables import Cells, checked_rows, read_table, rows_by_id

MEASUREMENTS = "measurements.csv"
RELATIONS = "relations.csv"

TITLES = {"sigmetrics2023": "SIGMETRICS 2023", "hipcw2021": "HiPCW 2021"}
PAPERS = tuple(TITLES)
MEANT_EPOCHS = 5  # the last epoch that a number of the papers is over; their runs have 3 or 6
BOUNDS = ("less_than", "at_most", "at_least")
BOTH_SIDES = ("A/B", "B/A", "100*(B-A)/A", "mean 100*(B-A)/A", "100*|B-A|/A")
SPREADS = ("100*(max-min)/max", "100*(max-min)/median", "100*max|x-median|/median")
ONE_SIDE = ("100*part/whole", "min..max", *SPREADS)

# Keys of a configuration, in the order of `key`. `state` is an idle state: i to iv (Fig. 7).
KEYS = (
    *("device", "instance", "model", "storage", "num_workers", "batch_size", "power_mode"),
    *("dvfs", "epoch", "cache", "scale", "state"),
)
UNKNOWN_TO_PAPERS = ("task", "precision", "compile", "container")  # factors, by default then
_TYPES: dict[str, type] = {"num_workers": int, "batch_size": int, "scale": float}
Config = Mapping[str, Any]  # key of `KEYS` -> its value, or a tuple of values
# SIGMETRICS 2023, section 4.4: what holds where a number is printed without it.
DEFAULTS: Config = {
    "instance": "d1",
    "num_workers": 4,
    "batch_size": 16,
    "dvfs": "off",
    "epoch": "1+",
    "cache": "kept",
    "scale": 1.0,
}
DEVICE_DEFAULTS: dict[str, Config] = {
    "agx": {"storage": "ssd", "power_mode": "g"},
    "nx": {"storage": "ssd", "power_mode": "15W"},
    "nano": {"storage": "sd", "power_mode": "MAXN"},
    "orin": {"storage": "ssd", "power_mode": "MAXN"},
}


def trains_as_published(factors: Mapping[str, object]) -> bool:
    """Say whether a run trains, in the arithmetic of the papers: no other is held against them."""
    defaults = {name: FACTOR_DEFAULTS[name] for name in UNKNOWN_TO_PAPERS}
    return all((factors.get(name) or value) == value for name, value in defaults.items())


def run_key(config: Config) -> tuple[Any, ...]:
    """Return what tells a run from others, in the order of `KEYS`; None: not stated."""
    return tuple(config.get(key) for key in KEYS)


def single(config: Config) -> list[Config]:
    """Expand a configuration with tuples into the configurations of one run each."""
    values = [v if isinstance(v, tuple) else (v,) for v in config.values()]
    return [_filled(dict(zip(config, choice, strict=True))) for choice in product(*values)]


def parse_config(text: str) -> Config:
    """Parse `key=value;key=value`, in which `a|b` is a tuple, and fill in the papers' defaults.

    Raises ValueError: a part is no known key and value, a key is repeated, or the value of a
    numeric key is no number.
    """
    config: dict[str, object] = {}
    for part in filter(None, text.split(";")):
        key, equals, words = part.partition("=")
        if not equals or key not in KEYS or not words:
            raise ValueError(f"{part!r} is not a key=value of: {', '.join(KEYS)}")
        if key in config:
            raise ValueError(f"{key} is named twice")
        try:
            values = tuple(_TYPES.get(key, str)(word) for word in words.split("|"))
        except ValueError:
            raise ValueError(f"{key} is {words!r}, which is not a number") from None
        config[key] = values if len(values) > 1 else values[0]
    return _filled(config)


def _filled(config: Config) -> Config:
    """Add the defaults to the configuration of a training run; of anything else add none."""
    if "device" not in config or "model" not in config:
        return config
    device = config["device"]
    device_defaults = {} if isinstance(device, tuple) else DEVICE_DEFAULTS.get(device, {})
    return {**DEFAULTS, **device_defaults, **config}


Filled = Annotated[str, Field(min_length=1)]
Number = Annotated[float, Field(allow_inf_nan=False)]
OptionalNumber = Annotated[
    Number | None, BeforeValidator(lambda cell: None if cell == "" else cell)
]
ParsedConfig = Annotated[Config, BeforeValidator(parse_config)]


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A published number: what a measurement and a relation have in common."""

    id: Filled  # `S`: SIGMETRICS 2023, `H`: HiPCW 2021, `R`: a relation
    paper: Literal["sigmetrics2023", "hipcw2021"]
    section: Filled  # the take-away's number where there is one
    metric: Filled
    value: Number  # slips of the paper corrected
    value_hi: OptionalNumber = None  # where an interval is printed; `value` is its lower end
    unit: Filled
    qualifier: Literal["exact", "approx", "less_than", "at_most", "at_least"]
    as_printed: str = ""  # number and unit in the paper where they differ from ours
    note: str = ""  # our own, short
    # protocol: constant or reading of the tools; prediction: a model's error
    kind: Literal["run", "idle", "protocol", "prediction"] = "run"
    formula: str = ""  # of a relation, what `value` is of its sides A and B, or of values of A

    def __post_init__(self) -> None:
        if self.value_hi is not None and self.value_hi < self.value:
            raise ValueError(f"value_hi is {self.value_hi:g}, below value {self.value:g}")

    @property
    def sides(self) -> tuple[Config, ...]:
        """The configurations that it is about: of a relation those of its sides, A, or A and B."""
        raise NotImplementedError

    @property
    def runs(self) -> list[Config]:
        """The configurations of all sides, each of a single run, idle state or reading."""
        return [run for side in self.sides for run in single(side)]

    @property
    def takeaway(self) -> str:
        """Number of the take-away, or section where there is none; `H-` before those of HiPCW."""
        return self.section if self.paper == PAPERS[0] else f"H-{self.section}"

    @property
    def is_bound(self) -> bool:
        """Whether it only says where a value lies: a bound, or an interval."""
        return self.value_hi is not None or self.qualifier in BOUNDS

    @property
    def b_over_a(self) -> float | None:
        """Ratio of its two sides, B to A; None where the number is not one of two sides."""
        if self.formula == "A/B":
            return 1.0 / self.value
        if self.formula == "B/A":
            return self.value
        return 1.0 + self.value / 100.0 if self.formula.endswith("100*(B-A)/A") else None

    def is_met(self, value: float) -> bool:
        """Return whether a value lies within this bound or interval."""
        if self.value_hi is not None:
            return self.value <= value <= self.value_hi
        if self.qualifier == "less_than":
            return value < self.value
        return value <= self.value if self.qualifier == "at_most" else value >= self.value


@dataclass(frozen=True, kw_only=True)
class Measurement(Fact):
    """One absolute value."""

    aggregation: str = ""  # how the paper made one number of many
    # keys of `KEYS` that are known; a tuple where the number speaks of several settings
    config: ParsedConfig

    @property
    def sides(self) -> tuple[Config, ...]:
        """Its one configuration."""
        return (self.config,)


@dataclass(frozen=True, kw_only=True)
class Relation(Fact):
    """One ratio, change, share or spread."""

    config_a: ParsedConfig  # as of a measurement; B is empty where the formula has one side
    config_b: ParsedConfig

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.formula not in (*BOTH_SIDES, *ONE_SIDE):
            allowed = ", ".join((*BOTH_SIDES, *ONE_SIDE))
            raise ValueError(f"formula is {self.formula!r}, allowed: {allowed}")
        if bool(self.config_b) != (self.formula in BOTH_SIDES and bool(self.config_a)):
            raise ValueError(f"config_b is {self.config_b!r}, and the formula is {self.formula}")

    @property
    def sides(self) -> tuple[Config, ...]:
        """The configurations of its sides: A, or A and B."""
        return (self.config_a, self.config_b) if self.formula in BOTH_SIDES else (self.config_a,)


@dataclass(frozen=True)
class Published:
    """Both tables, by id, in the order of the papers."""

    measurements: dict[str, Measurement]
    relations: dict[str, Relation]

    def facts(self) -> dict[str, Fact]:
        """Return all rows by id."""
        return {**self.measurements, **self.relations}


def load_published(folder: Path) -> Published:
    """Read the papers' measurements and relations.

    Raises ConfigError: a table is missing, or a row is malformed.
    """

    def with_config(row: Cells) -> dict[str, str]:
        """Join the columns of `KEYS` into one cell, as relations have it."""
        return {**row, "config": ";".join(f"{key}={row[key]}" for key in KEYS if row.get(key))}

    measurements = checked_rows(Measurement, folder / MEASUREMENTS, with_config)
    relations = checked_rows(Relation, folder / RELATIONS)
    return Published(rows_by_id(measurements), rows_by_id(relations))


def load_seen(folder: Path) -> frozenset[str]:
    """Return the ids of the numbers that the fit of the simulated boards sees."""
    return frozenset(row["published_id"] for _, row in read_table(folder / "seen.csv"))


Exactness = Literal["printed", "from notes", "read by eye"]
Qualifier = Literal["exact", "approx", "less_than"]
SIGNS = {"exact": "", "approx": "\u2248 ", "less_than": "< "}


@dataclass(frozen=True)
class PaperNumber:
    """One number."""

    id: str
    place: str  # where the paper has it
    exactness: Exactness  # how we know it
    group: str  # of the rows of our tables that it belongs to
    reference: str  # names of ours; empty: none of ours is meant
    workload: str
    paper_workload: str  # what the paper ran
    device: str  # board of the paper, by our name
    method: str
    n_profiled: str  # modes that were profiled; empty: not said, or all
    target: str  # time_s, power_w, or limit
    statistic: str  # column of ours that it stands beside
    value: float
    unit: str
    qualifier: Qualifier
    note: str

    @property
    def text(self) -> str:
        """The number as it is written: `< 15`."""
        return f"{SIGNS[self.qualifier]}{self.value:g}"


def load_paper_numbers(path: Path) -> list[PaperNumber]:
    """Read the numbers of a paper; ConfigError where a row is wrong, or an id is there twice."""
    return list(rows_by_id(checked_rows(PaperNumber, path)).values())
