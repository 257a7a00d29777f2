"""Ceilings: what a device reaches at best, measured with micro-kernels in the modes asked for.

Needs: nothing; `ceilings: true` of a selected study or sweep.  Gives: measured/{ceilings}/mode-.../
(kept, not declared), receipts below results/roofline/{ceilings}/, results/roofline/ceilings.csv, and
results/roofline/points.csv: what the measured runs of these studies did beside it.
"""

from epochwatt.roofline.wanted import ceiling_runs, point_run, wanted_ceilings
from epochwatt.sweeps.discard import forget_lost_modes

CEILING_LISTS = "results/roofline/{ceilings}/{grid}"
try:
    CEILINGS = {
        name: job
        for name, job in wanted_ceilings(SETTINGS, SWEEPS).items()
        if all(map(WITHOUT.has, job.receipts))
    }
except EpochwattError as error:
    raise WorkflowError(str(error)) from None
HAS_CEILINGS = bool(CEILINGS)
POINT_RUNS = ceiling_runs(SETTINGS)

if workflow.is_main_process:
    for message in forget_lost_modes(CEILINGS.values()):
        print(message, file=sys.stderr)


wildcard_constraints:
    ceilings=r"ceilings-[a-z0-9.-]+",


rule list_ceiling_modes:
    """Write down the modes in which the ceilings of a device are measured."""
    output:
        modes=f"{CEILING_LISTS}/modes.json",
    log:
        "results/logs/list_ceiling_modes/{ceilings}/{grid}.log",
    priority: 4  # measuring waits for it
    localrule: True
    conda:
        ENVIRONMENT
    params:
        modes=lambda wildcards: CEILINGS[wildcards.ceilings].settings,
        code=code_of("list_ceiling_modes.py"),
    script:
        "../scripts/list_ceiling_modes.py"


rule measure_ceilings:
    """Measure what a device reaches at best, in one mode after the other."""
    input:
        modes=ancient(f"{CEILING_LISTS}/modes.json"),
    output:
        receipt=f"{CEILING_LISTS}/receipt.json",
    log:
        "results/logs/measure_ceilings/{ceilings}/{grid}.log",
    priority: 4  # after the last run, so that its figures are made beside others
    conda:
        ENVIRONMENT  # unless the device has a Python of its own
    threads: workflow.cores
    resources:
        # as in train_epoch: strings here trigger no rerun
        command=lambda wildcards: CEILINGS[wildcards.ceilings].command,
        constraint=lambda wildcards: CEILINGS[wildcards.ceilings].node or None,
        tmpdir=tempfile.gettempdir(),
    shell:  # shown, too, unless our logger shows it; Ctrl-C ends the job, not the tee
        "( {resources.command} --ceilings {wildcards.ceilings} --modes {input.modes:q}"
        " --measured measured --receipt {output.receipt:q}"
        " || python3 -m epochwatt.board.training.ended $? ) 2>&1"
        ' | if [ "${{EPOCHWATT_QUIET_JOBS:-}}" ]; then tee -i {log:q} >/dev/null; else tee -i {log:q}; fi'


rule collect_ceilings:
    """Make a table of all ceilings: time, power and clock of each micro-kernel in each mode."""
    input:
        receipts=[receipt for job in CEILINGS.values() for receipt in job.receipts],
    output:
        table="results/roofline/ceilings.csv",
    log:
        "results/logs/collect_ceilings.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        measured="measured",  # not an input: what was measured is never made anew
        places=[job.place for job in CEILINGS.values()],
        flag_effects=SETTINGS.flag_effects,
        code=code_of("collect_ceilings.py"),
    script:
        "../scripts/collect_ceilings.py"


rule place_points:
    """Put beside the ceilings what measured runs did: work and time of their mini-batches."""
    input:
        epochs=epochs_of(POINT_RUNS),
        counts=sorted({run.counts for run in POINT_RUNS}),
    output:
        points="results/roofline/points.csv",
    log:
        "results/logs/place_points.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        runs=[point_run(run, SETTINGS) for run in POINT_RUNS],
        code=code_of("place_points.py"),
    script:
        "../scripts/place_points.py"
