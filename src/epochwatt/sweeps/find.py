"""The one door for reading sweeps: by name, as a file, or as a folder of open data."""

import json
from collections.abc import Callable
from pathlib import Path

from epochwatt.errors import ConfigError
from epochwatt.sweeps.mode_table import ModeTable, read_mode_tables
from epochwatt.sweeps.public.registry import load_registry, read_public

RESULTS = "results/sweeps"  # {sweep}.csv: measured or simulated by the workflow
PACKAGE = "datapackage.json"  # of a folder of open data
ENDINGS = (".csv", ".csv.gz")


def read_package(folder: Path) -> list[ModeTable]:
    """Return the mode tables of a folder of open data, as its `datapackage.json` lists them.

    Nothing else of the package is checked: that is what `epochwatt validate` is for.

    Raises
    ------
    ConfigError : no datapackage.json, one without tables, or a table that cannot be read
    """
    path = folder / PACKAGE
    try:
        resources = json.loads(path.read_text("utf-8"))["resources"]
        names = [str(resource["path"]) for resource in resources]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            "not a folder of open data", where=str(folder), found=f"{PACKAGE}: {error!r}"
        ) from error
    paths = [folder / name for name in names if name.endswith(ENDINGS)]
    if not paths or any(folder.resolve() not in p.resolve().parents for p in paths):
        raise ConfigError("no tables below the folder", where=str(path), found=names)
    return [table for path in paths for table in read_mode_tables(path)]


def find_tables(
    name: str | Path,
    root: Path = Path(),
    public_data: Path | None = None,
    open_package: Callable[[Path], list[ModeTable]] = read_package,
) -> list[ModeTable]:
    """Return the mode tables of a sweep.

    Parameters
    ----------
    name : a public sweep of config/sweeps/registry.yaml; a sweep in results/sweeps/; a file of mode
        tables; or a folder of open data
    root : the checkout
    public_data : folder of others' repositories, for sweeps that epochwatt may not pass on
        (`epochwatt.sweeps.public.registry.public_folder`)
    open_package : reads a folder of open data

    Raises
    ------
    ConfigError : nothing has this name; what it stands for is not here, or cannot be read
    """
    registry = load_registry(root)
    if str(name) in registry.sweeps:
        return read_public(str(name), root, public_data)
    for ending in ENDINGS:
        path = root / RESULTS / f"{name}{ending}"
        if path.is_file():
            return read_mode_tables(path)
    path = Path(name)
    if path.is_dir():
        return open_package(path)
    if path.is_file():
        return read_mode_tables(path)
    raise ConfigError(
        "no such sweep",
        found=str(name),
        allowed=f"a file, a folder of open data, or {', '.join(names(root))}",
        do="epochwatt sweeps lists them",
    )


def names(root: Path = Path()) -> list[str]:
    """Return the names of the sweeps in results/sweeps/ and of the public ones."""
    paths = sorted((root / RESULTS).glob("*.csv*"))
    made = [path.name.partition(".csv")[0] for path in paths if path.name.endswith(ENDINGS)]
    return [*dict.fromkeys(made), *load_registry(root).sweeps]
