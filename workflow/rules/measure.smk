"""Measuring: one job per part of a run, chained; nothing else of the workflow runs beside it.

Needs: the data set's manifest.  Gives: measured/{run}/epoch-{k}/ (kept, not declared) and the
receipt results/runs/{run}/part-{first}-{last}.json. The id of a run holds all that would cause a
new measurement, so inputs are ancient and no code or path stands in the parameters.
"""

PRIORITIES = {run: len(TABLE.runs) - place for place, run in enumerate(TABLE.runs)}


rule train_epoch:
    """Train and measure epochs {wildcards.first} to {wildcards.last} of one run."""
    input:
        before_part,
    output:
        receipt="results/runs/{run}/part-{first}-{last}.json",
    log:
        "results/logs/train_epoch/{run}/part-{first}-{last}.log",
    priority: lambda wildcards: PRIORITIES[wildcards.run]
    conda:
        ENVIRONMENT
    threads: workflow.cores
    resources:
        # strings in resources trigger no rerun: machine paths belong here
        training=training,
        tmpdir=tempfile.gettempdir(),  # Snakemake's default, but not evaluated anew for each job
    params:
        factors=lambda wildcards: TABLE[wildcards.run].canonical,
    shell:
        "{resources.training} --run {wildcards.run} --factors {params.factors:q}"
        " --first {wildcards.first} --last {wildcards.last} --measured measured"
        " --receipt {output.receipt:q} 2>&1 | tee {log:q}"


rule runs:
    """Every epoch of the selected studies measured, validated and collected."""
    input:
        [receipt for run in TABLE.runs.values() for receipt in run.receipts],
        epochs_of(TABLE.runs.values()),
