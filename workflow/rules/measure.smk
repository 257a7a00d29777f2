"""Measuring: one job per part of a run, chained; nothing else of the workflow runs beside it.

Needs: the data set's manifest.  Gives: measured/{run}/epoch-{k}/ (kept, not declared) and the
receipt results/runs/{run}/part-{first}-{last}.json. The id of a run holds all that would cause a
new measurement, so inputs are ancient and no code or path stands in the parameters.
"""

# above those of ceilings and data sets, which are 4, and of all that measures nothing, which are 3 at most
PRIORITIES = {run.id: 4 + len(RUNS) - place for place, run in enumerate(RUNS)}


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
        ENVIRONMENT  # unless the device has a Python of its own
    threads: workflow.cores
    resources:
        # the start of the command is a resource because strings there trigger no rerun: a run must not
        # be measured again because of another interpreter or another path to the data
        command=training_command,
        constraint=lambda wildcards: TABLE[wildcards.run].node or None,
        tmpdir=tempfile.gettempdir(),  # Snakemake's default, but not evaluated anew for each job
    params:
        factors=lambda wildcards: TABLE[wildcards.run].canonical,
    shell:  # shown, too, unless our logger shows it; Ctrl-C ends the job, not the tee
        "( {resources.command} --run {wildcards.run} --factors {params.factors:q}"
        " --first {wildcards.first} --last {wildcards.last} --measured measured"
        " --receipt {output.receipt:q} || python3 -m epochwatt.board.training.ended $? ) 2>&1"
        ' | if [ "${{EPOCHWATT_QUIET_JOBS:-}}" ]; then tee -i {log:q} >/dev/null; else tee -i {log:q}; fi'
