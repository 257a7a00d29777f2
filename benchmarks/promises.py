"""`python -m benchmarks.promises`: stated risks of `recommend` beside what unseen repeats do.

Boards are tables of others and synthetic ones; of each mode that is profiled one repeat is seen.
`recommend`'s rule takes the fastest mode that keeps a limit with a risk, limit after limit, and
another repeat says whether it is broken; there is no answer where no mode is expected to keep it.
Beside it: how far the default method is off in all other modes, and the three that it averages.
Nothing was chosen on these boards: what `models/stacked.py` believes was set on others, which it
names. Writes promises-risk.csv, promises-default.csv and promises-errors.csv; a minute of two
cores.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from benchmarks.profile_replays import LIMITS, TX2, WORLDS, in_two_processes, world
from benchmarks.results import REPOSITORY, write_tables
from benchmarks.synthetic_truth import EPOCH_SD
from epochwatt.prediction.data.modes import Mode, Numbers
from epochwatt.prediction.harness import fastest_within
from epochwatt.prediction.models.stacked import Stacked
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Context, Predictor
from epochwatt.prediction.profile.bench import Played, replayed
from epochwatt.prediction.recommend.recommend import AS_EXPECTED, MAX_RISK, safe_mode
from epochwatt.prediction.registry import RECOMMENDED, load_method
from epochwatt.sweeps.find import find_tables

FOLDER = REPOSITORY / "benchmarks/tables/prediction"
PUBLIC = {  # sweep -> of its workloads with power, this one and so on
    **{TX2: 1, "ali-a100": 5, "energy-time-fairness-tx2": 8, "zeus-v100": 20},
    "zeus-rtx6000": 15,
}
STREAM = "ali-gv100"  # its other workload, dgemm, was chosen on
RISKS = (0.02, 0.05, MAX_RISK, 0.2, 0.35, AS_EXPECTED)  # that are asked for
EDGES = (0.0, 0.03, 0.06, 0.1, 0.2, 0.35, 0.501)  # of the bins of stated risks
SIZES, N_DRAWS, N_LIMITS = (4, 10, 50), 8, 9
N_BOOTSTRAP, SURE = 1000, 0.95  # of ratios, over sets of modes
NOISY_SD = 0.04  # of the repeats of noisy synthetic boards
METHODS = ("utilisation", "gaussian_process", "physical")  # in the order of `Stacked`


@dataclass(frozen=True, eq=False, kw_only=True)
class Known(Predictor):
    """What a predictor says of all modes of a board, worked out once."""

    target: str
    trained_on: Numbers
    values: Numbers  # (n,)
    centre_scale: tuple[Numbers, Numbers]  # (n,) each, of their logarithms
    free: float

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the expected values."""
        return self.values

    def log_t(self, modes: ArrayLike) -> tuple[Numbers, Numbers]:
        """Return centre and scale of the logarithms."""
        return self.centre_scale


def known(fitted: Predictor, modes: Numbers) -> Known:
    """Return what a predictor says of modes (n, 6)."""
    about = {name: getattr(fitted, name) for name in ("target", "trained_on", "free")}
    return Known(**about, values=fitted.mean(modes), centre_scale=fitted.log_t(modes))


def benches(name: str) -> list[Played]:
    """Return the boards of a name: a public sweep, or `WORLD` with or without ` noisy`."""
    if name.split(",")[0] in WORLDS:
        number = WORLDS.index(name.split(",")[0])
        return [world(number, sd=NOISY_SD if name.endswith("noisy") else EPOCH_SD)]
    tables = find_tables(name, REPOSITORY)
    if name == STREAM:
        tables = [table for table in tables if "stream" in table.key.workload]
    return [replayed(table) for table in tables[:: PUBLIC.get(name, 1)]]


def answers(name: str) -> pd.DataFrame:
    """Return a row for each answer under a limit and a risk: stated and observed, and errors."""
    method, rows = load_method(RECOMMENDED), []
    for number, bench in enumerate(benches(name)):
        for n in [n for n in SIZES if n <= len(bench.modes) / 2]:
            for draw in range(N_DRAWS):
                played, rng = bench.anew(), np.random.default_rng((draw, n))
                places = rng.choice(len(bench.modes), n, replace=False)
                modes = [Mode(*row) for row in bench.modes[places].tolist()]
                seen = played.observations(list(played.measure(modes)))
                time, power = (method.fit(seen, Context(target)) for target in (TIME, POWER))
                about = {"table": name, "n": n, "set": f"{name} {number} {n} {draw}"}
                about |= errors(bench, places, [time, power])
                time, power = (known(fitted, bench.modes) for fitted in (time, power))
                for limit_w in np.quantile(bench.power_w, np.linspace(*LIMITS, N_LIMITS)):
                    best = fastest_within(bench.time_s, bench.power_w, np.array([limit_w]))[0]
                    if power.mean(bench.modes).min() > limit_w:
                        rows += [about | {"asked": risk} for risk in RISKS]
                        continue
                    for risk in RISKS:
                        chosen = safe_mode(time, power, bench.modes, limit_w, risk, safest=True)
                        mode = Mode(*bench.modes[chosen.place].tolist())
                        unseen, _ = played.unseen(mode)
                        rows.append(
                            about
                            | {"asked": risk, "stated": chosen.risks["power_w"]}
                            | {"broken": (unseen[:, 1] > limit_w).mean()}
                            | {"regret": bench.time_s[chosen.place] / bench.time_s[best] - 1}
                        )
    return pd.DataFrame(rows)


