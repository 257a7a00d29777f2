"""Draw the timeline of an epoch for the documentation: `.venv/bin/python docs/img/timeline.py`.

A made-up epoch of four mini-batches, once without and once with two loader workers. The numbers are
chosen so that the parts can be seen; nothing here is measured.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import yaml

ROOT = Path(__file__).resolve().parents[2]
PALETTE = yaml.safe_load((ROOT / "config/plotting.yaml").read_text("utf-8"))["palette"]
COLOURS = {
    "wait": PALETTE["stall"],
    "copy": "#7FD6BA",  # a lighter green: stall is both
    "compute": PALETTE["compute"],
    "other = overhead": PALETTE["overhead"],
    "fetch": "#E69F00",
    "pre-process": "#F0E442",
    "worker start, end": "#FFFFFF",
}
EDGE = "#333333"
N = 4
FETCH, PREPROCESS, COPY, COMPUTE, OTHER = 9, 15, 5, 17, 5  # milliseconds, made up
START, STOP, HANDOVER = 6, 7, 1.2


class Lane:
    """One row of blocks."""

    def __init__(self, axes, y, name, height=0.62):
        self.axes, self.y, self.height = axes, y, height
        axes.text(-2, y, name, ha="right", va="center")

    def block(self, start, length, kind, text=""):
        """Draw a block; return its end."""
        self.axes.barh(
            self.y, length, left=start, height=self.height, color=COLOURS[kind],
            edgecolor=EDGE, linewidth=0.5, hatch="////" if kind.startswith("worker") else None,
        )  # fmt: skip
        white = kind in ("compute", "wait")
        self.axes.text(
            start + length / 2, self.y, text, ha="center", va="center", fontsize="small",
            color="white" if white else "black",
        )  # fmt: skip
        return start + length


def train(lane, start, ready, stop):
    """Draw the training loop; return the four stamps of mini-batch 1 and the end."""
    now, stamps = start, {}
    for k in range(N):
        ask, got = now, max(ready(k, now), now + HANDOVER)
        lane.block(ask, got - ask, "wait", "wait" if got - ask > 10 else "")
        copied = lane.block(got, COPY, "copy")
        done = lane.block(copied, COMPUTE, "compute", str(k))
        now = lane.block(done, OTHER, "other = overhead")
        if k == 1:
            stamps = {"ask": ask, "got": got, "copied": copied, "done": done}
    return stamps, lane.block(now, stop, "other = overhead") if stop else now


def load(lane, start, k):
    """Draw fetch and pre-process of a mini-batch; return when it is ready."""
    return lane.block(lane.block(start, FETCH, "fetch", str(k)), PREPROCESS, "pre-process", str(k))


def mark(axes, y, stamps):
    """Write the names of the stamps above a lane; those that nearly coincide share a label."""
    labels = {}
    for name, at in stamps.items():
        near = next((other for other in labels if at - other < 2), at)
        labels.setdefault(near, []).append(name)
    for at, names in labels.items():
        axes.plot([at, at], [y + 0.31, y + 0.5], color="black", linewidth=0.8)
        axes.text(
            at, y + 0.54, ", ".join(names), rotation=40, ha="left", va="bottom", fontsize="small"
        )


def span(axes, y, end):
    """Draw the arrow of E2E from 0 to `end`."""
    arrow = {"arrowstyle": "<->", "color": "black", "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (0, y), (end, y), arrowprops=arrow)
    axes.text(
        end / 2, y, "E2E", ha="center", va="center", fontsize="small",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
    )  # fmt: skip


def without_workers(axes):
    """Panel above: the loop loads each mini-batch itself, inside the wait."""
    loop, inside = Lane(axes, 2, "main process"), Lane(axes, 1.2, "in its waits", 0.44)

    def ready(k, now):
        return load(inside, now, k)

    stamps, end = train(loop, 0, ready, 0)
    mark(axes, 2, stamps)
    span(axes, 0.62, end)


def with_two_workers(axes):
    """Panel below: workers start inside the first wait and load ahead while the loop computes."""
    loop = Lane(axes, 3, "main process")
    ends = {}
    workers = [Lane(axes, 2.1, "worker 1"), Lane(axes, 1.3, "worker 2")]
    for i, worker in enumerate(workers):
        now = worker.block(i * START, START, "worker start, end")
        for k in range(i, N, len(workers)):
            now = ends[k] = load(worker, now, k)
    stamps, end = train(loop, 0, lambda k, now: ends[k] + HANDOVER, STOP)
    for worker in workers:
        worker.block(end - STOP, STOP, "worker start, end")
    mark(axes, 3, stamps)
    span(axes, 0.72, end)
    told = {"fontsize": "small", "va": "center", "ha": "left"}
    axes.text(0, 3.52, "worker start is in the wait", **told)
    axes.text(end + 3, 3, "their shut-down is\nin the overhead", **told)
    axes.text(
        72,
        1.7,
        "loading goes on during compute:\nnext to no wait is left",
        **told,
    )


def main(path):
    """Draw the picture."""
    with plt.style.context(ROOT / "config/paper.mplstyle"):
        # letters as paths: the picture looks the same on every page
        plt.rcParams.update({"svg.fonttype": "path", "svg.hashsalt": "epochwatt"})
        figure, (above, below) = plt.subplots(
            2, 1, figsize=(7.0, 4.1), layout="constrained", height_ratios=(2.6, 3.4)
        )
        without_workers(above)
        with_two_workers(below)
        for axes, title, low, high in (
            (above, "0 workers", 0.4, 3.1),
            (below, "2 workers", 0.5, 4.1),
        ):
            axes.set(xlim=(0, 4 * 51.5), ylim=(low, high))
            axes.set_title(title, loc="left", x=-0.135, fontweight="bold")
            axes.axis("off")
        handles = [
            plt.Rectangle((0, 0), 1, 1, facecolor=colour, edgecolor=EDGE, linewidth=0.5,
                          hatch="////" if name.startswith("worker") else None)
            for name, colour in COLOURS.items()
        ]  # fmt: skip
        figure.legend(handles, COLOURS, loc="outside lower center", ncols=7)
        date = {"Date": None} if path.endswith(".svg") else {}  # same input, same bytes
        figure.savefig(path, metadata=date)
        plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else str(ROOT / "docs/img/timeline.svg"))
