"""A profile as lines for the terminal: what is asked, each mode as it comes, the answer."""

import math
import re

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.profile.bench import Bench, Measured, Played
from epochwatt.prediction.profile.board_bench import Board
from epochwatt.prediction.profile.search import ENDLESS_S, TIME_OVER, Profile
from epochwatt.prediction.recommend.recommend import Estimate
from epochwatt.prediction.recommend.text import percent
from epochwatt.text import aligned, answer_origin, counted

ELSEWHERE = (
    ".venv/bin/epochwatt profile --device orin --model resnet --max-power-w 30 --max-minutes 30"
)
AIMS = {"time": "least time", "energy": "least energy"}
N_SHOWN = 5
MODE_WIDTH = 50


def asked_lines(profile: Profile) -> list[str]:
    """Return what is asked, and the heading of the lines that follow."""
    bench, goal = profile.bench, profile.goal
    asked = [AIMS[goal.objective]]
    if goal.max_power_w is not None:
        asked.append(f"power at most {goal.max_power_w:g} W, risk at most {percent(goal.max_risk)}")
    if goal.max_time_s is not None:
        asked.append(f"time at most {_in_unit(goal.max_time_s, bench):g} {_unit(bench)}")
    other = {"idling until then": goal.other.idle_w, "rest": goal.other.rest_w}
    asked += [f"{what} {watts:g} W" for what, watts in other.items() if watts]
    if goal.max_s != ENDLESS_S:
        minutes = "board time" if isinstance(bench, Board) else "minutes that a board would take"
        asked.append(f"{minutes} at most {goal.max_s / 60:g}")
    if goal.max_runs is not None:
        asked.append(f"at most {counted(goal.max_runs, 'runs')}")
    return [
        f"{answer_origin(bench.provenance)}: modes of {bench.title}, one after the other",
        f"asked     {'; '.join(asked)}",
        f"modes     {len(bench.modes):,}; method {profile.method.name}",
        "",
        f"{'':3} {'mode':{MODE_WIDTH}} {_unit(bench):>8} {'W':>7} {'min':>6}  best so far",
    ]


def mode_line(profile: Profile, run: Measured) -> str:
    """Return the line of a mode that was run."""
    best, bench, goal = profile.best, profile.bench, profile.goal
    unit = _unit(bench)
    so_far = "none surely keeps the limit yet"
    if best is not None and best.mode == run.mode:
        so_far = "this one" + (f", {counted(best.n, 'times')} run" if best.n > 1 else "")
    elif best is not None:
        so_far = f"{_in_unit(best.time_s, bench):.4g} {unit}{_watts(best)}"
        if goal.objective == "energy":
            so_far += f", {goal.aim(best):.4g} J"
    power = "-" if math.isnan(run.power_w) else f"{run.power_w:.2f}"
    if not run.valid:
        so_far += f" (does not count: {run.flags})"
    elif power == "-" and run.notes:
        so_far += f" (no power: {run.notes})"
    return (
        f"{len(profile.ran):3} {described(run.mode, bench):{MODE_WIDTH}} "
        f"{_in_unit(run.time_s, bench):8.4g} {power:>7} {profile.spent_s / 60:6.1f}  {so_far}"
    )


def described(mode: Mode, bench: Bench) -> str:
    """Return those parts of a mode that are known, in words."""
    text = mode.of_parts(bench.parts)
    return text.replace("core", "thread") if bench.kind == "host" else text


