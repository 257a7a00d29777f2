"""Shared by all rules: the configuration, what it selects, and input functions. No rules.

Needs: config/*.yaml.  Gives: the names below. Names of other files are used in none but targets.smk.
"""

import json
import shlex
import tempfile
import threading

from snakemake.logging import logger

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.required_runs import backends as predicted_backends
from epochwatt.prediction.data.required_runs import fitted_runs
from epochwatt.prediction.registry import CONFIG as PREDICTORS
from epochwatt.prediction.registry import method_modules
from epochwatt.study.discard import forget_lost
from epochwatt.maintenance.fingerprint import fingerprint
from epochwatt.study.expand import OWN_KEYS
from epochwatt.study.idle import idles
from epochwatt.study.idle_studies import simulated_idles
from epochwatt.study.plan import start_lines
from epochwatt.published.numbers import TITLES as PAPERS
from epochwatt.study.settings import (
    drawing_module,
    load_settings,
    refuse_braces,
    refuse_root,
    working_folder_lock,
)
from epochwatt.sweeps.plan import sweep_lines
from epochwatt.sweeps.table import load_sweeps
from epochwatt.text import label

# -- the software of the rules -------------------------------------------------------------------

ENVIRONMENT = "../envs/workflow.yaml"
LOCK = None  # of the working folder, while jobs run; the kernel frees a dead process's

# -- what is selected ----------------------------------------------------------------------------

try:
    refuse_braces(str(workflow.basedir), "the checkout")
    SETTINGS = load_settings(config)
    SWEEPS = load_sweeps(config)
    SWEPT = [sweep.run for sweep in SWEEPS.sweeps.values()]
    for run in [*SETTINGS.table.runs.values(), *SWEPT]:
        refuse_braces(run.data_root, f"the storage root of {run.id}")
except EpochwattError as error:
    raise WorkflowError(str(error)) from None

TABLE = SETTINGS.table
RUNS = list(TABLE.runs.values())
SIMULATED_MODELS = {run.factors["model"] for run in RUNS if run.is_simulated}
PUBLISHED_MODELS = ("lenet", "mobilenet", "resnet")  # networks of the papers' numbers

IDLES = idles(SETTINGS)  # idle powers to measure, by id
SIMULATED_IDLES = simulated_idles(SETTINGS.idle_studies, SETTINGS.devices)
IDLE_BACKENDS = {idle.place["backend"] for idle in IDLES.values()}
IDLE_BACKENDS |= {"twin"} if SIMULATED_IDLES else set()
IDLE_CSV = "results/tables/idle.csv" if IDLE_BACKENDS else []

BACKENDS = sorted({run.factors["backend"] for run in RUNS} | IDLE_BACKENDS)
MODEL_BACKENDS = predicted_backends(TABLE)  # those with runs that models are fitted to
METHOD_MODULES = method_modules()  # prediction methods, the user's own among them
SCORING_CONFIG = [
    "config/twin/cross_validation_fits.csv",
    "config/claims.yaml",
    "config/paper.mplstyle",
]
OWN_METHODS = [str(PREDICTORS)] if PREDICTORS.is_file() else []


# -- files of config/ that several rules read ----------------------------------------------------

TWIN_CONFIG = sorted(map(str, Path("config/twin").glob("*.yaml")))
DEVICES = sorted(map(str, Path("config/devices").glob("*.yaml")))

for message in forget_lost(RUNS):
    print(message, file=sys.stderr)


def begin():
    """Refuse to start as root on a board or beside another workflow here; print what is planned."""
    global LOCK
    try:
        refuse_root([*RUNS, *SWEPT])
        LOCK = working_folder_lock()
    except EpochwattError as error:
        raise WorkflowError(str(error)) from None
    from snakemake_logger_plugin_epochwatt.outlook import outlook_extra  # takes 0.5 s

    # for any logger the text; the rest is for ours, which reckons with it
    lines = start_lines(SETTINGS) + sweep_lines(SWEEPS, SETTINGS)
    logger.info("\n".join(lines), extra=outlook_extra(SETTINGS, SWEEPS))


def end():
    """Cancel what Snakemake's limit of jobs per time (profiles/default) would still wait for."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


def code_of(script, *modules):
    """Return a hash of a script of workflow/scripts/, of modules, and of all they import of ours.

    As a parameter it reruns a rule when the code that the rule runs was edited.
    """
    path = workflow.source_path(f"../scripts/{script}")
    return fingerprint(*modules, script=path)


# -- input functions -----------------------------------------------------------------------------


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
    words = [*interpreter(run), "-m", "epochwatt.training"]
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
    models = {
        run.factors["model"] for run in fitted_runs(TABLE, wildcards.backend).runs
    }
    counted = sorted(models) if models <= SIMULATED_MODELS else []
    return expand("results/twin/workloads/{model}.json", model=counted)


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


def figure_settings(figure):
    """Return panels, colours, names for people, and runs that are missing (`Settings.drawing`)."""
    return lambda wildcards: SETTINGS.drawing(figure, wildcards.backend)


# -- outputs that the report shows ---------------------------------------------------------------


def shown(path, category, title, subcategory=None):
    """Return a page or a table as the report shows it, with the caption of the file's name."""

    def labels(wildcards):
        data = {"data": label(wildcards.backend)} if "{backend}" in path else {}
        return {"shows": title, **data}

    return report(
        path,
        caption=f"../report/{Path(path).stem}.rst",
        category=category,
        subcategory=subcategory,
        labels=labels,
    )


def panel_shown(figure, panel):
    """Return a panel's SVG as the report shows it, by paper and section, with its caption."""
    entry = SETTINGS.plotting.figures[figure]
    return report(
        f"results/figures/{{backend}}/{panel}.svg",
        caption="../report/plot_figure.rst",
        category=PAPERS.get(entry.paper, "Own figures"),
        subcategory=entry.section or None,
        labels=lambda wildcards: {
            "figure": (
                panel
                if entry.paper == "none"
                else panel.rpartition("fig")[2].lstrip("0")
            ),
            "shows": entry.panels[panel].title,
            "data": label(wildcards.backend),
        },
    )


def paper_table(path, title):
    """Return the page of a table of SIGMETRICS 2023 as the report shows it."""
    return shown(path, PAPERS["sigmetrics2023"], title, "tables")
