"""Figure 2: an epoch's time by number of loader workers (a), and its stall by epoch (b).

Source: SIGMETRICS 2023, section 5.1. Panel a is the mean of epochs 1+, stacked stall, compute and
overhead; panel b the stall of epoch 0 beside that of epochs 1+. The paper shows panel b for four
workers; here every number of workers that was measured is drawn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from epochwatt import fields
from epochwatt.analysis.tables import epoch_sets, read_epochs
from epochwatt.figures import style
from epochwatt.text import origin

PARTS = ("stall", "compute", "overhead")
# what a bar of a group differs in; everything else makes another group
_BAR_FACTORS = {"num_workers", "prefetch_factor"}
_GROUP_FACTORS = [f for f in fields.names(fields.FACTORS) if f not in _BAR_FACTORS]


@dataclass(frozen=True)
class Bar:
    """One run: its epoch split in seconds, means over valid epochs; None where there are none."""

    group: str
    num_workers: int
    prefetch_factor: int | None  # None: no workers
    run: str
    backend: str
    n_epochs: dict[str, int]  # valid epochs in each epoch set
    parts_s: dict[str, float] | None  # stall, compute, overhead of epochs 1+
    stall_s: dict[str, float | None]  # stall of epoch set "0" and "1+"
    missing: str = ""  # why there is nothing to draw

    def missing_stall(self, epoch_set: str) -> str:
        """Return why the stall of an epoch set is missing; empty when it is there."""
        if self.stall_s[epoch_set] is not None:
            return ""
        return self.missing or "no valid first epoch"


@dataclass(frozen=True)
class Bars:
    """All runs of the figure, grouped, in order of drawing."""

    bars: list[Bar]
    note: str


def read(
    paths: Sequence[str],
    excluded: Sequence[Mapping[str, Any]],
    titles: Mapping[str, str],
) -> Bars:
    """Read the figure's runs.

    Parameters
    ----------
    paths : one `epochs.csv` per run
    excluded : factors, `run` and `reason` of rows that cannot be had
    titles : model -> name for people
    """
    epochs = read_epochs(paths)
    per_run = [of_run for _, of_run in epochs.groupby("run", sort=False)]
    factors: list[dict[Any, Any]] = [r.iloc[0][_GROUP_FACTORS].to_dict() for r in per_run]
    factors += [{k: row[k] for k in _GROUP_FACTORS} for row in excluded]
    labels = _group_labels(factors, titles)
    for i, of_run in enumerate(per_run):
        if of_run.timing_method.iloc[0] == "imported_cuda_events":
            labels[i] += "\nimported"
    bars = [_bar(r, labels[i]) for i, r in enumerate(per_run)]
    for label, row in zip(labels[len(per_run) :], excluded, strict=True):
        empty = {"0": None, "1+": None}
        bars.append(
            Bar(label, row["num_workers"], row["prefetch_factor"], row["run"], row["backend"],
                {"0": 0, "1+": 0}, None, dict(empty), row["reason"])
        )  # fmt: skip
    order = list(dict.fromkeys(labels))
    bars.sort(key=lambda bar: (order.index(bar.group), bar.num_workers, bar.prefetch_factor or 0))
    return Bars(bars, _note(epochs))


def _bar(of_run: pd.DataFrame, group: str) -> Bar:
    first = of_run.iloc[0]
    valid = {name: s[s.valid] for name, s in epoch_sets(of_run).items()}
    later = valid["1+"]
    parts = {part: float(later[f"{part}_s"].mean()) for part in PARTS} if len(later) else None
    stall = {s: float(valid[s].stall_s.mean()) if len(valid[s]) else None for s in ("0", "1+")}
    return Bar(
        group=group,
        num_workers=int(first.num_workers),
        prefetch_factor=None if pd.isna(first.prefetch_factor) else int(first.prefetch_factor),
        run=str(first.run),
        backend=str(first.backend),
        n_epochs={s: len(valid[s]) for s in ("0", "1+")},
        parts_s=parts,
        stall_s=stall,
        missing="" if parts else "no valid epoch after the first",
    )


def _group_labels(factors: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> list[str]:
    """Name each run's group by model, batch size and what differs between runs of that model."""
    labels = []
    for f in factors:
        alike = [other for other in factors if other["model"] == f["model"]]
        words = [titles.get(f["model"], f["model"]), f"batch {f['batch_size']}"]
        words += [
            f"{name.replace('_', ' ')} {_said(f[name])}"
            for name in _GROUP_FACTORS
            if name not in ("model", "batch_size") and len({o[name] for o in alike}) > 1
        ]
        labels.append("\n".join(words))
    return labels


