"""Test whether runs in pairs, A and B, are equivalent, different, or undecided.

Of each run the mean over its valid epochs after the first counts; and of all their mini-batches the
10th percentile, since what else goes on in a machine only ever adds time (J. Chen, J. Revels,
Robust benchmarking in noisy environments, arXiv 1608.04295, 2016) and may not last for all of them.

The difference of a pair, B - A, is given in % of A's mean over all pairs, that of the wait in % of
A's E2E: 1 ms more of 2 ms of waiting matters to nobody. The pairs' differences have a mean and, by
Student's t, an interval of 90 %.

The test is TOST, two one-sided t tests against the margin stated beforehand. Equivalent: both
reject at 5 %, which is the same as the interval lying inside the margin. Different: the interval
lies outside. If the true difference is just the margin, each of the two is said in at most 5 of 100
studies; where noise is far larger than the margin, equal sides are called different in up to 10, 5
on each side. Fewer than five pairs decide nothing.

Source: D. J. Schuirmann, A comparison of the two one-sided tests procedure and the power approach
for assessing the equivalence of average bioavailability, J. Pharmacokinet. Biopharm. 15 (1987).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from epochwatt.analysis.collect_study import counted_epochs, read_epochs
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.records.shapes import Document
from epochwatt.columns import FACTOR_NAMES
from epochwatt.tables import write_frame

ALPHA = 0.05  # of each one-sided test; the interval is of 1 - 2 ALPHA
LEAST_PAIRS = 5
EQUIVALENT, DIFFERENT, UNDECIDED = "equivalent", "different", "undecided"
PROVENANCE = {"host": "measured", "jetson": "measured", "fake": "fake"}
SETTING = ("device", "model", "storage", "num_workers", "batch_size", "power_mode", "dvfs")
GROUP = ("provenance", *SETTING)  # within which pairs are taken together


class Metric(NamedTuple):
    """A quantity that is compared: its column, its title, and what 1 % of it means."""

    column: str
    title: str
    relative_to: str


UNDISTURBED_PCT = 10.0
METRICS = {
    "minibatch": Metric("minibatch_s", "mini-batch time (copy, compute)", "minibatch_s"),
    "undisturbed": Metric("undisturbed_s", "mini-batch time, 10th percentile", "undisturbed_s"),
    "e2e": Metric("e2e_s", "E2E time", "e2e_s"),
    "wait": Metric("wait_s", "wait", "e2e_s"),
    "cpu": Metric("cpu_util_pct", "CPU utilisation", "cpu_util_pct"),
    "gpu": Metric("gpu_util_pct", "GPU utilisation", "gpu_util_pct"),
    "memory": Metric("ram_used_mib", "memory in use", "ram_used_mib"),
    "energy": Metric("energy_wh", "energy", "energy_wh"),
}
PAIR_COLUMNS = (
    *("provenance", *SETTING, "seed", "factor", "run_a", "run_b", "first", "metric", "quantity"),
    *("a", "b", "difference_pct", "flags", "differs"),
)
VERDICT_COLUMNS = (
    *("provenance", *SETTING, "factor", "a", "b", "metric", "quantity", "relative_to"),
    *("n_pairs", "n_left_out", "mean_a", "mean_b", "difference_pct", "low_pct", "high_pct"),
    *("margin_pct", "p_equivalent", "verdict", "is_equivalent", "reason"),
)


class Outcome(NamedTuple):
    """Verdict on the differences of pairs; a number is None where there is none."""

    difference_pct: float | None
    low_pct: float | None
    high_pct: float | None
    p_equivalent: float | None
    verdict: str
    reason: str


def judged(differences_pct: NDArray[np.floating], margin_pct: float) -> Outcome:
    """Test by TOST whether the mean of differences (n,) lies within +-margin, both in %."""
    from scipy.special import stdtr, stdtrit  # slow to import, and pages need none of it

    n = differences_pct.size
    if n == 0:
        return Outcome(None, None, None, None, UNDECIDED, "not measured")
    mean = float(differences_pct.mean())
    if n < LEAST_PAIRS:
        few = f"{n} of the {LEAST_PAIRS} pairs that it takes at least"
        return Outcome(mean, None, None, None, UNDECIDED, few)
    sd = float(differences_pct.std(ddof=1))
    error = sd / math.sqrt(n)
    half = float(stdtrit(n - 1, 1 - ALPHA)) * error
    low, high = mean - half, mean + half
    if error == 0.0:  # no spread: a t test has no statistic
        p = float(abs(mean) >= margin_pct)
    else:  # the larger of both one-sided tests': that against the nearer edge
        p = float(stdtr(n - 1, (abs(mean) - margin_pct) / error))
    if p < ALPHA:
        return Outcome(mean, low, high, p, EQUIVALENT, "")
    if low > margin_pct or high < -margin_pct:
        return Outcome(mean, low, high, p, DIFFERENT, "")
    needed = pairs_needed(sd, margin_pct)
    reason = f"the interval reaches across the margin; about {needed} such pairs would decide"
    return Outcome(mean, low, high, p, UNDECIDED, reason)


def pairs_needed(sd_pct: float, margin_pct: float) -> int:
    """Return how many pairs show equal sides to be equivalent in 9 of 10 studies (power 90 %).

        n = ((t + 1.64) * sd / margin)^2

    t is that of the interval, half of which is t * sd / sqrt(n); 90 % of the means that come by
    chance lie within 1.64 * sd / sqrt(n).
    """
    from scipy.special import ndtri, stdtrit

    n = LEAST_PAIRS
    for _ in range(10):  # as t depends on n, a little
        quantiles = float(stdtrit(n - 1, 1 - ALPHA)) + float(ndtri(1 - ALPHA))
        n = max(math.ceil((quantiles * sd_pct / margin_pct) ** 2), LEAST_PAIRS)
    return n


def software_difference(a: Document, b: Document) -> str:
    """Return in words how interpreter and libraries of two records differ; empty: they do not.

    `a`, `b`: `meta` of the records. Builds and environment variables count where both have them.
    """
    kinds = ["software", *(["environment"] if "environment" in a and "environment" in b else [])]
    differing = [
        f"{name} {a[kind].get(name, 'none')} / {b[kind].get(name, 'none')}"
        for kind in kinds
        for name in sorted(a[kind].keys() | b[kind].keys())
        if a[kind].get(name) != b[kind].get(name)
    ]
    builds_a, builds_b = a.get("builds", {}), b.get("builds", {})
    in_both = sorted(builds_a.keys() & builds_b.keys())
    differing += [f"build of {name}" for name in in_both if builds_a[name] != builds_b[name]]
    return "; ".join(differing)


def compare_pairs(
    epochs: Sequence[str],
    pairs: Sequence[Sequence[str]],
    factor: str,
    margin_pct: float,
    measured: str,
    pairs_csv: str,
    verdicts_csv: str,
) -> None:
    """Write the differences of all pairs to `pairs_csv`, their verdicts to `verdicts_csv`.

    A pair whose sides ran with different software does not count, as its effect would be taken for
    that of the factor. `epochs`: paths of tables; `pairs`: ids of A and B; `measured`: records

    Raises RecordError: a table or a record is damaged.
    """

    def meta(run: str) -> Document:
        folder = RunFolder(measured, run)
        return folder.read(folder.measured()[0]).meta

    means = run_means(read_epochs(epochs), measured)
    differs = {(a, b): software_difference(meta(a), meta(b)) for a, b in pairs}
    rows = pair_rows(means, differs, factor)
    write_frame(pairs_csv, "pairs of runs", rows)
    write_frame(verdicts_csv, "pairs of runs", verdict_rows(rows, means, factor, margin_pct))


def run_means(epochs: pd.DataFrame, measured: str) -> pd.DataFrame:
    """Return a row per run: factors, `all_flags`, `started_unix_s`, and the columns of `METRICS`.

    The metrics are means over valid epochs after the first; NaN: the run has no such epoch.
    """

    def undisturbed_s(run: str, numbers: Iterable[int]) -> float:
        folder = RunFolder(measured, run)
        parts = np.concatenate([folder.read(epoch).minibatch_s for epoch in numbers])
        return float(np.percentile(parts[:, 1:].sum(axis=1), UNDISTURBED_PCT))

    minibatch_s = (epochs.copy_s + epochs.compute_s) / epochs.n_minibatches.astype("Float64")
    epochs = epochs.assign(minibatch_s=minibatch_s.astype(float))
    counted = counted_epochs(epochs).groupby("run")
    columns = [metric.column for metric in METRICS.values() if metric.column in epochs]
    undisturbed = {run: undisturbed_s(str(run), rows.epoch) for run, rows in counted}
    means = counted[columns].mean().assign(undisturbed_s=pd.Series(undisturbed, dtype=float))
    runs = epochs.groupby("run", sort=False)
    flags = runs["flags"].agg(lambda cells: " ".join(sorted(set(" ".join(cells).split()))))
    starts = runs["t_start_unix_s"].min()
    factors = runs[list(FACTOR_NAMES)].first()
    return factors.join(means).assign(all_flags=flags, started_unix_s=starts)


def pair_rows(
    means: pd.DataFrame, differs: Mapping[tuple[str, str], str], factor: str
) -> pd.DataFrame:
    """Return a row for each pair and metric that both sides have (`PAIR_COLUMNS`).

    A difference is in % of A's mean over the pairs of its setting (`GROUP`). `means`: as of
    `run_means`; `differs`: pair -> how its software differs
    """
    rows = []
    for (run_a, run_b), difference in differs.items():
        a, b = means.loc[run_a], means.loc[run_b]
        shared = {
            "provenance": PROVENANCE[str(a.backend)],
            **{name: a[name] for name in SETTING},
            "seed": a.seed,
            "factor": factor,
            "run_a": run_a,
            "run_b": run_b,
            "first": "A" if a.started_unix_s < b.started_unix_s else "B",
            "flags": " ".join(sorted({*a.all_flags.split(), *b.all_flags.split()})),
            "differs": difference,
        }
        rows += [
            {**shared, "metric": name, "quantity": column, "a": a[column], "b": b[column]}
            for name, (column, _, _) in METRICS.items()
            if pd.notna(a[column]) and pd.notna(b[column])
        ]
    pairs = pd.DataFrame(rows, columns=[*PAIR_COLUMNS], dtype=object)
    for _, group in pairs.groupby([*GROUP], sort=False):
        scales = means.loc[group.run_a.unique()].mean(numeric_only=True)
        for metric, rows_of_metric in group.groupby("metric", sort=False):
            scale = float(scales[METRICS[str(metric)].relative_to])
            delta = rows_of_metric.b - rows_of_metric.a
            pct = 100.0 * delta / scale if scale else np.nan
            pairs.loc[rows_of_metric.index, "difference_pct"] = pct
    return pairs


def verdict_rows(
    pairs: pd.DataFrame, means: pd.DataFrame, factor: str, margin_pct: float
) -> pd.DataFrame:
    """Return a row for each setting and metric (`VERDICT_COLUMNS`), from `pair_rows`."""
    verdicts = []
    for setting, group in pairs.groupby([*GROUP], sort=False):
        sides = {side: means.loc[group[f"run_{side}"].iloc[0], factor] for side in ("a", "b")}
        for name, metric in METRICS.items():
            metric_pairs = group[group.metric == name]
            counted = metric_pairs[metric_pairs.differs == ""]
            differences = counted.difference_pct.to_numpy(float)
            outcome = judged(differences[np.isfinite(differences)], margin_pct)
            is_decided = outcome.verdict != UNDECIDED
            if len(metric_pairs) > len(counted) and not is_decided:
                software = metric_pairs.differs.iloc[0] or "other software"
                reason = f"{outcome.reason}; left out: {software}"
                outcome = outcome._replace(reason=reason)
            verdicts.append(
                {
                    **dict(zip(GROUP, setting, strict=True)),
                    "factor": factor,
                    **sides,
                    "metric": name,
                    "quantity": metric.column,
                    "relative_to": metric.relative_to,
                    "n_pairs": len(counted),
                    "n_left_out": len(metric_pairs) - len(counted),
                    "mean_a": counted.a.mean() if len(counted) else None,
                    "mean_b": counted.b.mean() if len(counted) else None,
                    **outcome._asdict(),
                    "margin_pct": margin_pct,
                    "is_equivalent": int(outcome.verdict == EQUIVALENT) if is_decided else None,
                }
            )
    return pd.DataFrame(verdicts, columns=[*VERDICT_COLUMNS], dtype=object)
