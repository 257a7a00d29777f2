"""`python -m benchmarks.faults --seed S --count N [--only NAME ...]`: faults in real measurements.

Each fault hits a copy of a small measured run (LeNet on digits) in a folder of its own, at a place
and a moment that the seed chooses; then the job is started plainly. Checked each time: no finished
epoch is lost; no loss, no weight differs from an undisturbed run's; damage is named; no process
stays behind; no traceback is printed; nothing is left over or made outside the folder. Ctrl-C ends
it with the table of what was done; `--write` puts that into the table of the documentation.
"""

import argparse
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from benchmarks import template
from benchmarks.faults import invariants
from benchmarks.faults.injections import Fault, file_faults, process_faults
from benchmarks.faults.place import Place, adopt_orphans, orphans
from benchmarks.results import REPOSITORY, write_tables

TABLES = REPOSITORY / "benchmarks/tables/instrument"


def make_template(folder: Path) -> None:
    """Measure the run epoch by epoch; keep a copy after each."""
    folder.mkdir()
    template.prepare(folder)
    for part in (f"measured/{template.RUN}", "tmp"):
        (folder / "after-0" / part).mkdir(parents=True)
    for k in range(1, template.EPOCHS + 1):
        place = Place(folder / "making", folder, k - 1)
        start = place.start(epochs=k)
        if start.wait():
            raise RuntimeError(start.text)
        for part in ("measured", "tmp"):
            shutil.copytree(place.folder / part, folder / f"after-{k}" / part)
        shutil.copy2(place.folder / "results/receipt.json", folder / f"after-{k}")
        shutil.rmtree(place.folder)


def wrong_with(fault: Fault, folder: Path, rng: random.Random) -> list[str]:
    """Inject a fault, then start plainly, once more where something had to be mended first."""
    beside = folder / "beside"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    place = Place(beside / "here", folder / "template", rng.choice(fault.done))
    before = place.digests()
    injected = fault.inject(place, rng)
    left = orphans()
    place.run_factors["num_workers"] = 0
    if place.starts:
        before = {**place.digests(), **before}  # what was finished meanwhile is not lost either
    elif place.n_done == template.EPOCHS and rng.random() < 0.3:
        place.started(lambda: None, place.collect).wait()  # results/ was removed, receipts were not
    last = place.start(collect=True)
    if last.wait() and injected.mend is not None:
        injected.mend()
        last = place.start(collect=True)
    if last.wait():
        wrong = [f"the next start ends with {last.wait()}: {last.text.strip()[-400:]}"]
    else:
        wrong = invariants.wrong_after(place, before, injected)
    return left + wrong + invariants.broken_starts(place)


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 0 where nothing was wrong."""
    parser = argparse.ArgumentParser(prog="benchmarks.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--count", type=int, default=50, help="injections")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="`--count` of each of these")
    parser.add_argument("--first", type=int, default=0, help="number of their first injection")
    parser.add_argument("--write", action="store_true", help="write the table")
    arguments = parser.parse_args(argv)
    seed, count = arguments.seed, arguments.count
    print(f"seed {seed}", flush=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    ready()
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="ew") as name:
        folder = Path(name)
        make_template(folder / "template")
        faults = {fault.name: fault for fault in (*file_faults(), *process_faults(folder))}
        if arguments.only:
            numbers = range(arguments.first, arguments.first + count)
            drawn = [(name, n) for name in arguments.only for n in numbers]
        else:
            shares = [fault.share for fault in faults.values()]
            names = random.Random(seed).choices(list(faults), shares, k=count)
            drawn = [(name, names[:place].count(name)) for place, name in enumerate(names)]
        for name, n in drawn:
            start_s = time.perf_counter()
            try:
                wrong = wrong_with(faults[name], folder, random.Random(f"{seed}/{name}/{n}"))
            except KeyboardInterrupt:
                print("ended early", flush=True)
                break
            except Exception as error:  # noqa: BLE001  a folder not as before is a failure
                wrong = [f"the check itself failed: {error!r}"]
            outcomes.append((faults[name].row, bool(wrong), time.perf_counter() - start_s))
            if wrong:
                again = f"--seed {seed} --only '{name}' --first {n} --count 1"
                print(f"{name}: {'; '.join(wrong)}\n    {again}", flush=True)
    found = pd.DataFrame(outcomes, columns=["fault", "is_wrong", "seconds"])
    table = (
        pd.concat([found, found.assign(fault="**all**")])
        .groupby("fault", sort=False)
        .agg(injected=("is_wrong", "size"), wrong=("is_wrong", "sum"), s_each=("seconds", "mean"))
        .round({"s_each": 1})
        .rename(columns={"s_each": "s each"})
    )
    table.insert(1, "recovered", table.injected - table.wrong)
    print(table.to_string())
    if arguments.write:
        write_tables(TABLES, {"faults": table.reset_index()})
    return int(found.is_wrong.any())


def ready() -> None:
    """Import what a job imports, once for all of them, and give their samplers made-up power."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    adopt_orphans()
    import torch

    importlib.import_module("epochwatt.board.training.session")
    torch.set_num_threads(1)
    template.with_power()


if __name__ == "__main__":
    sys.exit(main())
