"""What the figure of the cross-validation draws: numbers in one unit per field, and their names."""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from epochwatt.published.numbers import Published
from epochwatt.text import counted

PAPER_OF = {
    "": "SIGMETRICS 2023",
    "hipcw_": "HiPCW 2021",
}  # by what a class begins with
UNITS = {  # of a panel: unit in the table -> how many of the panel's unit, marker
    "time": {"s": (1.0, "o"), "ms": (1e-3, "v")},
    "change": {"pct": (1.0, "^"), "x": (1.0, "^")},
    "power": {"W": (1.0, "s")},
    "energy": {"Wh": (1.0, "D")},
}
DRAWN_UNITS = {"time": "s", "change": "x", "power": "W", "energy": "Wh"}  # of a panel's numbers
OF_UNIT = {"W": "power", "Wh": "energy"}  # panel of what is not told by its class
METRICS = {  # words of a quantity, with the worst points
    "stall_s": "stall",
    "compute_s": "compute",
    "e2e_s": "E2E",
    "power_w": "power",
    "energy_wh": "energy",
    "idle_power_w": "idle power",
    "stall_ms_per_minibatch": "stall of a mini-batch",
    "compute_ms_per_minibatch": "compute of a mini-batch",
}
MEDIA = {"ssd": "SSD", "sd": "SD card", "hdd": "hard disk"}
NAMED = ("device", "model", "storage", "num_workers", "batch_size", "power_mode", "dvfs", "epoch")
USUAL = (16, "g", "15W", "MAXN", "off", "1+", "all")  # settings that are not named
PINNED = {"gpu114": "GPU at 114.75 MHz"}  # power modes of section 5.6 with no letter
EPOCHS = {"0": "first epoch", "1+": "later epochs", "all": "median of all epochs"}
LEFT_OUT = {"time": "times", "energy_power": "energies and powers"}  # classes of the last field
PRIORS = ("fitted, priors", "not fitted, priors")  # begin the rows there that are no grouping
CHOSEN = "as chosen"  # priors of the fits: all other panels have what these give
FEW = 3  # numbers that a paper prints otherwise, and that are listed
SLIP = "slip: "  # begins the note on a number that a paper prints otherwise


class Point(NamedTuple):
    """One published number: a value or a ratio of two sides, and its held-out prediction.

    Attributes
    ----------
    published, held_out : in `unit`; ms as s, changes as the ratio of their sides
    error_pct, section_error_pct : where its take-away, where its section was left out of the fit;
        None: no such fit is made
    marker : of a point
    """

    published_id: str
    class_: str
    device: str
    published: float
    held_out: float
    error_pct: float
    section_error_pct: float | None
    unit: str
    marker: str

    @property
    def paper(self) -> str:
        """What its class begins with: a key of `PAPER_OF`."""
        return "hipcw_" if self.class_.startswith("hipcw_") else ""

    @property
    def panel(self) -> str:
        """The panel that it is drawn in."""
        return _panel(self.class_, self.unit)


class Median(NamedTuple):
    """The median error of one class where something was left out, or by other priors.

    Attributes
    ----------
    left_out : in words
    low_pct, high_pct : ends of its interval; None: too few groups
    """

    left_out: str
    class_: str
    n: int
    median_error_pct: float
    low_pct: float | None
    high_pct: float | None


def read_points(path: str) -> list[Point]:
    """Return the numbers of `validation.csv` that are judged as a ratio."""
    with open(path, newline="", encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if row["judged_as"] == "ratio"]
    return [_point(row) for row in rows]


