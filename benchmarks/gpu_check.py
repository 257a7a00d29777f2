"""`make gpu-check`: everything that can only be checked on a GPU, in under eight minutes.

`python -m benchmarks.gpu_check` needs torch and numpy, and pynvml for the power; where Snakemake is
missing (a system's own torch, `PYTHONPATH=src`) the study is skipped. Without a GPU it says so.
"""

import argparse
import importlib
import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import gpu_parts
from benchmarks.gpu_work import RealGpu
from benchmarks.results import REPOSITORY, Result, save, table_lines
from epochwatt.board.device.locks import machine_lock

OUT = REPOSITORY / "benchmarks/gpu"
PARTS: tuple[tuple[str, Callable[[Any], Result]], ...] = (
    ("device", gpu_parts.device),
    ("timers", gpu_parts.timers),
    ("power", gpu_parts.power),
    ("stalls", gpu_parts.stalls),
    ("flops", gpu_parts.flops),
    ("interleaver", gpu_parts.interleaver),
    ("study", gpu_parts.study),
)
HEAD = """# Cards that were checked

One file per card, written by `make gpu-check` ([gpu_check.py](../gpu_check.py)); this table is made
of them. What is checked: [benchmarks](../README.md#make-gpu-check).

| card | date | torch | checks met | not met, or could not be done |
| --- | --- | --- | --- | --- |
"""
NOBODY = "| none yet | | | | |\n"


def why_not() -> str | None:
    """Return why no GPU can be checked here; None: there is one."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        return f"torch cannot be imported ({error})"
    if not torch.cuda.is_available():
        built = torch.version.cuda
        return (
            f"torch {torch.__version__} sees none (built for CUDA {built})"
            if built
            else (f"torch {torch.__version__} is built without CUDA")
        )
    return None


def check(gpu: Any, parts: Any) -> tuple[dict[str, Result], dict[str, str], set[str]]:
    """Carry out the parts, one after the other, each whatever the others came to.

    Parameters
    ----------
    gpu : a `RealGpu`
    parts : (name, function of the GPU that returns a Result) each

    Returns
    -------
    results : by part
    notes : why a part gave none
    failed : those of them that broke off
    """
    results: dict[str, Result] = {}
    notes: dict[str, str] = {}
    failed = set()
    for name, part in parts:
        start_s = time.perf_counter()
        _say(f"{name}: running")
        try:
            results[name] = part(gpu)
        except gpu_parts.Skipped as error:
            notes[name] = f"skipped: {error}"
        except Exception as error:  # noqa: BLE001  the other parts are worth having all the same
            notes[name] = f"broke off: {type(error).__name__}: {error}"
            failed.add(name)
        _say(notes.get(name, f"{name}: took {time.perf_counter() - start_s:.0f} s"))
    return results, notes, failed


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 1 when a check is not met or broke off, 0 also without a GPU."""
    parser = argparse.ArgumentParser(prog="benchmarks.gpu_check", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the results")
    arguments = parser.parse_args(argv)
    reason = why_not()
    if reason is not None:
        print(f"no GPU to check here: {reason}. Nothing was done.")
        return 0
    with machine_lock().acquire({"GPU check of": os.getcwd()}, on_wait=_say):
        gpu = RealGpu(importlib.import_module("torch"))
        results, notes, failed = check(gpu, PARTS)
    card = gpu.cuda.get_device_name(0)
    versions = {"torch": gpu.torch.__version__, "cuda": gpu.torch.version.cuda}
    write(arguments.out, card, versions, results, notes)
    rows = [row for result in results.values() for row in result.rows]
    lines = table_lines(rows, "checks")
    print(
        "",
        card,
        "",
        *lines[:-2],
        *(f"{n} {note}" for n, note in notes.items()),
        *lines[-2:],
        sep="\n",
    )
    return int(bool(failed) or any(row.met is False for row in rows))


def write(
    out: Path,
    card: str,
    versions: dict[str, Any],
    results: dict[str, Result],
    notes: dict[str, str],
) -> Path:
    """Write what was found of a card, and the table of all cards; return the card's file."""
    path = out / (re.sub(r"[^a-z0-9]+", "-", card.lower()).strip("-") + ".json")
    path.unlink(missing_ok=True)
    rows = [row for result in results.values() for row in result.rows]
    details = {name: result.details for name, result in results.items()}
    told = {"card": card, **versions, "notes": notes, "parts": details}
    save(path, "gpu_check", Result(rows, told))
    write_readme(out)
    return path


def write_readme(out: Path) -> None:
    """Write the table of the cards whose files lie in a folder."""
    lines = [_line(json.loads(path.read_text("utf-8"))) for path in sorted(out.glob("*.json"))]
    (out / "README.md").write_text(HEAD + ("".join(lines) or NOBODY), encoding="utf-8")


def _line(told: dict[str, Any]) -> str:
    found = told["gpu_check"]
    judged = [row for row in found["rows"] if row["met"] is not None]
    missed = [row["what"] for row in judged if not row["met"]]
    details = found["details"]
    against = "; ".join([*missed, *(f"{k} {v}" for k, v in details["notes"].items())]) or "-"
    met = f"{len(judged) - len(missed)} of {len(judged)}"
    date = found["time"][:10]
    return f"| {details['card']} | {date} | {details['torch']} | {met} | {against} |\n"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
