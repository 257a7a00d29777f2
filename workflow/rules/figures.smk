"""Figures: one rule and one job per figure number, all its panels. docs/figures.md: how to add one.

Needs: the `epochs.csv` of exactly the runs a figure draws, and their records, idle powers or predictions
where config/plotting.yaml says that it reads them; the published numbers; the style file.
Gives: results/figures/{backend}/{panel}.{svg,png,csv}.
"""

PROJECT = os.path.relpath(workflow.basedir)
STYLE = os.path.normpath(f"{PROJECT}/workflow/styles/paper.mplstyle")
PUBLISHED = [
    os.path.normpath(f"{PROJECT}/config/{path}")
    for path in (
        "published/measurements.csv",
        "published/takeaways.csv",
        "claims.yaml",
        "published/relations.csv",
        "twin/folds.csv",
        "twin/seen.csv",
    )
]
PREDICTIONS = "results/models/{backend}/predictions.csv"
IDLE_BACKENDS = {idle.place["backend"] for idle in IDLES.values()}
IDLE_BACKENDS |= {TWIN} if SIMULATED_IDLES else set()
BACKENDS = sorted(
    {run.factors["backend"] for run in TABLE.runs.values()} | IDLE_BACKENDS
)


for FIGURE, ABOUT in SETTINGS.plotting.figures.items():

    rule:
        name:
            f"plot_{FIGURE}"
        input:
            epochs=epochs_drawn(FIGURE),
            records=records_drawn(FIGURE) if "records" in ABOUT.reads else [],
            idle=idle_drawn if "idle" in ABOUT.reads else [],
            predictions=PREDICTIONS if "predictions" in ABOUT.reads else [],
            style=STYLE,
            published=PUBLISHED,
        output:
            svg=[reported(FIGURE, panel) for panel in ABOUT.panels],
            png=[f"results/figures/{{backend}}/{panel}.png" for panel in ABOUT.panels],
            csv=[f"results/figures/{{backend}}/{panel}.csv" for panel in ABOUT.panels],
        log:
            f"results/logs/plot_{FIGURE}/{{backend}}.log",
        conda:
            ENVIRONMENT
        params:
            drawing=drawing(FIGURE),
            caption=caption(FIGURE),
            code=fingerprint(drawing_module(ABOUT)),
        script:
            "../scripts/plot_figure.py"


rule figures:
    """All figures of the selected studies."""
    input:
        [
            f"results/figures/{backend}/{panel}.svg"
            for backend in BACKENDS
            for figure in SETTINGS.figures(backend, idle=backend in IDLE_BACKENDS)
            for panel in SETTINGS.panels(figure)
        ],
