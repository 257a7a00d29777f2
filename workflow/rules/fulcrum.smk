"""Training and inference on one simulated board, within budgets of latency and power, as Fulcrum asks.

Needs: config/schedule.yaml; the counts of its networks (twin.smk).
Gives: results/fulcrum/: tables.csv, time and power of each job in each mode; scores.csv, how solvers do; changing.csv, how to plan
anew as rates change; results/figures/fulcrum/: solvers.svg, replanning.svg.
"""

SCHEDULE_COUNTS = {
    model: f"results/twin/workloads/{model}.json"
    for model in (SCHEDULE.models if SCHEDULE else [])
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
        counts=list(SCHEDULE_COUNTS.values()),
    output:
        tables="results/fulcrum/tables.csv",
    log:
        "results/logs/simulate_schedules.log",
    conda:
        ENVIRONMENT
    params:
        counts=SCHEDULE_COUNTS,
        code=code_of("simulate_schedules.py"),
    script:
        "../scripts/simulate_schedules.py"


rule score_schedules:
    """Judge all solvers on all problems of the study: budgets kept, distance to the best, profiles."""
    input:
        tables="results/fulcrum/tables.csv",
        study="config/schedule.yaml",
        methods=OWN_METHODS,
    output:
        scores="results/fulcrum/scores.csv",
    log:
        "results/logs/score_schedules.log",
    benchmark:
        "results/benchmarks/score_schedules.tsv"
    conda:
        ENVIRONMENT
    threads: workflow.cores
    params:
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
