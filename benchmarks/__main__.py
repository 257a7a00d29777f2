"""`python -m benchmarks [NAME ...]`: measure, print a table, write results/benchmarks.json.

Those with a table of their own in benchmarks/tables/ (`tables.TIMED`) write it, too. `peers`,
`flower` and `fine_tuning`, which install what the checkout lacks, and those of memory, up to half
an hour, run only when they are named.
"""

import argparse
import importlib
import json
import os
import sys
import time

from benchmarks import tables
from benchmarks.results import REPOSITORY, Result, Row, save, table_lines
from epochwatt.board.device import host
from epochwatt.board.device.locks import machine_lock
from epochwatt.errors import EpochwattError

BENCHMARKS = {  # in the order in which they run -> module and function
    "instrument": ("instrument", "run"),
    "monitor": ("monitor", "run"),
    "peers": ("monitor", "peers"),
    "planted": ("planted", "run"),
    "sampler": ("sampler", "run"),
    "bounds": ("bounds", "run"),
    "windows": ("windows", "run"),
    "orchestration": ("workflow", "orchestration"),
    "dry_run": ("workflow", "dry_run"),
    "command_line": ("workflow", "command_line"),
    "papers": ("workflow", "papers"),
    "interleaver": ("interleaver", "run"),
    "fleet": ("fleet", "run"),
    "memory": ("memory", "run"),
    "memory_limits": ("memory", "limits"),
    "memory_gpu": ("memory", "again"),
    "fine_tuning": ("fine_tuning", "run"),
    "flower": ("flower", "run"),
}
NAMED_ONLY = ("peers", "memory", "memory_limits", "memory_gpu", "fine_tuning", "flower")
OUT = REPOSITORY / "results/benchmarks.json"


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 0 when every benchmark came to an end, within its budget or not."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument(
        "--quick", action="store_true", help="only show that they work; nothing is written"
    )
    arguments = parser.parse_args(argv)
    if unknown := [name for name in arguments.names if name not in BENCHMARKS]:
        parser.error(f"no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}")
    rows: list[Row] = []
    failed = []
    with machine_lock().acquire({"benchmarks of": os.getcwd()}, on_wait=_say_waiting):
        for name in arguments.names or (name for name in BENCHMARKS if name not in NAMED_ONLY):
            module, function = BENCHMARKS[name]
            start_s = time.perf_counter()
            _say(f"{name}: running")
            try:
                run = getattr(importlib.import_module(f"benchmarks.{module}"), function)
                result: Result = run(arguments.quick)
            except EpochwattError as error:
                _say(f"error: {name}: {error}")
                failed.append(name)
                continue
            _say(f"{name}: took {time.perf_counter() - start_s:.0f} s")
            rows += result.rows
            if not arguments.quick:
                save(OUT, name, result)
                tables.write_timed({name: json.loads(OUT.read_text("utf-8"))[name]})
    machine = host.describe()["machine"]
    print("", *table_lines(rows, "budgets"), sep="\n")
    print(f"on {machine['n_cpus']} x {machine['cpu_model']}, {machine['ram_gib']} GiB")
    print("quick: the numbers mean nothing" if arguments.quick else f"all values: {OUT}")
    return 1 if failed else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _say_waiting(holder: str) -> None:
    _say(f"something is being measured on this machine ({holder}); waiting for it to end")


if __name__ == "__main__":
    sys.exit(main())