def errors(bench: Played, profiled: np.ndarray, fits: Sequence[Predictor]) -> dict[str, float]:
    """Return the median error of each method in all other modes, %, by target and method."""
    found = {}
    others = np.setdiff1d(np.arange(len(bench.modes)), profiled)
    for fitted, truth in zip(fits, (bench.time_s, bench.power_w), strict=True):
        assert isinstance(fitted, Stacked)
        logs = fitted.expected(bench.modes)
        by_method = dict(zip(METHODS, logs, strict=False)) | {RECOMMENDED: fitted.weights @ logs}
        for method, expected in by_method.items():
            off = np.exp(expected[others]) / truth[others] - 1
            found[f"{fitted.target} {method}"] = 100 * float(np.median(np.abs(off)))
    return found


def kind_of(row: pd.Series) -> str:
    """Return the kind of table that an answer is counted with."""
    if row["table"].endswith("noisy") or row["table"] == TX2:
        return "noisy: repeats differ by 4 % and more"
    return f"large: {SIZES[-1]} modes" if row["n"] == SIZES[-1] else "small: 4 and 10 modes"


def interval(part: pd.DataFrame) -> str:
    """Return bounds of the share that is broken over the one that is stated.

    By a bootstrap over sets of modes, whose answers break together.
    """
    sums = part.groupby("set")[["broken", "stated"]].sum().to_numpy()
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), N_BOOTSTRAP) @ sums
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [(1 - SURE) / 2, (1 + SURE) / 2])
    return f"{low:.2f} to {high:.2f}"


def main() -> int:
    """Judge on all boards."""
    names = [*PUBLIC, STREAM, *WORLDS, *(f"{name}, noisy" for name in WORLDS)]
    found = in_two_processes(answers, names)
    found["kind"] = found.apply(kind_of, axis=1)
    # above the last edge the safest mode breaks it rather than not
    found["bin"] = pd.cut(found["stated"], EDGES)
    groups = found.groupby(["kind", "bin"], observed=True)
    risk = groups.agg(
        answers=("stated", "size"), stated=("stated", "mean"), broken=("broken", "mean")
    )
    risk = risk.reset_index()
    ratio = risk["broken"] / risk["stated"]
    risk["observed over stated"] = ratio.map("{:.2f}".format)
    risk[f"{100 * SURE:.0f} % interval"] = [interval(part) for _, part in groups]
    risk["bin"] = [f"{edge.left:.2f} to {edge.right:.2f}" for edge in risk["bin"]]
    for name in ("stated", "broken"):
        risk[name] = (100 * risk[name]).map("{:.1f}".format)
    default = [
        {
            "kind": kind,
            "asked": "0.1, the default" if asked == MAX_RISK else f"{asked:g}",
            "answers": len(part),
            "answered, %": f"{100 * part['stated'].notna().mean():.0f}",
            "as safe as asked, %": f"{100 * (part['stated'] <= asked).mean():.0f}",
            "broken, %": f"{100 * part['broken'].mean():.1f}",
            "slower than the best, %: median": f"{100 * part['regret'].median():.1f}",
        }
        for asked in (MAX_RISK, AS_EXPECTED)
        for kind, part in found[found["asked"] == asked].groupby("kind")
    ]
    once = found[(found["asked"] == MAX_RISK)].drop_duplicates("set")
    rows = []
    for (table, n), part in once.groupby(["table", "n"], sort=False):
        for target in (TIME, POWER):
            medians = {m: part[f"{target} {m}"].median() for m in (*METHODS, RECOMMENDED)}
            cells = {m: "" if np.isnan(v) else f"{v:.1f}" for m, v in medians.items()}
            rows.append({"board": table, "modes": n, "target": target.split("_")[0], **cells})
    tables = {"risk": risk, "default": pd.DataFrame(default), "errors": pd.DataFrame(rows)}
    write_tables(FOLDER, {f"promises-{name}": table for name, table in tables.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
