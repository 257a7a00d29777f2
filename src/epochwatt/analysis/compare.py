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
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as columns_of
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from epochwatt.analysis.collect_study import epoch_sets, read_epochs
from epochwatt.columns import FACTOR_NAMES
from epochwatt.errors import EpochwattError
from epochwatt.tables import write_frame
from epochwatt.text import aligned, counted, first_of, origin

QUANTITIES = {
    "e2e": "e2e_s",
    "stall": "stall_s",
    "compute": "compute_s",
    "overhead": "overhead_s",
    "energy": "energy_wh",
}
SETTINGS = (*FACTOR_NAMES, "protocol")
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
    """Return the epochs of a set of runs.

    Raises EpochwattError: nothing is there.

    Parameters
    ----------
    told : id or pattern of ids of this checkout (`twin-nx-*`), or a folder of results, such as
        that of another checkout or a copy
    """
    if Path(pattern).is_dir():
        paths = sorted(Path(pattern).glob("runs/*/epochs.csv"))
    else:
        paths = sorted(path for path in _own_runs() if path.parent.match(pattern))
    if not paths:
        there = [path.parent.name for path in _own_runs()]
        raise EpochwattError(
            f"no run matches {pattern!r}",
            where="results/runs",
            found=first_of(there) or "no runs (`make run` makes them)",
            allowed="the id of a run, a pattern of ids in quotes ('twin-nx-*'), or a folder of "
            "results with runs/RUN/epochs.csv",
        )
    return read_epochs(paths)


def _own_runs() -> list[Path]:
    """Return the table of epochs of each run of this checkout."""
    return sorted(Path("results/runs").glob("*/epochs.csv"))


