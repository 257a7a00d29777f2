"""Read and write the parameters of simulated boards: `config/twin/parameters.yaml`.

The file groups them by the mechanism that uses them. `epochwatt calibrate-twin` moves the values of
those that are `fitted`.
"""

import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from epochwatt.board.records import files
from epochwatt.errors import ConfigError
from epochwatt.twin.boards import entry, load_boards, load_samples, read_rows

FILE = "parameters.yaml"
SOURCES = ("datasheet", "fitted", "assumed", "setup")
DIGITS = 4  # of a fitted value
TEXTS = ("title", "source", "sources")  # of an entry: what no simulation reads


@dataclass(frozen=True)
class Parameter:
    """One number of the simulation."""

    group: str  # of the file
    value: float  # in `unit`
    unit: str
    # one of `SOURCES`: datasheet; fitted to the main paper's numbers; setup: to another paper's
    # alone (`refits.py`); or assumed
    source: str
    about: str  # what it is
    # of one that is fitted, or would be if enough numbers spoke of it: where a fit begins, chosen
    # by people who knew the papers, and how many times more or less it may be
    prior: float = 0.0
    factor: float = 0.0
    serves: tuple[str, ...] = ()  # of a fitted one, published ids that speak of it
    spread: float = 0.0  # of a fitted one, standard deviation of ln(value) over the folds
    private_to: str = ""  # the one board and network that it serves; empty: it is shared


class Parameters(Mapping[str, float]):
    """Values by name; what else is known of them is in `described`."""

    def __init__(self, described: Mapping[str, Parameter]) -> None:
        self.described = dict(described)
        self._values = {name: parameter.value for name, parameter in self.described.items()}

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def fitted(self) -> tuple[str, ...]:
        """Names of the parameters that a calibration moves."""
        return tuple(n for n, parameter in self.described.items() if parameter.source == "fitted")

    def moved(self, values: Mapping[str, float]) -> "Parameters":
        """Return these parameters with some values replaced."""
        return self.changed({name: {"value": float(value)} for name, value in values.items()})

    def changed(self, changes: Mapping[str, Mapping[str, Any]]) -> "Parameters":
        """Return these parameters with keys of some of them replaced: name -> key -> value."""
        new = {name: replace(self.described[name], **keys) for name, keys in changes.items()}
        return Parameters({**self.described, **new})

    def candidates(self, group: str = "") -> "Parameters":
        """Return these parameters with each one that has a prior marked as fitted, at its prior.

        What belongs to another paper's set-up is fitted to that paper alone. Of a group, the others
        stay where they are, as if they were assumed.
        """
        changes: dict[str, dict[str, Any]] = {}
        for name, p in self.described.items():
            if p.factor and p.source != "setup":
                is_in = group in ("", p.group)
                changes[name] = {"source": "fitted", "value": p.prior} if is_in else {}
                changes[name] = changes[name] or {"source": "assumed"}
        return self.changed(changes)

    def lacking(self, names: Iterable[str]) -> "Parameters":
        """Return these parameters with some left at their priors, as evidence is missing."""
        unfitted = {"source": "assumed", "serves": (), "spread": 0.0, "private_to": ""}
        return self.changed(
            {name: {"value": self.described[name].prior, **unfitted} for name in names}
        )


def rounded(value: float) -> float:
    """Return a fitted value as the files hold it: with `DIGITS` digits."""
    return float(f"{value:.{DIGITS}g}")


def load_parameters(folder: Path) -> Parameters:
    """Read `parameters.yaml`; ConfigError names the file and the parameter that is wrong."""
    path, parameters = folder / FILE, dict[str, Parameter]()
    for group, rows in read_rows(path).items():
        if not isinstance(rows, dict):
            problem = f"{group} is {rows!r}"
            raise ConfigError(problem, where=str(path), allowed="one key per parameter")
        for name, row in rows.items():
            if name in parameters:
                raise ConfigError(f"{path}: {name} is in {parameters[name].group} and in {group}")
            content = {"group": group, **row} if isinstance(row, dict) else row
            parameters[name] = p = entry(Parameter, path, name, content)
            where = f"{path}: {name}"
            if p.source not in SOURCES:
                raise ConfigError(f"source is {p.source!r}", where=where, allowed=SOURCES)
            if p.source in ("fitted", "setup") and not (p.prior > 0 and p.factor > 1):
                raise ConfigError("fitted", where=where, allowed="prior above 0, factor above 1")
    return Parameters(parameters)


def write_parameters(folder: Path, parameters: Parameters) -> None:
    """Write values into `parameters.yaml`, whole or not at all; comments and layout stay.

    A file that has these values is left alone: else all that is made of it would be made again.
    """
    from ruamel.yaml import YAML  # keeps comments; PyYAML reads ten times as fast and drops them

    path, yaml = folder / FILE, YAML()
    yaml.width = 100
    groups = yaml.load(path) if path.exists() else {}
    for name, parameter in parameters.described.items():
        row = groups.setdefault(parameter.group, {}).setdefault(name, {})
        for field in fields(parameter):
            value = getattr(parameter, field.name)
            if field.name == "group" or value == field.default:
                row.pop(field.name, None)
            elif row.get(field.name) != (plain := _plain(value)):
                row[field.name] = plain
    with files.writing("the parameters", str(path)):
        if not path.exists() or load_parameters(folder).described != parameters.described:
            text = io.StringIO()
            yaml.dump(groups, text)
            files.write_bytes(str(path), re.sub(" +\n", "\n", text.getvalue()).encode())


def _plain(value: Any) -> Any:
    """Return a value as the file has it: whole numbers without a point, lists in brackets."""
    if isinstance(value, tuple):
        from ruamel.yaml.comments import CommentedSeq

        items = CommentedSeq(value)
        items.fa.set_flow_style()
        return items
    return int(value) if isinstance(value, float) and value.is_integer() else value


def digests(folder: Path) -> dict[str, str]:
    """Return board -> digest of all that its simulation depends on, 16 hex digits.

    The workflow simulates again when they change, so a comment, another layout or the `spread` of a
    parameter simulates nothing, and a board's own parameter that board alone.

    Raises ConfigError: a file is missing, or an entry of it cannot be.
    """

    def without_texts(entry: Any) -> dict[str, Any]:
        return {key: value for key, value in asdict(entry).items() if key not in TEXTS}

    boards, p = load_boards(folder), load_parameters(folder)
    samples = {name: without_texts(facts) for name, facts in load_samples(folder).items()}
    powers = {board.power for board in boards.values()}
    digest = {}
    for name, board in boards.items():
        other_boards = tuple(f"{power}_" for power in powers - {board.power})
        values = {key: float(p[key]) for key in p if not key.startswith(other_boards)}
        content = json.dumps([without_texts(board), samples, values], sort_keys=True)
        digest[name] = hashlib.sha256(content.encode()).hexdigest()[:16]
    return digest
