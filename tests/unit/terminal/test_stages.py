"""Names of what rules make, and the line of a finished run."""

import re
from pathlib import Path

import pytest

from snakemake_logger_plugin_epochwatt.stages import (
    SILENT,
    TARGETS,
    counted_stage,
    duration,
    run_line,
    stage_of,
)

RULES = Path(__file__).parents[3] / "workflow/rules"
COLLECTORS = {"targets.smk"}  # rules whose job only names others


def test_every_rule_of_the_workflow_has_a_stage_or_needs_none():
    names = {
        name
        for path in RULES.glob("*.smk")
        if path.name not in COLLECTORS
        for name in re.findall(r"^rule (\w+):", path.read_text("utf-8"), re.M)
    }
    assert len(names) > 15
    assert [name for name in names - SILENT if stage_of(name) == f"{name} jobs"] == []


def test_targets_that_somebody_asks_for_have_no_line():
    text = (RULES / "targets.smk").read_text("utf-8")
    assert {*re.findall(r"^rule (\w+):", text, re.M), "all"} == TARGETS <= SILENT


def test_figures_of_both_papers_are_one_stage():
    assert stage_of("plot_fig02") == stage_of("plot_hipcw_fig08") == "figures"


def test_a_rule_of_somebody_else_is_called_by_its_name():
    assert counted_stage(2, stage_of("align")) == "2 align jobs"


@pytest.mark.parametrize(
    ("n", "stage", "text"),
    [
        (1, "figures", "1 figure"),
        (189, "simulated runs", "189 simulated runs"),
        (1, "data sets made", "1 data set made"),
        (1, "pages", "1 page"),
    ],
)
def test_what_is_counted_has_its_singular(n, stage, text):
    assert counted_stage(n, stage) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1.0, "0 s"), (42.4, "42 s"), (358.0, "5 min 58 s"), (7500.0, "2 h 05 min")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


HEADER = "epoch,valid,e2e_s,stall_s,energy_wh\n"


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ("0,True,9,5,\n1,True,2,0.5,\n2,True,4,1.5,\n", "N: 3 epochs, 3 s each, stall 33 %"),
        ("0,True,9,4.5,\n", "N: 1 epoch, 9 s each, stall 50 %"),
        ("0,True,9,4,0.5\n1,True,2,0,0.25\n", "N: 2 epochs, 2 s each, 0.25 Wh each"),
        (
            "0,True,9,4,\n1,False,2,1,\n2,True,4,1,\n",
            "N: 3 epochs, 4 s each, stall 25 %, 1 not valid",
        ),
    ],
    ids=["the first does not count", "only one", "energy", "not valid"],
)
def test_a_finished_run_in_a_line(rows, text, tmp_path):
    table = tmp_path / "epochs.csv"
    table.write_text(HEADER + rows, "utf-8")
    assert run_line("N", table) == text
