"""What is decided before the first job: configuration, profiles, lint, the size of a study."""

import re
import sys
from pathlib import Path

import pytest
from full_checkout import block

pytestmark = pytest.mark.workflow

PROFILES = sorted(
    path.parent.name for path in Path(__file__).resolve().parents[2].glob("profiles/*/config.yaml")
)
IN_STUDY = "config/studies.yaml: "


@pytest.mark.parametrize(
    ("factors", "studies", "problem", "allowed"),
    [
        (
            {"num_worker": 2},
            "host-pipeline",
            f"{IN_STUDY}unknown key 'num_worker' in host-pipeline.sweep[0] (value 2)",
            "allowed: device, instance, model,",
        ),
        pytest.param(
            {"num_workers": [0, -1]},
            "host-pipeline",
            f"{IN_STUDY}host-pipeline.sweep[0].num_workers is -1",
            "allowed: a number >= 0",
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            {},
            "host-pipelines",
            "no study is called 'host-pipelines'",
            "allowed: auto, starter, paper, simulated, imported, own; config/studies.yaml has",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_a_mistake_in_the_configuration_is_readable_lines(
    fresh, factors, studies, problem, allowed
):
    fresh.configure(host_pipeline={"epochs": 1, "sweep": [block(**factors)]})
    fresh.write_yaml("config/config.yaml", {"studies": [studies]})
    outcome = fresh.snakemake()
    assert outcome.status != 0
    assert outcome.jobs == []
    assert "Traceback" not in outcome.text
    lines = [line.strip() for line in outcome.text.splitlines()]
    told = lines[lines.index(problem) + 1]
    assert told.startswith(allowed)
    plan = fresh.epochwatt("plan")
    assert plan.status == 1
    assert [line.strip() for line in plan.text.splitlines()][:2] == [f"error: {problem}", told]


def test_a_slip_in_config_yaml_is_told_with_its_line(fresh):
    (fresh.root / "config/config.yaml").write_text("studies: auto\nsweeps: []:\n")
    outcome = fresh.snakemake()
    assert outcome.status != 0
    assert "config/config.yaml, line 2: not valid YAML" in outcome.text


@pytest.mark.parametrize(
    "profile",
    [pytest.param(p, marks=[] if p == "host" else pytest.mark.thorough) for p in PROFILES],
)
def test_the_shipped_configuration_dry_runs_with_every_profile(fresh, profile):
    words = [sys.executable, "-m", "snakemake", "--dry-run", "--profile", f"profiles/{profile}"]
    outcome = fresh.command(*words)
    assert outcome.status == 0, outcome.text
    assert len(outcome.measuring) == sum(len(run.parts) for run in fresh.runs())


def test_runs_are_measured_from_top_to_bottom_then_ceilings_then_all_else_is_made(fresh):
    words = [sys.executable, "-m", "snakemake", "--dry-run", "--profile", "profiles/host"]
    text = fresh.command(*words).text
    priorities = {}
    for rule, number in re.findall(r"^\w*rule (\w+):\n(?: .*\n)*? +priority: (\d+)$", text, re.M):
        priorities.setdefault(rule, set()).add(int(number))
    runs, ceilings = priorities.pop("train_epoch"), priorities.pop("measure_ceilings")
    assert len(runs) == sum(not run.is_simulated for run in fresh.runs())
    for rule in ("make_dataset", "list_ceiling_modes"):  # before them, of what measuring waits for
        assert priorities.pop(rule) == ceilings
    assert min(runs) > max(ceilings) > max(set.union(*priorities.values()))


@pytest.mark.thorough
def test_a_study_of_5000_epochs_dry_runs(fresh):
    fresh.configure(host_pipeline={"epochs": 6, "sweep": [block(seed=list(range(833)))]})
    outcome = fresh.snakemake("--dry-run", "--quiet", "rules")
    assert outcome.status == 0, outcome.text
    counts = dict(re.findall(r"^(\w+) +(\d+)$", outcome.text, re.M))
    many = {"collect_run": 833, "train_epoch": 833 * 6, "total": 833 * 7 + 10}
    assert {name: int(counts[name]) for name in many} == many
