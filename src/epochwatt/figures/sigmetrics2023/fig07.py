"""Figure 7: power of idle boards in four states.

Source: SIGMETRICS 2023, section 5.6. The paper reads a meter at the plug. Where none was read the
board's own sensors tell state (i): the two are never in one panel.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from epochwatt.claims.tolerances import load_terms
from epochwatt.columns import TWIN
from epochwatt.figures.common import style
from epochwatt.figures.common.bars import Bracket, draw_bars, draw_brackets, draw_missing, legend
from epochwatt.figures.common.interactive import STATES
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import Plotted, idle_mark
from epochwatt.tables import read_cells
from epochwatt.text import origin

WIDTH, STEP = 0.17, 0.2  # of a bar, and from one to the next
ASSUMED = "; carrier board, adapter, (iv) assumed"  # at the plug, where simulated
ASSUMED_STATE = "iv"
SCOPES = {
    "socket": "power at the plug (W)",
    "module": "power of the module (W)",
    "board": "power of the board (W)",
}
UNSUPPORTED = {("orin", "iv"): "no Wake-on-LAN"}  # section 5.6
NEGLIGIBLE = "negligible,\ntaken as below {SMALL_PCT:g} %"  # tolerance of claims
COMPARED = (  # two states, what changes, the claim on it, and its words for it in section 5.6
    ("ii", "iii", "DVFS", "T5.6-baseloadb",
     {"nano": NEGLIGIBLE, "nx": NEGLIGIBLE, "agx": "significant", "orin": "significant"}),
    ("ii", "i", "logging", "T5.6-baseloadc",
     {"nano": "higher", "agx": "minimal", "orin": "minimal"}),
)  # fmt: skip

Place = tuple[str, str, str]  # device, instance, power mode


def draw(job: Job) -> None:
    """Draw the panel."""
    scope, powers = read(job.idle, job.backend)
    places = list(dict.fromkeys(place for place, _ in powers))
    boards = dict.fromkeys(job.title(device) for device, *_ in places)
    is_assumed = job.backend == TWIN and scope == "socket"
    note = f"{origin([job.backend])} {', '.join(boards)}, idle{ASSUMED if is_assumed else ''}"
    with job.panel("fig07", corner_note=note) as (figure, axes):
        missing: list[tuple[float, str]] = []
        by_state: dict[str, list[Plotted]] = {}
        for n, (state, label) in enumerate(STATES.items()):
            x = [at + STEP * (n - 1.5) for at in range(len(places))]
            rows = [_row(powers.get((place, state), ""), place, state, scope, job)
                    for place in places]  # fmt: skip
            look: style.Look = {"color": job.colour(f"state_{state}"), "label": label}
            if is_assumed and state == ASSUMED_STATE:
                look |= {"hatch": "///", "edgecolor": "white", "linewidth": 0}
                look["label"] += ", assumed"
            missing += draw_bars(axes, x, rows, job, WIDTH, **look)
            by_state[state] = rows
        axes.set_xticks(range(len(places)), [name(place, places, job) for place in places])
        axes.grid(visible=False, axis="x")
        axes.set_ylabel(SCOPES[scope])
        draw_missing(missing, axes, job.colour("missing"))
        brackets = brackets_of(by_state, job)
        all_rows = [row for rows in by_state.values() for row in rows]
        is_red = job.palette.get("warning") in {bracket.colour for bracket in brackets}
        legend(axes, all_rows, job, red="red: does not hold here", is_red=is_red)
        draw_brackets([(axes, brackets)])
        job.save(figure, "fig07", all_rows)


def read(path: str, backend: str) -> tuple[str, dict[tuple[Place, str], str]]:
    """Return power scope, and place and state -> power (W; empty: not there) of a backend.

    The scope is the plug if any power was read there, else the module, else the board.
    """
    rows = [row for row in read_cells(path) if row["backend"] == backend]
    scope = next((s for s in SCOPES if any(row["power_scope"] == s for row in rows)), "socket")
    return scope, {
        ((row["device"], row["instance"], row["power_mode"]), row["state"]): row["power_w"]
        for row in rows
        if row["power_scope"] == scope
    }


def _row(power_w: str, place: Place, state: str, scope: str, job: Job) -> Plotted:
    """Return a board's power in a state; the paper's state (i) is of the module."""
    device, instance, power_mode = place
    not_there = "not simulated" if job.backend == TWIN else "not measured"
    value = float(power_w) if power_w else None
    row = {
        "backend": job.backend,
        "device": device,
        "instance": instance,
        "power_mode": power_mode,
        "state": state,
        "power_scope": scope,
        "quantity": "idle_power_w",
        "value": value,
        "missing": "" if power_w else UNSUPPORTED.get((device, state), not_there),
    }
    printed = idle_mark(job.marks, device, power_mode, state, scope)
    printed = printed and job.judged(printed, [value])
    return Plotted(row, printed, job.ink(printed))


def brackets_of(by_state: Mapping[str, Sequence[Plotted]], job: Job) -> list[Bracket]:
    """Return a bracket over two states of each board: what DVFS and logging change.

    The paper prints no number of either: a bracket has its word, where it has one, then our number.
    """
    brackets = []
    limits = load_terms(Path(job.published).parents[1]).numbers
    for one, other, cause, claim, published in COMPARED:
        left, right = sorted(STEP * (list(STATES).index(state) - 1.5) for state in (one, other))
        for at, (before, after) in enumerate(zip(by_state[one], by_state[other], strict=True)):
            if before.value and after.value is not None:
                change_pct = 100.0 * (after.value / before.value - 1.0)
                device = before.row["device"]
                word = published.get(device, "").format(**limits)
                lines = f"{cause}{', paper: ' if word else ''}{word}\nhere {change_pct:+.0f} %"
                red = job.fails("fig07", claim=claim, device=device)
                ink = job.colour("warning" if red else "published")
                brackets.append(Bracket(at + left, at + right, lines.split("\n"), ink))
    return brackets


def name(place: Place, places: Sequence[Place], job: Job) -> str:
    """Return what stands below a board: its instance and power mode where there are several."""
    device, instance, mode = place
    alike = [p for p in places if p[0] == device]
    words = [job.title(device)]
    words += [instance] if len({p[1] for p in alike}) > 1 else []
    words += [f"mode {mode}"] if len({p[2] for p in alike}) > 1 else []
    return "\n".join(words)
