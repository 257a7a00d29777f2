"""`make mutation`: change the code in small ways and see whether a test notices.

`python -m benchmarks.mutation [PACKAGE ...] --seed S --count N` draws N mutants of each package by
[cosmic-ray](https://cosmic-ray.readthedocs.io), in a copy of the checkout, and runs the package's
unit tests on each until one fails. A place of the code is drawn first, then a change of it: places
with many possible changes count no more than others. What survives is printed as a diff: a test is
missing, or tables/instrument/mutation-survivors.csv has the reason why none can be.
"""

import argparse
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.results import REPOSITORY
from epochwatt.tables import read_cells

PACKAGES = ("board/records", "epochs", "claims", "prediction")
TOOL = REPOSITORY / ".cache/mutation/bin/cosmic-ray"
EXPLAINED = REPOSITORY / "benchmarks/tables/instrument/mutation-survivors.csv"
TIMEOUT_S = 900.0  # of the tests of a package; a mutant may loop for ever
SKIPPED = ("BitOr", "BitAnd")  # of binary operators: what stands in annotations
CONFIG = """[cosmic-ray]
module-path = {modules}
timeout = {timeout}
excluded-modules = []
test-command = {command}
[cosmic-ray.distributor]
name = "local"
"""


class Mutant(NamedTuple):
    """One change of the code and what became of it."""

    package: str
    module: str  # path below src/epochwatt
    line: int
    operator: str
    outcome: str  # killed, survived, timeout
    diff: str

    @property
    def changed(self) -> str:
        """The line as the mutant has it."""
        lines = self.diff.splitlines()
        added = [line for line in lines if line.startswith("+") and not line.startswith("+++")]
        return " ".join("".join(added).lstrip("+").split())


def copied(target: Path) -> None:
    """Copy what git knows, and what is new, into an empty folder: mutants are written in place."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(words, cwd=REPOSITORY, check=True, capture_output=True)
    for name in filter(None, os.fsdecode(done.stdout).split("\0")):
        if (REPOSITORY / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, target / name)


def keep_drawn(session: Path, count: int, rng: random.Random) -> None:
    """Leave so many mutants in cosmic-ray's session, each of another place of the code."""
    with sqlite3.connect(session) as base:
        rows = base.execute(
            "select job_id, operator_name, module_path, start_pos_row, start_pos_col from"
            " mutation_specs order by module_path, start_pos_row, start_pos_col, operator_name,"
            " occurrence"
        ).fetchall()
        places = defaultdict(list)
        for job, operator, *place in rows:
            if not any(part in operator for part in SKIPPED):
                places[tuple(place)].append(job)
        drawn = rng.sample(sorted(places), min(count, len(places)))
        kept = {rng.choice(places[place]) for place in drawn}
        for table in ("mutation_specs", "work_items"):
            left = [(job,) for job, *_ in rows if job not in kept]
            base.executemany(f"delete from {table} where job_id = ?", left)


def mutants(package: str, folder: Path, count: int, seed: int) -> Iterator[Mutant]:
    """Give the drawn mutants of a package, each with what became of it.

    Parameters
    ----------
    package : folder of src/epochwatt, whose tests are in the folder of that name
    folder : copy of the checkout
    count, seed : of the draw
    """
    name = package.replace("/", "-")
    config, session = folder / f"{name}.toml", folder / f"{name}.sqlite"
    tests = f"{sys.executable} -m pytest -q -x -p no:cacheprovider tests/unit/{package}"
    command = f"{tests} -m 'not slow and not thorough'"
    modules = json.dumps([f"src/epochwatt/{package}"])
    config.write_text(
        CONFIG.format(modules=modules, timeout=TIMEOUT_S, command=json.dumps(command))
    )
    environment = {**os.environ, "PYTHONPATH": f"{folder}/src:{folder}", "OMP_NUM_THREADS": "1"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # two mutants of one second may be of one size

    def cosmic_ray(*words: str) -> str:
        done = subprocess.run(
            [TOOL, *words],
            cwd=folder,
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        return done.stdout

    cosmic_ray("init", str(config), str(session))
    keep_drawn(session, count, random.Random(f"{seed}/{package}"))
    cosmic_ray("exec", str(config), str(session))
    for line in cosmic_ray("dump", str(session)).splitlines():
        item, result = json.loads(line)
        (change,) = item["mutations"]
        yield Mutant(
            package,
            change["module_path"].partition("src/epochwatt/")[2],
            change["start_pos"][0],
            change["operator_name"].rpartition("/")[2],
            "timeout" if result["worker_outcome"] == "timeout" else result["test_outcome"],
            result["diff"] or "",
        )


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 1 where a mutant survived that nobody explained."""
    parser = argparse.ArgumentParser(prog="benchmarks.mutation", description=__doc__)
    parser.add_argument("packages", nargs="*", default=PACKAGES, metavar="PACKAGE")
    parser.add_argument("--seed", type=int, default=20261125)
    parser.add_argument("--count", type=int, default=30, help="mutants of each package")
    arguments = parser.parse_args(argv)
    explained = {(row["module"], row["mutant"]) for row in read_cells(EXPLAINED)}
    n_open = 0
    with tempfile.TemporaryDirectory(prefix="ew") as name:
        folder = Path(name)
        copied(folder)
        for package in arguments.packages:
            counts: Counter[str] = Counter()
            for mutant in mutants(package, folder, arguments.count, arguments.seed):
                outcome = "survived" if mutant.outcome == "survived" else "killed"
                if outcome == "survived" and (mutant.module, mutant.changed) in explained:
                    outcome = "explained"
                counts[outcome] += 1
                if outcome == "survived":
                    print(f"\n{mutant.module}:{mutant.line} {mutant.operator}\n{mutant.diff}")
            words = (f"{counts[name]} {name}" for name in ("killed", "explained", "survived"))
            print(f"{package}: {', '.join(words)}", flush=True)
            n_open += counts["survived"]
    return int(n_open > 0)


if __name__ == "__main__":
    sys.exit(main())
