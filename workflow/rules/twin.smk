"""Simulated boards: what each network asks of a GPU, counted once, then runs and idle powers.

Needs: a network; config/twin/.  Gives: results/twin/workloads/{model}.json (training in fp32),
results/roofline/counts/ (other tasks and precisions), results/simulated/ in the form of measured/, and
the tables of each simulated run, which no other job has to collect.
"""

from epochwatt.served import ask
from epochwatt.twin.parameters import digests

# What asks a process that `begin` starts; software deployed for jobs (--sdm) has a Python of its own
ASK = (
    ""
    if workflow.deployment_settings.deployment_method
    else f"-I -S {shlex.quote(ask.__file__)} runs"
)

# Simulated first: what follows from predictions is the longest chain of jobs
FITTED = {
    run.id for backend in MODEL_BACKENDS for run in fitted_runs(TABLE, backend).runs
}

# All that the twin is calibrated and judged by
TWIN_EVIDENCE = sorted(map(str, Path("config/twin").glob("*.*")))
TWIN_EVIDENCE += sorted(map(str, Path("config/published").glob("*.csv")))

try:  # a comment or a new date in a file simulates nothing anew: what it says of a board does
    BOARD_DIGESTS = (
        digests(Path("config/twin"))
        if SIMULATED_MODELS
        or SIMULATED_IDLES
        or STUDY_SWEEPS
        or any(r.is_simulated for r in SWEPT)
        else {}
    )
except EpochwattError as error:
    raise WorkflowError(str(error)) from None


rule count_workload:
    """Count the kernels of one training mini-batch in fp32. This and the next rule need torch."""
    output:
        workload="results/twin/workloads/{model}.json",
    log:
        "results/logs/count_workload/{model}.log",
    wildcard_constraints:
        model="|".join(map(re.escape, sorted(SETTINGS.workloads))),
    priority: 3  # simulated runs wait for it
    localrule: True
    conda:
        ENVIRONMENT
    params:
        network=lambda wildcards: network_of(wildcards.model),
        code=code_of("count_workload.py"),
    script:
        "../scripts/count_workload.py"


rule count_work:
    """Count the kernels of one mini-batch in another task or precision."""
    output:
        workload="results/roofline/counts/{model}-{task}-{precision}.json",
    log:
        "results/logs/count_work/{model}-{task}-{precision}.log",
    wildcard_constraints:
        model="|".join(map(re.escape, sorted(SETTINGS.workloads))),
        task="train|infer",
        precision="fp32|tf32|fp16|bf16",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        network=lambda wildcards: network_of(wildcards.model),
        code=code_of("count_work.py"),
    script:
        "../scripts/count_work.py"


rule simulate_run:
    """Simulate all epochs of one run: records as a board leaves them, and its tables."""
    input:
        config=ancient(TWIN_CONFIG),  # `board` below says whether its board changed
        workload=lambda wildcards: TABLE[wildcards.run].counts,
    output:
        records=directory("results/simulated/{run}"),
        epochs="results/runs/{run}/epochs.csv",
        energy="results/runs/{run}/energy.csv",
    log:
        "results/logs/simulate_run/{run}.log",
    wildcard_constraints:
        run="twin-.+",
    priority: lambda wildcards: 3 if wildcards.run in FITTED else 2
    localrule: True
    conda:
        ENVIRONMENT
    resources:
        # as in train_epoch: strings here trigger no rerun
        command=ASK or "-m epochwatt.twin",
        tmpdir=tempfile.gettempdir(),
    params:
        factors=lambda wildcards: TABLE[wildcards.run].canonical,
        epochs=lambda wildcards: TABLE[wildcards.run].epochs,
        flag_effects=json.dumps(SETTINGS.flag_effects),
        board=lambda wildcards: board_digest(TABLE[wildcards.run]),
        config=subpath(input[0], parent=True),
        tables=subpath(output.epochs, parent=True),
        code=fingerprint("epochwatt.twin.__main__"),
    shell:  # hundreds of these jobs run, and a script would take longer
        "OPENBLAS_NUM_THREADS=1 python3 {resources.command} {wildcards.run} --factors {params.factors:q}"
        " --epochs {params.epochs} --flag-effects {params.flag_effects:q} --config {params.config:q}"
        " --workload {input.workload:q} --output {output.records:q} --tables {params.tables:q} >{log:q} 2>&1"


rule simulate_idle:
    """Simulate all idle powers, in one job: each is one number."""
    input:
        config=ancient(TWIN_CONFIG),
    output:
        records=directory("results/simulated/idle"),
    log:
        "results/logs/simulate_idle.log",
    priority: 2  # claims wait for it
    localrule: True
    conda:
        ENVIRONMENT
    resources:
        tmpdir=tempfile.gettempdir(),
    params:
        idles=json.dumps(SIMULATED_IDLES),
        boards=BOARD_DIGESTS,
        config=subpath(input[0], parent=True),
        code=code_of("simulate_idle.py"),
    script:
        "../scripts/simulate_idle.py"


rule validate_twin:
    """Hold the simulation, fitted without each take-away in turn, against the published numbers.

    `make validate` refits; this evaluates the refits of config/twin/cross_validation_fits.csv.
    """
    input:
        config=[*TWIN_EVIDENCE, *DEVICES],
        workloads=expand("results/twin/workloads/{model}.json", model=PUBLISHED_MODELS),
        style="config/paper.mplstyle",
    output:
        table="results/twin/validation.csv",
        groupings="results/twin/groupings.csv",
        text="results/twin/validation.txt",
        png="results/figures/twin/validation.png",
        csv="results/figures/twin/validation.csv",
        caption="results/figures/twin/validation.txt",
        spec="results/figures/twin/validation.vl.json",
        figure=shown(
            "results/figures/twin/validation.svg",
            "Simulated boards",
            "held-out predictions",
        ),
    log:
        "results/logs/validate_twin.log",
    benchmark:
        "results/benchmarks/validate_twin.tsv"
    localrule: True
    conda:
        ENVIRONMENT
    params:
        palette=SETTINGS.plotting.palette,
        titles=SETTINGS.titles,
        code=code_of("validate_twin.py"),
    script:
        "../scripts/validate_twin.py"
