"""Models of the time and the energy of an epoch in any power mode; two backends never meet.

Needs: the `epochs.csv` of the runs that differ in the power mode only, DVFS off.
Gives: results/models/{backend}/: the choice of four modes, models as JSON, predictions, scores.
"""

from epochwatt.prediction.data.required_runs import backends

MODEL_BACKENDS = backends(TABLE)
MODELS = "results/models/{backend}"


rule choose_power_modes:
    """Search the four modes that the paper's model of time learns from, beside other choices."""
    input:
        epochs=epochs_fitted,
    output:
        choices=f"{MODELS}/power_modes.json",
        ranking=f"{MODELS}/power_modes.csv",
    log:
        "results/logs/choose_power_modes/{backend}.log",
    conda:
        ENVIRONMENT
    params:
        modes=modes_fitted,
        code=fingerprint("epochwatt.prediction.selection.choose_power_modes"),
    script:
        "../scripts/choose_power_modes.py"


rule fit_epoch_time:
    """Fit models of the time of an epoch: the paper's, and others at the same profiling cost."""
    input:
        epochs=epochs_fitted,
        choices=rules.choose_power_modes.output.choices,
    output:
        models=f"{MODELS}/epoch_time.json",
    log:
        "results/logs/fit_epoch_time/{backend}.log",
    conda:
        ENVIRONMENT
    params:
        modes=modes_fitted,
        code=fingerprint("epochwatt.prediction.evaluation.fit_models"),
    script:
        "../scripts/fit_epoch_time.py"


rule fit_epoch_energy:
    """Fit models of energy: the paper's universal one, and of power for time x power."""
    input:
        epochs=epochs_fitted,
        choices=rules.choose_power_modes.output.choices,
        times=rules.fit_epoch_time.output.models,
    output:
        models=f"{MODELS}/epoch_energy.json",
    log:
        "results/logs/fit_epoch_energy/{backend}.log",
    conda:
        ENVIRONMENT
    params:
        modes=modes_fitted,
        code=fingerprint("epochwatt.prediction.evaluation.fit_models"),
    script:
        "../scripts/fit_epoch_energy.py"


rule score_predictions:
    """Put predictions beside what was seen, count as the paper does, score models side by side."""
    input:
        epochs=epochs_fitted,
        choices=rules.choose_power_modes.output.choices,
        times=rules.fit_epoch_time.output.models,
        energies=rules.fit_epoch_energy.output.models,
        published=PUBLISHED,
        counts=simulated_networks,
        config=[*TWIN_CONFIG, "config/twin/refits.csv"],
    output:
        predictions=f"{MODELS}/predictions.csv",
        tables=[f"{MODELS}/statistics.csv", f"{MODELS}/scores.csv"],
        page=tabulated(
            f"{MODELS}/scores.html",
            "scores",
            "predictions of time and energy",
        ),
    log:
        "results/logs/score_predictions/{backend}.log",
    conda:
        ENVIRONMENT
    params:
        modes=modes_fitted,
        code=fingerprint(
            "epochwatt.prediction.evaluation.score_predictions",
            "epochwatt.figures.tables.scores",
        ),
    script:
        "../scripts/score_predictions.py"


rule models:
    """All models that the selected studies have runs for."""
    input:
        expand(f"{MODELS}/scores.html", backend=MODEL_BACKENDS),
