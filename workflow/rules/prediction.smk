"""Models of the time and the energy of an epoch in any power mode; two backends never meet.

Needs: the `epochs.csv` of the runs that differ in the power mode only, DVFS off.
Gives: results/models/{backend}/: the choice of four modes, models as JSON, predictions, scores.

And of sweeps that others measured (config/sweeps/): results/sweeps/scores.csv, sweep_scores.html.
"""

PUBLIC_SWEEPS = sorted(
    path.name.removesuffix(".csv.gz") for path in Path("config/sweeps").glob("*.csv.gz")
)
# figures.tables.sweep_scores.DRAWINGS, which takes matplotlib to import
SWEEP_DRAWINGS = [
    *(f"learning_{target}" for target in ("time", "power", "energy")),
    *("broken_budgets", "regret", "four_modes"),
]


rule choose_power_modes:
    """Search the four modes that the paper's model of time learns from, beside other choices."""
    input:
        epochs=epochs_fitted,
    output:
        choices="results/models/{backend}/power_modes.json",
        ranking="results/models/{backend}/power_modes.csv",
    log:
        "results/logs/choose_power_modes/{backend}.log",
    benchmark:
        "results/benchmarks/choose_power_modes/{backend}.tsv"
    priority: 2  # claims and the front page wait for it
    localrule: True
    conda:
        ENVIRONMENT
    params:
        modes=modes_fitted,
        code=code_of("choose_power_modes.py"),
    script:
        "../scripts/choose_power_modes.py"


rule fit_epoch_time:
    """Fit all prediction methods to the time of an epoch."""
    input:
        epochs=epochs_fitted,
        choices="results/models/{backend}/power_modes.json",
        methods=OWN_METHODS,
    output:
        models="results/models/{backend}/epoch_time.json",
    log:
        "results/logs/fit_epoch_time/{backend}.log",
    benchmark:
        "results/benchmarks/fit_epoch_time/{backend}.tsv"
    priority: 2  # claims and the front page wait for it
    localrule: True
    conda:
        ENVIRONMENT
    params:
        modes=modes_fitted,
        code=code_of("fit_epoch_time.py", *METHOD_MODULES),
    script:
        "../scripts/fit_epoch_time.py"


rule fit_epoch_energy:
    """Fit all prediction methods to the power and the energy of an epoch."""
    input:
        epochs=epochs_fitted,
        choices="results/models/{backend}/power_modes.json",
        methods=OWN_METHODS,
    output:
        models="results/models/{backend}/epoch_energy.json",
    log:
        "results/logs/fit_epoch_energy/{backend}.log",
    benchmark:
        "results/benchmarks/fit_epoch_energy/{backend}.tsv"
    priority: 2  # claims and the front page wait for it
    localrule: True
    conda:
        ENVIRONMENT
    params:
        modes=modes_fitted,
        code=code_of("fit_epoch_energy.py", *METHOD_MODULES),
    script:
        "../scripts/fit_epoch_energy.py"


rule predict_modes:
    """Compare predictions with observations, count as the paper does."""
    input:
        epochs=epochs_fitted,
        choices="results/models/{backend}/power_modes.json",
        times="results/models/{backend}/epoch_time.json",
        energies="results/models/{backend}/epoch_energy.json",
        measurements="config/published/measurements.csv",
        relations="config/published/relations.csv",
        claims="config/claims.yaml",
        methods=OWN_METHODS,
    output:
        predictions="results/models/{backend}/predictions.csv",
        statistics="results/models/{backend}/statistics.csv",
    log:
        "results/logs/predict_modes/{backend}.log",
    priority: 2  # claims and the front page wait for it
    localrule: True
    conda:
        ENVIRONMENT
    params:
        modes=modes_fitted,
        published=subpath(input.measurements, parent=True),
        folder=subpath(output.predictions, parent=True),
        code=code_of("predict_modes.py", *METHOD_MODULES),
    script:
        "../scripts/predict_modes.py"


rule score_predictions:
    """Score all methods side by side at the same profiling cost."""
    input:
        epochs=epochs_fitted,
        choices="results/models/{backend}/power_modes.json",
        statistics="results/models/{backend}/statistics.csv",
        counts=simulated_networks,
        methods=OWN_METHODS,
        config=TWIN_CONFIG,
        refits="config/twin/cross_validation_fits.csv",
        style="config/paper.mplstyle",
    output:
        scores="results/models/{backend}/scores.csv",
        drawing=multiext("results/models/{backend}/methods", ".svg", ".png", ".csv"),
        page=shown(
            "results/models/{backend}/scores.html", "Predictions", "time and energy"
        ),
    log:
        "results/logs/score_predictions/{backend}.log",
    priority: 1  # long: claims and figures are made beside it
    localrule: True
    conda:
        ENVIRONMENT
    params:
        modes=modes_fitted,
        folder=subpath(output.scores, parent=True),
        titles=SETTINGS.titles,
        code=code_of("score_predictions.py", *METHOD_MODULES),
    script:
        "../scripts/score_predictions.py"


rule score_sweep:
    """Judge all prediction methods on one sweep that others measured."""
    input:
        table="config/sweeps/{sweep}.csv.gz",
        methods=OWN_METHODS,
    output:
        scores="results/sweeps/scores/{sweep}.csv",
    log:
        "results/logs/score_sweep/{sweep}.log",
    benchmark:
        "results/benchmarks/score_sweep/{sweep}.tsv"
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("score_sweep.py", *METHOD_MODULES),
    script:
        "../scripts/score_sweep.py"


rule score_sweeps:
    """Show on one page which method predicts which real sweep best, and how sure that is."""
    input:
        scores=expand("results/sweeps/scores/{sweep}.csv", sweep=PUBLIC_SWEEPS),
        style="config/paper.mplstyle",
    output:
        table="results/sweeps/scores.csv",
        drawings=multiext(
            "results/figures/public/sweep_",
            *(
                f"{name}{end}"
                for name in SWEEP_DRAWINGS
                for end in (".svg", ".png", ".csv")
            ),
        ),
        page=shown("results/sweeps/sweep_scores.html", "Predictions", "on real sweeps"),
    log:
        "results/logs/score_sweeps.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("score_sweeps.py"),
    script:
        "../scripts/score_sweeps.py"
