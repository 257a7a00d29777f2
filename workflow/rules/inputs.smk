"""Functions that give rules their inputs and parameters; those of common.smk are used here too."""


def interpreter(run):
    """Return the words that start the Python that has torch: the device's own, or the workflow's."""
    return list(run.python or ["python3"])


def epochs_of(runs):
    """Return the `epochs.csv` of each run."""
    return [run.epochs_csv for run in runs]


def before_part(wildcards):
    """Return the data set, and the receipt of the part before: a run's epochs follow each other.

    A run that was measured elsewhere needs no data set.
    """
    run = TABLE[wildcards.run]
    place = run.parts.index((int(wildcards.first), int(wildcards.last)))
    manifest = [ancient(f"{run.data_folder}/manifest.json")] if run.here else []
    return manifest + ([ancient(run.receipts[place - 1])] if place else [])


def training_command(wildcards):
    """Return the command that trains: interpreter, folder of the data, what to know of the machine."""
    run = TABLE[wildcards.run]
    words = [*interpreter(run), "-m", "epochwatt.board.training"]
    return shlex.join([*words, "--data-root", run.data_root, "--machine", run.machine])


def network_of(model):
    """Return the name of a network and, where it is none of ours, what its row says of it."""
    own = SETTINGS.workloads[model].model_dump(include=OWN_KEYS, exclude_defaults=True)
    return {"model": model, "network": own} if own else {"model": model}


def caption(figure):
    """Return a figure's caption, for the report and for the text beside each panel."""
    return lambda wildcards: SETTINGS.caption(figure)


def epochs_fitted(wildcards):
    """Return the tables of epochs that a backend's models are fitted to."""
    return epochs_of(fitted_runs(TABLE, wildcards.backend).runs)


def modes_fitted(wildcards):
    """Return run -> cores and clocks of the same runs."""
    return fitted_runs(TABLE, wildcards.backend).modes


def simulated_networks(wildcards):
    """Return the counts of the networks that models are fitted to, where all are counted anyway."""
    factors = [run.factors for run in fitted_runs(TABLE, wildcards.backend).runs]
    works = {(f["model"], f["task"]) for f in factors}
    counted = sorted(works) if {model for model, _ in works} <= SIMULATED_MODELS else []
    return [counts_path(*work) for work in counted]


def epochs_drawn(figure):
    """Return the input function of a figure's tables of epochs."""
    return lambda wildcards: epochs_of(SETTINGS.figure_runs(figure, wildcards.backend))


def records_drawn(figure):
    """Return the same of simulated records; those of measured epochs are never declared."""
    return lambda wildcards: [
        run.records
        for run in SETTINGS.figure_runs(figure, wildcards.backend)
        if run.is_simulated and "records" in SETTINGS.plotting.figures[figure].reads
    ]


def idle_drawn(figure):
    """Return the same of the table of idle powers, where the backend has any."""
    reads = "idle" in SETTINGS.plotting.figures[figure].reads
    return lambda wildcards: (
        IDLE_CSV if reads and wildcards.backend in IDLE_BACKENDS else []
    )


def predictions_drawn(figure):
    """Return the table of predictions, where the figure reads it."""
    reads = "predictions" in SETTINGS.plotting.figures[figure].reads
    return "results/models/{backend}/predictions.csv" if reads else []


def judged_where_simulated(wildcards):
    """Return the verdicts on published numbers; measured figures wait for no other runs."""
    return "results/tables/comparisons.csv" if wildcards.backend == "twin" else []


def figure_settings(figure):
    """Return panels, colours, names for people, and runs that are missing (`Settings.drawing`)."""
    return lambda wildcards: SETTINGS.drawing(figure, wildcards.backend)


def board_digest(run):
    """Return a hash of what config/twin/ says of a run's board; None: it has no such board."""
    return BOARD_DIGESTS.get(run.factors["device"])


def powertrain_tables(wildcards):
    """Return the table of the workload, and that of the reference where there is one."""
    names = {"workload": wildcards.workload, "reference": wildcards.reference}
    return {k: table_of(v) for k, v in names.items() if v != NO_REFERENCE}


def powertrain_networks(wildcards):
    """Return what is left by the job that trains the reference's networks, if one does."""
    job = Job(wildcards.group, wildcards.reference, wildcards.workload)
    return [
        f"{POWERTRAIN_JOB}/errors.csv".format(**other._asdict())
        for other in networks_of(POWERTRAIN, job)
    ]


def epochs_paired(wildcards):
    """Return the tables of epochs of all runs that are a side of a pair."""
    return [run.epochs_csv for pair in PAIRED_RUNS[wildcards.paired] for run in pair]


def ids_paired(wildcards):
    """Return the ids of both runs of each pair."""
    return [[a.id, b.id] for a, b in PAIRED_RUNS[wildcards.paired]]


def claims_paired(wildcards):
    """Return the claims about a study's pairs, where it has any."""
    has_claims = wildcards.paired in CLAIM_TABLES
    return f"results/{wildcards.paired}/claims.csv" if has_claims else []
