"""What holds measured runs back, by the ceilings of their machine.

Needs: results/roofline/fits_measured.csv; `epochs.csv` and counts of the runs whose studies ask for ceilings.
Gives: results/tables/explanations.csv.
"""

EXPLAINED_RUNS = POINT_RUNS if CEILINGS else []
EXPLANATIONS = "results/tables/explanations.csv" if EXPLAINED_RUNS else ""


rule explain_runs:
    """Split the time and energy of measured runs by the rooflines of their mode."""
    input:
        epochs=epochs_of(EXPLAINED_RUNS),
        counts=sorted({run.counts for run in EXPLAINED_RUNS}),
        fits="results/roofline/fits_measured.csv",
    output:
        table="results/tables/explanations.csv",
    log:
        "results/logs/explain_runs.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        runs=[point_run(run, SETTINGS) for run in EXPLAINED_RUNS],
        code=code_of("explain_runs.py"),
    script:
        "../scripts/explain_runs.py"