def read_rest(path: str) -> str:
    """Return in words how many numbers of `validation.csv` are no ratios, and how near they are."""
    with open(path, newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    bounds = [row["met"] == "yes" for row in rows if row["judged_as"] == "bound"]
    points = [float(row["held_out_error_pct"]) for row in rows if row["judged_as"] == "points"]
    words = [f"{len(bounds)} bounds and ranges, {sum(bounds)} of them met"] if bounds else []
    if points:
        off = f"off by {median(points):.1f} points in the median"
        words += [f"{len(points)} shares and changes below 20 %, {off}"]
    return f"not drawn: {'; '.join(words)} ({path})" if words else "all are drawn"


def _panel(class_: str, unit: str) -> str:
    return OF_UNIT.get(unit, class_.removeprefix("hipcw_"))


def _point(row: Mapping[str, str]) -> Point:
    """Return a row in its panel's unit: a change in per cent as the ratio of its sides."""
    panel = _panel(row["class"], row["unit"])
    factor, marker = UNITS[panel][row["unit"]]
    names = ("published_value", "held_out_prediction")
    published, held_out = (
        1.0 + float(row[name]) / 100.0 if row["unit"] == "pct" else float(row[name]) * factor
        for name in names
    )
    section_pct = row["section_error_pct"]
    return Point(
        *(row["published_id"], row["class"], row["device"], published, held_out),
        *(float(row["held_out_error_pct"]), float(section_pct) if section_pct else None),
        *(DRAWN_UNITS[panel], marker),
    )


def read_names(facts: Published, titles: Mapping[str, str]) -> dict[str, str]:
    """Return in words what each published number is of, by its id."""
    shown = MEDIA | dict(titles)
    names = {
        id_: f"{_settings(fact.config, shown)}: {METRICS.get(fact.metric, fact.metric)}"
        for id_, fact in facts.measurements.items()
    }
    for id_, fact in facts.relations.items():
        a, b = fact.config_a, fact.config_b
        ends = ((a, b), (b, a)) if fact.formula == "A/B" else ((b, a), (a, b))
        change = " against ".join(
            _settings({k: side[k] for k in NAMED if side.get(k) != other.get(k)}, shown, usual=())
            for side, other in ends
            if side
        )
        same = {key: a[key] for key in NAMED if key in a and a[key] == b.get(key)}
        metric = METRICS.get(fact.metric, fact.metric)
        names[id_] = f"{', '.join(filter(None, (_settings(same, shown), change)))}: {metric}"
    return names


def _settings(
    config: Mapping[str, Any], titles: Mapping[str, str], usual: tuple[Any, ...] = USUAL
) -> str:
    """Return in a few words the settings that a number is of, without the usual ones."""
    words = {"num_workers": lambda n: counted(n, "workers"), "batch_size": "batch {}".format}
    words |= {"power_mode": lambda mode: PINNED.get(mode, f"mode {mode}")}
    words |= {"dvfs": "DVFS {}".format, "epoch": lambda k: EPOCHS.get(k, f"epochs {k}")}
    shown = [(name, config.get(name)) for name in NAMED]
    return ", ".join(
        words.get(name, lambda value: titles.get(value, str(value)))(value)
        for name, value in shown
        if value not in (None, "", *usual)
    )


def read_medians(groupings: str, priors: str) -> list[Median]:
    """Return the medians of `groupings.csv`, and of `priors.csv` those of other priors."""
    with open(groupings, newline="", encoding="utf-8") as handle:
        medians = [
            Median(
                *(row["left_out"], row["class"], int(row["n"]), float(row["median_error_pct"])),
                *(float(row[end]) if row[end] else None for end in ("low_pct", "high_pct")),
            )
            for row in csv.DictReader(handle)
            if row["class"] in LEFT_OUT
        ]
    with open(priors, newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    for row in rows:
        if (row["priors"], row["fitted"]) != (CHOSEN, "yes"):
            label = f"{PRIORS[row['fitted'] == 'no']} {row['priors']}"
            error_pct = float(row["median_error_pct"])
            medians.append(Median(label, row["class"], int(row["n"]), error_pct, None, None))
    return medians


def slips(points: Sequence[Point], facts: Published) -> list[str]:
    """Return a line on the numbers that a paper prints otherwise than they are drawn."""
    of_id = facts.facts()
    wrong = [
        (point, fact)
        for point in points
        if (fact := of_id.get(point.published_id)) and fact.note.startswith(SLIP)
    ]
    if not wrong:
        return []
    if len(wrong) > FEW:
        kinds = Counter((point.paper, fact.note.removeprefix(SLIP)) for point, fact in wrong)
        ((paper, reason), n), *_ = kinds.most_common(1)
        return [f"corrected: {n} numbers of {PAPER_OF[paper]}, {reason}"]
    drawn = " and ".join(f"{point.published:g}" for point, _ in wrong)
    printed = " and ".join(fact.as_printed.replace("us", "µs") for _, fact in wrong)
    point, fact = wrong[0]
    return [f"corrected: {drawn} {point.unit} are printed as {printed}, read as {fact.unit}"]
