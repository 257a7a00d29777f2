"""`python -m benchmarks.faults --seed S --count N [--only NAME ...]`: faults in real measurements.

Each fault hits a copy of a small measured run (LeNet on digits) in a folder of its own, at a place
and a moment that the seed chooses; then the job is started plainly. Checked each time: no finished
epoch is lost; no loss, no weight differs from an undisturbed run's; damage is named; no process
stays behind; no traceback is printed; nothing is left over or made outside the folder. Ctrl-C ends
it with the table of what was done; `--write` puts that into benchmarks/faults.json.
"""

import argparse
import functools
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
from typing import NamedTuple

from benchmarks import template
from benchmarks.faults import damage, invariants, place, processes
from benchmarks.faults.damage import Injected
from benchmarks.faults.place import Place, Start
from benchmarks.results import REPOSITORY, commit

OUT = REPOSITORY / "benchmarks/faults.json"
FAILED = (-99, 70)  # it hangs, or ended by an exception that nobody meant


class Outcome(NamedTuple):
    """One injection: what is wrong after it, and how long it took."""

    wrong: list[str]
    seconds: float


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

    def of_processes(self, fault: processes.Running, rng: random.Random) -> list[str]:
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


Injection = tuple[str, int]  # name of a fault, and how many there were of it before


class Known(NamedTuple):
    """A fault that can be injected, and its share."""

    inject: Callable[..., list[str]]  # of the campaign and `rng`
    share: float


def known_faults(folder: Path) -> dict[str, Known]:
    """Return all faults by name."""
    found: dict[str, Known] = {}
    for name, fault, share in damage.faults():
        found[name] = Known(functools.partial(Campaign.of_files, fault=fault), share)
    for name, running, share in processes.faults(folder):
        found[name] = Known(functools.partial(Campaign.of_processes, fault=running), share)
    return found


def injections(faults: dict[str, Known], seed: int, count: int) -> list[Injection]:
    """Return which faults are injected, in order; each as often as its share says."""
    rng = random.Random(seed)
    names, shares = list(faults), [known.share for known in faults.values()]
    counts = dict.fromkeys(names, 0)
    drawn = []
    for name in rng.choices(names, shares, k=count):
        drawn.append((name, counts[name]))
        counts[name] += 1
    return drawn


def run(
    folder: Path,
    seed: int,
    count: int,
    only: list[str] | None = None,
    first: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, list[Outcome]]:
    """Inject faults; return name -> outcomes.

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
        drawn = injections(faults, seed, count)
    else:
        drawn = [(name, n) for name in only for n in range(first, first + count)]
    outcomes: dict[str, list[Outcome]] = {name: [] for name in faults}
    for name, n in drawn:
        start_s = time.perf_counter()
        rng = random.Random(f"{seed}/{name}/{n}")
        try:
            wrong = faults[name].inject(campaign, rng=rng)
        except KeyboardInterrupt:
            print("ended early", flush=True)
            break
        except Exception as error:  # noqa: BLE001  a folder that is not as it was before is a failure
            wrong = [f"the check itself failed: {error!r}"]
        outcomes[name].append(Outcome(wrong, time.perf_counter() - start_s))
        n_done = sum(map(len, outcomes.values()))
        if n_done % 50 == 0:
            print(f"{n_done} injected", flush=True)
        if wrong:
            told = "; ".join(wrong)
            say(f"{name}: {told}\n    --seed {seed} --only '{name}' --first {n} --count 1")
    return {name: found for name, found in outcomes.items() if found}


def table(outcomes: dict[str, list[Outcome]]) -> list[str]:
    """Return the lines of the table."""
    width = max(map(len, outcomes))
    rows = [*outcomes.items(), ("all", [o for found in outcomes.values() for o in found])]
    lines = [f"{'fault':{width}}  injected  recovered  wrong  s each"]
    for name, found in rows:
        bad = sum(bool(outcome.wrong) for outcome in found)
        mean_s = sum(outcome.seconds for outcome in found) / len(found)
        lines.append(
            f"{name:{width}}  {len(found):8}  {len(found) - bad:9}  {bad:5}  {mean_s:6.2f}"
        )
    return lines


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
