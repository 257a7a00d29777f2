"""`python -m benchmarks.fuzz --seed S --count N [--only NAME ...]`: damaged inputs for readers.

Each input is made of a good one by hypothesis, from the seed; a failing one is made smaller. A
reader may take 2 GiB and 20 s; it may return anything or raise an EpochwattError that names the
file (or what its docstring names): any other exception is a failure. A death ends all; the reader
was named before. `--write` puts the table into benchmarks/tables/instrument/damaged-inputs.csv.
"""

import argparse
import logging
import os
import resource
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import hypothesis
import pandas as pd
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from benchmarks import template
from benchmarks.fuzz.mutations import damaged
from benchmarks.fuzz.targets import Target, targets
from benchmarks.results import REPOSITORY, write_tables
from epochwatt.errors import EpochwattError

TABLES = REPOSITORY / "benchmarks/tables/instrument"
LIMIT_S = 20.0  # of one input: the machine may have other work
LIMIT_BYTES = 2 * 2**30  # of memory, beside what this process has


class ReaderError(Exception):
    """A reader did what it may not."""


def feed(target: Target, seed: int, count: int) -> str | None:
    """Read so many damaged inputs; return the failure on the smallest one, None: there is none."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    target.read(target.goods[0])  # what is whole has to be read; and imports are made once
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + LIMIT_BYTES, most))

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(st.sampled_from(target.goods), st.randoms(use_true_random=False))
    def read(good: bytes, rng: Any) -> None:
        examine(target, damaged(good, target.kind, rng))

    try:
        read()
    except ReaderError as failure:
        return str(failure)
    except hypothesis.errors.HypothesisException as error:  # it does not fail each time
        return f"{type(error).__name__}: {error}"
    return None


def examine(target: Target, content: bytes) -> None:
    """Read one input; raise `ReaderError` where the reader did what it may not."""
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        target.read(content)
    except EpochwattError as error:
        if target.place not in str(error):
            raise ReaderError(f"names no place: {error!s:.300} at {_line(error)}") from None
    except target.allowed:
        pass
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  that is what is looked for
        what = f"{type(error).__name__}: {error}"[:300].encode("utf-8", "replace").decode()
        raise ReaderError(f"{what} at {_line(error)}, given {content[:200]!r}") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _line(error: BaseException) -> str:
    """Return the last line of ours that an error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/src/epochwatt/" in frame.filename]
    return f"{ours[-1].filename}:{ours[-1].lineno}" if ours else "outside the package"


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"more than {LIMIT_S:g} s")


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 0 where there was no failure."""
    parser = argparse.ArgumentParser(prog="benchmarks.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--count", type=int, default=2000, help="inputs, in all")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="readers (default: all)")
    parser.add_argument("--write", action="store_true", help="write the table")
    arguments = parser.parse_args(argv)
    print(f"seed {arguments.seed}", flush=True)
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, _too_long)
    rows = []
    with tempfile.TemporaryDirectory(prefix="ew") as place:
        tempfile.tempdir = os.path.join(place, "tmp")  # the machine's own files stay as they are
        template.make(Path(place))
        chosen = [t for t in targets(Path(place)) if t.name in (arguments.only or [t.name])]
        if not chosen:
            parser.error(f"no reader is called {' or '.join(arguments.only)}")
        whole = sum(target.share for target in chosen)
        for target in chosen:  # Ctrl-C ends it with the table of what was done
            count = max(1, round(arguments.count * target.share / whole))
            try:
                failure = feed(target, arguments.seed, count)
            except KeyboardInterrupt:
                break
            rows.append((target.name.partition(":")[0], count, int(failure is not None)))
            if failure is not None:
                again = f"--seed {arguments.seed} --only '{target.name}' --count {count}"
                print(
                    f"{target.name}: {failure}\n    python -m benchmarks.fuzz {again}", flush=True
                )
    table = pd.DataFrame(rows, columns=["reader", "inputs", "failures"])
    table = pd.concat([table, table.assign(reader="**all**")])
    table = table.groupby("reader", sort=False).sum().reset_index()
    print(table.to_string(index=False))
    if arguments.write:
        write_tables(TABLES, {"damaged-inputs": table})
    return int(table.failures.any())


if __name__ == "__main__":
    sys.exit(main())
