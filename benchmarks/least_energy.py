"""`python -m benchmarks.least_energy`: searches for the mode of least energy, on real tables.

Every public table of time and power plays the board, and at most ten runs of modes may be asked
for. Beside `epochwatt profile --objective energy` stand the best of random modes, MAXN, the best of
the board's preset modes, Zeus' just-in-time profiling (NSDI 2023: power limits from the highest
down, here also GPU clocks, and the one of least energy is taken), and what PowerTrain predicts.

Repeats of a mode are drawn in another order each time, and the last one is shown to nobody. By it
an answer is judged, beside the answer of who runs every mode as often as it is shown: *regret* is
how much more energy it takes. Tables without repeats are judged by their own numbers. Where noise
is large the least mean of a table is that of a lucky mode, so regret beside it stands apart, and
who runs every mode has it, too.

Writes benchmarks/tables/prediction/least-energy.csv, by sweep; with `profile`, the rows of
`epochwatt profile` alone are made anew.
Sweeps that may not be passed on are added where EPOCHWATT_PUBLIC_DATA names them, and so is
fine-tuning on an AGX Orin at pinned GPU clocks, of which energies alone are published: there a run
takes the same time in each mode, the search sees the energy, and MAXN is its governor.

SOURCE: of that, github.com/esainulab/slmdvfs at 9e14047 (no licence), data of A. Amangeldi,
Energy-Efficient GPU Frequency Scaling Characterization for SLM Fine-Tuning on Embedded Platforms,
thesis, Nazarbayev University, 2026, handle 123456789/18744. Energies lack the rail VIN_SYS_5V0.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.profile_replays import REFERENCES, in_two_processes, reference_of
from benchmarks.results import REPOSITORY, write_tables
from epochwatt.errors import ConfigError
from epochwatt.prediction.data.modes import Mode, PredictionError
from epochwatt.prediction.models.times_power import predictors
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.profile.bench import Played, replayed
from epochwatt.prediction.profile.search import ENDLESS_S, Goal, Profile, search
from epochwatt.prediction.registry import RECOMMENDED, load_method
from epochwatt.prediction.transfer.baselines import preset_places, strongest
from epochwatt.sweeps.find import find_tables
from epochwatt.sweeps.mode_table import ModeTable, SweepRow, tables_of
from epochwatt.sweeps.public.registry import load_registry, public_folder

TABLES = REPOSITORY / "benchmarks/tables/prediction"
N_RUNS = 10
FEW = 5  # runs, where a table has little more than ten modes
LEAST_MODES = 5  # of a table
N_DRAWS, N_ORDERS = 5, 15  # of random modes; of the repeats, where there are any
RANDOM, PROFILE, EVERY = "random modes", "profile", "every mode as often as shown"
KERNEL = "kernel"  # work of tables that are left out
GPU, LIMIT = Mode._fields.index("gpu_mhz"), Mode._fields.index("power_limit_w")
HEAD = ["sweep", "tables", "modes", "strategy", "runs", "regret, %: median / worst"]
HEAD += ["standard error, %", "saved beside MAXN, %: median"]
HEAD += ["beside the least mean, %: median / worst"]

FINE_TUNING = "slmdvfs-agx-orin"  # energies alone
CURVE = re.compile(r'(\w+)_data = {\s*"config_freq_mhz": \[([^]]*)\],\s*"energy_j": \[([^]]*)\]')
GOVERNED = r"\b{}_mode0_energy = ([\d.]+)"

Choice = tuple[int, int]  # place of the answer among the modes, and how many runs it took


class Task(NamedTuple):
    """A table that plays the board."""

    sweep: str
    table: ModeTable
    governed_j: float | None = None  # energy under the governor, in place of that of MAXN


def profiled(bench: Played, n_runs: int = N_RUNS) -> Choice:
    """Return what `epochwatt profile` answers."""
    goal = Goal("energy", None, ENDLESS_S, max_runs=n_runs)
    profile = Profile(bench, goal, load_method(RECOMMENDED))
    search(profile)
    assert profile.best is not None
    return bench.place(profile.best.mode), len(profile.ran)


def best_of(bench: Played, places: Sequence[int]) -> Choice:
    """Return the place of least energy of some, each run once."""
    runs = list(bench.measure([Mode(*bench.modes[place].tolist()) for place in places]))
    return places[int(np.argmin([run.energy_j for run in runs]))], len(runs)


def from_random(bench: Played, draw: int) -> Choice:
    """Return the best of `N_RUNS` random modes."""
    n = len(bench.modes)
    return best_of(bench, np.random.default_rng(draw).permutation(n)[:N_RUNS].tolist())


def zeus(bench: Played) -> Choice:
    """Return the best power limit, or GPU clock, from the highest down; all else is at its highest.

    Where a table lacks that, the nearest mode; where there are more than `N_RUNS` settings, as many
    are taken, evenly.
    """
    modes = bench.modes
    knob = LIMIT if np.ptp(modes[:, LIMIT]) else GPU
    others = np.delete(modes, knob, axis=1)
    far = ((others.max(0) - others) / others.max(0).clip(1)).sum(1)
    line = [
        int(np.where(modes[:, knob] == setting, far, np.inf).argmin())
        for setting in np.unique(modes[:, knob])[::-1]
    ]
    taken = np.unique(np.linspace(0, len(line) - 1, min(N_RUNS, len(line))).round().astype(int))
    return best_of(bench, [line[number] for number in taken])


def powertrain(bench: Played, sweep: str, draw: int) -> Choice:
    """Return the least energy that PowerTrain predicts from `N_RUNS` random modes."""
    reference, name = reference_of(sweep, bench)
    drawn = np.random.default_rng(draw).permutation(len(bench.modes))[:N_RUNS]
    runs = list(bench.measure([Mode(*row) for row in bench.modes[drawn].tolist()]))
    seen = bench.observations(runs)
    cache = REPOSITORY / ".cache/powertrain"  # of what it learns of the reference
    fitted = predictors(load_method(name), seen, [seen], reference=reference, cache=cache)
    energy = fitted[TIME].predict(bench.modes) * fitted[POWER].predict(bench.modes)
    return int(energy.argmin()), len(runs)


def strategies(sweep: str, bench: Played) -> dict[str, Callable[[Played, int], Choice]]:
    """Return strategy -> what it answers on a bench, in a draw."""
    found: dict[str, Callable[[Played, int], Choice]] = {
        f"{PROFILE}, {N_RUNS} runs": lambda played, _: profiled(played),
        f"{PROFILE}, {FEW} runs": lambda played, _: profiled(played, FEW),
        f"best of {N_RUNS} {RANDOM}": from_random,
        f"Zeus, {N_RUNS} runs": lambda played, _: zeus(played),
    }
    if sweep in REFERENCES:
        found[f"PowerTrain, {N_RUNS} {RANDOM}"] = lambda p, draw: powertrain(p, sweep, draw)
    try:
        presets = list(preset_places(bench.table, bench.kind).values())
        found["best preset mode"] = lambda played, _: best_of(played, presets)
    except PredictionError:  # of this board none is known
        pass
    return found


def unseen_j(bench: Played, place: int) -> float:
    """Return the energy of a mode in the repeat that is shown to nobody."""
    played, mode = bench.anew(), Mode(*bench.modes[place].tolist())
    for _ in range(bench.n_shown(place)):
        list(played.measure([mode]))
    return float(played.unseen(mode)[0].prod(1).mean())


def answers(task: Task, of_profile: bool = False) -> pd.DataFrame:
    """Return how each strategy does on a table: a row each; or `epochwatt profile` alone does."""
    sweep, table, governed_j = task
    means = replayed(table)
    energy_j = means.time_s * means.power_w
    try:
        maxn = strongest(means.table)
    except PredictionError:  # the table lacks it
        maxn = int(means.time_s.argmin())
    ways = strategies(sweep, means)
    if of_profile:
        ways = {name: way for name, way in ways.items() if name.startswith(PROFILE)}
    has_repeats = len(table.rows) > len(energy_j)
    rows, chosen = [], dict[str, Choice]()
    for draw in range(N_ORDERS if has_repeats else N_DRAWS):
        bench = replayed(table, seed=draw)
        shown_j = np.array([bench.shown(n).prod(1).mean() for n in range(len(energy_j))])
        n_shown = sum(map(bench.n_shown, range(len(energy_j))))
        for name, way in ways.items():
            if has_repeats or not draw or RANDOM in name:  # else it answers as before
                chosen[name] = way(bench.anew(), draw)
        chosen |= {"MAXN": (maxn, 0), EVERY: (int(shown_j.argmin()), n_shown)}
        for strategy, (place, runs) in chosen.items():
            seen_j = unseen_j(bench, place) if has_repeats else energy_j[place]
            if strategy == "MAXN" and governed_j is not None:
                seen_j = governed_j
            rows.append((draw, strategy, runs, seen_j, energy_j[place] / energy_j.min()))
    frame = pd.DataFrame(rows, columns=["draw", "strategy", "runs", "energy_j", "over_least"])
    by = frame.drop(columns="draw").groupby("strategy", sort=False).mean()
    by["regret_pct"] = 100 * (by.energy_j / by.energy_j[EVERY] - 1)
    of_draws = frame.pivot(index="draw", columns="strategy", values="energy_j")
    sem_j = of_draws.sub(of_draws[EVERY], axis=0).sem()
    by["se_pct"] = 100 * sem_j / by.energy_j[EVERY] if has_repeats else np.nan
    by["saved_pct"] = 100 * (1 - by.energy_j / by.energy_j["MAXN"])
    by["over_least_pct"] = 100 * (by.over_least - 1)
    labels = {"sweep": sweep, "workload": table.key.workload, "batch_size": table.key.batch_size}
    return by.reset_index().assign(**labels, modes=len(energy_j))


def fine_tuning(folder: Path) -> Iterator[Task]:
    """Yield the curves of the authors' own plots in a clone below a folder."""
    for path in sorted(folder.glob("**/src/plots/*.py")):
        text = path.read_text("utf-8")
        for name, clocks, energies in CURVE.findall(text):
            rows = [
                SweepRow(
                    **{"sweep": FINE_TUNING, "provenance": "public", "device": "agx_orin"},
                    **{"workload": f"{path.stem} {name}", "task": "train", "work": "fine-tuning"},
                    **{"time_s": 1.0, "power_scope": "module"},
                    gpu_mhz=float(mhz),
                    power_w=float(joule),
                )
                for mhz, joule in zip(clocks.split(","), energies.split(","), strict=True)
            ]
            governed = re.search(GOVERNED.format(name), text)
            (table,) = tables_of(rows)
            yield Task(FINE_TUNING, table, float(governed[1]) if governed else None)


