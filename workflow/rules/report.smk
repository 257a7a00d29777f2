"""Pages that the report shows beside figures and tables; nothing depends on them.

Needs: claims; the `epochs.csv` of all runs; config/.
Gives: results/index.html, the landing page, with results/tables/{advice,energy_parts}.csv; results/summary.{txt,html},
results/claims.html, results/configuration.html.
"""

from epochwatt.figures.tables.tabulate_text_only import text_backends

CONFIGURATION = sorted(
    str(path) for kind in ("yaml", "csv") for path in Path("config").rglob(f"*.{kind}")
)
MEASURED_RUNS = [run for run in RUNS if not run.is_simulated]
MADE_BY_NAME = ("sweeps/sweep_scores.html", "external.html")  # linked where they are
IS_VALIDATED = SIMULATED_MODELS.issuperset(PUBLISHED_MODELS)
PANELS = [
    (backend, figure, panel)
    for backend in BACKENDS
    for figure in SETTINGS.figures(backend, idle=backend in IDLE_BACKENDS)
    for panel in SETTINGS.panels(figure)
]
# what the landing page reads besides figures; empty: it was not made
INDEX_TABLES = {
    "runs": "results/tables/runs.csv",
    "advice": "results/tables/advice.csv",
    "claims": "results/claims.csv",
    "energy_parts": "results/tables/energy_parts.csv",
    "validation": "results/twin/validation.csv" if IS_VALIDATED else "",
}
VALIDATION_FIGURE = {
    "stem": "results/figures/twin/validation",
    "backend": "twin",
    "paper": "none",
    "section": "The simulation against the papers",
    "title": "What the simulation predicts, fitted without the number",
    "caption": Path(workflow.source_path("../report/validation.rst")).read_text(),
    "claims": [],
    "words": [],
}


rule advise_runs:
    """Say of each measured run what holds it back, and which setting would shorten its epoch."""
    input:
        epochs_of(MEASURED_RUNS),
    output:
        "results/tables/advice.csv",
    log:
        "results/logs/advise_runs.log",
    conda:
        ENVIRONMENT
    params:
        code=code_of("advise_runs.py"),
    script:
        "../scripts/advise_runs.py"


rule split_energy:
    """Split the energy of measured runs: constant power, and CPU, GPU and memory as rails tell."""
    input:
        epochs=epochs_of(MEASURED_RUNS),
        scopes=[run.energy_csv for run in MEASURED_RUNS],
        idle=IDLE_CSV,
    output:
        "results/tables/energy_parts.csv",
    log:
        "results/logs/split_energy.log",
    conda:
        ENVIRONMENT
    params:
        records={run.id: run.records for run in MEASURED_RUNS},
        code=code_of("split_energy.py"),
    script:
        "../scripts/split_energy.py"


rule show_index:
    """Write the landing page: the machine at hand, the papers' runs, all figures; opens offline."""
    input:
        tables=[path for path in INDEX_TABLES.values() if path],
        # numbers that are published and ours beside each other
        numbers=[f"results/figures/{b}/{panel}.csv" for b, _, panel in PANELS]
        + expand("results/tables/{backend}/text_only.csv", backend=text_backends(RUNS)),
        drawings=[f"results/figures/{b}/{panel}.svg" for b, _, panel in PANELS],
        specs=[f"results/figures/{b}/{panel}.vl.json" for b, _, panel in PANELS]
        + (["results/figures/twin/validation.vl.json"] if IS_VALIDATED else []),
        epochs="results/tables/epochs.csv",
        validation="results/figures/twin/validation.svg" if IS_VALIDATED else [],
        published=[
            "config/published/measurements.csv",
            "config/published/relations.csv",
        ],
    output:
        page="results/index.html",
    log:
        "results/logs/show_index.log",
    conda:
        ENVIRONMENT
    params:
        tables={**INDEX_TABLES, "published": "config/published"},
        figures=[SETTINGS.gallery_entry(*place) for place in PANELS]
        + ([VALIDATION_FIGURE] if IS_VALIDATED else []),
        titles=SETTINGS.titles,
        palette=SETTINGS.palette,
        records={run.id: run.records for run in RUNS},
        further=[path for path in MADE_BY_NAME if Path("results", path).is_file()],
        code=code_of("show_index.py"),
    script:
        "../scripts/show_index.py"


rule summarise:
    """Say on one page how many claims hold, where time and energy go, which settings none beats."""
    input:
        epochs=epochs_of(RUNS),
        claims="results/claims.csv",
    output:
        text="results/summary.txt",
        page=shown("results/summary.html", "Summary", "summary on one page"),
    log:
        "results/logs/summarise.log",
    conda:
        ENVIRONMENT
    params:
        excluded=SETTINGS.excluded(),
        titles=SETTINGS.titles,
        palette=SETTINGS.plotting.palette,
        code=code_of("summarise.py"),
    script:
        "../scripts/summarise.py"


rule show_claims:
    """Show the claims by take-away: what holds on which runs, what does not, what is missing."""
    input:
        claims="results/claims.csv",
    output:
        page=shown("results/claims.html", "Claims", "every claim, by take-away"),
    log:
        "results/logs/show_claims.log",
    conda:
        ENVIRONMENT
    params:
        code=code_of("show_claims.py"),
    script:
        "../scripts/show_claims.py"


rule show_configuration:
    """Show versions, the machines of runs and the configuration."""
    input:
        config=CONFIGURATION,
        epochs=epochs_of(MEASURED_RUNS),
    output:
        page=shown(
            "results/configuration.html",
            "Configuration",
            "versions and configuration",
        ),
    log:
        "results/logs/show_configuration.log",
    conda:
        ENVIRONMENT
    params:
        records={run.id: run.records for run in MEASURED_RUNS},
        code=code_of("show_configuration.py"),
    script:
        "../scripts/show_configuration.py"
