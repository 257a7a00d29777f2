"""Figure 7: power of idle boards in four states.

Source: SIGMETRICS 2023, section 5.6. (i) metrics are logged, DVFS off; (ii) nothing is logged;
(iii) and DVFS on; (iv) asleep, waiting for Wake-on-LAN. The paper reads a meter at the plug. Where
no meter was read the board's own sensors tell state (i), and the axis says so: the two are never
in one panel.
"""

import csv
from collections.abc import Mapping, Sequence
from typing import Any

from epochwatt.columns import TWIN
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import draw_missing, legend
from epochwatt.figures.common.interactive import STATES
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import Bracket, cells, draw_brackets, draw_mark, idle_mark
from epochwatt.text import origin

WIDTH, STEP = 0.17, 0.2  # of a bar, and from one to the next
ASSUMED = ", heights partly assumed, none published"  # at the plug; the paper prints bounds
SCOPES = {"socket": "power at the plug (W)", "module": "power of the module (W)"}
NOT_THERE = {TWIN: "not simulated"}
UNSUPPORTED = {("orin", "iv"): "no Wake-on-LAN"}  # section 5.6
COMPARED = (  # two states, what changes, the claim on it, and its words for it in section 5.6
    ("ii", "iii", "DVFS", "T5.6-baseloadb",
     {"nano": "negligible", "nx": "negligible", "agx": "significant", "orin": "significant"}),
    ("ii", "i", "logging", "T5.6-baseloadc",
     {"nano": "higher", "agx": "minimal", "orin": "minimal"}),
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
                draw_mark(axes, at, row, job.ink(row), WIDTH)
            rows += state_rows
        if job.backend == TWIN and scope == "socket":
            style.add_to_title(figure, ASSUMED)
        axes.set_xticks(range(len(places)), [name(place, places, job) for place in places])
        axes.grid(visible=False, axis="x")
        axes.set_ylabel(SCOPES[scope])
        draw_missing(missing, axes, colour["missing"])
        brackets = idle_changes(rows, job)
        red = any(bracket.colour != colour["published"] for bracket in brackets)
        legend(axes, rows, job, red=red)
        draw_brackets([(axes, brackets)])
        job.save(figure, "fig07", rows)


def idle_changes(rows: Sequence[Mapping[str, Any]], job: Job) -> list[Bracket]:
    """Return a bracket over two states of each board: what DVFS and logging change.

    The paper prints no number of either: a bracket has its word, where it has one, then our number.

    Parameters
    ----------
    rows : of the CSV, state by state, boards in the same order in each
    """
    brackets = []
    for one, other, cause, claim, published in COMPARED:
        befores, afters = ([row for row in rows if row["state"] == state] for state in (one, other))
        left, right = sorted(STEP * (list(STATES).index(state) - 1.5) for state in (one, other))
        for at, (before, after) in enumerate(zip(befores, afters, strict=True)):
            if before["value"] and after["value"] is not None:
                change_pct = 100.0 * (after["value"] / before["value"] - 1.0)
                word = published.get(before["device"], "")
                lines = [f"{cause}, paper: {word}" if word else cause, f"here {change_pct:+.0f} %"]
                red = job.fails("fig07", claim=claim, device=before["device"])
                ink = job.palette["warning" if red else "published"]
                brackets.append(Bracket(at + left, at + right, lines, ink))
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
