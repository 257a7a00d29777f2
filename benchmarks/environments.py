"""Environments for what cannot be installed beside the locked versions of this checkout."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.results import REPOSITORY
from epochwatt.errors import EpochwattError


def environment(name: str) -> Path:
    """Return the interpreter of .cache/{name}, made where it is not as requirements/{name}.txt.

    What that lacks, such as torch, is found in the environment of this checkout. Raises
    EpochwattError: it cannot be installed.
    """
    wanted, folder = REPOSITORY / f"requirements/{name}.txt", REPOSITORY / ".cache" / name
    python, lock = folder / "bin/python", folder / wanted.name
    if lock.exists() and lock.read_bytes() == wanted.read_bytes():
        return python
    uv = [sys.executable, "-m", "uv"]
    for words in (
        ["venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
        ["pip", "sync", "--quiet", "--python", str(python), str(wanted)],
    ):
        if subprocess.run([*uv, *words], check=False).returncode:
            raise EpochwattError(f"{wanted} cannot be installed; uv says why above")
    ours = Path(np.__file__).parents[1]
    (next(folder.glob("lib/python3*/site-packages")) / "ours.pth").write_text(f"{ours}\n")
    shutil.copyfile(wanted, lock)
    return python
