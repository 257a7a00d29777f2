"""What all rules share: configuration, run table, input functions. No rules.

Needs: config/*.yaml.  Gives: SETTINGS, TABLE and the functions below.
"""

import json
import shlex
import tempfile

from snakemake.exceptions import WorkflowError

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.required_runs import needed as fitted
from epochwatt.study.discard import forget_lost
from epochwatt.maintenance.fingerprint import fingerprint
from epochwatt.study.idle import idles
from epochwatt.study.idle_studies import simulated_idles
from epochwatt.study.plan import start_lines
from epochwatt.published.numbers import TITLES as PAPERS
from epochwatt.study.runs import TWIN
from epochwatt.study.settings import (
    drawing_module,
    load_settings,
    refuse_braces,
    refuse_root,
    working_folder_lock,
)
from epochwatt.text import label

ENVIRONMENT = "../envs/workflow.yaml"

try:
    refuse_braces(str(workflow.basedir), "the checkout")
    SETTINGS = load_settings(config)
    for run in SETTINGS.table.runs.values():
        refuse_braces(run.data_root, f"the storage root of {run.id}")
except EpochwattError as error:
    raise WorkflowError(str(error)) from None

TABLE = SETTINGS.table

for lost in forget_lost(TABLE.runs.values()):
    print(lost, file=sys.stderr)


def begin():
    """Refuse to start as root on a board or beside another workflow here; say what it will take."""
    try:
        refuse_root(TABLE)
        globals()["_lock"] = working_folder_lock()  # the kernel frees a dead one's
    except EpochwattError as error:
        raise WorkflowError(str(error)) from None
    print("\n".join(start_lines(SETTINGS)), file=sys.stderr)


def interpreter(run):
    """Return the words that start the interpreter which owns torch."""
    return list(run.python or [sys.executable])


def training(wildcards):
    """Return the command that trains: interpreter, where the data lie, what to know of the machine."""
    run = TABLE[wildcards.run]
    words = [
        *interpreter(run),
        "-m",
        "epochwatt.training",
        "--data-root",
        run.data_root,
    ]
    return shlex.join([*words, "--machine", run.machine])


def simulation(wildcards):
    """Return what to simulate, as options."""
    run = TABLE[wildcards.run]
    words = ["--factors", run.canonical, "--epochs", str(run.epochs)]
    return shlex.join([*words, "--flag-effects", json.dumps(SETTINGS.flag_effects)])


def workload(wildcards):
    """Return the counts of a simulated run's network."""
    return f"results/twin/workloads/{TABLE[wildcards.run].factors['model']}.json"


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


def epochs_drawn(figure):
    """Return the input function of a figure's tables of epochs."""
    return lambda wildcards: epochs_of(SETTINGS.figure_runs(figure, wildcards.backend))


def records_drawn(figure):
    """Return the same of simulated records; those of measured epochs are never declared."""
    return lambda wildcards: [
        run.records
        for run in SETTINGS.figure_runs(figure, wildcards.backend)
        if run.is_simulated
    ]


def idle_drawn(wildcards):
    """Return the table of idle powers, where the backend has any."""
    return rules.collect_idle.output if wildcards.backend in IDLE_BACKENDS else []


def drawing(figure):
    """Return what the job has to know of a figure."""
    return lambda wildcards: SETTINGS.drawing(figure, wildcards.backend)


def caption(figure):
    """Return a figure's caption for the report.

    As it takes `output`, Snakemake derives it anew and never compares it: a new caption is no
    reason to draw again.
    """
    return lambda wildcards, output: SETTINGS.caption(figure)


def epochs_fitted(wildcards):
    """Return the tables of epochs that a backend's models are fitted to."""
    return epochs_of(fitted(TABLE, wildcards.backend).runs)


def modes_fitted(wildcards):
    """Return run -> cores and clocks of the same runs."""
    return fitted(TABLE, wildcards.backend).modes


def simulated_networks(wildcards):
    """Return the counts of the networks that models are fitted to, where all are counted anyway."""
    runs = fitted(TABLE, wildcards.backend).runs
    models = {run.factors["model"] for run in runs}
    known = models if models <= SIMULATED_MODELS else set()
    return expand("results/twin/workloads/{model}.json", model=sorted(known))


def reported(figure, panel):
    """Return a panel's SVG as the report shows it, by paper and section, with its caption."""
    about = SETTINGS.plotting.figures[figure]
    return report(
        f"results/figures/{{backend}}/{panel}.svg",
        caption="../report/plot_figure.rst",
        category=PAPERS.get(about.paper, "Own figures"),
        subcategory=about.section,
        labels=lambda wildcards: {
            "figure": (
                panel
                if about.paper == "none"
                else panel.rpartition("fig")[2].lstrip("0")
            ),
            "shows": about.panels[panel].title,
            "data": label(wildcards.backend),
        },
    )


def tabulated(path, table, title):
    """Return the page of one of the paper's tables as the report shows it, with its caption."""
    return report(
        path,
        caption=f"../report/{table}.rst",
        category=PAPERS["sigmetrics2023"],
        subcategory="tables",
        labels=lambda wildcards: {
            "shows": title,
            "data": label(wildcards.backend) if "{backend}" in path else "published",
        },
    )


def shown(path, caption, category, title):
    """Return a page or a table as the report shows it, with its caption."""
    return report(
        path,
        caption=f"../report/{caption}.rst",
        category=category,
        labels={"shows": title},
    )
