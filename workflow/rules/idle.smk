"""Idle power of boards: measured in each power mode of the selected runs, or simulated.

Needs: a board that reports its power, or results/simulated/idle.  Gives: measured/{idle}/idle/ (kept,
not declared), the receipt results/idle/{idle}.json and the table results/tables/idle.csv.
"""

MEASURED_IDLES = [
    {"root": "measured", "id": idle.id, "place": idle.place} for idle in IDLES.values()
]


rule measure_idle:
    """Measure a board that logs metrics and does nothing else."""
    output:
        receipt="results/idle/{idle}.json",
    log:
        "results/logs/measure_idle/{idle}.log",
    conda:
        ENVIRONMENT  # unless the device has a Python of its own
    threads: workflow.cores
    resources:
        # strings in resources trigger no rerun: what differs between machines belongs here
        python=lambda wildcards: shlex.join(interpreter(IDLES[wildcards.idle])),
        machine=lambda wildcards: IDLES[wildcards.idle].machine,
        settings=lambda wildcards: IDLES[wildcards.idle].settings,
        constraint=lambda wildcards: IDLES[wildcards.idle].node or None,
    params:
        seconds=lambda wildcards: IDLES[wildcards.idle].seconds,
    shell:  # shown, too, unless our logger shows it; Ctrl-C ends the job, not the tee
        "{resources.python} -m epochwatt.board.training.idle --idle {wildcards.idle} --measured measured"
        " --settings {resources.settings:q} --seconds {params.seconds}"
        " --machine {resources.machine:q} --receipt {output.receipt:q} 2>&1"
        ' | if [ "${{EPOCHWATT_QUIET_JOBS:-}}" ]; then tee -i {log:q} >/dev/null; else tee -i {log:q}; fi'


rule collect_idle:
    """Put measured and simulated idle powers beside those entered from a plug meter."""
    input:
        receipts=[idle.receipt for idle in IDLES.values()],
        simulated="results/simulated/idle" if SIMULATED_IDLES else [],
        plug="config/idle_plug.csv",
    output:
        idle="results/tables/idle.csv",
    log:
        "results/logs/collect_idle.log",
    priority: 2  # claims wait for it
    localrule: True
    conda:
        ENVIRONMENT
    params:
        idles=[
            *MEASURED_IDLES,
            *({"root": "results/simulated/idle", **idle} for idle in SIMULATED_IDLES),
        ],
        code=code_of("collect_idle.py"),
    script:
        "../scripts/collect_idle.py"