def tasks() -> Iterator[Task]:
    """Yield whatever is at hand, has power and is no kernel."""
    registry, folder = load_registry(REPOSITORY), public_folder(None)
    for name in registry.sweeps:
        try:
            found = find_tables(name, REPOSITORY, folder)
        except ConfigError:  # may not be passed on, and is not here
            continue
        for table in found:
            valid = table.valid()
            if table.key.work == KERNEL or not valid.rows:
                continue
            if any(row.power_w is None for row in valid.rows):
                continue
            if len({tuple(mode) for mode in np.nan_to_num(valid.modes).tolist()}) >= LEAST_MODES:
                yield Task(name, valid)
    if folder is not None:
        yield from fine_tuning(folder)


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of the page: a row for each sweep and strategy."""
    rows = []
    for (sweep, strategy), part in frame.groupby(["sweep", "strategy"], sort=False):
        se = f"{part.se_pct.iloc[0]:.1f}" if part.se_pct.notna().all() else ""
        if strategy == EVERY and not se:  # it knows all there is to know
            continue
        low, high = part["modes"].min(), part["modes"].max()
        rows.append(
            [
                *(sweep, str(len(part)), str(low) if low == high else f"{low} to {high}", strategy),
                f"{part['runs'].mean():.0f}",
                f"{part.regret_pct.median():.1f} / {part.regret_pct.max():.1f}",
                se,
                f"{part.saved_pct.median():.0f}",
                f"{part.over_least_pct.median():.1f} / {part.over_least_pct.max():.1f}",
            ]
        )
    return pd.DataFrame(rows, columns=HEAD)


def main(names: list[str]) -> int:
    """Judge on all tables, or on the sweeps that are named; write where none is."""
    of_profile = names == [PROFILE]
    asked = [task for task in tasks() if of_profile or not names or task.sweep in names]
    frame = in_two_processes(partial(answers, of_profile=of_profile), asked)
    rows = summary(frame)
    print(rows.to_string())
    if of_profile:
        rows = rows[rows["strategy"].str.startswith(PROFILE)]
        before = pd.read_csv(TABLES / "least-energy.csv", dtype=str, keep_default_na=False)
        order = before["sweep"].unique().tolist().index
        rows = pd.concat([rows, before]).drop_duplicates(["sweep", "strategy"])
        rows = rows.sort_values("sweep", key=lambda names: names.map(order), kind="stable")
    if of_profile or not names:
        write_tables(TABLES, {"least-energy": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
