"""Training and inference on one board, within budgets of latency and power, as Fulcrum asks.

Needs: config/schedule.yaml; the counts of its networks (twin.smk); public sweeps that it names.
Gives: results/fulcrum/: tables.csv, time and power of each simulated job in each mode; learned/, what solvers with
networks profiled and predict; scores.csv, how solvers do; scores-mean.csv, the same within budgets of the mean power;
arrivals.csv, how often plans hold; power.csv, training over power budgets; latencies.csv; changing.csv, how to plan anew
as rates change; summary.csv; results/figures/{twin,public}/fulcrum_*.
"""

from epochwatt.figures.fulcrum.names import REPLANNING, stems

LEARNED_JOBS = {
    job: f"results/fulcrum/learned/{job}.npz"
    for job in (SCHEDULE.jobs if SCHEDULE else [])
}
SCHEDULE_SWEEPS = [
    f"config/sweeps/{jobs.sweep}.csv.gz"
    for jobs in (SCHEDULE.public if SCHEDULE else [])
]
# training beside requests, measured on the machine at hand (epochwatt serve-and-train)
INTERLEAVED = sorted(
    str(path.parent) for path in Path("measured/interleaved").glob("*/record.json")
)
SCHEDULE_DRAWN = [
    f"results/figures/{name}"
    for name in stems(bool(SCHEDULE and SCHEDULE.public), bool(INTERLEAVED))
]
REPLANNING_DRAWN = f"results/figures/twin/{REPLANNING}"
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
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("learn_schedules.py", *METHOD_MODULES),
        cache=".cache",
    script:
        "../scripts/learn_schedules.py"


rule score_schedules:
    """Judge all solvers on all problems of the study: budgets kept, distance to the best, profiles."""
    input:
        tables="results/fulcrum/tables.csv",
        study="config/schedule.yaml",
        sweeps=SCHEDULE_SWEEPS,
        methods=OWN_METHODS,
        learned=list(LEARNED_JOBS.values()),
    output:
        scores="results/fulcrum/scores.csv",
        mean="results/fulcrum/scores-mean.csv",
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


rule play_schedules:
    """Play plans with steady and random arrivals; training over power budgets; latencies, measured ones beside."""
    input:
        tables="results/fulcrum/tables.csv",
        study="config/schedule.yaml",
        sweeps=SCHEDULE_SWEEPS,
        methods=OWN_METHODS,
        records=[f"{folder}/record.json" for folder in INTERLEAVED],
    output:
        arrivals="results/fulcrum/arrivals.csv",
        power="results/fulcrum/power.csv",
        latencies="results/fulcrum/latencies.csv",
    log:
        "results/logs/play_schedules.log",
    benchmark:
        "results/benchmarks/play_schedules.tsv"
    localrule: True
    conda:
        ENVIRONMENT
    threads: workflow.cores
    params:
        records=INTERLEAVED,
        code=code_of("play_schedules.py", *METHOD_MODULES),
    script:
        "../scripts/play_schedules.py"


rule summarise_schedules:
    """Say in short how solvers do: means over sets of jobs, with the spread."""
    input:
        scores="results/fulcrum/scores.csv",
        arrivals="results/fulcrum/arrivals.csv",
    output:
        summary="results/fulcrum/summary.csv",
    log:
        "results/logs/summarise_schedules.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("summarise_schedules.py"),
    script:
        "../scripts/summarise_schedules.py"


rule draw_schedules:
    """Draw what solvers profile, answer and lose, training over power budgets, and latencies."""
    input:
        tables=expand(
            "results/fulcrum/{name}.csv", name=["scores", "power", "latencies"]
        ),
        style="config/paper.mplstyle",
    output:
        svg=[f"{stem}.svg" for stem in SCHEDULE_DRAWN],
        png=[f"{stem}.png" for stem in SCHEDULE_DRAWN],
        csv=[f"{stem}.csv" for stem in SCHEDULE_DRAWN],
        spec=[f"{stem}.vl.json" for stem in SCHEDULE_DRAWN],
        txt=[f"{stem}.txt" for stem in SCHEDULE_DRAWN],
    log:
        "results/logs/draw_schedules.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        stems=SCHEDULE_DRAWN,
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
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("replan_schedules.py"),
    script:
        "../scripts/replan_schedules.py"


rule draw_replanning:
    """Draw rate, plan, latency and training over time, for each way to plan anew."""
    input:
        tables=["results/fulcrum/changing-slots.csv"],
        style="config/paper.mplstyle",
    output:
        multiext(
            REPLANNING_DRAWN,
            ".svg",
            ".png",
            ".csv",
            ".vl.json",
            ".txt",
        ),
    log:
        "results/logs/draw_replanning.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        stems=[REPLANNING_DRAWN],
        code=code_of("draw_replanning.py"),
    script:
        "../scripts/draw_replanning.py"
