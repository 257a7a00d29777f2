"""The landing page and what it needs besides figures and tables; nothing depends on them.

Needs: claims; the `epochs.csv` of all runs; config/.
Gives: results/index.html, the landing page, and overview.html, the same without figures, with results/tables/{advice,energy_parts}.csv; results/summary.txt.
"""

from importlib.metadata import distributions

from epochwatt.figures.federated.names import gallery_entries as federated_entries
from epochwatt.figures.fulcrum.names import gallery_entries as fulcrum_entries
from epochwatt.figures.powertrain.looks import FIGURES, gallery_entries
from epochwatt.figures.tables.text_runs import text_backends

CONFIGURATION = sorted(
    str(path) for kind in ("yaml", "csv") for path in Path("config").rglob(f"*.{kind}")
)
MEASURED_RUNS = [run for run in RUNS if not run.is_simulated]
# linked where they are
MADE_BY_NAME = (
    "powertrain/index.html",
    "sweeps/sweep_scores.html",
    "container-overheads/index.html",
)
IS_VALIDATED = SIMULATED_MODELS.issuperset(PUBLISHED_MODELS)
PANELS = [
    (backend, figure, panel)
    for backend in BACKENDS
    for figure in SETTINGS.figures(backend, idle=backend in IDLE_BACKENDS)
    for panel in SETTINGS.panels(figure)
    if WITHOUT.has(f"results/figures/{backend}/{panel}.svg")
]
# what the landing page reads besides figures; empty: it was not made
INDEX_TABLES = {
    "epochs": "results/tables/epochs.csv",
    "runs": "results/tables/runs.csv",
    "advice": "results/tables/advice.csv",
    "claims": "results/claims.csv",
    "energy_parts": "results/tables/energy_parts.csv",
    "explanations": EXPLANATIONS,
    "printed": "results/tables/printed.csv",
    "validation": "results/twin/validation.csv" if IS_VALIDATED else "",
    "ceilings": "results/roofline/ceilings.csv" if HAS_CEILINGS else "",
}
INDEX_TABLES = {
    k: path if WITHOUT.has(path) else "" for k, path in INDEX_TABLES.items()
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
ROOFLINE_FIGURE = {
    "stem": "results/figures/roofline/time_measured",
    "backend": next((job.backend for job in CEILINGS.values()), ""),
    "paper": "none",
    "section": "Rooflines of this machine",
    "title": "Roofline: what was measured below what memory and arithmetic allow",
    "caption": "",  # it writes its own
    "claims": [],
    "words": ["ceilings", *sorted({run.factors["model"] for run in POINT_RUNS})],
}
# what is there of the studies that `snakemake powertrain`, `fulcrum` and `federated` make. They are no
# input, so that the landing page never makes them anew; when their figures were drawn is looked at
POWERTRAIN_SHOWN = {
    name: f"results/powertrain/{name}.csv"
    for name in ("numbers", "claims", "errors", "penalties")
    if Path("results/powertrain/index.html").is_file()
}
POWERTRAIN_STEMS = (
    [f"results/figures/{name}" for name in FIGURES] if POWERTRAIN_SHOWN else []
)
FULCRUM_SHOWN = {
    name: f"results/fulcrum/{name}.csv"
    for name in ("summary", "claims")
    if Path("results/fulcrum/summary.csv").is_file()
    and Path("results/fulcrum/claims.csv").is_file()
}
FULCRUM_STEMS = [
    stem
    for stem in ([*SCHEDULE_DRAWN, REPLANNING_DRAWN] if FULCRUM_SHOWN else [])
    if Path(f"{stem}.svg").is_file() and Path(f"{stem}.vl.json").is_file()
]
FEDERATED_SHOWN = {
    name: f"results/federated/{name}.csv"
    for name in ("summary", "trainings_summary", "claims")
    if Path("results/federated/claims.csv").is_file()
}
FEDERATED_STEMS = [
    stem
    for stem in (FEDERATED_DRAWN if FEDERATED_SHOWN else [])
    if Path(f"{stem}.svg").is_file() and Path(f"{stem}.vl.json").is_file()
]
STUDY_SPECS = {
    f"{stem}.vl.json": Path(f"{stem}.vl.json").stat().st_mtime_ns
    for stem in [*POWERTRAIN_STEMS, *FULCRUM_STEMS, *FEDERATED_STEMS]
}
IS_ROOFLINE_SHOWN = HAS_CEILINGS and WITHOUT.has(f"{ROOFLINE_FIGURE['stem']}.svg")
IS_VALIDATION_SHOWN = IS_VALIDATED and WITHOUT.has(f"{VALIDATION_FIGURE['stem']}.svg")
GALLERY = [ROOFLINE_FIGURE] if IS_ROOFLINE_SHOWN else []
GALLERY += [SETTINGS.gallery_entry(*place) for place in PANELS]
GALLERY += [VALIDATION_FIGURE] if IS_VALIDATION_SHOWN else []
GALLERY += gallery_entries(POWERTRAIN_STEMS)
GALLERY += fulcrum_entries(FULCRUM_STEMS)
GALLERY += federated_entries(FEDERATED_STEMS)
# what an older configuration does not have
STATEMENTS = [str(path) for path in Path("config/published").glob("statements.csv")]
INDEX_PUBLISHED = [f"config/published/{n}.csv" for n in ("measurements", "relations")]
INDEX_PUBLISHED += STATEMENTS
INDEX_DRAWINGS = [f"results/figures/{b}/{panel}.svg" for b, _, panel in PANELS]
INDEX_DRAWINGS += [f"{ROOFLINE_FIGURE['stem']}.svg"] if IS_ROOFLINE_SHOWN else []
INDEX_SPECS = [f"results/figures/{b}/{panel}.vl.json" for b, _, panel in PANELS]
INDEX_SPECS += [f"{ROOFLINE_FIGURE['stem']}.vl.json"] if IS_ROOFLINE_SHOWN else []
VALIDATION_STEMS = [VALIDATION_FIGURE["stem"]] if IS_VALIDATION_SHOWN else []
INDEX_SPECS += [f"{stem}.vl.json" for stem in VALIDATION_STEMS]


rule advise_runs:
    """Say of each measured run what holds it back, and which setting would shorten its epoch."""
    input:
        epochs_of(MEASURED_RUNS),
    output:
        "results/tables/advice.csv",
    log:
        "results/logs/advise_runs.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        settings={run.id: run.factors.get("settings", {}) for run in MEASURED_RUNS},
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
    localrule: True
    conda:
        ENVIRONMENT
    params:
        records={run.id: run.records for run in MEASURED_RUNS},
        code=code_of("split_energy.py"),
    script:
        "../scripts/split_energy.py"


rule bundle_vega:
    """Put the scripts of Vega together, which draw the landing page's interactive figures."""
    output:
        "results/vega.js",
    log:
        "results/logs/bundle_vega.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        # empty where Snakemake stands alone, which runs no job
        versions=[each.version for each in distributions(name="vl-convert-python")],
        code=code_of("bundle_vega.py"),
    script:
        "../scripts/bundle_vega.py"


rule show_index:
    """Write the landing page: the machine at hand, the papers' runs, all figures; opens offline."""
    input:
        tables=[path for path in INDEX_TABLES.values() if path],
        # numbers that are published and ours beside each other
        numbers=WITHOUT.without(
            [f"results/figures/{b}/{panel}.csv" for b, _, panel in PANELS],
            expand("results/tables/{b}/text_only.csv", b=text_backends(RUNS)),
            expand("results/models/{b}/statistics.csv", b=MODEL_BACKENDS),
        ),
        drawings=INDEX_DRAWINGS,
        specs=INDEX_SPECS,
        vega="results/vega.js",
        validation=[f"{stem}.svg" for stem in VALIDATION_STEMS],
        published=INDEX_PUBLISHED,
        config=CONFIGURATION,
    output:
        page="results/index.html",
        overview=shown("results/overview.html", "Overview", "results on one page"),
    log:
        "results/logs/show_index.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        tables={**INDEX_TABLES, "published": "config/published"},
        figures=GALLERY,
        titles=SETTINGS.titles,
        palette=SETTINGS.palette,
        records={run.id: run.records for run in RUNS},
        excluded=SETTINGS.excluded(),
        further=[
            path
            for path in MADE_BY_NAME
            if Path("results", path).is_file() and WITHOUT.has(f"results/{path}")
        ],
        powertrain=POWERTRAIN_SHOWN,
        fulcrum=FULCRUM_SHOWN,
        federated=FEDERATED_SHOWN,
        study_specs=STUDY_SPECS,
        not_made=WITHOUT.shown(),
        code=code_of("show_index.py"),
    script:
        "../scripts/show_index.py"


rule summarise:
    """Say in a few lines how many claims hold, where time and energy go, what is fastest."""
    input:
        epochs=epochs_of(RUNS),
        claims=INDEX_TABLES["claims"] or [],
    output:
        text="results/summary.txt",
    log:
        "results/logs/summarise.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        excluded=SETTINGS.excluded(),
        titles=SETTINGS.titles,
        code=code_of("summarise.py"),
    script:
        "../scripts/summarise.py"
