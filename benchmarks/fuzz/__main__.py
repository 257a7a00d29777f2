"""`python -m benchmarks.fuzz --seed S --count N [--only NAME ...]`: damaged inputs for readers.

Each input is made of a good one by hypothesis, from the seed; a failing one is made smaller. A
reader may take 2 GiB and 20 s; it may return anything or raise an EpochwattError that names the
file (or what its docstring names): any other exception is a failure. A death ends all; the reader
was named before. `--write` puts the table into benchmarks/fuzz.json.
"""

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import template
from benchmarks.fuzz import feed
from benchmarks.fuzz import targets as known
from benchmarks.results import REPOSITORY, commit

OUT = REPOSITORY / "benchmarks/fuzz.json"


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 0 where there was no failure."""
    parser = argparse.ArgumentParser(prog="benchmarks.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--count", type=int, default=2000, help="inputs, in all")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="readers (default: all)")
    parser.add_argument("--write", action="store_true", help=f"write {OUT.name}")
    arguments = parser.parse_args(argv)
    print(f"seed {arguments.seed}", flush=True)
    logging.disable(logging.CRITICAL)
    rows: dict[str, dict[str, float]] = {}
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="ew") as place:
        tempfile.tempdir = os.path.join(place, "tmp")  # the machine's own files stay as they are
        template.make(Path(place))
        chosen = [t for t in known.targets(Path(place)) if t.name in (arguments.only or [t.name])]
        if not chosen:
            parser.error(f"no reader is called {' or '.join(arguments.only)}")
        whole = sum(target.share for target in chosen)
        for target in chosen:  # Ctrl-C ends it with the table of what was done
            count = max(1, round(arguments.count * target.share / whole))
            if count >= 100:
                print(f"{target.name}: {count} inputs", flush=True)
            start_s = time.perf_counter()
            try:
                failure = feed(target, arguments.seed, count)
            except KeyboardInterrupt:
                break
            empty = {"inputs": 0, "failures": 0, "seconds": 0.0}
            row = rows.setdefault(target.name.partition(":")[0], empty)
            row["inputs"] += count
            row["failures"] += failure is not None
            row["seconds"] += time.perf_counter() - start_s
            if failure is not None:
                again = f"--seed {arguments.seed} --only '{target.name}' --count {count}"
                failures.append(f"{target.name}: {failure}\n    python -m benchmarks.fuzz {again}")
                print(failures[-1], flush=True)
    total = {key: sum(row[key] for row in rows.values()) for key in ("inputs", "failures")}
    print(f"{total['inputs']:.0f} inputs, {total['failures']:.0f} readers failed")
    if arguments.write:
        about = {"seed": arguments.seed, "commit": commit(), "readers": rows, "failures": failures}
        OUT.write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