def compared_factors(a: pd.DataFrame, b: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Return the factors in which all of A differ from all of B, with the two values."""
    differing = {}
    for name in SETTINGS:
        one, other = (_values(table, name) for table in (a, b))
        if len(one) == len(other) == 1 and one != other:
            differing[name] = (one.pop(), other.pop())
    return differing


def compare(a: pd.DataFrame, b: pd.DataFrame, margin: float) -> list[Ratio]:
    """Return the ratios of all pairs, in the order of A, then the runs without a partner.

    Raises EpochwattError: several runs of a set would have the same partner.

    Parameters
    ----------
    a, b : tables of epochs (`find_runs`)
    margin : share that means no difference: 0.05 for 5 %
    """
    shared = [name for name in SETTINGS if name not in compared_factors(a, b)]
    ours, theirs = _sides(a, shared, "A"), _sides(b, shared, "B")
    rows = [
        ratio_of(ours[key], theirs[key], part, margin)
        for key in ours
        if key in theirs
        for part in QUANTITIES
    ]
    alone = [Ratio(ours[key].run, "", reason="only in A") for key in ours if key not in theirs]
    alone += [Ratio("", theirs[key].run, reason="only in B") for key in theirs if key not in ours]
    return rows + alone


@dataclass(frozen=True)
class Side:
    """One run of a pair."""

    run: str  # its id
    # part -> its values over the valid epochs after the first
    values: dict[str, NDArray[np.floating]]
    scopes: frozenset[str]  # what the power was measured of


def _sides(table: pd.DataFrame, shared: Sequence[str], name: str) -> dict[tuple[str, ...], Side]:
    """Return the runs of a set by the values of the factors that have to agree."""
    sides: dict[tuple[str, ...], Side] = {}
    later = epoch_sets(table)["1+"]
    of_run = {str(run): epochs for run, epochs in later[later.valid].groupby("run")}
    for first in table.drop_duplicates("run").to_dict("records"):
        epochs = of_run.get(first["run"], table.iloc[:0])
        values = {
            part: epochs[quantity].dropna().to_numpy(dtype=float)
            for part, quantity in QUANTITIES.items()
        }
        side = Side(first["run"], values, frozenset(epochs.power_scope) - {""})
        key = tuple(str(first[factor]) for factor in shared)
        if key in sides:
            raise EpochwattError(
                f"two runs of {name} have the same factors, and a run has one partner",
                found=[sides[key].run, side.run],
                do="choose a set with only one of them",
            )
        sides[key] = side
    return sides


def ratio_of(a: Side, b: Side, part: str, margin: float) -> Ratio:
    """Return what a part of two runs says; margin as for `compare`."""
    one, other = a.values[part], b.values[part]
    ratio = Ratio(
        a.run,
        b.run,
        part,
        QUANTITIES[part],
        float(one.mean()) if one.size else None,
        float(other.mean()) if other.size else None,
        one.size,
        other.size,
    )
    if not (a.values["e2e"].size and b.values["e2e"].size):
        return replace(ratio, verdict=SHORT, reason="no valid epoch after the first")
    if reason := _no_ratio(a, b, part):
        return replace(ratio, reason=reason)
    ratio = replace(ratio, ratio=float(other.mean() / one.mean()))
    if min(one.size, other.size) < 2:
        return replace(ratio, verdict=SHORT, reason="one epoch has no spread")
    low, high = interval(one, other)
    return replace(ratio, low=low, high=high, verdict=verdict_of(low, high, margin))


def _no_ratio(a: Side, b: Side, part: str) -> str:
    """Say why two runs have no ratio; empty where they have one."""
    if part == "energy" and a.scopes and b.scopes and a.scopes != b.scopes:
        return f"energy of {'+'.join(sorted(a.scopes))} against {'+'.join(sorted(b.scopes))}"
    for name, side in (("A", a), ("B", b)):
        if not side.values[part].size:
            return f"no value in {name}"
        if side.values[part].mean() <= 0:
            return f"not above 0 in {name}"
    return ""


def interval(a: NDArray[np.floating], b: NDArray[np.floating]) -> tuple[float, float]:
    """Return the interval of the ratio of two means, b / a: Welch's, of its logarithm.

    Parameters
    ----------
    a, b : at least two values each, their means above 0
    """
    from scipy.special import stdtrit  # slow to import, and the landing page needs none of it

    parts = [float(v.var(ddof=1)) / (v.size * float(v.mean()) ** 2) for v in (a, b)]
    ratio, total = float(b.mean() / a.mean()), sum(parts)
    if total == 0.0:
        return ratio, ratio
    sizes = (a.size, b.size)
    freedom = total**2 / sum(p**2 / (n - 1) for p, n in zip(parts, sizes, strict=True))
    half = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * math.sqrt(total)
    return ratio * math.exp(-half), ratio * math.exp(half)


def verdict_of(low: float, high: float, margin: float) -> str:
    """Return what an interval of a ratio says."""
    if low >= 1 / (1 + margin) and high <= 1 + margin:
        return "equivalent"
    if low > 1 + margin or high < 1 / (1 + margin):
        return "different"
    return SHORT


def compare_lines(a: str, b: str, margin_pct: float, path: Path | None = None) -> list[str]:
    """Compare two sets of runs; return the table as text, after writing it as CSV."""
    one, other = find_runs(a), find_runs(b)
    rows = compare(one, other, margin_pct / 100.0)
    if path is not None:
        write_csv(rows, path)
    changed = [f"{k} ({x}, {y})" for k, (x, y) in compared_factors(one, other).items()]
    return [
        f"A: {_set_text(one)}; B: {_set_text(other)}",
        f"compared: {', '.join(changed) or 'the same factors'}",
        f"ratio: B / A of the means over epochs 1+; 95 %: its interval; margin: {margin_pct:g} %",
        *_table(rows),
        *_counts(rows),
        *_alone(rows),
        *_why_alone(rows, one, other),
    ]


def _set_text(table: pd.DataFrame) -> str:
    places = sorted(set(table.device + "/" + table.instance))
    return f"{origin(table.backend)} {', '.join(places)}, {counted(table.run.nunique(), 'runs')}"


def _table(rows: Iterable[Ratio]) -> list[str]:
    """Return a line for each part of a pair, under the id of the first run."""
    cells, before = [], ""
    for row in (row for row in rows if row.part):
        run = row.run_a if row.run_a != before else ""
        before = row.run_a
        interval = f"{row.low:.3f}-{row.high:.3f}" if row.low is not None else "-"
        unit = row.quantity.rpartition("_")[2].replace("wh", "Wh")
        verdict = row.verdict + (f" ({row.reason})" if row.reason else "")
        cells.append(
            (run, row.part, _number(row.a, unit), _number(row.b, unit),
             f"{row.n_epochs_a}, {row.n_epochs_b}", f"{row.ratio:.3f}" if row.ratio else "-",
             interval, verdict)
        )  # fmt: skip
    return ["", *aligned([HEADER, *cells]), ""] if cells else ["", "no two runs agree", ""]


def _number(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.4g} {unit}"


def _counts(rows: Sequence[Ratio]) -> list[str]:
    """Return a line for each part: how many pairs are equivalent, different, ..."""
    lines = []
    for part in QUANTITIES:
        verdicts = [row.verdict for row in rows if row.part == part]
        counts = [
            f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts
        ]
        lines += [f"{part}: {', '.join(counts)}"] if counts else []
    return lines


def _alone(rows: Sequence[Ratio]) -> list[str]:
    lines = []
    for name in ("A", "B"):
        ids = [row.run_a or row.run_b for row in rows if row.reason == f"only in {name}"]
        more = f", and {len(ids) - N_NAMED} more" if len(ids) > N_NAMED else ""
        lines += [f"only in {name}: {', '.join(ids[:N_NAMED])}{more}"] if ids else []
    return lines


def _why_alone(rows: Sequence[Ratio], a: pd.DataFrame, b: pd.DataFrame) -> list[str]:
    """Return in which factors no run of A agrees with one of B, where there is no pair at all."""
    if any(row.part for row in rows):
        return []
    compared, lines = compared_factors(a, b), []
    for name in SETTINGS:
        one, other = (sorted(_values(table, name)) for table in (a, b))
        if name not in compared and not set(one) & set(other):
            lines.append(f"  {name}: {first_of(one)} in A; {first_of(other)} in B")
    if not lines:
        return []
    return ["runs are pairs only if they agree in all other factors; none agrees in", *lines]


def _values(table: pd.DataFrame, factor: str) -> set[str]:
    return set(table[factor].astype(object).fillna("none").map(str))


def write_csv(rows: Iterable[Ratio], path: Path) -> None:
    """Write the ratios, a row each; the columns are the attributes of `Ratio`."""
    columns = [column.name for column in columns_of(Ratio)]
    write_frame(path, "ratios", pd.DataFrame(map(asdict, rows), columns=columns, dtype=object))
