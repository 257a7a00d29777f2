"""The workflow that comes with the package, and new folders that use it (`epochwatt init`).

A wheel has workflow/, config/ and profiles/ beside this file; in a checkout they lie at its root.
"""

import shutil
from importlib.util import find_spec
from pathlib import Path

from epochwatt.errors import EpochwattError

_HERE = Path(__file__).parent
FOLDER = _HERE if (_HERE / "workflow").is_dir() else _HERE.parents[2]
SNAKEFILE = str(FOLDER / "workflow/Snakefile")  # users' Snakefiles import this name: it stays
IGNORED = shutil.ignore_patterns("__pycache__")

ENTRY = """\
# The workflow of the package epochwatt that is installed for Snakemake's Python. An upgrade of the
# package brings its rules and scripts; this file, config/ and profiles/ are yours and stay.

from epochwatt.project import SNAKEFILE


module epochwatt:
    snakefile:
        SNAKEFILE


use rule * from epochwatt


onstart:
    epochwatt.begin()


onsuccess:
    epochwatt.end()


onerror:
    epochwatt.end()
"""


def is_studied_here() -> bool:
    """Return whether the working folder is a checkout, or was made by `epochwatt init`."""
    return Path("config").is_dir()


def start_command() -> str:
    """Return the command that starts the workflow in the working folder."""
    return "make run" if Path("Makefile").is_file() else "snakemake --profile profiles/host"


def how_to_get_a_folder() -> str:
    """Return how to get a folder in which all commands work, with this installation."""
    if Path(SNAKEFILE).is_file():
        return "change to your checkout, or make a folder without one: `epochwatt init my-study`"
    return (
        "work in a checkout of epochwatt; or type `make dist` there, then `pip install "
        "--force-reinstall --no-deps dist/*.whl` here and `epochwatt init my-study` (this "
        "installation was made from a repository, which leaves the workflow out)"
    )


def lay_out(folder: Path) -> str:
    """Fill a new or empty folder with config/, profiles/ and a Snakefile; return what is studied.

    That is `auto`, as in a checkout, or `simulated` where there is no torch to train with. Raises
    EpochwattError: the folder is not empty, or this installation has no workflow.
    """
    if not Path(SNAKEFILE).is_file():
        raise EpochwattError(
            f"this installation of epochwatt has no workflow to make {folder} from",
            where=str(_HERE),
            do=how_to_get_a_folder(),
        )
    if folder.exists():
        names = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else ["a file"]
        if names:
            raise EpochwattError(
                f"{folder} is not empty",
                found=", ".join(names[:5]) + (", ..." if len(names) > 5 else ""),
                do="name a folder that does not exist yet, or an empty one",
            )
    for name in ("config", "profiles"):
        shutil.copytree(FOLDER / name, folder / name, ignore=IGNORED)
    studies = "auto" if find_spec("torch") else "simulated"
    path = folder / "config/config.yaml"
    path.write_text(
        path.read_text("utf-8").replace("studies: auto", f"studies: {studies}"), "utf-8"
    )
    (folder / "Snakefile").write_text(ENTRY, "utf-8")  # last: without it nothing starts
    return studies