def answer_lines(profile: Profile, command: str) -> list[str]:
    """Return the answer: the mode, what was measured of it, what it cost, what to type next.

    `command`: that was given, to be given again where the profile was interrupted.
    """
    best, bench = profile.best, profile.bench
    ended = f"ended     {profile.stop}" if profile.stop else "interrupted: what is measured is kept"
    lines = ["", ended, ""]
    counting = profile.modes()
    if best is not None:
        lines += [f"take      {described(best.mode, bench)}", "", *_outlook(profile, best)]
        lines += _beside_fastest(profile, best)
        if isinstance(bench, Played):
            lines += ["", _checked(profile, bench, best)]
    elif not profile.measured:
        lines.append("answer    none: no mode ended before the time was over")
    elif not counting:
        flags = sorted({flag for run in profile.measured for flag in run.flags.split()})
        lines.append(f"answer    none: no mode that was run counts ({', '.join(flags)})")
        lines.append("          what these flags mean: docs/reference/columns.md")
    elif not any(map(profile.goal.in_time, counting)):
        fastest = min(counting, key=lambda run: run.time_s)
        words = f"{_in_unit(fastest.time_s, bench):.4g} {_unit(bench)}"
        lines.append("answer    none: no mode that was run is as fast as asked")
        lines.append(f"          the fastest took {words}, {described(fastest.mode, bench)}")
    else:
        least = min(counting, key=lambda run: run.power_w)
        words = f"{least.power_w:.4g} W, in {described(least.mode, bench)}"
        risk = percent(profile.goal.max_risk)
        lines.append(f"answer    none: no mode keeps the limit with a risk of {risk} at most")
        lines.append(f"          the least power was {words}")
    lines += ["", *_cost(profile)]
    if isinstance(bench, Board) and profile.ran:
        try:
            lines.append(f"table     {bench.write_table()}")
        except EpochwattError as error:
            lines.append(f"table     none: {error.problem}")
    if not profile.stop:
        lines += ["", "to go on from here:", f"  {command}"]
    elif best is not None:
        lines += ["", *_next_lines(bench, best.mode, command)]
    return lines


def _outlook(profile: Profile, best: Measured) -> list[str]:
    """Return what the next epoch may be, and below it the best modes by their risk."""
    bench, goal = profile.bench, profile.goal
    unit = _unit(bench)
    names = {"time_s": f"time {unit}", "power_w": "power W", "energy_j": "energy J"}
    if goal.other.idle_w or goal.other.rest_w:
        names["energy_j"] += ", all that counts"
    work = f"one {bench.work}" if bench.work == "mini-batch" else bench.work
    times = "" if best.n == 1 else f", mean of {best.n}"
    seen = "in the table" if bench.provenance == "public" else bench.provenance
    rows = [[f"of {work}", f"{seen}{times}", "90 % interval of the next"]]
    for name, (value, low, high) in profile.outlook(best.mode).estimates.items():
        scale = _in_unit(1.0, bench) if name == "time_s" else 1.0
        interval = Estimate(0.0, (low or 0.0) * scale, (high or 0.0) * scale).interval
        rows.append([names[name], f"{value * scale:.4g}", interval])
    lines = aligned(rows)
    if goal.max_power_w is None:
        return lines
    risks = dict(zip(profile.modes(), profile.risks().tolist(), strict=True))
    hopeful = [run for run in risks if run.power_w <= goal.max_power_w]
    ranked = sorted(hopeful, key=goal.aim)
    shown = [*ranked[:N_SHOWN], *([best] if best not in ranked[:N_SHOWN] else [])]
    head = ["", "mode", names["time_s"], "power W", "runs", f"risk over {goal.max_power_w:g} W"]
    rows = [head]
    for run in shown:
        cells = [f"{_in_unit(run.time_s, bench):.4g}", f"{run.power_w:.4g}", str(run.n)]
        mark = "take" if run == best else ""
        rows.append([mark, described(run.mode, bench), *cells, percent(risks[run] or 1e-9)])
    lines += ["", *aligned(rows)]
    if ranked[0] != best:
        costs = 100 * (goal.aim(best) / goal.aim(ranked[0]) - 1)
        lines.append(
            f"a risk of {percent(goal.max_risk)} at most costs {costs:.2g} % of {goal.objective} "
            f"beside the first one (--max-risk {min(risks[ranked[0]] + 0.005, 0.5):.2g})"
        )
    return lines


