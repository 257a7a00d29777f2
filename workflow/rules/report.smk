"""Pages that the report shows beside figures and tables; nothing depends on them.

Needs: claims; the `epochs.csv` of all runs; config/.
Gives: results/summary.{txt,html}, results/claims.html, results/configuration.html.
"""

CONFIGURATION = sorted(
    str(path) for kind in ("yaml", "csv") for path in Path("config").rglob(f"*.{kind}")
)
MEASURED_RUNS = [run for run in TABLE.runs.values() if not run.is_simulated]


rule summarise:
    """Say on one page how many claims hold, where time and energy go, which settings none beats."""
    input:
        epochs=epochs_of(TABLE.runs.values()),
        claims=rules.check_claims.output.table,
    output:
        text="results/summary.txt",
        page=shown("results/summary.html", "summary", "Summary", "summary on one page"),
    log:
        "results/logs/summarise.log",
    conda:
        ENVIRONMENT
    params:
        excluded=SETTINGS.excluded(),
        titles=SETTINGS.titles,
        palette=SETTINGS.plotting.palette,
        code=fingerprint("epochwatt.pages.summarise"),
    script:
        "../scripts/summarise.py"


rule show_claims:
    """Show the claims by take-away: what holds on which runs, what does not, what is missing."""
    input:
        claims=rules.check_claims.output.table,
    output:
        page=shown(
            "results/claims.html", "claims", "Claims", "every claim, by take-away"
        ),
    log:
        "results/logs/show_claims.log",
    conda:
        ENVIRONMENT
    params:
        code=fingerprint("epochwatt.pages.show_claims"),
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
            "configuration",
            "Configuration",
            "versions and configuration",
        ),
    log:
        "results/logs/show_configuration.log",
    conda:
        ENVIRONMENT
    params:
        records={run.id: run.records for run in MEASURED_RUNS},
        code=fingerprint("epochwatt.pages.show_configuration"),
    script:
        "../scripts/show_configuration.py"


rule pages:
    """All pages, the summary first."""
    input:
        rules.summarise.output,
        rules.show_claims.output,
        rules.show_configuration.output,
