"""Tables 1 to 3 of SIGMETRICS 2023, and the runs that its text describes and no figure shows.

Needs: config/; counts of the simulated networks; the `epochs.csv` of the runs that the text describes,
and of those it compares them with.
Gives: results/tables/table{1,2,3}.{csv,html}, results/tables/{backend}/text_only.{csv,html}, and all
printed numbers of runs beside ours: results/tables/printed.csv.
"""

from epochwatt.figures.tables.text_runs import text_backends, text_runs

TEXT_RUNS = text_runs(RUNS)
TEXT_BACKENDS = text_backends(RUNS)
TABLE_MODELS = sorted({r.factors["model"] for r in RUNS if r.is_simulated})
SETUP_TABLES = {
    "table1": "Table 1: boards",
    "table2": "Table 2: networks and data sets",
    "table3": "Table 3: power modes",
}


rule tabulate_setup:
    """Put boards, networks and power modes of the paper beside those that are here."""
    input:
        published=expand("config/published/{table}.csv", table=SETUP_TABLES),
        twin=TWIN_CONFIG,
        devices=DEVICES,
        workloads=expand("results/twin/workloads/{model}.json", model=TABLE_MODELS),
    output:
        csv=expand("results/tables/{table}.csv", table=SETUP_TABLES),
        html=[
            paper_table(f"results/tables/{table}.html", title)
            for table, title in SETUP_TABLES.items()
        ],
    log:
        "results/logs/tabulate_setup.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        config=subpath(input[0], ancestor=2),
        code=code_of("tabulate_setup.py"),
    script:
        "../scripts/tabulate_setup.py"


rule tabulate_text_only:
    """Put the runs that no figure shows beside what the text says of them."""
    input:
        claims="config/claims.yaml",
        measurements="config/published/measurements.csv",
        relations="config/published/relations.csv",
        folds="config/twin/folds.csv",
        seen="config/twin/seen.csv",
        epochs=lambda wildcards: epochs_of(
            run for run in TEXT_RUNS if run.factors["backend"] == wildcards.backend
        ),
    output:
        table="results/tables/{backend}/text_only.csv",
        page=paper_table(
            "results/tables/{backend}/text_only.html", "what only the text tells"
        ),
    log:
        "results/logs/tabulate_text_only/{backend}.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        missing=lambda wildcards: SETTINGS.excluded(backend=wildcards.backend),
        published=subpath(input.measurements, parent=True),
        twin=subpath(input.seen, parent=True),
        code=code_of("tabulate_text_only.py"),
    script:
        "../scripts/tabulate_text_only.py"


rule compare_printed:
    """Put what the papers print of a run or a board beside the same of ours."""
    input:
        epochs="results/tables/epochs.csv",
        idle=IDLE_CSV,
        claims="config/claims.yaml",
        measurements="config/published/measurements.csv",
        relations="config/published/relations.csv",
        folds="config/twin/folds.csv",
        seen="config/twin/seen.csv",
    output:
        "results/tables/printed.csv",
    log:
        "results/logs/compare_printed.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        published=subpath(input.measurements, parent=True),
        twin=subpath(input.seen, parent=True),
        code=code_of("compare_printed.py"),
    script:
        "../scripts/compare_printed.py"
