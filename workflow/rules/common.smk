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
from epochwatt.prediction.registry import CONFIG as PREDICTORS, method_modules
from epochwatt.prediction.transfer.study import (
    check_sweeps,
    load_study,
    simulated_sweeps,
)
from epochwatt.schedule.config import load_schedule
from epochwatt.served.serve import start_servers, stop_servers
from epochwatt.study import not_made
from epochwatt.study.discard import forget_lost
from epochwatt.maintenance.fingerprint import fingerprint
from epochwatt.study.expand import OWN_KEYS
from epochwatt.study.idle import idles, simulated_idles
from epochwatt.study.plan import start_lines
from epochwatt.study.runs import counts_path
from epochwatt.published.numbers import TITLES as PAPERS
from epochwatt.study.settings import (
    drawing_module,
    load_settings,
    refuse_braces,
    refuse_root,
    working_folder_lock,
)
from epochwatt.sweeps.plan import sweep_lines
from epochwatt.sweeps.table import load_sweeps, sweep_names
from epochwatt.text import label

# -- the software of the rules -------------------------------------------------------------------

ENVIRONMENT = "../envs/workflow.yaml"
LOCK = None  # of the working folder, while jobs run; the kernel frees a dead process's
SERVERS = []  # of jobs by the dozen, while jobs run; they end with this process
WATCH = not_made.Watch()  # takes note of jobs that fail
logger.addHandler(WATCH)
WITHOUT = not_made.without()  # what failed before `end` began this start, if it did

# -- what is selected ----------------------------------------------------------------------------

try:
    refuse_braces(str(workflow.basedir), "the checkout")
    SETTINGS = load_settings(config)
    WITHOUT.leave_out(SETTINGS.table)
    SWEEPS = load_sweeps(config)
    SWEPT = [sweep.run for sweep in SWEEPS.sweeps.values()]
    POWERTRAIN = load_study()  # None: without config/powertrain.yaml
    try:
        check_sweeps(POWERTRAIN)
    except EpochwattError as error:  # whoever has other sweeps can do without the study
        print(f"the study of PowerTrain is left out: {error}", file=sys.stderr)
        POWERTRAIN = None
    POWERTRAIN_SWEEPS = simulated_sweeps(POWERTRAIN)
    SCHEDULE = load_schedule()  # None: without config/schedule.yaml
    PAGODA_SWEEPS = [n for n in sweep_names() if n.startswith("pagoda-")]
    for run in [*SETTINGS.table.runs.values(), *SWEPT]:
        refuse_braces(run.data_root, f"the storage root of {run.id}")
except EpochwattError as error:
    raise WorkflowError(str(error)) from None

STUDY_SWEEPS = [*POWERTRAIN_SWEEPS, *PAGODA_SWEEPS]  # simulated, without being selected
TABLE = SETTINGS.table
RUNS = list(TABLE.runs.values())
SIMULATED_MODELS = {run.factors["model"] for run in RUNS if run.is_simulated}
PUBLISHED_MODELS = ("lenet", "mobilenet", "resnet")  # networks of the papers' numbers

# idle powers to measure, by id
IDLES = {
    i: idle
    for i, idle in idles(SETTINGS.table, SETTINGS.devices).items()
    if WITHOUT.has(idle.receipt)
}
SIMULATED_IDLES = simulated_idles(SETTINGS.idle_studies, SETTINGS.devices)
IDLE_BACKENDS = {idle.place["backend"] for idle in IDLES.values()}
IDLE_BACKENDS |= {"twin"} if SIMULATED_IDLES else set()
IDLE_CSV = "results/tables/idle.csv" if IDLE_BACKENDS else []

BACKENDS = sorted({run.factors["backend"] for run in RUNS} | IDLE_BACKENDS)
MODEL_BACKENDS = predicted_backends(TABLE)  # those with runs that models are fitted to
METHOD_MODULES = method_modules()  # prediction methods, the user's own among them
OWN_METHODS = [str(PREDICTORS)] if PREDICTORS.is_file() else []


# -- files of config/ that several rules read ----------------------------------------------------

