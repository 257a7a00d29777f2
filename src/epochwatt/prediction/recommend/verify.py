"""The one run that would confirm a recommended power mode: how to make it, and what it gave."""

from collections.abc import Mapping
from pathlib import Path

from epochwatt.errors import EpochwattError
from epochwatt.fields import TWIN
from epochwatt.prediction.data.workloads import Workload, read_workloads
from epochwatt.prediction.recommend.command import NAMES, Advice
from epochwatt.prediction.recommend.new_runs import NewRuns, labels, place
from epochwatt.prediction.recommend.outcomes import EPOCHS_CSV, RUNS, means, run_patterns
from epochwatt.prediction.recommend.recommend import UNITS
from epochwatt.text import aligned, counted


def verify_lines(advice: Advice, root: Path = Path()) -> list[str]:
    """Return what the run of the mode gave beside what was expected, or how to make the run.

    Raises
    ------
    EpochwattError : several runs of the mode are there that nothing tells apart
    """
    if advice.told.mode in advice.profiled:
        return ["", "verify: this mode is one of those that the models are fitted to"]
    patterns = run_patterns(advice, advice.told.mode)
    paths = sorted(p for of in patterns for p in (root / RUNS).glob(f"{of}/{EPOCHS_CSV}"))
    modes = {path.parent.name: advice.told.mode for path in paths}
    found = read_workloads(map(str, paths), modes)
    same = [of for of in found if of.factors == advice.fit.workload]  # an id shows some of them
    names = [name for of in same for name in of.runs]
    if len(names) > 1:
        raise EpochwattError(
            f"several runs of the recommended mode: {', '.join(names)}\n  leave one there"
        )
    return _compared(advice, same[0]) if same else _planned(advice)


def _planned(advice: Advice) -> list[str]:
    mode, workload = advice.told.mode, advice.fit.workload
    label = labels(mode, advice.device, advice.files.board)[0]
    title = f"Does {label} hold what epochwatt recommend expects?"
    name = f"verify-{place(workload)}-{label}"  # as the run's id: two questions, two names
    new = NewRuns(name, title, workload, [mode], advice.device, advice.files.board)
    first, *others = new.lines()
    return [
        "",
        f"verify: {first}",
        *others,
        "then, and after it this question again:",
        f"  .venv/bin/epochwatt plan {new.study}",
        f"  .venv/bin/snakemake --profile {new.profile} --config studies={new.study} -- runs",
    ]


def _compared(advice: Advice, run: Workload) -> list[str]:
    """Return what was expected beside the means over the valid epochs after the first."""
    n_epochs = len(run.metered.after_first().epoch)
    if not n_epochs:
        return ["", f"verify: {run.runs[0]} has no valid epoch after the first yet"]
    found: Mapping[str, float] = means(run.metered)[advice.told.mode]
    gave = "simulated" if advice.asked.backend == TWIN else "measured"
    cells = [("", "expected", "90 % interval", gave, "off by", "in the interval")]
    for name, of in advice.told.estimates.items():
        if name in found:
            inside = "yes" if of.low <= found[name] <= of.high else "no"
            off = f"{100 * (found[name] / of.value - 1):+.1f} %"
            cells.append(
                (f"{NAMES[name]} {UNITS[name]}", f"{of.value:.4g}",
                 f"{of.low:.4g} to {of.high:.4g}", f"{found[name]:.4g}", off, inside)
            )  # fmt: skip
    told = f"verify: {run.runs[0]}, {counted(n_epochs, 'epochs')} after the first"
    return ["", told, *aligned(cells)]
