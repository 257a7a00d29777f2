"""Training and inference on one simulated board, within budgets of latency and power, as Fulcrum asks.

Needs: config/schedule.yaml; the counts of its networks (twin.smk).
Gives: results/fulcrum/: tables.csv, time and power of each job in each mode; learned/, what solvers with networks profiled and predict; scores.csv, how solvers do; changing.csv, how to plan anew as rates
change; results/figures/fulcrum/: solvers.svg, replanning.svg.
"""

LEARNED_JOBS = {
    job: f"results/fulcrum/learned/{job}.npz"
    for job in (SCHEDULE.jobs if SCHEDULE else [])
}

CHANGING = SCHEDULE.changing if SCHEDULE else None
TRACES = (
    [rates.file for rates in CHANGING.rates.values() if rates.file] if CHANGING else []
)


rule simulate_schedules:
    """Simulate each job of the study in each mode and at each mini-batch size."""
    input:
        study="config/schedule.yaml",
        devices=DEVICES,
        workloads="config/workloads.yaml",
        config=TWIN_CONFIG,
        counts=[counts_path(*work) for work in (SCHEDULE.works if SCHEDULE else [])],
    output:
        tables="results/fulcrum/tables.csv",
    log:
        "results/logs/simulate_schedules.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("simulate_schedules.py"),
    script:
        "../scripts/simulate_schedules.py"


rule learn_schedules:
    """Let solvers with networks profile one job, for all problems of it: minutes of one core."""
    input:
        tables="results/fulcrum/tables.csv",
        study="config/schedule.yaml",
    output:
        known="results/fulcrum/learned/{job}.npz",
    log:
        "results/logs/learn_schedules/{job}.log",
    wildcard_constraints:
        job="|".join(LEARNED_JOBS) or "(?!)",
    conda:
        ENVIRONMENT
    params:
        code=code_of("learn_schedules.py", *METHOD_MODULES),
    script:
        "../scripts/learn_schedules.py"


rule score_schedules:
    """Judge all solvers on all problems of the study: budgets kept, distance to the best, profiles."""
    input:
        tables="results/fulcrum/tables.csv",
        study="config/schedule.yaml",
        methods=OWN_METHODS,
        learned=list(LEARNED_JOBS.values()),
    output:
        scores="results/fulcrum/scores.csv",
    log:
        "results/logs/score_schedules.log",
    benchmark:
        "results/benchmarks/score_schedules.tsv"
    localrule: True
    conda:
        ENVIRONMENT
    threads: workflow.cores
    params:
        learned=LEARNED_JOBS,
        code=code_of("score_schedules.py", *METHOD_MODULES),
    script:
        "../scripts/score_schedules.py"


rule draw_schedules:
    """Draw what solvers profile, how often they answer within budgets, and what they lose."""
    input:
        scores="results/fulcrum/scores.csv",
        style="config/paper.mplstyle",
    output:
        multiext(
            "results/figures/fulcrum/solvers",
            ".svg",
            ".png",
            ".csv",
            ".vl.json",
            ".txt",
        ),
    log:
        "results/logs/draw_schedules.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("draw_schedules.py"),
    script:
        "../scripts/draw_schedules.py"


rule replan_schedules:
    """Play rates that change, slot by slot: ways to plan anew against the best of all."""
    input:
        tables="results/fulcrum/tables.csv",
        study="config/schedule.yaml",
        traces=TRACES,
    output:
        scores="results/fulcrum/changing.csv",
        slots="results/fulcrum/changing-slots.csv",
    log:
        "results/logs/replan_schedules.log",
    benchmark:
        "results/benchmarks/replan_schedules.tsv"
    conda:
        ENVIRONMENT
    params:
        code=code_of("replan_schedules.py"),
    script:
        "../scripts/replan_schedules.py"


rule draw_replanning:
    """Draw rate, plan, latency and training over time, for each way to plan anew."""
    input:
        slots="results/fulcrum/changing-slots.csv",
        style="config/paper.mplstyle",
    output:
        multiext(
            "results/figures/fulcrum/replanning",
            ".svg",
            ".png",
            ".csv",
            ".vl.json",
            ".txt",
        ),
    log:
        "results/logs/draw_replanning.log",
    conda:
        ENVIRONMENT
    params:
        code=code_of("draw_replanning.py"),
    script:
        "../scripts/draw_replanning.py"
