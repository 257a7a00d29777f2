"""`python -m benchmarks.faults --seed S --count N [--only NAME ...]`: faults in real measurements.

Each fault hits a copy of a small measured run (LeNet on digits) in a folder of its own, at a place
and a moment that the seed chooses; then the job is started plainly. Checked each time: no finished
epoch is lost; no loss, no weight differs from an undisturbed run's; damage is named; no process
stays behind; no traceback is printed; nothing is left over or made outside the folder. Ctrl-C ends
it with the table of what was done; `--write` puts that into benchmarks/faults.json.
"""

import argparse
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from benchmarks import template
from benchmarks.faults import injections as known
from benchmarks.faults import invariants, place
from benchmarks.faults.injections import Injected
from benchmarks.faults.place import Place, Start
from benchmarks.results import REPOSITORY, commit

OUT = REPOSITORY / "benchmarks/faults.json"
FAILED = (-99, 70)  # it hangs, or ended by an exception that nobody meant


class Campaign:
    """Injects faults into copies of one measured run.

    Parameters
    ----------
    folder : empty
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.source = folder, folder / "template"
        make_template(self.source)
        self.reference = template.losses(self.source / f"after-{template.EPOCHS}")

    def of_files(self, fault: Callable[..., Injected], rng: random.Random) -> list[str]:
        """Damage files, then start; return what is wrong."""
        n_done = rng.choice((template.EPOCHS - 1, template.EPOCHS))
        here = self._place(n_done)
        before = here.digests()
        injected = fault(here, rng)
        starts = []
        if n_done == template.EPOCHS and rng.random() < 0.3:
            starts.append(here.collected())  # results/ was removed, receipts were not
            starts[-1].wait()
        return self._recovered(here, injected, before, starts)

    def of_processes(self, fault: known.Running, rng: random.Random) -> list[str]:
        """Let a fault meet a job under way, then start; return what is wrong."""
        here = self._place(rng.randrange(template.EPOCHS))
        before = here.digests()
        injected, starts = fault(here, rng)
        before = {**here.digests(), **before}  # what was finished meanwhile is not lost either
        left = [f"orphan: {told}" for told in place.orphans()]
        here.run_factors["num_workers"] = 0
        return left + self._recovered(here, injected, before, starts)

    def _place(self, n_done: int) -> Place:
        beside = self.folder / "beside"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        return Place(beside / "here", self.source, n_done)

    def _recovered(
        self, here: Place, injected: Injected, before: dict[int, str], starts: list[Start]
    ) -> list[str]:
        """Start plainly until it ends well, once more where something had to be mended first."""
        wrong = [
            f"start {n} ended with {start.status}"
            for n, start in enumerate(starts, 1)
            if start.status in FAILED
        ]
        last = here.start()
        starts.append(last)
        if last.wait() and injected.mend is not None:
            injected.mend()
            last = here.start()
            starts.append(last)
        if last.wait():
            said = last.text.strip()[-400:]
            wrong.append(f"the next start ends with {last.status}: {said}")
        else:
            if injected.names:
                wrong += invariants.unnamed(starts, injected.names)
            wrong += invariants.after_recovery(
                here, self.source, self.reference, before, set(injected.damaged)
            )
            wrong += invariants.silent(here, starts)
        return wrong + invariants.tracebacks(starts)


def make_template(folder: Path) -> None:
    """Measure the run epoch by epoch; keep a copy after each."""
    folder.mkdir(parents=True)
    template.prepare(folder)
    for part in (f"measured/{template.RUN}", "tmp"):
        (folder / "after-0" / part).mkdir(parents=True)
    for k in range(1, template.EPOCHS + 1):
        here = Place(folder / "making", folder, k - 1)
        start = here.start(collect=False, epochs=k)
        if start.wait():
            raise RuntimeError(start.text)
        for part in ("measured", "tmp"):
            shutil.copytree(here.folder / part, folder / f"after-{k}" / part)
        shutil.copy2(here.folder / "results/receipt.json", folder / f"after-{k}")
        shutil.rmtree(here.folder)


Inject = Callable[[Campaign, random.Random], list[str]]


def known_faults(folder: Path) -> dict[str, tuple[Inject, float]]:
    """Return all faults by name, and their shares."""
    of_files, of_processes = Campaign.of_files, Campaign.of_processes
    files = {
        n: (lambda c, rng, f=f: of_files(c, f, rng), share) for n, f, share in known.file_faults()
    }
    return files | {
        n: (lambda c, rng, f=f: of_processes(c, f, rng), share)
        for n, f, share in known.process_faults(folder)
    }


def drawn_injections(names: list[str], shares: list[float], seed: int, count: int) -> pd.DataFrame:
    """Return which faults are injected, in order: `fault`, and `n` of it before.

    Each comes as often as its share says.
    """
    drawn = pd.DataFrame({"fault": random.Random(seed).choices(names, shares, k=count)})
    return drawn.assign(n=drawn.groupby("fault").cumcount())


def run(
    folder: Path,
    seed: int,
    count: int,
    only: list[str] | None = None,
    first: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> pd.DataFrame:
    """Inject faults; return a row for each: `fault`, `is_wrong`, `seconds`.

    Parameters
    ----------
    folder : empty
    seed : of places and moments
    count : injections in all; with `only` of each that is named
    only : names of faults; None: all
    first : number of the first injection of each that is named
    say : what is done with a line about each failure
    """
    place.adopt_orphans()
    campaign = Campaign(folder)
    faults = known_faults(folder)
    if only is None:
        drawn = drawn_injections([*faults], [share for _, share in faults.values()], seed, count)
    else:
        numbers = range(first, first + count)
        drawn = pd.DataFrame([(name, n) for name in only for n in numbers], columns=["fault", "n"])
    outcomes = []
    for name, n in drawn.itertuples(index=False):
        start_s = time.perf_counter()
        try:
            wrong = faults[name][0](campaign, random.Random(f"{seed}/{name}/{n}"))
        except KeyboardInterrupt:
            print("ended early", flush=True)
            break
        except Exception as error:  # noqa: BLE001  a folder that is not as it was before is a failure
            wrong = [f"the check itself failed: {error!r}"]
        outcomes.append((name, bool(wrong), time.perf_counter() - start_s))
        if len(outcomes) % 50 == 0:
            print(f"{len(outcomes)} injected", flush=True)
        if wrong:
            told = "; ".join(wrong)
            say(f"{name}: {told}\n    --seed {seed} --only '{name}' --first {n} --count 1")
    return pd.DataFrame(outcomes, columns=["fault", "is_wrong", "seconds"])


def table(outcomes: pd.DataFrame) -> list[str]:
    """Return the lines of the table."""
    together = pd.concat([outcomes, outcomes.assign(fault="all")]).groupby("fault", sort=False)
    found = together.agg(
        injected=("is_wrong", "size"), wrong=("is_wrong", "sum"), s_each=("seconds", "mean")
    )
    found.insert(1, "recovered", found.injected - found.wrong)
    return found.round({"s_each": 2}).reset_index().to_string(index=False).splitlines()


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 0 where nothing was wrong."""
    parser = argparse.ArgumentParser(prog="benchmarks.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--count", type=int, default=50, help="injections")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="`--count` of each of these faults"
    )
    parser.add_argument("--first", type=int, default=0, help="number of their first injection")
    parser.add_argument("--write", action="store_true", help=f"write {OUT.name}")
    arguments = parser.parse_args(argv)
    print(f"seed {arguments.seed}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ready()
    told: list[str] = []

    def say(text: str) -> None:
        told.append(text)
        print(text, flush=True)

    with tempfile.TemporaryDirectory(prefix="ew") as folder:
        seed, count, only = arguments.seed, arguments.count, arguments.only
        lines = table(run(Path(folder), seed, count, only, arguments.first, say))
    print("\n".join(["", *lines]))
    if arguments.write:
        about = {"seed": arguments.seed, "commit": commit(), "table": lines, "wrong": told}
        OUT.write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    return 1 if told else 0


def ready() -> None:
    """Import what a job imports, once for all of them, and give their samplers made-up power."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import torch

    importlib.import_module("epochwatt.board.training.session")
    torch.set_num_threads(1)
    template.with_power()


if __name__ == "__main__":
    sys.exit(main())
