"""The tables of SIGMETRICS 2023, where runs of its grid are selected, and what only its text tells.

Needs: config/; counts of the simulated networks; the `epochs.csv` of the runs that the text tells of,
and of those it compares them with.
Gives: results/tables/table{1,2,3}.{csv,html}, results/tables/{backend}/text_only.{csv,html}.
"""

from epochwatt.figures.tables.tabulate_text_only import about

TOLD_STUDIES = {
    *("sigmetrics-pipeline", "sigmetrics-cache-dropped"),
    *("sigmetrics-power-modes", "sigmetrics-orin"),
}
TOLD_RUNS = [run for run in TABLE.runs.values() if TOLD_STUDIES & set(run.studies)]
TOLD_MODELS = sorted({r.factors["model"] for r in TOLD_RUNS if r.is_simulated})
TOLD_BACKENDS = sorted({r.factors["backend"] for r in TOLD_RUNS if about(r.factors)})
PAPER_TABLES = {
    "table1": "Table 1: boards",
    "table2": "Table 2: networks and data sets",
    "table3": "Table 3: power modes",
}


rule tabulate_setup:
    """Put boards, networks and power modes of the paper beside those that are here."""
    input:
        config=VALIDATED,
        workloads=expand("results/twin/workloads/{model}.json", model=TOLD_MODELS),
    output:
        expand("results/tables/{table}.csv", table=PAPER_TABLES),
        [
            tabulated(f"results/tables/{table}.html", table, title)
            for table, title in PAPER_TABLES.items()
        ],
    log:
        "results/logs/tabulate_setup.log",
    conda:
        ENVIRONMENT
    params:
        code=fingerprint("epochwatt.figures.tables.tabulate_setup"),
    script:
        "../scripts/tabulate_setup.py"


rule tabulate_text_only:
    """Put the runs that no figure shows beside what the text says of them."""
    input:
        epochs=lambda wildcards: [
            run.epochs_csv
            for run in TOLD_RUNS
            if run.factors["backend"] == wildcards.backend
        ],
        published=PUBLISHED,
    output:
        table="results/tables/{backend}/text_only.csv",
        page=tabulated(
            "results/tables/{backend}/text_only.html",
            "text_only",
            "what only the text tells",
        ),
    log:
        "results/logs/tabulate_text_only/{backend}.log",
    conda:
        ENVIRONMENT
    params:
        missing=lambda wildcards: SETTINGS.excluded(backend=wildcards.backend),
        code=fingerprint("epochwatt.figures.tables.tabulate_text_only"),
    script:
        "../scripts/tabulate_text_only.py"


rule paper_tables:
    """All tables of the paper that the selected studies have something for."""
    input:
        rules.tabulate_setup.output if TOLD_RUNS else [],
        expand("results/tables/{backend}/text_only.csv", backend=TOLD_BACKENDS),
