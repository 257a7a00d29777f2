"""What rule tests share: a checkout for each file, and one start of Snakemake for its rules.

A start costs seconds, so a file plants the inputs of all its rules, makes all targets in one start,
and each test reads what one rule made. An expected table in `{rule}/expected/` holds only the
columns that the test is about, so a new column breaks no test.
"""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items):
    """Mark the tests of this folder: all start Snakemake."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.workflow)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory, make_checkout):
    """A small checkout, which is the working folder of all tests of a file."""
    path = tmp_path_factory.mktemp("checkout")
    with contextlib.chdir(path):
        yield make_checkout(path)


@pytest.fixture(scope="module")
def run_rules(checkout):
    """Return a function that makes targets by some rules and no others; it gives the output."""

    def call(rules, *targets, status=0):
        done = subprocess.run(
            [
                *(sys.executable, "-m", "snakemake", "--snakefile", str(REPOSITORY / "Snakefile")),
                *("--directory", str(checkout.path), "--cores", "2", "--keep-going"),
                *("--allowed-rules", *rules.split(), "--", *targets),
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
