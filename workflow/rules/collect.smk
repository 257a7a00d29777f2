"""From receipts and records to tables.

Needs: receipts; measured/{run}/.  Gives: results/runs/{run}/epochs.csv, which figures and models
take, and the exports results/tables/{epochs,runs}.csv, which nothing depends on.
"""


rule collect_run:
    """Validate the records of a run's epochs, flag them, write one row per epoch."""
    input:
        receipts=lambda wildcards: TABLE[wildcards.run].receipts,
    output:
        epochs="results/runs/{run}/epochs.csv",
        energy="results/runs/{run}/energy.csv",
    log:
        "results/logs/collect_run/{run}.log",
    wildcard_constraints:
        run="(?!twin-).+",  # a simulated run collects itself
    localrule: True
    conda:
        ENVIRONMENT
    resources:
        tmpdir=tempfile.gettempdir(),  # as in train_epoch
    params:
        measured="measured",  # not an input: what was measured is never made anew
        n_epochs=lambda wildcards: TABLE[wildcards.run].epochs,
        flag_effects=SETTINGS.flag_effects,
        code=code_of("collect_run.py"),
    script:
        "../scripts/collect_run.py"


rule collect_study:
    """Export all epochs, and their statistics per run, for people and other tools."""
    input:
        epochs=epochs_of(RUNS),
    output:
        epochs=shown("results/tables/epochs.csv", "Tables", "all epochs"),
        runs=shown("results/tables/runs.csv", "Tables", "statistics per run"),
    log:
        "results/logs/collect_study.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        studies={run.id: " ".join(run.studies) for run in RUNS},
        code=code_of("collect_study.py"),
    script:
        "../scripts/collect_study.py"
