"""Cross-validate: each published number beside what the simulation says without seeing it.

`epochwatt calibrate-twin --folds` refits the folds (`refits.py`); this module only evaluates the
committed refits. A number that belongs to a take-away is predicted by the fit that saw neither the
take-away nor what gives it away; and again by fits that saw nothing of its section, its board, its
network, or its board with its network, nor of its take-away and what is near it. HiPCW 2021
contradicts the main paper (the same NX run stalls for 456 s in one and 173 s in the other), so no
shared parameter sees it: it is predicted with the main paper's parameters and one of its own
(`refits.fit_setups`), refitted without each take-away, and shown apart.

The error of a time, an energy, a power, a factor or a change of 20 % and more is
100 |ln(predicted / published)|, for a change on the ratio of its two sides; of a share or a smaller
change it is the distance in points; a bound is met or not (`published/folds.py` says which is
which).

`groupings.csv` sums up the errors of times, of stalls among them, and of energies and powers by
what was left out. The interval of a median is a bootstrap over the groups, since the numbers of one
group are off together; of fewer than `ENOUGH` groups none is said.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from epochwatt.published.folds import Judged
from epochwatt.published.numbers import PAPERS, Fact, Published
from epochwatt.tables import write_frame
from epochwatt.twin.calibration import log_error
from epochwatt.twin.predicted import ALSO_SEEN, predict, seen_by_setups, visible
from epochwatt.twin.refits import Refits, held_out
from epochwatt.twin.twin import Twin

UNIT_CLASSES = {"s": "time", "ms": "time", "W": "energy_power", "Wh": "energy_power"}
CLASSES = ("time", "energy_power", "change", "small_change", "share", "bound", "count")
GOAL_CLASSES = ("time", "energy_power")
GOAL_PCT = 10.0  # of the median held-out error
N_WORST = 3
CONTRADICTS = "hipcw_"  # before the class of a number that HiPCW 2021 prints

TAKE_AWAY, TRANSFER = "take-away", "main paper to HiPCW"
LEFT_OUT = {  # grouping -> what is left out
    TAKE_AWAY: "take-away",
    "near": "take-away, and what asks nearly the same",
    "section": "section of the paper",
    "board_network": "board with network",
    "board": "board",
    "network": "network",
    TRANSFER: "HiPCW: main paper, one parameter",
}
SUMMED_UP = {"time": "times", "stall": "stalls alone", "energy_power": "energies and powers"}
ENOUGH = 5  # groups that an interval needs
N_DRAWS, SEED = 2000, 0
INTERVAL_PCT = 90.0


def validate(
    published: Published,
    rows: Mapping[str, Judged],
    twin: Twin,
    refits: Refits,
    groups: Mapping[str, Mapping[str, str]],
) -> pd.DataFrame:
    """Return `validation.csv`: a row per published number that can be predicted, in their order.

    `rows`: how each published number is judged
    `refits`: fitted values by what is held out
    `groups`: grouping -> published id -> what it is held out with, beside its take-away

    Returns
    -------
    The table `results/twin/validation.csv`. `class` is one of `CLASSES`, behind `CONTRADICTS` where
    it is HiPCW's; values are in `unit`, and `a..b` is a range; errors are in per cent, or in points
    of it where `judged_as` is `points`, and missing for a bound; `met` is of a bound, whether the
    held-out prediction meets it. `{grouping}_error_pct` is the held-out error where more is left
    out than the take-away, missing where nothing is.
    """
    facts = [
        fact
        for fact in published.facts().values()
        if rows[fact.id].is_simulable or (fact.metric in ALSO_SEEN and fact.paper == PAPERS[0])
    ]
    seen = {fact.id for fact in visible(published, rows, twin)}
    seen |= {fact.id for fact in seen_by_setups(published, rows)}
    fitted = predict(facts, twin, twin.parameters)

    def predict_held_out(names: Mapping[str, str]) -> dict[str, tuple[float, ...]]:
        """Predict each number with the refit `names` gives it, which did not see it."""
        by_name = defaultdict(list)
        for fact in facts:
            if fact.id in names:
                by_name[names[fact.id]].append(fact)
        predictions: dict[str, tuple[float, ...]] = {}
        for name, members in by_name.items():
            predictions |= predict(members, twin, held_out(twin.parameters, refits, name))
        return predictions

    without = predict_held_out({fact.id: fact.takeaway for fact in facts})
    more_left_out = {name: predict_held_out(members) for name, members in groups.items()}
    groupings = ("section", "board", "network", "board_network", "near")
    table = []
    for fact in facts:
        if fact.id not in fitted or fact.id not in without:
            continue
        judged_as, prediction = rows[fact.id].judged_as, without[fact.id]
        is_met = "yes" if all(fact.is_met(value) for value in prediction) else "no"
        row = {
            "published_id": fact.id,
            "class": ("" if fact.paper == PAPERS[0] else CONTRADICTS) + class_of(fact, judged_as),
            "device": " ".join(dict.fromkeys(run["device"] for run in fact.runs)),
            "metric": fact.metric,
            "published_value": _joined(
                (fact.value,) if fact.value_hi is None else (fact.value, fact.value_hi)
            ),
            "fitted_prediction": _joined(fitted[fact.id]),
            "fitted_error_pct": error_pct(fact, judged_as, fitted[fact.id]),
            "held_out_prediction": _joined(prediction),
            "held_out_error_pct": error_pct(fact, judged_as, prediction),
            "seen_by_fit": "yes" if fact.id in seen else "no",
            "takeaway": fact.takeaway,
            "judged_as": judged_as,
            "unit": fact.unit,
            "qualifier": fact.qualifier,
            "met": is_met if judged_as == "bound" else "",
        }
        for name in groupings:
            predicted = more_left_out.get(name, {}).get(fact.id)
            error = error_pct(fact, judged_as, predicted) if predicted else None
            row[f"{name}_error_pct"] = error
        table.append(row)
    frame = pd.DataFrame(table)
    errors = [name for name in frame.columns if name.endswith("_pct")]
    return frame.astype(dict.fromkeys(errors, float))


def class_of(fact: Fact, judged_as: str) -> str:
    """Return the class in which a number's error is counted, one of `CLASSES`."""
    if judged_as in ("", "bound"):
        return judged_as or "count"
    if fact.b_over_a is not None:
        return "change" if judged_as == "ratio" else "small_change"
    return UNIT_CLASSES.get(fact.unit, "share")