def _said(value: Any) -> str:
    """Return a factor's value in words: a scale of 8 and of 8.0 are one."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _note(epochs: pd.DataFrame) -> str:
    """Return the corner note: where from, which device, how many epochs, how many left out."""
    if epochs.empty:
        return "no epochs"
    places = sorted(set(epochs.device + "/" + epochs.instance))
    left_out = int((~epochs.valid).sum())
    n_runs, origins = epochs.run.nunique(), origin(epochs.backend)
    note = f"{origins} {', '.join(places)}; {n_runs} runs, {len(epochs)} epochs"
    return note + (f", {left_out} not valid and left out" if left_out else "")


def draw_split(data: Bars, axes: Axes, palette: Mapping[str, str]) -> None:
    """Draw panel a: stacked stall, compute and overhead over the number of workers."""
    colour = style.colours(palette, [*PARTS, "missing"])
    x = _positions(data.bars)
    bottom = np.zeros(len(data.bars))
    for part in PARTS:
        height = np.array([bar.parts_s[part] if bar.parts_s else 0.0 for bar in data.bars])
        axes.bar(x, height, bottom=bottom, width=0.8, color=colour[part], label=part)
        bottom += height
    reasons = ["" if bar.parts_s else bar.missing for bar in data.bars]
    _mark_missing(reasons, x, axes, colour["missing"])
    _label_axes(data.bars, x, axes)
    axes.set_ylabel("time per epoch, epochs 1+ (s)")
    axes.legend(ncols=len(PARTS))


def draw_stall(data: Bars, axes: Axes, palette: Mapping[str, str]) -> None:
    """Draw panel b: stall of epoch 0 beside the mean stall of epochs 1+."""
    colour = style.colours(palette, ["epoch_0", "epoch_1_plus", "missing"])
    x = _positions(data.bars)
    pairs = (("0", "epoch_0", "epoch 0"), ("1+", "epoch_1_plus", "epochs 1+"))
    for offset, (epoch_set, key, label) in zip((-0.2, 0.2), pairs, strict=True):
        height = [bar.stall_s[epoch_set] or 0.0 for bar in data.bars]
        axes.bar(x + offset, height, width=0.4, color=colour[key], label=label)
        reasons = [bar.missing_stall(epoch_set) for bar in data.bars]
        _mark_missing(reasons, x + offset, axes, colour["missing"])
    _label_axes(data.bars, x, axes)
    axes.set_ylabel("stall per epoch (s)")
    axes.legend(ncols=2)


def _positions(bars: Sequence[Bar]) -> np.ndarray:
    """Return x of each bar, (n,): one apart inside a group, two between groups."""
    groups = [bar.group for bar in bars]
    steps = [1.0 if a == b else 2.0 for a, b in pairwise(groups)]
    return np.concatenate([[0.0], np.cumsum(steps)]) if bars else np.zeros(0)


def _mark_missing(reasons: Sequence[str], x: np.ndarray, axes: Axes, colour: str) -> None:
    for reason, at in zip(reasons, x, strict=True):
        if reason:
            axes.annotate(
                f"missing: {reason}", (at, 0), xytext=(0, 3), textcoords="offset points",
                rotation=90, ha="center", va="bottom", fontsize="x-small", color=colour,
            )  # fmt: skip


def _label_axes(bars: Sequence[Bar], x: np.ndarray, axes: Axes) -> None:
    """Write the number of workers below each bar, the group's name below its bars."""
    several = len({bar.prefetch_factor for bar in bars if bar.num_workers}) > 1
    axes.set_xticks(x, [_tick(bar, several) for bar in bars])
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * 1.15)  # room for the legend
    groups = list(dict.fromkeys(bar.group for bar in bars))
    middles = [
        float(np.mean([at for bar, at in zip(bars, x, strict=True) if bar.group == group]))
        for group in groups
    ]
    below = axes.secondary_xaxis("bottom")
    below.set_xticks(middles, [f"\n{group}" for group in groups])
    below.tick_params("x", length=0, pad=7)
    below.spines["bottom"].set_visible(False)
    below.set_xlabel("loader workers" + (" × prefetch factor" if several else ""))


def _tick(bar: Bar, several: bool) -> str:
    """Return the number of workers, with the prefetch factor where there are several."""
    if several and bar.num_workers:
        return f"{bar.num_workers}×{bar.prefetch_factor}"
    return str(bar.num_workers)


def rows_split(data: Bars) -> list[list[Any]]:
    """Return the numbers of panel a, one row per bar (columns `COLUMNS_SPLIT`)."""
    return [
        [bar.backend, bar.run, bar.group.replace("\n", ", "), bar.num_workers,
         bar.prefetch_factor, "1+", bar.n_epochs["1+"],
         *((bar.parts_s or {}).get(p) for p in PARTS), bar.missing]
        for bar in data.bars
    ]  # fmt: skip


def rows_stall(data: Bars) -> list[list[Any]]:
    """Return the numbers of panel b, two rows per run (columns `COLUMNS_STALL`)."""
    return [
        [bar.backend, bar.run, bar.group.replace("\n", ", "), bar.num_workers,
         bar.prefetch_factor, epoch_set, bar.n_epochs[epoch_set], bar.stall_s[epoch_set],
         bar.missing_stall(epoch_set)]
        for bar in data.bars
        for epoch_set in ("0", "1+")
    ]  # fmt: skip


_COLUMNS = ["backend", "run", "group", "num_workers", "prefetch_factor", "epoch_set",
            "n_epochs"]  # fmt: skip
COLUMNS_SPLIT = [*_COLUMNS, *(f"{part}_s" for part in PARTS), "missing"]
COLUMNS_STALL = [*_COLUMNS, "stall_s", "missing"]


def plot(
    paths: Sequence[str],
    excluded: Sequence[Mapping[str, Any]],
    titles: Mapping[str, str],
    style_file: str,
    palette: Mapping[str, str],
    panels: Mapping[str, Mapping[str, Any]],
    stems: Mapping[str, str],
) -> None:
    """Draw both panels.

    Parameters
    ----------
    paths, excluded, titles : see `read`
    style_file : matplotlib style
    palette : thing -> colour
    panels : panel -> its settings
    stems : panel -> path of its files without ending
    """
    data = read(paths, excluded, titles)
    with style.panel(style_file, panels["fig02a"], data.note) as (figure, axes):
        draw_split(data, axes, palette)
        style.save(figure, stems["fig02a"], COLUMNS_SPLIT, rows_split(data))
    with style.panel(style_file, panels["fig02b"], data.note) as (figure, axes):
        draw_stall(data, axes, palette)
        style.save(figure, stems["fig02b"], COLUMNS_STALL, rows_stall(data))
