"""Targets to ask for: `snakemake figures`. Each is the noun of what it collects; no rule here has a job.

`all`, in the Snakefile, is all of them.
"""


rule runs:
    """Every epoch of the selected studies measured, validated and collected."""
    input:
        [receipt for run in RUNS for receipt in run.receipts],
        epochs_of(RUNS),


rule workloads:
    """The networks that the papers print numbers of, counted: what `make validate` starts from."""
    input:
        expand("results/twin/workloads/{model}.json", model=PUBLISHED_MODELS),


rule idle_power:
    """The table of idle powers, where a board is measured or simulated."""
    input:
        IDLE_CSV,


rule sweeps:
    """The tables of the selected sweeps."""
    input:
        [sweep.table for sweep in SWEEPS.sweeps.values()],


rule pairs:
    """What the selected studies in pairs say."""
    input:
        [f"results/{name}/index.html" for name in PAIRED],


rule rooflines:
    """What devices reach at best, where a study or sweep asks for it, and measured runs beside it."""
    input:
        (
            ["results/roofline/ceilings.csv", "results/roofline/points.csv"]
            if CEILINGS
            else []
        ),
        [drawing for drawing in ROOFLINES if "measured" in drawing],


rule tables:
    """All tables of runs and epochs."""
    input:
        "results/tables/epochs.csv",
        "results/tables/runs.csv",


rule paper_tables:
    """All tables of the paper that the selected studies have something for."""
    input:
        expand("results/tables/{table}.html", table=SETUP_TABLES if TEXT_RUNS else []),
        expand("results/tables/{backend}/text_only.csv", backend=TEXT_BACKENDS),


rule figures:
    """All figures of the selected studies."""
    input:
        [f"results/figures/{backend}/{panel}.svg" for backend, _, panel in PANELS],


rule models:
    """All models that the selected studies have runs for."""
    input:
        expand("results/models/{backend}/scores.html", backend=MODEL_BACKENDS),


rule sweep_scores:
    """All methods judged on sweeps that others measured; minutes, so not a part of `all`."""
    input:
        "results/sweeps/sweep_scores.html",


rule powertrain:
    """PowerTrain beside its baselines and other methods; minutes, so not a part of `all`."""
    input:
        [f"results/powertrain/{name}.csv" for name in TABLES] if POWERTRAIN else [],
        "results/powertrain/index.html" if POWERTRAIN else [],


rule pagoda:
    """Rooflines of measured, simulated and public boards, and the best of Pagoda's modes; minutes."""
    input:
        ROOFLINES,
        "results/pagoda/tuning.csv",
        "results/pagoda/claims.csv" if PAGODA_SWEEPS else [],
        [f"{stem}.svg" for stem in PAGODA_DRAWN],


rule fulcrum:
    """Training and inference on one simulated board, within budgets; minutes, so not in `all`."""
    input:
        "results/fulcrum/scores.csv" if SCHEDULE else [],
        "results/fulcrum/summary.csv" if SCHEDULE else [],
        "results/fulcrum/claims.csv" if SCHEDULE else [],
        [f"{stem}.svg" for stem in SCHEDULE_DRAWN] if SCHEDULE else [],
        "results/fulcrum/changing.csv" if CHANGING else [],
        f"{REPLANNING_DRAWN}.svg" if CHANGING else [],


rule federated:
    """Rounds of federated training on simulated fleets; a minute, so not in `all`."""
    input:
        "results/federated/claims.csv" if FEDERATED else [],
        [f"{stem}.svg" for stem in FEDERATED_DRAWN] if FEDERATED else [],


rule claims:
    """The papers' take-aways, judged."""
    input:
        "results/claims.csv",
        "results/claims.txt",


rule pages:
    """The landing page, the summary for the terminal, pages of studies in pairs."""
    input:
        "results/index.html",
        "results/summary.txt",
        rules.pairs.input,


rule validation:
    """How good the simulation is, if all networks with printed numbers are simulated."""
    input:
        (
            ["results/twin/validation.csv", "results/figures/twin/validation.svg"]
            if IS_VALIDATED
            else []
        ),
