"""Compare two sets of runs: the ratio of their epochs, run by run and part by part.

A factor that all runs of A share, and all of B, but with another value, is what is compared: the
backend (simulated against measured), the instance (board against board), or none at all (before and
after an update). All other factors have to agree for two runs to be a pair.

The ratio is that of the means over the valid epochs after the first (1+), B / A. Its interval of
95 % is Welch's on the logarithm of the ratio: each mean has the relative variance s^2 / (n mean^2)
of its epochs, the two add up, and Student's t for Welch's degrees of freedom gives the width. It
covers how epochs of a run differ, not how runs differ that are measured again.

With a margin m, a part is `equivalent` where the whole interval lies between 1 / (1 + m) and
1 + m, `different` where the whole interval lies outside, and else there are `not enough epochs`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from epochwatt.analysis.collect_study import counted_epochs, join_ranks, read_epochs
from epochwatt.analysis.own_runs import read_own_epochs
from epochwatt.columns import FACTOR_NAMES
from epochwatt.errors import EpochwattError
from epochwatt.study.imported import find_own_runs
from epochwatt.study.runs import MEASURED
from epochwatt.tables import write_entries
from epochwatt.text import aligned, counted, first_of, origin

QUANTITIES = {
    "e2e": "e2e_s",
    "stall": "stall_s",
    "compute": "compute_s",
    "overhead": "overhead_s",
    "energy": "energy_wh",
}
OWN = "settings"  # of loops of one's own, in words: a column that only `find_runs` adds
SETTINGS = (*FACTOR_NAMES, "protocol", OWN)
CONFIDENCE = 0.95
SHORT = "not enough epochs"
VERDICTS = ("equivalent", "different", SHORT, "not comparable")
HEADER = ("run", "part", "A", "B", "epochs", "ratio", "95 %", "verdict")
N_NAMED = 5  # runs without a partner that the text names; the CSV has all


@dataclass(frozen=True)
class Ratio:
    """A part of two runs that agree in all that is not compared; a row of the CSV."""

    run_a: str  # ids; empty where there is no partner
    run_b: str
    part: str = ""  # key of `QUANTITIES`, column of epochs.csv with its unit
    quantity: str = ""
    # means over the valid epochs after the first; None: nothing was measured
    a: float | None = None
    b: float | None = None
    n_epochs_a: int = 0  # of these
    n_epochs_b: int = 0
    ratio: float | None = None  # B / A and its interval
    low: float | None = None
    high: float | None = None
    verdict: str = "not comparable"  # one of `VERDICTS`
    reason: str = ""  # why there is no ratio, or no interval


def find_runs(pattern: str) -> pd.DataFrame:
    """Return the epochs of a set of runs; of `EpochMonitor`'s with a column `OWN`.

    `pattern` is an id or a pattern of ids of this checkout (`twin-nx-*`), or a folder of results,
    such as that of another checkout or a copy; or runs of `EpochMonitor` (`find_own_runs`).

    Raises EpochwattError: no run matches.
    """
    checkout_paths = sorted(Path("results/runs").glob("*/epochs.csv"))
    if Path(pattern).is_dir():
        paths = sorted(Path(pattern).glob("runs/*/epochs.csv"))
    else:
        paths = [path for path in checkout_paths if path.parent.match(pattern)]
    if paths:
        return join_ranks(read_epochs(paths))
    folder, runs = find_own_runs(pattern)
    if not runs:
        ids = [path.parent.name for path in checkout_paths] or sorted(find_own_runs(MEASURED)[1])
        raise EpochwattError(
            f"no run matches {pattern!r}",
            found=first_of(ids) or "no runs in results/runs, none of EpochMonitor in measured",
            allowed="the id of a run, a pattern of ids in quotes ('twin-nx-*'), a folder of "
            "results with runs/RUN/epochs.csv, or one with the records of EpochMonitor",
        )
    settings = {
        name: ", ".join(f"{k} {value}" for k, value in run.factors.get("settings", {}).items())
        for name, run in runs.items()
    }
    epochs = join_ranks(read_own_epochs(folder, runs.values()))
    return epochs.assign(**{OWN: epochs.run.map(settings)})


def compared_factors(a: pd.DataFrame, b: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Return factor -> (value in A, value in B), of factors with one value in each, unlike."""
    differing = {}
    for name in SETTINGS:
        values_a, values_b = _values(a, name), _values(b, name)
        if len(values_a) == len(values_b) == 1 and values_a != values_b:
            differing[name] = (values_a.pop(), values_b.pop())
    return differing