def error_pct(fact: Fact, judged_as: str, predicted: tuple[float, ...]) -> float | None:
    """Return how far a prediction is from the number, in per cent or points; None for a bound."""
    if judged_as == "ratio":
        return 100.0 * abs(log_error(fact, predicted[0]))
    return abs(predicted[0] - fact.value) if judged_as == "points" else None


def _joined(values: Iterable[float]) -> str:
    return "..".join(f"{value:.6g}" for value in values)


def accuracies(rows: pd.DataFrame, groups: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    """Return `groupings.csv`: median, interval and worst error by grouping and class.

    `rows`: as of `validate`; `groups`: grouping -> published id -> what it is left out with.
    """
    is_hipcw = rows["class"].str.startswith(CONTRADICTS)
    plain = rows["class"].str.removeprefix(CONTRADICTS)
    stalls = (plain == "time") & rows["metric"].str.startswith("stall")
    tails_pct = [(100.0 - INTERVAL_PCT) / 2.0, (100.0 + INTERVAL_PCT) / 2.0]
    table = []
    for grouping, left_out in LEFT_OUT.items():
        if grouping not in groups and grouping != TRANSFER:
            continue
        column = f"{grouping}_error_pct"
        column = column if column in rows else "held_out_error_pct"
        names = defaultdict(str, groups.get(grouping, {}))
        in_paper = is_hipcw if grouping == TRANSFER else ~is_hipcw
        for class_ in SUMMED_UP:
            is_in_class = stalls if class_ == "stall" else plain == class_
            counted = is_in_class & in_paper & rows[column].notna()
            errors = rows[counted].set_index("published_id")[column]
            if errors.empty:
                continue
            group = pd.factorize(errors.index.map(names))[0]
            n_groups, ends = int(group.max()) + 1, [np.nan, np.nan]
            if n_groups >= ENOUGH:
                ends = list(np.percentile(drawn_medians(errors.to_numpy(), group), tails_pct))
            table.append(
                {
                    "grouping": grouping,
                    "left_out": left_out,
                    "class": class_,
                    "n": len(errors),
                    "n_groups": n_groups,
                    "median_error_pct": median(errors),
                    "low_pct": ends[0],
                    "high_pct": ends[1],
                    "worst_id": errors.idxmax(),
                    "worst_error_pct": errors.max(),
                }
            )
    return pd.DataFrame(table)


def drawn_medians(errors: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the median of errors in each of `N_DRAWS` draws of their groups, (draws,).

    `errors`: (n,), of any order; `group`: (n,), the number of each one's group, from 0 on. A group
    that is drawn twice counts twice.
    """
    n_groups, order = int(group.max()) + 1, errors.argsort()
    drawn = np.random.default_rng(SEED).integers(0, n_groups, (N_DRAWS, n_groups))
    times_drawn = (drawn[:, :, None] == np.arange(n_groups)).sum(1)  # (draws, groups)
    n_up_to = times_drawn[:, group[order]].cumsum(1)  # (draws, n), errors up to each, in order
    n = n_up_to[:, -1:]
    middle = [(n_up_to > place).argmax(1) for place in ((n - 1) // 2, n // 2)]
    return np.asarray(errors[order][middle].mean(0))


def write_errors(path: str, content: str, frame: pd.DataFrame, digits: int) -> None:
    """Write a table, its columns `*_pct` with `digits` digits after the point."""
    names = [name for name in frame.columns if name.endswith("_pct")]
    text = {name: frame[name].map(f"{{:.{digits}f}}".format, na_action="ignore") for name in names}
    write_frame(path, content, frame.assign(**{str(name): text[name] for name in names}))


def headline(accuracy: pd.DataFrame) -> str:
    """Return the accuracy in a sentence: the range of medians over all groupings."""
    parts = []
    for class_ in GOAL_CLASSES:
        medians = accuracy.loc[accuracy["class"] == class_, "median_error_pct"]
        if len(medians):
            parts.append(f"{SUMMED_UP[class_]} {medians.min():.0f} to {medians.max():.0f} %")
    return f"Off in the median, by what is left out: {'; '.join(parts)}."


def accuracy_table(accuracy: pd.DataFrame) -> list[str]:
    """Return a line per grouping: of each class the median, its interval, and of how many."""
    lines = [f"{'left out':42s}" + "".join(f"{label:>32s}" for label in SUMMED_UP.values())]
    for left_out, of_grouping in accuracy.groupby("left_out", sort=False):
        cells = dict.fromkeys(SUMMED_UP, "-")
        for row in of_grouping.to_dict("records"):
            has_ends = not np.isnan(row["low_pct"])
            ends = f" ({row['low_pct']:.1f} to {row['high_pct']:.1f})" if has_ends else ""
            cells[row["class"]] = (
                f"{row['median_error_pct']:.1f} %{ends}, n {row['n']} in {row['n_groups']}"
            )
        lines.append(f"{left_out:42s}" + "".join(f"{cell:>32s}" for cell in cells.values()))
    return [line.rstrip() for line in lines]


def prior_lines(priors: pd.DataFrame) -> list[str]:
    """Return what other priors give, for people: `priors.csv`, made by `benchmarks.calibration`.

    `fitted` is yes where each take-away is predicted by a fit that saw the others, and no where it
    is by the priors alone.
    """
    lines = [f"{'priors':42s}{'times':>10s}{'energies and powers':>22s}"]
    for (name, fitted), rows in priors.groupby(["priors", "fitted"], sort=False):
        label = name if fitted == "yes" else f"{name}, nothing fitted"
        medians = rows.set_index("class")["median_error_pct"]
        time_pct, energy_pct = (f"{medians[class_]:.1f} %" for class_ in GOAL_CLASSES)
        lines.append(f"{label:42s}{time_pct:>10s}{energy_pct:>22s}")
    return lines


def summary_lines(
    rows: pd.DataFrame, n_parameters: int, unsaid: Sequence[Fact], groupings: Sequence[str] = ()
) -> list[str]:
    """Return the accuracy in words and tables, for people.

    `rows`: as of `validate`
    `groupings`: lines on what else was left out (`accuracy_table`), which come first
    `unsaid`: numbers that are to be judged and that the simulation says nothing to
    """
    is_main = ~rows["class"].str.startswith(CONTRADICTS)
    n_seen = (is_main & (rows["seen_by_fit"] == "yes")).sum()
    judged = rows[rows["judged_as"] != ""].fillna({"held_out_error_pct": 0, "fitted_error_pct": 0})
    lines = [
        f"Simulated boards: {n_parameters} parameters, fitted to {n_seen} numbers of one paper;",
        "the other paper's set-up has one more of its own, fitted to its numbers alone.",
        *groupings,
        f"{len(judged)} published numbers, each predicted by a fit that saw neither its take-away",
        "nor what gives it away; errors in per cent, points for small_change and share.",
        "",
    ]
    for class_ in GOAL_CLASSES:
        errors = judged.loc[judged["class"] == class_, "held_out_error_pct"]
        if len(errors):
            verdict = "met" if median(errors) <= GOAL_PCT else "missed"
            lines.append(
                f"{class_}: median held-out error {median(errors):.1f} % (n = {len(errors)}, worst "
                f"{errors.max():.1f} %); the goal of {GOAL_PCT:g} % is {verdict}"
            )
    lines += ["", *_table(judged, ["class"]), "", *_table(judged, ["class", "device"])]
    lines += ["", f"Times, energies and powers with a held-out error over {GOAL_PCT:g} %:"]
    is_over = judged["class"].isin(GOAL_CLASSES) & (judged["held_out_error_pct"] > GOAL_PCT)
    over = _worst_first(judged[is_over])
    lines += [
        f"  {row['published_id']:13s} {row['device']:5s} {row['metric']:25s} "
        f"{row['published_value']:>8s} {row['unit']:2s}  predicted "
        f"{row['held_out_prediction']:>8s}  {row['held_out_error_pct']:5.1f} %"
        for row in over.to_dict("records")
    ] or ["  none"]
    if unsaid:
        lines += ["", "To be judged, but the simulation has no such quantity:"]
        lines += [f"  {fact.id:13s} {fact.metric}" for fact in unsaid]
    return lines


def _table(rows: pd.DataFrame, keys: list[str]) -> list[str]:
    """Return a line per group: how many, medians, worst cases; of bounds how many are met."""
    order = [*CLASSES, *(CONTRADICTS + class_ for class_ in CLASSES)]
    in_order = rows.sort_values("class", key=lambda names: names.map(order.index), kind="stable")
    lines = [f"{'':32s} {'n':>3s}  held out  fitted  worst held out"]
    for group, members in in_order.groupby(keys, sort=False):
        head = f"{'  '.join(map(str, group)):32s} {len(members):3d}"
        if (members["judged_as"] == "bound").all():
            missed = members.loc[members["met"] == "no", "published_id"]
            names = f"; not: {', '.join(missed)}" if len(missed) else ""
            lines.append(f"{head}  {len(members) - len(missed)} met{names}")
            continue
        held, fitted = median(members["held_out_error_pct"]), median(members["fitted_error_pct"])
        worst = _worst_first(members)[:N_WORST]
        named = ", ".join(
            f"{name} {error:.1f}"
            for name, error in zip(worst["published_id"], worst["held_out_error_pct"], strict=True)
        )
        lines.append(f"{head}  {held:8.1f}  {fitted:6.1f}  {named}")
    return lines


def _worst_first(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values("held_out_error_pct", ascending=False, kind="stable")
