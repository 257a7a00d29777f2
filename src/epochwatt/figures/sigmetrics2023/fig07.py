"""Figure 7: power of idle boards in four states.

Source: SIGMETRICS 2023, section 5.6. (i) metrics are logged, DVFS off; (ii) nothing is logged;
(iii) and DVFS on; (iv) asleep, waiting for Wake-on-LAN. The paper reads a meter at the plug. Where
no meter was read the board's own sensors tell state (i), and the axis says so: the two are never
in one panel.
"""

import csv
from collections.abc import Mapping, Sequence
from typing import Any

from epochwatt.claims.number_sources import EpochTable
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import draw_missing, legend
from epochwatt.figures.common.brackets import Bracket, draw_brackets
from epochwatt.figures.common.failing import entries, failing_sides, is_side, paint, red_of
from epochwatt.figures.common.interactive import STATES
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import cells, draw_mark, idle_mark
from epochwatt.study.runs import TWIN
from epochwatt.text import origin

WIDTH, STEP = 0.17, 0.2  # of a bar, and from one to the next
ASSUMED = ", heights partly assumed, none published"  # at the plug; the paper prints bounds
SCOPES = {"socket": "power at the plug (W)", "module": "power of the module (W)"}
NOT_THERE = {TWIN: "not simulated"}
UNSUPPORTED = {("orin", "iv"): "no Wake-on-LAN"}  # section 5.6
COMPARED = (  # two states, what is changed, and what section 5.6 says of it, without a number
    ("ii", "iii", "DVFS",
     {"nano": "negligible", "nx": "negligible", "agx": "significant", "orin": "significant"}),
    ("ii", "i", "logging", {"nano": "higher", "agx": "minimal", "orin": "minimal"}),
)  # fmt: skip
PLACE = ("device", "instance", "power_mode")


def draw(job: Job) -> None:
    """Draw the panel."""
    scope, idles = read(job.idle, job.backend)
    places = list(dict.fromkeys(tuple(row[key] for key in PLACE) for row in idles))
    colour = job.colours(*(f"state_{state}" for state in STATES), "missing", "published")
    rows, missing = [], []
    with job.panel("fig07", corner_note=note(job.backend, places)) as (figure, axes):
        for n, (state, label) in enumerate(STATES.items()):
            of_state = [row for row in idles if row["state"] == state]
            heights = {tuple(row[key] for key in PLACE): row for row in of_state}
            x = [at + STEP * (n - 1.5) for at in range(len(places))]
            state_rows = [_row(heights.get(place), place, state, scope, job) for place in places]
            axes.bar(x, [row["value"] or 0.0 for row in state_rows], WIDTH,
                     color=colour[f"state_{state}"], label=label)  # fmt: skip
            missing += [(at, row["missing"]) for at, row in zip(x, state_rows, strict=True)]
            for at, row in zip(x, state_rows, strict=True):
                draw_mark(axes, at, row, colour["published"], WIDTH)
            rows += state_rows
        if job.backend == TWIN and scope == "socket":
            style.add_to_title(figure, ASSUMED)
        axes.set_xticks(range(len(places)), [name(place, places, job) for place in places])
        axes.grid(visible=False, axis="x")
        axes.set_ylabel(SCOPES[scope])
        draw_missing(missing, axes, colour["missing"])
        source = EpochTable([], of_backend(job.idle, job.backend))
        sides = failing_sides(job, "fig07", source)
        changes = idle_changes(rows)
        wrong = [
            one for one, pct in changes
            if any(is_side(number, pair) for number in (pct, -pct) for pair in sides)
        ]  # fmt: skip
        legend(axes, rows, colour["published"], entries(job, wrong))
        draw_brackets(axes, [one for one, _ in changes], colour["published"])
        if wrong:
            paint(axes, wrong, red_of(job))
        job.save(figure, "fig07", rows, source)


def idle_changes(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Bracket, float]]:
    """Return a bracket over two states of each board: what DVFS and logging change.

    The paper prints no number of either: a bracket has its word, where it has one, then our number.

    Parameters
    ----------
    rows : of the CSV, state by state, boards in the same order in each

    Returns
    -------
    each with the change, %
    """
    brackets = []
    for one, other, cause, published in COMPARED:
        befores, afters = ([row for row in rows if row["state"] == state] for state in (one, other))
        ends = sorted(STEP * (list(STATES).index(state) - 1.5) for state in (one, other))
        for at, (before, after) in enumerate(zip(befores, afters, strict=True)):
            if before["value"] and after["value"] is not None:
                change_pct = 100.0 * (after["value"] / before["value"] - 1.0)
                word = published.get(before["device"], "")
                lines = [f"{cause}, paper: {word}" if word else cause, f"here {change_pct:+.0f} %"]
                left, right = (at + end for end in ends)
                brackets.append((Bracket(left, right, lines, seen_by_fit=True), change_pct))
    return brackets


def read(path: str, backend: str) -> tuple[str, list[dict[str, str]]]:
    """Return power scope and rows of one backend: at the plug if any is, else of the module."""
    rows = of_backend(path, backend)
    scope = next((s for s in SCOPES if any(row["power_scope"] == s for row in rows)), "socket")
    return scope, [row for row in rows if row["power_scope"] == scope]


def of_backend(path: str, backend: str) -> list[dict[str, str]]:
    """Return the rows of one backend."""
    with open(path, newline="", encoding="utf-8") as handle:
        return [row for row in csv.DictReader(handle) if row["backend"] == backend]


def note(backend: str, places: list[tuple[str, ...]]) -> str:
    """Return the corner note."""
    units = dict.fromkeys(f"{device}/{instance}" for device, instance, _ in places)
    return f"{origin([backend])} {', '.join(units)}; no epochs, idle boards"


def name(place: tuple[str, ...], places: list[tuple[str, ...]], job: Job) -> str:
    """Return what stands below a board: its instance and power mode where there are several."""
    device, instance, mode = place
    alike = [p for p in places if p[0] == device]
    words = [job.title(device)]
    words += [instance] if len({p[1] for p in alike}) > 1 else []
    words += [f"mode {mode}"] if len({p[2] for p in alike}) > 1 else []
    return "\n".join(words)


def _row(
    idle: Mapping[str, str] | None, place: tuple[str, ...], state: str, scope: str, job: Job
) -> dict[str, Any]:
    """Return the CSV's row of a board in a state; the paper's state (i) is of the module."""
    there = idle is not None and idle["power_w"] != ""
    not_there = NOT_THERE.get(job.backend, "not measured")
    board = dict(zip(PLACE, place, strict=True))
    published_mark = idle_mark(job.marks, place[0], place[2], state, scope)
    return {
        "backend": job.backend,
        **board,
        "state": state,
        "power_scope": scope,
        "quantity": "idle_power_w",
        "value": float(idle["power_w"]) if idle is not None and there else None,
        "missing": "" if there else UNSUPPORTED.get((place[0], state), not_there),
        **cells(published_mark),
    }