def _beside_fastest(profile: Profile, best: Measured) -> list[str]:
    """Return what the mode of least energy costs in time, and whether it ends early and idles."""
    goal = profile.goal
    if goal.objective != "energy":
        return []
    fastest = min(profile.kept(), key=lambda run: run.time_s)
    lines = []
    if fastest != best:
        lines.append(
            f"{100 * (1 - goal.aim(best) / goal.aim(fastest)):.2g} % less energy and "
            f"{100 * (best.time_s / fastest.time_s - 1):.2g} % more time than the fastest that was "
            f"run, {described(fastest.mode, profile.bench)}"
        )
    if (saves := profile.racing_saves()) is not None:
        lines.append(
            "racing to idle wins: to end early and idle until the deadline; a mode that just meets "
            f"it is expected to cost {100 * saves:.2g} % more"
        )
    return ["", *lines] if lines else []


def _checked(profile: Profile, bench: Played, best: Measured) -> str:
    """Return how the answer does in repeats that the search has not seen."""
    unseen, are_there = bench.unseen(best.mode)
    time_s, power_w = unseen.mean(0)
    what = counted(len(unseen), "repeats") + " of the table that the search has not seen"
    if not are_there:
        what = "one repeat, drawn: the table has no other"
    limit_w, verdict = profile.goal.max_power_w, ""
    if limit_w is not None:
        n_over = int((unseen[:, 1] > limit_w).sum())
        verdict = (
            ", keeps the limit" if not n_over else f", {n_over} of {len(unseen)} break the limit"
        )
    power = "" if math.isnan(power_w) else f", {power_w:.4g} W"
    return f"judged by {what}: {_in_unit(time_s, bench):.4g} {_unit(bench)}{power}{verdict}"


def _cost(profile: Profile) -> list[str]:
    """Return what was run, and what the minutes went into."""
    n, spent_s = len(profile.ran), profile.spent_s
    n_first = n if profile.n_first is None else profile.n_first
    n_again = n - len({run.mode for run in profile.ran})
    counted_s = sum(run.counted_s for run in profile.ran)
    around_s = sum(run.took_s for run in profile.ran) - counted_s
    jobs_s = max(spent_s - around_s - counted_s, 0.0)
    ran = (
        f"ran       {counted(n - n_again, 'modes')}: {n_first} to begin with, "
        f"{n - n_first - n_again} chosen one by one; {counted(n_again, 'repeats')}"
    )
    if profile.before:
        ran += f"; {len(profile.before)} were measured before"
    took = (
        f"took      {spent_s / 60:.1f} min: {around_s / 60:.1f} to switch, settle and warm up, "
        f"{counted_s / 60:.1f} in mini-batches that count, {jobs_s / 60:.1f} to start jobs"
    )
    if profile.stop == TIME_OVER:
        took += " and in a mode that did not end"
    lines = [ran, took]
    if n_invalid := sum(not run.valid for run in profile.ran):
        does = "does" if n_invalid == 1 else "do"
        lines.append(f"          {n_invalid} of them {does} not count")
    return lines


def _next_lines(bench: Bench, mode: Mode, command: str) -> list[str]:
    """Return what to type next."""
    if bench.provenance == "public":
        return ["next: on a board of your own, or a simulated one:", f"  {ELSEWHERE}"]
    if bench.provenance == "simulated":
        there = re.sub(r" --backend[ =]twin\b", "", command)
        return ["next: on the board, whose answer is measured:", f"  {there}"]
    if bench.kind == "host":
        where = "next: with as many threads, in a study of this machine (docs/start/your-study.md):"
        return [where, f"  torch_threads: {mode.cores:g}"]
    clocks = (1e3 * mode.cpu_mhz, 1e6 * mode.gpu_mhz, 1e6 * mode.emc_mhz)
    words = " ".join(str(round(number)) for number in (mode.cores, *clocks))
    where = "next: to set it on the board (docs/explanation/root-helper.md):"
    if bench.provenance == "fake":
        where = "next: nothing; on a real board these would set it:"
    return [
        where,
        f"  sudo epochwatt-helper custom-mode {words}",
        "  sudo epochwatt-helper pin-clocks    # as it was measured",
    ]


def _unit(bench: Bench) -> str:
    return "ms" if bench.work in ("mini-batch", "kernel") else "s"


def _in_unit(time_s: float, bench: Bench) -> float:
    return 1e3 * time_s if _unit(bench) == "ms" else time_s


def _watts(run: Measured) -> str:
    return "" if math.isnan(run.power_w) else f", {run.power_w:.4g} W"
