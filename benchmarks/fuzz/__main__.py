"""`python -m benchmarks.fuzz --seed S --count N [--only NAME ...]`: damaged inputs for readers.

Each input is made of a good one by the seed, the reader's name and its number, and read in a child
that may take 2 GiB and 20 s. A reader may return anything or raise an EpochwattError that names the
file (or what its docstring names): any other exception, a death and a hang are failures, and said
with what repeats them. Ctrl-C ends it with the table of what was done; `--write` puts that into
benchmarks/fuzz.json.
"""

import argparse
import json
import logging
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import template
from benchmarks.fuzz import targets as known
from benchmarks.fuzz.batch import Failure, run_batch
from benchmarks.fuzz.target import Target
from benchmarks.results import REPOSITORY, commit

OUT = REPOSITORY / "benchmarks/fuzz.json"
BATCH = 400  # inputs that a child reads before another takes over
ROUND = 10_000  # inputs of all readers together before the first has its turn again
CELLS = ("inputs", "failures", "seconds")


def shared(targets: list[Target], count: int) -> dict[str, int]:
    """Return how many of `count` inputs each target gets; their sum is `count`."""
    whole = sum(target.share for target in targets)
    ends, passed = [], 0.0
    for target in targets:
        passed += target.share
        ends.append(round(count * passed / whole))
    starts = [0, *ends[:-1]]
    return {t.name: end - start for t, start, end in zip(targets, starts, ends, strict=True)}


def campaign(
    folder: Path, seed: int, count: int, only: list[str] | None = None, first: int = 0
) -> tuple[dict[str, dict[str, float]], list[Failure]]:
    """Feed all readers; return group -> inputs, failures and seconds, and the failures.

    Parameters
    ----------
    folder : empty, takes the template and what the readers need
    seed : of the inputs
    count : how many, in all
    only : names of readers; None: all
    first : number of each reader's first input
    """
    if not (folder / "measured").exists():
        template.make(folder)
    chosen = [t for t in known.targets(folder) if only is None or t.name in only]
    if not chosen:
        raise SystemExit(f"no reader is called {' or '.join(only or [])}")
    counts = shared(chosen, count)
    rows: dict[str, dict[str, float]] = {}
    failures: list[Failure] = []
    n_rounds = max(1, count // ROUND)
    for n in range(n_rounds):  # so that what is ended early has met all readers
        for target in chosen:
            start_s, own = time.perf_counter(), counts[target.name]
            begin, end = (first + own * part // n_rounds for part in (n, n + 1))
            try:
                bad = _fed(target, seed, begin, end)
            except KeyboardInterrupt:
                return rows, failures
            row = rows.setdefault(target.name.partition(":")[0], dict.fromkeys(CELLS, 0.0))
            row["inputs"] += end - begin
            row["failures"] += len(bad)
            row["seconds"] += time.perf_counter() - start_s
            failures += bad
            for line in told(bad, seed):
                print(line, flush=True)
        print(f"{sum(row['inputs'] for row in rows.values()):.0f} inputs", flush=True)
    return rows, failures


def _fed(target: Target, seed: int, begin: int, end: int) -> list[Failure]:
    """Read the inputs `begin`..`end` - 1 of a reader, in children."""
    if begin == end:
        return []
    target.read(target.goods[0])  # what is whole has to be read; and imports are made once
    starts = range(begin, end, BATCH)
    parts = [run_batch(target, seed, start, min(start + BATCH, end)) for start in starts]
    return [failure for part in parts for failure in part]


def table(rows: dict[str, dict[str, float]]) -> list[str]:
    """Return the lines of the table."""
    width = max(map(len, rows))
    lines = [f"{'reader':{width}}  inputs  failures  time"]
    for name, row in rows.items():
        cells = f"{row['inputs']:6.0f}  {row['failures']:8.0f}  {row['seconds']:.0f} s"
        lines.append(f"{name:{width}}  {cells}")
    total = {key: sum(row[key] for row in rows.values()) for key in ("inputs", "failures")}
    seconds = sum(row["seconds"] for row in rows.values())
    return [
        *lines,
        f"{'all':{width}}  {total['inputs']:6.0f}  {total['failures']:8.0f}  {seconds:.0f} s",
    ]


def told(failures: list[Failure], seed: int) -> list[str]:
    """Return one line per kind of failure, with what repeats the first of it."""
    kinds: dict[tuple[str, str, str], list[Failure]] = {}
    for failure in failures:
        reader = failure.target.partition(":")[0]
        kinds.setdefault((reader, failure.where, failure.what.partition(":")[0]), []).append(
            failure
        )
    lines = []
    for (reader, where, _), bad in sorted(kinds.items(), key=lambda kind: -len(kind[1])):
        lines.append(f"{len(bad):5} x {reader}: {bad[0].what[:150]} at {where}")
        again = f"--seed {seed} --only '{bad[0].target}' --first {bad[0].n} --count 1"
        lines.append(f"        python -m benchmarks.fuzz {again}")
    return lines


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 0 where there was no failure."""
    parser = argparse.ArgumentParser(prog="benchmarks.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--count", type=int, default=2000, help="inputs, in all")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="readers (default: all)")
    parser.add_argument("--first", type=int, default=0, help="number of each one's first input")
    parser.add_argument("--write", action="store_true", help=f"write {OUT.name}")
    arguments = parser.parse_args(argv)
    print(f"seed {arguments.seed}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed(arguments.seed)
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="ew") as place:
        tempfile.tempdir = os.path.join(place, "tmp")  # the machine's own files stay as they are
        rows, failures = campaign(
            Path(place), arguments.seed, arguments.count, arguments.only, arguments.first
        )
    lines = told(failures, arguments.seed)
    print("\n".join(["", *table(rows), "", *lines]))
    if arguments.write:
        about = {"seed": arguments.seed, "commit": commit(), "readers": rows, "failures": lines}
        OUT.write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
