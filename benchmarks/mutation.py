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
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from benchmarks.results import REPOSITORY
from epochwatt.tables import read_cells

PACKAGES = ("board/records", "epochs", "claims", "prediction")
TOOL = REPOSITORY / ".cache/mutation/bin/cosmic-ray"
EXPLAINED = REPOSITORY / "benchmarks/tables/instrument/mutation-survivors.csv"
SKIPPED = ("BitOr", "BitAnd")  # of binary operators: what stands in annotations
# the tests of a package end after so many s: a mutant may loop for ever
CONFIG = """[cosmic-ray]
module-path = ["src/epochwatt/{package}"]
timeout = 900.0
excluded-modules = []
test-command = "{python} -m pytest -q -x -p no:cacheprovider tests/unit/{package} -m 'not slow and not thorough'"
[cosmic-ray.distributor]
name = "local"
"""  # noqa: E501


def copy_checkout(target: Path) -> None:
    """Copy what git knows, and what is new, into an empty folder: mutants are written in place."""
    named = "git ls-files -z --cached --others --exclude-standard"
    words = f"{named} | tar -c --null -T - --ignore-failed-read | tar -x -C {target}"
    subprocess.run(words, shell=True, cwd=REPOSITORY, check=True)


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


def outcomes(package: str, folder: Path, count: int, seed: int) -> Counter[str]:
    """Count what became of the drawn mutants of a package; print those that survived unexplained.

    Parameters
    ----------
    package : folder of src/epochwatt, whose tests are in the folder of that name
    folder : copy of the checkout
    count, seed : of the draw
    """
    name = package.replace("/", "-")
    config, session = folder / f"{name}.toml", folder / f"{name}.sqlite"
    config.write_text(CONFIG.format(package=package, python=sys.executable))
    environment = {**os.environ, "PYTHONPATH": f"{folder}/src:{folder}", "OMP_NUM_THREADS": "1"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # two mutants of one second may be of one size

    def cosmic_ray(*words: str | Path) -> str:
        command = [TOOL, *words]
        return subprocess.check_output(command, cwd=folder, env=environment, encoding="utf-8")

    cosmic_ray("init", config, session)
    keep_drawn(session, count, random.Random(f"{seed}/{package}"))
    cosmic_ray("exec", config, session)
    explained = {(row["module"], row["mutant"]) for row in read_cells(EXPLAINED)}
    counts: Counter[str] = Counter()
    for line in cosmic_ray("dump", session).splitlines():
        item, result = json.loads(line)
        (change,) = item["mutations"]
        module = change["module_path"].partition("src/epochwatt/")[2]
        lines = (result["diff"] or "").splitlines()
        added = [line for line in lines if line.startswith("+") and not line.startswith("+++")]
        changed = " ".join("".join(added).lstrip("+").split())  # the line as the mutant has it
        if result["worker_outcome"] == "timeout" or result["test_outcome"] != "survived":
            counts["killed"] += 1
        elif (module, changed) in explained:
            counts["explained"] += 1
        else:
            counts["survived"] += 1
            where = f"{module}:{change['start_pos'][0]} {change['operator_name']}"
            print(f"\n{where}\n{result['diff']}")
    return counts


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 1 where a mutant survived that nobody explained."""
    parser = argparse.ArgumentParser(prog="benchmarks.mutation", description=__doc__)
    parser.add_argument("packages", nargs="*", default=PACKAGES, metavar="PACKAGE")
    parser.add_argument("--seed", type=int, default=20261125)
    parser.add_argument("--count", type=int, default=30, help="mutants of each package")
    arguments = parser.parse_args(argv)
    n_open = 0
    with tempfile.TemporaryDirectory(prefix="ew") as name:
        copy_checkout(Path(name))
        for package in arguments.packages:
            counts = outcomes(package, Path(name), arguments.count, arguments.seed)
            words = (f"{counts[name]} {name}" for name in ("killed", "explained", "survived"))
            print(f"{package}: {', '.join(words)}", flush=True)
            n_open += counts["survived"]
    return int(n_open > 0)


if __name__ == "__main__":
    sys.exit(main())