TWIN_CONFIG = sorted(map(str, Path("config/twin").glob("*.yaml")))
DEVICES = sorted(map(str, Path("config/devices").glob("*.yaml")))

# a job must not: what another node has just written it may see in part (NFS)
if workflow.is_main_process:
    for message in forget_lost(RUNS):
        print(message, file=sys.stderr)


def begin():
    """Refuse to start as root on a board or beside another workflow here; print what is planned."""
    global LOCK, SERVERS
    try:
        refuse_root([*RUNS, *SWEPT])
        if WITHOUT is not_made.NOTHING:  # else the start before holds it
            LOCK = working_folder_lock()
    except EpochwattError as error:
        raise WorkflowError(str(error)) from None
    if WITHOUT is not_made.NOTHING and makes_page():
        not_made.FILE.unlink(missing_ok=True)
    # software deployed for jobs (--sdm) has a Python of its own
    if SIMULATED_MODELS and not workflow.deployment_settings.deployment_method:
        SERVERS = start_servers()
    from snakemake_logger_plugin_epochwatt.outlook import outlook  # takes 0.5 s

    # for any logger the text; the rest is for ours, which reckons with it
    lines = start_lines(SETTINGS) + sweep_lines(SWEEPS, SETTINGS)
    logger.info(
        "\n".join(lines), extra={"epochwatt_outlook": outlook(SETTINGS, SWEEPS)}
    )


def makes_page():
    """Say whether this start goes on after failures and ends with the landing page."""
    asked = workflow.dag_settings
    is_part = asked.until or asked.omit_from or asked.allowed_rules
    is_all = not is_part and "all" in (asked.targets or {"all"})
    return is_all and workflow.execution_settings.keep_going


def end():
    """Stop the processes of `begin`, and what Snakemake's limit of jobs per time would wait for.

    Where jobs failed, the landing page is made without what waits for them.
    """
    stop_servers(SERVERS)
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
    if not WATCH.failures or WATCH.is_stopped or not makes_page():
        return
    if WITHOUT is not not_made.NOTHING:
        not_made.write_failures(WATCH.failures)
        return
    say(f"making {not_made.PAGE} without what failed ...")
    try:
        not_made.make_page_without(WATCH.failures, workflow.workdir_init)
        if not Path(not_made.PAGE).exists():
            from epochwatt.pages.site import write_bare  # takes 0.5 s

            write_bare(not_made.read().shown(), not_made.PAGE)
        say(f"{not_made.PAGE} is made; it names what failed, and shows all else")
    except (EpochwattError, OSError) as error:
        say(f"{not_made.PAGE} could not be made: {error}")


def say(text):
    """Show a line in the terminal, whatever the logger is."""
    logger.info(text, extra={"epochwatt_says": True})


def code_of(script, *modules):
    """Return a hash of a script of workflow/scripts/, of modules, and of all they import of ours.

    As a parameter it reruns a rule when the code that the rule runs was edited.
    """
    path = workflow.source_path(f"../scripts/{script}")
    return fingerprint(*modules, script=path)


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
    """Return a panel's SVG as the report shows it, by paper and section, with its caption.

    Runs of the machine at hand are none of a paper's, and their figures none of its figures.
    """
    entry = SETTINGS.plotting.figures[figure]
    return report(
        f"results/figures/{{backend}}/{panel}.svg",
        caption="../report/plot_figure.rst",
        category=lambda wildcards: (
            "Own figures"
            if wildcards.backend == "host"
            else PAPERS.get(entry.paper, "Own figures")
        ),
        subcategory=entry.section or None,
        labels=lambda wildcards: {
            "figure": (
                panel
                if entry.paper == "none" or wildcards.backend == "host"
                else panel.rpartition("fig")[2].lstrip("0")
            ),
            "shows": entry.panels[panel].title,
            "data": label(wildcards.backend),
        },
    )


def paper_table(path, title):
    """Return the page of a table of SIGMETRICS 2023 as the report shows it."""
    return shown(path, PAPERS["sigmetrics2023"], title, "tables")
