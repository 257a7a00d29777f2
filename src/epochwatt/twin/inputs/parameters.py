"""The parameters of the simulated boards: `config/twin/parameters.yaml`, each with its source.

The file groups them by the module that uses them. `epochwatt calibrate-twin` reads it, moves those
that are `fitted`, and writes the whole file anew.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import yaml

from epochwatt.errors import ConfigError
from epochwatt.records import files
from epochwatt.twin.inputs.yaml_rows import entry, read_rows

FILE = "parameters.yaml"
SOURCES = ("datasheet", "fitted", "assumed", "setup")
DIGITS = 4  # of a fitted value
_NO_EVIDENCE = {"serves": (), "spread": 0.0, "private_to": ""}
_NOT_FITTED = {"prior": 0.0, "factor": 0.0, **_NO_EVIDENCE}

HEADER = """\
# The parameters of the simulated boards, by the module of src/epochwatt/twin/ that uses them; noise
# (simulate.py) is put in by hand, without evidence. `epochwatt calibrate-twin` reads this file and
# writes it whole: change values here, not the layout.
#
# source      datasheet; fitted to numbers of the main paper (config/published); setup: fitted to
#             those of another paper alone, whose set-up it tells apart; assumed
# prior       of one that is fitted, or would be if enough numbers spoke of it: where a fit begins
#             and what it is held to. Chosen by people who knew the papers: config/twin/priors.csv
#             has what other priors give
# factor      how many times more or less than that it may be thought to be
# serves      published numbers that speak of it (src/epochwatt/twin/calibration/evidence.py)
# spread      standard deviation of ln(value) over the folds of the cross-validation
# private_to  the one board and network that all it serves are of
"""


@dataclass(frozen=True)
class Parameter:
    """One number of the simulation.

    Attributes
    ----------
    group : of the file
    value : in `unit`
    source : one of `SOURCES`: datasheet; fitted to the main paper's numbers; setup: to another
        paper's alone (`setups.py`); or assumed
    about : what it is
    prior, factor : of one that is fitted, or would be if enough numbers spoke of it: where a fit
        begins, chosen by people who knew the papers, and how many times more or less it may be
    serves : of a fitted one, published ids that speak of it
    spread : of a fitted one, standard deviation of ln(value) over the folds
    private_to : the one board and network that it serves; empty: it is shared
    """

    group: str
    value: float
    unit: str
    source: str
    about: str
    prior: float = 0.0
    factor: float = 0.0
    serves: tuple[str, ...] = ()
    spread: float = 0.0
    private_to: str = ""


class Parameters(Mapping[str, float]):
    """Values by name; what else is known of them is in `described`."""

    def __init__(self, described: Mapping[str, Parameter]) -> None:
        self.described = dict(described)
        self._values = {name: each.value for name, each in self.described.items()}

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def fitted(self) -> tuple[str, ...]:
        """Names of the parameters that a calibration moves."""
        return tuple(n for n, each in self.described.items() if each.source == "fitted")

    def moved(self, values: Mapping[str, float]) -> "Parameters":
        """Return these parameters with some values replaced."""
        return self.told({name: {"value": float(value)} for name, value in values.items()})

    def told(self, changes: Mapping[str, Mapping[str, Any]]) -> "Parameters":
        """Return these parameters with keys of some of them replaced: name -> key -> value."""
        new = {name: replace(self.described[name], **keys) for name, keys in changes.items()}
        return Parameters({**self.described, **new})

    def candidates(self) -> "Parameters":
        """Return these parameters with every one fitted that has a prior, until evidence lacks.

        What belongs to another paper's set-up is fitted to that paper alone.
        """
        known = self.described.items()
        names = [name for name, each in known if each.factor and each.source != "setup"]
        return self.told({name: {"source": "fitted"} for name in names})

    def lacking(self, names: Iterable[str]) -> "Parameters":
        """Return these parameters with some at their priors, for want of evidence."""
        return self._unfitted(names, _NO_EVIDENCE)

    def assumed(self, names: Iterable[str]) -> "Parameters":
        """Return these parameters with some fixed at their priors, whatever the evidence."""
        return self._unfitted(names, _NOT_FITTED)

    def _unfitted(self, names: Iterable[str], keys: Mapping[str, Any]) -> "Parameters":
        known = self.described
        return self.told(
            {name: {"value": known[name].prior, "source": "assumed", **keys} for name in names}
        )


def rounded(value: float) -> float:
    """Return a fitted value as the files hold it: with `DIGITS` digits."""
    return float(f"{value:.{DIGITS}g}")


def load_parameters(folder: Path) -> Parameters:
    """Read `parameters.yaml`; ConfigError names the file and the parameter that is wrong."""
    path, found = folder / FILE, dict[str, Parameter]()
    for group, rows in read_rows(path).items():
        if not isinstance(rows, dict):
            raise ConfigError(f"{path}: {group} is {rows!r}\n  needed: one key per parameter")
        for name, row in rows.items():
            if name in found:
                raise ConfigError(f"{path}: {name} is in {found[name].group} and in {group}")
            told = {"group": group, **row} if isinstance(row, dict) else row
            found[name] = _checked(path, name, entry(Parameter, path, name, told))
    return Parameters(found)


def _checked(path: Path, name: str, found: Parameter) -> Parameter:
    where = f"{path}: {name}"
    if found.source not in SOURCES:
        raise ConfigError(f"{where}: source is {found.source!r}\n  allowed: {', '.join(SOURCES)}")
    if found.source in ("fitted", "setup") and not (found.prior > 0 and found.factor > 1):
        raise ConfigError(f"{where} is fitted\n  needed: prior, above 0; factor, above 1")
    return found


def write_parameters(folder: Path, parameters: Parameters) -> None:
    """Write `parameters.yaml`, whole or not at all.

    The same parameters give the same bytes, and a file that has them is left alone: else all that
    is made of it would be made again.
    """
    groups: dict[str, dict[str, Any]] = {}
    for name, each in parameters.described.items():
        groups.setdefault(each.group, {})[name] = {
            field.name: _plain(getattr(each, field.name))
            for field in fields(each)
            if field.name != "group" and getattr(each, field.name) != field.default
        }
    parts = [HEADER, *(_dump({group: rows}) for group, rows in groups.items())]
    path, told = folder / FILE, "\n".join(parts).encode()
    with files.writing("the parameters", str(path)):
        if not path.exists() or path.read_bytes() != told:
            files.write_bytes(str(path), told)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


class _Dumper(yaml.SafeDumper):
    """Blocks, but a tuple in brackets."""


_Dumper.add_representer(
    tuple, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, True)
)


def _dump(rows: Mapping[str, Any]) -> str:
    return yaml.dump(rows, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=100)
