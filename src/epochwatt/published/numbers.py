"""Read `config/published/`: the papers' printed numbers, with parsed configurations.

A measurement is one absolute value of one run, idle state or part of the protocol. A relation is a
ratio, a change, a share or a spread of one run or two. `config/published/README.md` describes the
columns, the sources and what was normalised.

Units: seconds, milliseconds where the metric's name says so, watts, watt-hours, per cent.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from epochwatt.errors import ConfigError

MEASUREMENTS = "measurements.csv"
RELATIONS = "relations.csv"

TITLES = {"sigmetrics2023": "SIGMETRICS 2023", "hipcw2021": "HiPCW 2021"}
PAPERS = tuple(TITLES)
MEANT_EPOCHS = 5  # the last epoch that a number of the papers is over; their runs have 3 or 6
KINDS = ("run", "idle", "protocol", "prediction")
BOUNDS = ("less_than", "at_most", "at_least")
QUALIFIERS = ("exact", "approx", *BOUNDS)
BOTH_SIDES = ("A/B", "B/A", "100*(B-A)/A", "mean 100*(B-A)/A", "100*|B-A|/A")
SPREADS = ("100*(max-min)/max", "100*(max-min)/median", "100*max|x-median|/median")
ONE_SIDE = ("100*part/whole", "min..max", *SPREADS)

# Keys of a configuration, in the order of `key`. `state` is an idle state: i to iv (Fig. 7).
KEYS = (
    "device",
    "instance",
    "model",
    "storage",
    "num_workers",
    "batch_size",
    "power_mode",
    "dvfs",
    "epoch",
    "cache",
    "scale",
    "state",
)
_TYPES: dict[str, type] = {"num_workers": int, "batch_size": int, "scale": float}
# SIGMETRICS 2023, section 4.4: what holds where a number is printed without it.
DEFAULTS: dict[str, Any] = {
    "instance": "d1",
    "num_workers": 4,
    "batch_size": 16,
    "dvfs": "off",
    "epoch": "1+",
    "cache": "kept",
    "scale": 1.0,
}
DEVICE_DEFAULTS: dict[str, dict[str, Any]] = {
    "agx": {"storage": "ssd", "power_mode": "g"},
    "nx": {"storage": "ssd", "power_mode": "15W"},
    "nano": {"storage": "sd", "power_mode": "MAXN"},
    "orin": {"storage": "ssd", "power_mode": "MAXN"},
}

Config = dict[str, Any]


@dataclass(frozen=True)
class Fact:
    """What a measurement and a relation have in common.

    Attributes
    ----------
    id : of the published number; `S`: SIGMETRICS 2023, `H`: HiPCW 2021, `R`: a relation
    paper, section : where it is printed; the section is the take-away's number where there is one
    metric, value, unit : the number, slips of the paper corrected
    value_hi : upper end where an interval is printed (`value` is its lower end)
    qualifier : exact, approx, less_than, at_most, at_least
    as_printed : number and unit in the paper where they differ from ours
    note : of us, short
    """

    id: str
    paper: str
    section: str
    metric: str
    value: float
    value_hi: float | None
    unit: str
    qualifier: str
    as_printed: str
    note: str

    @property
    def takeaway(self) -> str:
        """Number of the take-away, or section where there is none; `H-` before those of HiPCW."""
        return self.section if self.paper == PAPERS[0] else f"H-{self.section}"

    @property
    def is_bound(self) -> bool:
        """Whether it only says where a value lies: a bound, or an interval."""
        return self.value_hi is not None or self.qualifier in BOUNDS

    def is_met(self, value: float) -> bool:
        """Return whether a value lies within this bound or interval."""
        if self.value_hi is not None:
            return self.value <= value <= self.value_hi
        if self.qualifier == "less_than":
            return value < self.value
        return value <= self.value if self.qualifier == "at_most" else value >= self.value


@dataclass(frozen=True)
class Measurement(Fact):
    """One absolute value.

    Attributes
    ----------
    kind : run, idle, protocol (constant or reading of the tools), prediction (a model's error)
    aggregation : how the paper made one number of many
    config : keys of `KEYS` that are known; a tuple where the number speaks of several settings
    """

    kind: str
    aggregation: str
    config: Config

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells its run from others, in the order of `KEYS`; None: not stated."""
        return run_key(self.config)


@dataclass(frozen=True)
class Relation(Fact):
    """One ratio, change, share or spread.

    Attributes
    ----------
    formula : what `value` is, of sides A and B or of the values of side A
    config_a, config_b : as of a measurement; B is empty where the formula has one side
    """

    formula: str
    config_a: Config
    config_b: Config

    @property
    def keys(self) -> tuple[tuple[Any, ...], ...]:
        """Keys of its sides, as of a measurement."""
        return tuple(run_key(config) for config in self.sides)

    @property
    def sides(self) -> tuple[Config, ...]:
        """The configurations of its sides: A, or A and B."""
        return (self.config_a, self.config_b) if self.formula in BOTH_SIDES else (self.config_a,)

    @property
    def b_over_a(self) -> float | None:
        """Ratio of its two sides, B to A; None where the number is not one of two sides."""
        if self.formula == "A/B":
            return 1.0 / self.value
        if self.formula == "B/A":
            return self.value
        return 1.0 + self.value / 100.0 if self.formula.endswith("100*(B-A)/A") else None


@dataclass(frozen=True)
class Published:
    """Both tables, by id, in the order of the papers."""

    measurements: dict[str, Measurement]
    relations: dict[str, Relation]

    def facts(self) -> dict[str, Measurement | Relation]:
        """Return all rows by id."""
        return {**self.measurements, **self.relations}


def load_published(folder: Path) -> Published:
    """Read both tables.

    Parameters
    ----------
    folder : config/published of the checkout

    Raises
    ------
    ConfigError : a table is missing, or a row cannot be: file, line, column, what is allowed
    """
    measurements = _by_id(folder / MEASUREMENTS, _measurement)
    return Published(measurements, _by_id(folder / RELATIONS, _relation))


def run_key(config: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what tells a run from others, in the order of `KEYS`; None: not stated."""
    return tuple(config.get(key) for key in KEYS)


def single(config: Mapping[str, Any]) -> list[Config]:
    """Return the configurations of one run each that a configuration with tuples stands for."""
    values = [v if isinstance(v, tuple) else (v,) for v in config.values()]
    return [
        _filled(dict(zip(config, values_of_one, strict=True))) for values_of_one in product(*values)
    ]


def parse_config(text: str) -> Config:
    """Read `key=value;key=value`; `a|b` is a tuple. Raises ValueError that says what is wrong."""
    config: Config = {}
    for part in filter(None, text.split(";")):
        key, equals, words = part.partition("=")
        if not equals or key not in KEYS or not words:
            raise ValueError(f"{part!r} is not a key=value of: {', '.join(KEYS)}")
        if key in config:
            raise ValueError(f"{key} is named twice")
        config[key] = _value(key, words)
    return _filled(config)


def _value(key: str, text: str) -> Any:
    try:
        values = tuple(_TYPES.get(key, str)(word) for word in text.split("|"))
    except ValueError:
        raise ValueError(f"{key} is {text!r}, which is not a number") from None
    return values if len(values) > 1 else values[0]


def _filled(config: Config) -> Config:
    """Add the defaults to the configuration of a training run; of anything else add none."""
    if "device" not in config or "model" not in config:
        return config
    device = config["device"]
    of_device = {} if isinstance(device, tuple) else DEVICE_DEFAULTS.get(device, {})
    return {**DEFAULTS, **of_device, **config}


def _measurement(row: Mapping[str, str]) -> Measurement:
    config = ";".join(f"{key}={row[key]}" for key in KEYS if row.get(key))
    return Measurement(
        **_common(row),
        kind=_one_of(KINDS, "kind", row),
        aggregation=row["aggregation"],
        config=parse_config(config),
    )


def _relation(row: Mapping[str, str]) -> Relation:
    formula = _one_of((*BOTH_SIDES, *ONE_SIDE), "formula", row)
    config_a, config_b = parse_config(row["config_a"]), parse_config(row["config_b"])
    if bool(config_b) != (formula in BOTH_SIDES and bool(config_a)):
        raise ValueError(f"config_b is {row['config_b']!r}, and the formula is {formula}")
    return Relation(**_common(row), formula=formula, config_a=config_a, config_b=config_b)


def _common(row: Mapping[str, str]) -> dict[str, Any]:
    missing = [name for name in ("id", "section", "metric", "unit") if not row[name]]
    if missing:
        raise ValueError(f"{missing[0]} is empty")
    value, high = _number("value", row), _number("value_hi", row) if row.get("value_hi") else None
    if high is not None and high < value:
        raise ValueError(f"value_hi is {row['value_hi']}, below value {row['value']}")
    return {
        **{name: row[name] for name in ("id", "section", "metric", "unit", "as_printed", "note")},
        "paper": _one_of(PAPERS, "paper", row),
        "value": value,
        "value_hi": high,
        "qualifier": _one_of(QUALIFIERS, "qualifier", row),
    }


def _one_of(allowed: Iterable[str], name: str, row: Mapping[str, str]) -> str:
    if row[name] not in allowed:
        raise ValueError(f"{name} is {row[name]!r}, allowed: {', '.join(allowed)}")
    return row[name]


def _number(name: str, row: Mapping[str, str]) -> float:
    try:
        return float(row[name])
    except ValueError:
        raise ValueError(f"{name} is {row[name]!r}, which is not a number") from None


def _by_id(path: Path, made: Any) -> dict[str, Any]:
    by_id: dict[str, Any] = {}
    for line, row in read_table(path):
        try:
            fact = made(row)
            if fact.id in by_id:
                raise ValueError(f"{fact.id} is there twice")
        except KeyError as error:
            raise ConfigError(f"{path} has no column {error}") from None
        except ValueError as error:
            raise ConfigError(f"{path}, line {line}, {row['id']}: {error}") from None
        by_id[fact.id] = fact
    return by_id


def read_table(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield number and cells of each line of a table; ConfigError when it cannot be read."""
    try:
        with path.open(newline="", encoding="utf-8") as handle:
            rows = csv.DictReader(handle)
            for row in rows:
                if None in row or None in row.values():
                    raise ConfigError(
                        f"{path}, line {rows.line_num} has more or fewer cells than the first line"
                    )
                yield rows.line_num, row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
