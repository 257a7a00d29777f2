"""Sum up what the workflow plans to measure, for the screen."""

from dataclasses import dataclass, field
from pathlib import Path

from epochwatt.analysis.run_means import SETTING
from epochwatt.board.records.mode_folder import SweepFolder
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.study import plan
from epochwatt.study.place import MEASURED
from epochwatt.study.settings import Settings
from epochwatt.sweeps.plan import chunk_estimates_s
from epochwatt.sweeps.table import SweepTable
from epochwatt.text import counted

Part = tuple[str, str, str]  # run, or sweep/grid, with its first and last epoch or mode


@dataclass
class Outlook:
    """All that is measured here; the workflow hands it over as the extra of a log record."""

    titles: dict[str, str] = field(default_factory=dict)  # run or sweep -> its title
    jobs_s: dict[Part, float] = field(default_factory=dict)  # estimate of each job; 0: is done
    epochs: list[str] = field(default_factory=list)  # the folder of each, measured or not
    modes: list[str] = field(default_factory=list)  # likewise

    def kept(self) -> str:
        """Return "3 of 8 epochs kept, " of the epochs and modes that are measured by now."""
        words = ""
        for name, paths in (("epochs", self.epochs), ("modes", self.modes)):
            n_kept = sum(Path(path).is_dir() for path in paths)
            words += f"{n_kept} of {len(paths)} {name} kept, " if paths else ""
        return words


def outlook(settings: Settings, sweeps: SweepTable) -> Outlook:
    """Return titles, job estimates and folders of all that is measured on this machine.

    A run's title is its model and the settings in which it differs from others of that model.
    """
    estimates = [e for e in plan.estimate_runs(settings) if e.run.parts and e.run.here]
    runs = [estimate.run for estimate in estimates]
    result = Outlook()
    for estimate in estimates:
        run, folder = estimate.run, RunFolder(MEASURED, estimate.run.id)
        same_model = [r.factors for r in runs if r.factors["model"] == run.factors["model"]]
        model = str(run.factors["model"])
        words = [settings.titles.get(model, model)]
        for factor, form in {"device": "{}", "instance": "{}", **SETTING}.items():
            value, noun = run.factors[factor], form.removeprefix("{} ")
            if value is not None and len({str(f[factor]) for f in same_model} - {"None"}) > 1:
                is_count = noun.endswith("s")
                words.append(counted(value, noun) if is_count else form.format(value))
        result.titles[run.id] = ", ".join(words)
        for first, last in run.parts:
            n_left = sum(not folder.has(epoch) for epoch in range(first, last + 1))
            job_s = n_left * estimate.epoch_s + plan.JOB_S if n_left else 0.0
            result.jobs_s[run.id, str(first), str(last)] = job_s
        result.epochs += [f"{MEASURED}/{run.id}/epoch-{k}" for k in range(run.epochs)]
    for sweep in sweeps.sweeps.values():
        if sweep.chunks:
            key = f"{sweep.id}/{sweep.digest}"
            result.titles[key] = sweep.name
            seconds, _ = chunk_estimates_s(sweep, settings)
            for (first, last), chunk_s in zip(sweep.chunks, seconds, strict=True):
                result.jobs_s[key, str(first), str(last)] = chunk_s + plan.JOB_S if chunk_s else 0.0
            modes = SweepFolder(MEASURED, sweep.id)
            result.modes += [modes.path_of(mode) for mode in sweep.settings]
    return result
