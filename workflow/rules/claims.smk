"""The papers' take-aways as claims, judged on the runs of each backend; two backends never meet.

Needs: `epochs.csv` of the runs that claims name, records of those whose clocks they ask for,
predictions, idle powers; for simulated runs the twin's configuration, on which claims are judged again
with other parameters. Papers about whole tables: config/published/{paper}/claims.csv and those tables.
Gives: results/claims.csv and its summary, results/claims.txt; results/tables/comparisons.csv with each
comparison of each claim; results/{paper}/claims.csv.
"""

from epochwatt.claims.required_runs import needed
from epochwatt.claims.table_claims import needed_tables, papers_with_claims

try:  # evaluates the predicates of takeaways.csv without data, and lists what they ask for
    CLAIMS = needed(TABLE)
    CLAIM_TABLES = {paper: needed_tables(paper) for paper in papers_with_claims()}
except EpochwattError as error:
    raise WorkflowError(str(error)) from None

CLAIM_CONFIG = ["config/claims.yaml", "config/published/takeaways.csv"]
if "twin" in CLAIMS.backends:
    CLAIM_CONFIG += [
        *TWIN_CONFIG,
        "config/twin/cross_validation_fits.csv",
        "config/twin/setups.csv",
        "config/twin/mechanisms.csv",
        *DEVICES,
    ]


rule check_claims:
    """Judge every claim of both papers, simulated ones also without their take-away."""
    input:
        # of measured runs all epochs, of simulated ones those that a claim names
        epochs=epochs_of(CLAIMS.runs),
        # clocks of simulated runs; measured records are never declared, so that none is ever made anew
        records=[f for r, f in CLAIMS.records.items() if TABLE[r].is_simulated],
        idle=IDLE_CSV,
        workloads=expand("results/twin/workloads/{model}.json", model=CLAIMS.models),
        predictions=expand("results/models/{b}/predictions.csv", b=MODEL_BACKENDS),
        published=multiext("config/published/", "measurements.csv", "relations.csv"),
        choices=expand("results/models/{b}/power_modes.json", b=MODEL_BACKENDS),
        config=CLAIM_CONFIG,
    output:
        table=shown("results/claims.csv", "Claims", "the table behind it"),
        comparisons="results/tables/comparisons.csv",
        text="results/claims.txt",
    log:
        "results/logs/check_claims.log",
    benchmark:
        "results/benchmarks/check_claims.tsv"
    priority: 2  # figures and the front page wait for it
    localrule: True
    conda:
        ENVIRONMENT
    params:
        backends=CLAIMS.backends,
        records=CLAIMS.records,
        power_modes=CLAIMS.power_modes,
        titles=SETTINGS.titles,
        code=code_of("check_claims.py"),
    script:
        "../scripts/check_claims.py"


rule check_table_claims:
    """Judge the claims of a paper on tables of our study of it, each provenance by itself."""
    input:
        tables=lambda wildcards: CLAIM_TABLES[wildcards.paper],
        claims="config/published/{paper}/claims.csv",
        config="config/claims.yaml",
    output:
        table="results/{paper}/claims.csv",
    log:
        "results/logs/check_table_claims/{paper}.log",
    wildcard_constraints:
        paper="|".join(CLAIM_TABLES) or "(?!)",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code_of("check_table_claims.py"),
    script:
        "../scripts/check_table_claims.py"