def _values(table: pd.DataFrame, factor: str) -> set[str]:
    cells = table[factor] if factor in table else pd.Series([""])
    return set(cells.astype(object).fillna("none").map(str))


class Side(NamedTuple):
    """One run of a pair."""

    run: str  # its id
    epochs: pd.DataFrame  # valid ones after the first

    def values(self, part: str) -> NDArray[np.floating]:
        """Return a quantity (key of `QUANTITIES`) of each epoch that has it."""
        return self.epochs[QUANTITIES[part]].dropna().to_numpy(dtype=float)


def compare(a: pd.DataFrame, b: pd.DataFrame, margin: float) -> list[Ratio]:
    """Return the ratios of all pairs, in the order of A, then the runs without a partner.

    Raises EpochwattError: several runs of a set would have the same partner.

    `a`, `b`: tables of epochs (`find_runs`); `margin`: share that means no difference: 0.05 for 5 %
    """
    shared = [name for name in SETTINGS if name not in compared_factors(a, b)]
    ours, theirs = _sides(a, shared, "A"), _sides(b, shared, "B")
    rows = [
        ratio_of(ours[key], theirs[key], part, margin)
        for key in ours
        if key in theirs
        for part in QUANTITIES
    ]
    rows += [Ratio(ours[key].run, "", reason="only in A") for key in ours if key not in theirs]
    rows += [Ratio("", theirs[key].run, reason="only in B") for key in theirs if key not in ours]
    return rows


def _sides(table: pd.DataFrame, shared: Sequence[str], name: str) -> dict[tuple[str, ...], Side]:
    """Return the runs of a set by the values of the factors that have to agree."""
    sides: dict[tuple[str, ...], Side] = {}
    valid = {str(run): epochs for run, epochs in counted_epochs(table).groupby("run")}
    for first in table.drop_duplicates("run").to_dict("records"):
        side = Side(first["run"], valid.get(first["run"], table.iloc[:0]))
        key = tuple(str(first.get(factor, "")) for factor in shared)
        if key in sides:
            raise EpochwattError(
                f"two runs of {name} have the same factors, and a run has one partner",
                found=[sides[key].run, side.run],
                do="choose a set with only one of them",
            )
        sides[key] = side
    return sides


def ratio_of(a: Side, b: Side, part: str, margin: float) -> Ratio:
    """Return the ratio B / A of a part of two runs with interval and verdict, or why there is none.

    `part`: key of `QUANTITIES`; `margin`: as for `compare`
    """
    values_a, values_b = a.values(part), b.values(part)
    mean_a, mean_b = (float(v.mean()) if v.size else None for v in (values_a, values_b))
    ratio = Ratio(
        a.run, b.run, part, QUANTITIES[part], mean_a, mean_b, values_a.size, values_b.size
    )
    if a.epochs.empty or b.epochs.empty:
        return replace(ratio, verdict=SHORT, reason="no valid epoch after the first")
    if part == "energy":
        scopes = [set(side.epochs.power_scope) - {""} for side in (a, b)]
        if all(scopes) and scopes[0] != scopes[1]:
            words = " against ".join("+".join(sorted(names)) for names in scopes)
            return replace(ratio, reason=f"energy of {words}")
    for name, mean in (("A", mean_a), ("B", mean_b)):
        if mean is None or mean <= 0:
            what = "no value in" if mean is None else "not above 0 in"
            return replace(ratio, reason=f"{what} {name}")
    ratio = replace(ratio, ratio=float(values_b.mean() / values_a.mean()))
    if min(values_a.size, values_b.size) < 2:
        return replace(ratio, verdict=SHORT, reason="one epoch has no spread")
    low, high = interval(values_a, values_b)
    return replace(ratio, low=low, high=high, verdict=verdict_of(low, high, margin))


