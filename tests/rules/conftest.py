"""What rule tests share: a runner for one rule, and a comparison of tables with tolerance.

How to add one: use the fixture `checkout` (a folder with config/), put the rule's inputs there,
call `run_rule`, compare with `assert_table` against `tests/rules/{rule}/expected/`. An expected
table holds only the columns that the test is about, so a new column breaks no test.

Source: open-gira's `tests/integration/runner.py` (one rule, tiny inputs, comparison by type).
"""

import csv
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
RELATIVE = 1e-9  # of numbers in tables; they are written with 15 digits or more


def pytest_collection_modifyitems(items):
    """Every test in this folder starts Snakemake."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.workflow)


@pytest.fixture
def run_rule(checkout):
    """Return a function that runs a rule (or several words), no other, for a target."""

    def call(rule, target, status=0):
        done = subprocess.run(
            [
                *(sys.executable, "-m", "snakemake", "--snakefile", str(REPOSITORY / "Snakefile")),
                *("--directory", str(checkout.path), "--cores", "1"),
                *("--allowed-rules", *rule.split(), "--", target),
            ],
            cwd=checkout.path,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    return call


@pytest.fixture
def expected():
    """Return a function that gives the path of an expected file of a rule."""
    return lambda rule, name: Path(__file__).parent / rule / "expected" / name


@pytest.fixture
def assert_table():
    """Return a function that compares a CSV with the expected one, in the columns of the latter."""

    def compare(actual, wanted):
        found, told = read_table(actual), read_table(wanted)
        assert len(found) == len(told), f"{actual} has {len(found)} rows, expected {len(told)}"
        differing = [
            f"row {i}, {name}: found {row[name]!r}, expected {cell!r}"
            for i, (row, cells) in enumerate(zip(found, told, strict=True))
            for name, cell in cells.items()
            if not is_same(row[name], cell)
        ]
        assert differing[:5] == []

    return compare


def read_table(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def is_same(found, wanted):
    """Compare two cells: numbers with tolerance, all else as text."""
    try:
        return math.isclose(float(found), float(wanted), rel_tol=RELATIVE)
    except ValueError:
        return found == wanted
