"""What is decided before the first job: configuration, profiles, lint, the size of a study."""

import re
import sys
from pathlib import Path

import pytest
from full_checkout import block

pytestmark = pytest.mark.workflow

REPOSITORY = Path(__file__).resolve().parents[2]
PROFILES = sorted(path.parent.name for path in REPOSITORY.glob("profiles/*/config.yaml"))


def _unknown_factor(checkout):
    checkout.configure(host_pipeline={"epochs": 1, "sweep": [block(num_worker=2)]})
    return (
        "config/studies.yaml: unknown key 'num_worker' in host-pipeline.sweep[0] (value 2)",
        "allowed: device, instance, model,",
    )


def _impossible_row(checkout):
    checkout.configure(host_pipeline={"epochs": 1, "sweep": [block(num_workers=[0, -1])]})
    return (
        "config/studies.yaml: host-pipeline.sweep[0].num_workers is -1",
        "allowed: a number >= 0",
    )


def _unknown_study(checkout):
    checkout.write_yaml("config/config.yaml", {"studies": ["host-pipelines"]})
    return (
        "no study is called 'host-pipelines'",
        "allowed: auto, starter, paper, simulated, imported, own; config/studies.yaml has: host",
    )


@pytest.mark.parametrize(
    "mistake",
    [
        _unknown_factor,
        *(pytest.param(m, marks=pytest.mark.thorough) for m in (_impossible_row, _unknown_study)),
    ],
)
def test_a_mistake_in_the_configuration_is_readable_lines(fresh, mistake):
    expected = mistake(fresh)
    outcome = fresh.snakemake()
    assert outcome.status != 0
    assert outcome.jobs == []
    assert "Traceback" not in outcome.text
    lines = [line.strip() for line in outcome.text.splitlines()]
    place = lines.index(expected[0])
    assert lines[place + 1].startswith(expected[1])
    told = fresh.epochwatt("plan")
    assert told.status == 1
    assert [line.strip() for line in told.text.splitlines()][:2] == [
        f"error: {expected[0]}",
        lines[place + 1],
    ]


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_dry_runs(fresh, profile):
    words = [sys.executable, "-m", "snakemake", "--dry-run", "--profile", f"profiles/{profile}"]
    outcome = fresh.command(*words)
    assert outcome.status == 0, outcome.text
    assert len(outcome.measuring) == sum(len(run.parts) for run in fresh.runs())


@pytest.mark.thorough
def test_a_study_of_5000_epochs_dry_runs(fresh):
    fresh.configure(host_pipeline={"epochs": 6, "sweep": [block(seed=list(range(833)))]})
    outcome = fresh.snakemake("--dry-run", "--quiet", "rules")
    assert outcome.status == 0, outcome.text
    counts = dict(re.findall(r"^(\w+) +(\d+)$", outcome.text, re.M))
    assert counts == {
        "advise_runs": "1",
        "all": "1",
        "check_claims": "1",
        "collect_run": "833",
        "collect_study": "1",
        "compare_printed": "1",
        "make_dataset": "1",
        "plot_fig02": "1",
        "show_index": "1",
        "split_energy": "1",
        "summarise": "1",
        "total": str(833 * 7 + 10),
        "train_epoch": str(833 * 6),
    }
