"""What all rules share: configuration, run table, input functions. No rules.

Needs: config/*.yaml.  Gives: TABLE, PLOTTING, FLAGS, WORKLOADS and the functions below.
"""

import shlex

from snakemake.exceptions import WorkflowError

from epochwatt.errors import EpochwattError
from epochwatt.study.fingerprint import fingerprint
from epochwatt.study.idle import idles
from epochwatt.study.plan import start_lines
from epochwatt.study.settings import load_settings, refuse_root, working_folder_lock

ENVIRONMENT = "../envs/workflow.yaml"

try:
    SETTINGS = load_settings(config)
except EpochwattError as error:
    raise WorkflowError(str(error)) from None

TABLE = SETTINGS.table


def begin():
    """Refuse to start as root on a board or beside another workflow here; say what it will take."""
    try:
        refuse_root(TABLE)
        globals()["_lock"] = working_folder_lock()  # the kernel frees a dead one's
    except EpochwattError as error:
        raise WorkflowError(str(error)) from None
    print("\n".join(start_lines(SETTINGS)), file=sys.stderr)


def interpreter(run):
    """Return the command that starts the interpreter which owns torch."""
    return shlex.join(run.python or [sys.executable])


def epochs_of(runs):
    """Return the `epochs.csv` of each run."""
    return [run.epochs_csv for run in runs]


def manifest(wildcards):
    """Return the manifest of a run's data set; none for a run that was measured elsewhere."""
    run = TABLE[wildcards.run]
    return [ancient(f"{run.data_folder}/manifest.json")] if run.here else []


def previous_part(wildcards):
    """Return the receipt of the part before (none for the first), so that a run's epochs follow each other."""
    run = TABLE[wildcards.run]
    place = run.parts.index((int(wildcards.first), int(wildcards.last)))
    return [ancient(run.receipts[place - 1])] if place else []


def reported(panel, **labels):
    """Return a panel's SVG as the report shows it, with its caption."""
    return report(
        f"results/figures/{{backend}}/{panel}.svg",
        caption=f"../report/{panel}.rst",
        category="Figures",
        labels=labels,
    )