def interval(a: NDArray[np.floating], b: NDArray[np.floating]) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of two means, b / a: Welch's, of its logarithm.

        v = s^2 / (n mean^2) of each;  freedom = (va + vb)^2 / (va^2 / (na - 1) + vb^2 / (nb - 1))
        ratio * exp(-+ t(freedom) * sqrt(va + vb))

    `a` and `b` have at least two values each, and their means are above 0.
    """
    from scipy.special import stdtrit  # slow to import, and the landing page needs none of it

    variance_a, variance_b = (
        float(v.var(ddof=1)) / (v.size * float(v.mean()) ** 2) for v in (a, b)
    )
    ratio, variance = float(b.mean() / a.mean()), variance_a + variance_b
    if variance == 0.0:
        return ratio, ratio
    freedom = variance**2 / (variance_a**2 / (a.size - 1) + variance_b**2 / (b.size - 1))
    half = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * math.sqrt(variance)
    return ratio * math.exp(-half), ratio * math.exp(half)


def verdict_of(low: float, high: float, margin: float) -> str:
    """Return the verdict on a ratio's interval: "equivalent", "different" or `SHORT`."""
    if low >= 1 / (1 + margin) and high <= 1 + margin:
        return "equivalent"
    return "different" if low > 1 + margin or high < 1 / (1 + margin) else SHORT


def compare_lines(a: str, b: str, margin_pct: float, path: Path | None = None) -> list[str]:
    """Compare two sets of runs; return the table as text, and write it as CSV if `path` is set.

    `a`, `b`: patterns as of `find_runs`. Raises EpochwattError as `find_runs` and `compare`.
    """
    table_a, table_b = find_runs(a), find_runs(b)
    rows = compare(table_a, table_b, margin_pct / 100.0)
    if path is not None:
        write_entries(path, "ratios", Ratio, rows)
    factors = compared_factors(table_a, table_b)
    changed = [f"{k} ({x}, {y})" for k, (x, y) in factors.items()]
    lines = [
        f"A: {_set_text(table_a)}; B: {_set_text(table_b)}",
        f"compared: {', '.join(changed) or 'the same factors'}",
        f"ratio: B / A of the means over epochs 1+; 95 %: its interval; margin: {margin_pct:g} %",
        *_table([row for row in rows if row.part]),
    ]
    for part in QUANTITIES:
        verdicts = [row.verdict for row in rows if row.part == part]
        counts = [f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts]
        lines += [f"{part}: {', '.join(counts)}"] if counts else []
    for name in ("A", "B"):
        ids = [row.run_a or row.run_b for row in rows if row.reason == f"only in {name}"]
        more = f", and {len(ids) - N_NAMED} more" if len(ids) > N_NAMED else ""
        lines += [f"only in {name}: {', '.join(ids[:N_NAMED])}{more}"] if ids else []
    if not any(row.part for row in rows):
        disagreeing = []
        for name in SETTINGS:
            values = [sorted(_values(table, name)) for table in (table_a, table_b)]
            if name not in factors and not set(values[0]) & set(values[1]):
                disagreeing.append(
                    f"  {name}: {first_of(values[0])} in A; {first_of(values[1])} in B"
                )
        if disagreeing:
            lines.append("runs are pairs only if they agree in all other factors; none agrees in")
        lines += disagreeing
    return lines


def _set_text(table: pd.DataFrame) -> str:
    boards = sorted(set(table.device + "/" + table.instance))
    return f"{origin(table.backend)} {', '.join(boards)}, {counted(table.run.nunique(), 'runs')}"


def _table(rows: Sequence[Ratio]) -> list[str]:
    """Return a line for each part of a pair, under the id of the first run."""
    cells, before = [], ""
    for row in rows:
        unit = row.quantity.rpartition("_")[2].replace("wh", "Wh")
        means = ("-" if mean is None else f"{mean:.4g} {unit}" for mean in (row.a, row.b))
        cells.append(
            (
                row.run_a if row.run_a != before else "",
                row.part,
                *means,
                f"{row.n_epochs_a}, {row.n_epochs_b}",
                f"{row.ratio:.3f}" if row.ratio else "-",
                f"{row.low:.3f}-{row.high:.3f}" if row.low is not None else "-",
                row.verdict + (f" ({row.reason})" if row.reason else ""),
            )
        )
        before = row.run_a
    return ["", *aligned([HEADER, *cells]), ""] if cells else ["", "no two runs agree", ""]
