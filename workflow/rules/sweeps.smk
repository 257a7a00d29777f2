"""Sweeps: one workload in many modes, measured by chunks of modes, or simulated all at once.

Needs: the data set's manifest; for simulated sweeps the network's counts and config/twin/.
Gives: measured/{sweep}/mode-.../ (kept, not declared), receipts below results/sweeps/{sweep}/ and
the tables results/sweeps/{name}.csv. The id of a sweep holds all that would cause a new measurement
of its modes; which modes there are is in the list beside the receipts.
"""

from epochwatt.sweeps.discard import forget_lost_modes

LISTS = "results/sweeps/{sweep}/{grid}"
MEASURED_SWEEPS = {s.name: s for s in SWEEPS.sweeps.values() if not s.is_simulated}
SIMULATED_SWEEPS = {s.name: s for s in SWEEPS.sweeps.values() if s.is_simulated}


if workflow.is_main_process:
    for message in forget_lost_modes(MEASURED_SWEEPS.values()):
        print(message, file=sys.stderr)


wildcard_constraints:
    sweep=r"[a-z0-9.-]+",
    grid=r"[0-9a-f]{8}",  # digest of the list of modes


rule list_modes:
    """Write down the modes of a sweep, in the order in which they are measured."""
    output:
        modes=f"{LISTS}/modes.json",
    log:
        "results/logs/list_modes/{sweep}/{grid}.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        modes=lambda wildcards: SWEEPS.of_grid(wildcards.sweep, wildcards.grid).settings,
        code=code_of("list_modes.py"),
    script:
        "../scripts/list_modes.py"


rule measure_modes:
    """Measure modes {wildcards.first} to {wildcards.last} of one sweep."""
    input:
        lambda wildcards: ancient(SWEEPS.of_id(wildcards.sweep).run.manifest),
        modes=ancient(f"{LISTS}/modes.json"),
    output:
        receipt=f"{LISTS}/{{first}}-{{last}}.json",
    log:
        "results/logs/measure_modes/{sweep}/{grid}/{first}-{last}.log",
    priority: lambda wildcards: SWEEPS.priority(wildcards.sweep, int(wildcards.first))
    conda:
        ENVIRONMENT  # unless the device has a Python of its own
    threads: workflow.cores
    resources:
        # as in train_epoch: strings here trigger no rerun
        command=lambda wildcards: SWEEPS.of_id(wildcards.sweep).command,
        constraint=lambda wildcards: SWEEPS.of_id(wildcards.sweep).run.node or None,
        tmpdir=tempfile.gettempdir(),
    params:
        factors=lambda wildcards: SWEEPS.of_id(wildcards.sweep).run.canonical,
    shell:  # shown, too, unless our logger shows it; Ctrl-C ends the job, not the tee
        "( {resources.command} --sweep {wildcards.sweep} --factors {params.factors:q}"
        " --modes {input.modes:q} --first {wildcards.first} --last {wildcards.last}"
        " --measured measured --receipt {output.receipt:q}"
        " || python3 -m epochwatt.board.training.ended $? ) 2>&1"
        ' | if [ "${{EPOCHWATT_QUIET_JOBS:-}}" ]; then tee -i {log:q} >/dev/null; else tee -i {log:q}; fi'


rule collect_sweep:
    """Make a table of a sweep's modes: time, power, what is known against each."""
    input:
        receipts=lambda wildcards: MEASURED_SWEEPS[wildcards.name].receipts,
    output:
        table="results/sweeps/{name}.csv",
    log:
        "results/logs/collect_sweep/{name}.log",
    wildcard_constraints:
        name="|".join(map(re.escape, MEASURED_SWEEPS)) or "(?!)",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        measured="measured",  # not an input: what was measured is never made anew
        sweep=lambda wildcards: MEASURED_SWEEPS[wildcards.name].facts,
        flag_effects=SETTINGS.flag_effects,
        code=code_of("collect_sweep.py"),
    script:
        "../scripts/collect_sweep.py"


rule simulate_sweep:
    """Simulate all modes of a sweep, in one call."""
    input:
        config=ancient(TWIN_CONFIG),  # `board` below says whether its board changed
        workload=lambda wildcards: SWEEPS.named(wildcards.name).run.counts,
    output:
        table="results/sweeps/{name}.csv",
    log:
        "results/logs/simulate_sweep/{name}.log",
    wildcard_constraints:
        name="|".join(map(re.escape, [*SIMULATED_SWEEPS, *STUDY_SWEEPS])) or "(?!)",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        sweep=lambda wildcards: SWEEPS.named(wildcards.name).facts,
        board=lambda wildcards: BOARD_DIGESTS.get(
            SWEEPS.named(wildcards.name).run.factors["device"]
        ),
        config=subpath(input[0], parent=True),
        code=code_of("simulate_sweep.py"),
    script:
        "../scripts/simulate_sweep.py"
