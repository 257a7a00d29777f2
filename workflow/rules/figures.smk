"""Figures: one rule and one job per figure number, all its panels.

Needs: the `epochs.csv` of exactly the runs a figure draws; the style file.
Gives: results/figures/{backend}/{panel}.{svg,png,csv}.
"""

STYLE = os.path.relpath(f"{workflow.basedir}/workflow/styles/paper.mplstyle")
BACKENDS = sorted({run.factors["backend"] for run in TABLE.runs.values()})


rule plot_fig02:
    """Draw an epoch's time by number of loader workers, and its stall by epoch."""
    input:
        epochs=lambda wildcards: epochs_of(
            SETTINGS.figure_runs("fig02", wildcards.backend)
        ),
        style=STYLE,
    output:
        csv=multiext("results/figures/{backend}/fig02", "a.csv", "b.csv"),
        png=multiext("results/figures/{backend}/fig02", "a.png", "b.png"),
        a=reported("fig02a", figure="2a", shows="epoch time by loader workers"),
        b=reported("fig02b", figure="2b", shows="stall, first and later epochs"),
    log:
        "results/logs/plot_fig02/{backend}.log",
    conda:
        ENVIRONMENT
    params:
        excluded=lambda wildcards: SETTINGS.excluded("fig02", wildcards.backend),
        titles=SETTINGS.model_titles,
        palette=SETTINGS.plotting.palette,
        panels=SETTINGS.panels("fig02"),
        code=fingerprint("epochwatt.figures.fig02"),
    script:
        "../scripts/plot_fig02.py"


rule figures:
    """All figures of the selected studies."""
    input:
        [
            f"results/figures/{backend}/{panel}.svg"
            for backend in BACKENDS
            for panel in SETTINGS.panels("fig02")
            if SETTINGS.figure_runs("fig02", backend)
        ],
