"""Page of the versions here, the software and machines of runs, and the configuration."""

import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from epochwatt import __version__
from epochwatt.records.run_folder import RunFolder
from epochwatt.templates import Rows, render
from epochwatt.text import label

PACKAGES = ("snakemake", "numpy", "scipy", "pandas", "scikit-learn", "matplotlib", "pydantic")
NO_COMMIT = "not a git checkout"
SHOWN = ".yaml"  # files whose text is shown; of the others only the hash


def write_configuration(files: Iterable[str], records: Mapping[str, str], path: str) -> None:
    """Write the page.

    Parameters
    ----------
    files : of config/
    records : run that is not simulated -> folder of its records
    path : where to write

    Raises
    ------
    RecordError : a record is damaged
    """
    names = sorted(files)
    page = render(
        "configuration.html",
        title="Versions and configuration",
        versions=versions(),
        machines=machines(records),
        texts={name: Path(name).read_text("utf-8") for name in names if name.endswith(SHOWN)},
        hashes=[{"file": name, "SHA-256": _sha256(name)} for name in names],
    )
    Path(path).write_text(page, "utf-8")


def versions() -> Rows:
    """Return what runs the workflow here, name and version."""
    known_versions = {
        "epochwatt": __version__,
        "commit": commit(),
        "Python": platform.python_version(),
    }
    known_versions |= {name: metadata.version(name) for name in PACKAGES}
    return [{"what": name, "version": version} for name, version in known_versions.items()]


def commit(root: Path = Path()) -> str:
    """Return the commit of a checkout and whether files differ from it, or that there is none.

    A checkout around `root` is not its own. Nothing is written, not even git's index.
    """
    git = ["git", "--no-optional-locks"]
    try:
        top, head, changes = (
            subprocess.run([*git, *words], cwd=root, capture_output=True, text=True, check=True)
            for words in (
                ["rev-parse", "--show-toplevel"],
                ["rev-parse", "HEAD"],
                ["status", "--porcelain"],
            )
        )
    except (OSError, subprocess.CalledProcessError):
        return NO_COMMIT
    if Path(top.stdout.rstrip("\n")) != root.resolve():
        return NO_COMMIT
    return head.stdout.strip() + (" and changes to it" if changes.stdout else "")


def machines(records: Mapping[str, str]) -> Rows:
    """Return where runs were made, as the record of their last epoch tells it, and how many.

    Without serial numbers, which a report that is passed on would tell, and tables of clocks.

    Parameters
    ----------
    records : run -> folder of its records
    """
    counts: dict[tuple[tuple[str, str], ...], int] = {}
    for folder in records.values():
        run = RunFolder(*os.path.split(folder))
        epochs = run.measured()
        if not epochs:
            continue
        meta = run.read(epochs[-1]).meta
        factors = meta["factors"]
        description = {"data": label(factors["backend"])}
        description |= {"unit": f"{factors['device']}/{factors['instance']}"}
        description |= {**meta["machine"], **meta["software"]}
        key = tuple((name, str(value)) for name, value in description.items() if _is_shown(name))
        counts[key] = counts.get(key, 0) + 1
    return [{"runs": n, **dict(description)} for description, n in counts.items()]


def _is_shown(name: str) -> bool:
    return name != "serial" and not name.endswith("_steps_mhz")


def _sha256(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
