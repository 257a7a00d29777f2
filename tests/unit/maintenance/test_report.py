"""The report: made when something it shows is newer, else left alone."""

import os
import subprocess
from pathlib import Path

import pytest

from epochwatt.errors import EpochwattError
from epochwatt.maintenance import report

SHOWN = (
    "results/figures/host/fig02a.svg",
    "results/tables/runs.csv",
    "results/overview.html",
    "results/claims.csv",
    "results/models/twin/scores.html",
    "workflow/report/plot_figure.rst",
    "config/plotting.yaml",
    "config/devices/host.yaml",
)


@pytest.fixture
def snakemake(monkeypatch):
    """What Snakemake was asked to do; it makes an empty report."""
    calls = []

    def run(command, **_):
        calls.append(command)
        report.REPORT.touch()
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return calls


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """All that a report shows, an hour old."""
    monkeypatch.chdir(tmp_path)
    for name in (*SHOWN, "results/runs/x/epochs.csv"):
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        age(path, 3600)


def age(path, seconds):
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def test_report_that_is_up_to_date_is_left_alone(shown, snakemake):
    report.make_report()
    assert report.make_report() == "results/report.html is up to date"
    assert len(snakemake) == 1


@pytest.mark.parametrize("name", SHOWN)
def test_report_is_made_anew_when_something_it_shows_is_newer(name, shown, snakemake):
    report.make_report()
    age(report.REPORT, 60)
    Path(name).touch()
    report.make_report()
    assert len(snakemake) == 2


def test_failure_says_what_to_do_and_what_snakemake_said(shown, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "MissingInputException: fig02a.svg")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(EpochwattError) as told:
        report.make_report()
    assert told.value.do.startswith("name under `studies:` what was run")
    assert told.value.found == "MissingInputException: fig02a.svg"
