"""Read the tables of `config/twin/`: YAML files that map names to entries of one kind."""

import math
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

import yaml

from epochwatt.errors import ConfigError
from epochwatt.study.yaml_files import FAST, refuse_deep

T = TypeVar("T")


def read_rows(path: Path) -> dict[str, Any]:
    """Return the entries of a file by name, unchecked; ConfigError names the file."""
    try:
        text = path.read_text("utf-8")
        refuse_deep(text, path)
        rows = yaml.load(text, Loader=FAST)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    if not isinstance(rows, dict):
        raise ConfigError("not a table", where=str(path), allowed="one key per entry")
    return rows


def entry(kind: type[T], path: Path, name: str, row: Any) -> T:
    """Return one entry; ConfigError names the file, the entry and what is wrong with it.

    Parameters
    ----------
    kind : the dataclass that it becomes; its lists become tuples, its numbers are 0 or more
    path, name : where it stands, for the message
    row : as it was read
    """
    allowed = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    needed = {key for key, field in allowed.items() if field.default is MISSING}
    where = f"{path}: {name}"
    if not isinstance(row, dict) or not needed <= row.keys() <= allowed.keys():
        optional = ", ".join(sorted(allowed.keys() - needed)) or "nothing"
        keys = f"{', '.join(sorted(needed))}; optional: {optional}"
        raise ConfigError(f"{where} is {row!r}", allowed=keys)
    for key, value in row.items():
        if allowed[key].type in (int, float) and not _is_number(value):
            problem = f"{key} is {value!r}"
            raise ConfigError(problem, where=where, allowed="a number, 0 or more")
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()})


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and 0 <= value < math.inf
