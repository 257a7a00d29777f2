"""Pages that the report shows beside figures and tables; nothing depends on them.

Needs: claims; the `epochs.csv` of all runs; config/.
Gives: results/summary.{txt,html}, results/claims.html, results/configuration.html.
"""

CONFIGURATION = sorted(
    str(path) for kind in ("yaml", "csv") for path in Path("config").rglob(f"*.{kind}")
)
MEASURED_RUNS = [run for run in RUNS if not run.is_simulated]


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
