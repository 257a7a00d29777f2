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


def lay_out(folder: Path) -> str:
    """Fill a new or empty folder with config/, profiles/ and a Snakefile; return what is studied.

    That is `auto`, as in a checkout, or `simulated` where there is no torch to train with. Raises
    EpochwattError: the folder is not empty, or this installation has no workflow.
    """
    if not Path(SNAKEFILE).is_file():
        raise EpochwattError(
            "this installation of epochwatt has no workflow: it was made from a repository, not "
            "from a release",
            where=str(_HERE),
            do="install a wheel (`make dist` in a checkout makes one), or work in a checkout",
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
