# epochwatt: from an experiment grid to every table, figure and model of the two papers.
#
#   config/studies.yaml -> run table -> train_epoch (one job per epoch) -> results/runs/{run}/epochs.csv
#   -> figures, tables, report.     The map: README.md. The contract of the parts: docs/.

import gc
import os
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.0")

# 10,000 jobs are much to look through for garbage, and Snakemake leaves hardly any
gc.set_threshold(100_000, 50, 1000)

# The package is found in the checkout, by this process and by every job's interpreter.
SRC = str(Path(workflow.basedir) / "src")
sys.path.insert(0, SRC)
os.environ.update(PYTHONPATH=SRC)


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


# in the order in which they run
include: "workflow/rules/common.smk"
include: "workflow/rules/datasets.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/idle.smk"
include: "workflow/rules/twin.smk"
include: "workflow/rules/collect.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/prediction.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/report.smk"


wildcard_constraints:
    run=r"[a-z0-9.-]+",
    idle=r"idle-[a-z0-9.-]+",
    backend=r"[a-z]+",
    first=r"\d+",
    last=r"\d+",


onstart:
    begin()


rule all:
    """Everything that `make run` makes, but for the report, which Snakemake writes afterwards."""
    default_target: True
    input:
        rules.runs.input,
        rules.figures.input,
        rules.tables.input,
        rules.paper_tables.input,
        rules.models.input,
        rules.check_claims.output,
        rules.pages.input,
        rules.validation.input,
        rules.idle_power.input,
