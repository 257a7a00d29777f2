"""What made the results: versions here, software and machines of measured runs, configuration."""

import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from epochwatt import __version__
from epochwatt.markup import Markup, Rows, element, folded, page, paragraphs, table
from epochwatt.records.run_folder import RunFolder

PACKAGES = ("snakemake", "numpy", "scipy", "pandas", "scikit-learn", "matplotlib", "pydantic")
READ = ".yaml"  # files that are shown; of the others only the hash


def write_configuration(files: Iterable[str], records: Mapping[str, str], path: str) -> None:
    """Write the page.

    Parameters
    ----------
    files : of config/
    records : measured run -> folder of its records
    path : where to write

    Raises
    ------
    RecordError : a record is damaged
    """
    files = sorted(files)
    parts = [
        element("h2", "The workflow"),
        table(versions()),
        paragraphs(["As this page was made; it is made anew when a file below or a run changes."]),
        *_measured(machines(records)),
        element("h2", "Configuration"),
        *(folded(name, element("pre", _text(name))) for name in files if name.endswith(READ)),
        element("h3", "All its files"),
        table([{"file": name, "SHA-256": _sha256(name)} for name in files]),
    ]
    Path(path).write_text(page("Versions and configuration", *parts), "utf-8")


def versions() -> Rows:
    """Return what runs the workflow here, name and version."""
    told = {"epochwatt": __version__, "commit": commit(), "Python": platform.python_version()}
    told |= {name: metadata.version(name) for name in PACKAGES}
    return [{"what": name, "version": version} for name, version in told.items()]


def commit(root: Path = Path()) -> str:
    """Return the commit of a checkout and whether files differ from it, or that there is none."""
    try:
        said = [
            subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain"])
        ]
    except (OSError, subprocess.CalledProcessError):
        return "not a git checkout"
    return said[0].stdout.strip() + (" and changes to it" if said[1].stdout else "")


def machines(records: Mapping[str, str]) -> Rows:
    """Return what measured runs, as the record of their last epoch tells it, and how many.

    Parameters
    ----------
    records : run -> folder of its records
    """
    found: dict[tuple[tuple[str, str], ...], int] = {}
    for folder in records.values():
        run = RunFolder(*os.path.split(folder))
        epochs = run.measured()
        if not epochs:
            continue
        meta = run.read(epochs[-1]).meta
        about = {"unit": f"{meta['factors']['device']}/{meta['factors']['instance']}"}
        about |= {**meta["machine"], **meta["software"]}
        key = tuple((name, str(value)) for name, value in about.items())
        found[key] = found.get(key, 0) + 1
    return [{"runs": n, **dict(about)} for about, n in found.items()]


def _measured(rows: Rows) -> list[Markup]:
    return [element("h2", "Machines of measured runs"), table(rows)] if rows else []


def _text(path: str) -> str:
    return Path(path).read_text("utf-8")


def _sha256(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
