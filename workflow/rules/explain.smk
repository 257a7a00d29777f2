"""What holds measured runs back, by the ceilings of their machine.

Needs: results/roofline/fits_measured.csv; `epochs.csv` and counts of the runs whose studies ask for ceilings.
Gives: results/tables/explanations.csv; counts of tasks and precisions that are not simulated.
"""

EXPLAINED_RUNS = ceiling_runs(SETTINGS) if CEILINGS else []
EXPLANATIONS = "results/tables/explanations.csv" if EXPLAINED_RUNS else ""


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


rule explain_runs:
    """Split the time and energy of measured runs by the rooflines of their mode."""
    input:
        epochs=epochs_of(EXPLAINED_RUNS),
        counts=sorted({work_of(run) for run in EXPLAINED_RUNS}),
        fits="results/roofline/fits_measured.csv",
    output:
        table="results/tables/explanations.csv",
    log:
        "results/logs/explain_runs.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        runs=[explained_run(run) for run in EXPLAINED_RUNS],
        code=code_of("explain_runs.py"),
    script:
        "../scripts/explain_runs.py"
