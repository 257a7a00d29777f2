"""Training and inference on one simulated board, within budgets of latency and power, as Fulcrum asks.

Needs: config/schedule.yaml; the counts of its networks (twin.smk).
Gives: results/fulcrum/: tables.csv, time and power of each job in each mode; scores.csv, how solvers do; results/figures/fulcrum/solvers.svg.
"""

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
    localrule: True
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
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("draw_schedules.py"),
    script:
        "../scripts/draw_schedules.py"
