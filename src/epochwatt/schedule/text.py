"""The answer of `epochwatt schedule` as lines for the terminal."""

import math

from epochwatt.schedule.as_run import AsRun, at_random
from epochwatt.schedule.explanation import (
    least_budgets,
    least_power_to_train_w,
    without_latency,
    without_power,
)
from epochwatt.schedule.question import Answer
from epochwatt.schedule.solution import Plan
from epochwatt.text import aligned, counted

ORIGINS = {
    "simulated": "SIMULATED, not measured",
    "measured": "measured",
    "fake": "NOT MEASURED, on a fake board",
    "public": "measured by others",
}
RULES = {"highest": "highest power", "mean": "mean power"}
NEARLY = 1e-6  # relative; a gain below it is none


def answer_lines(answer: Answer, solver: str) -> list[str]:
    """Return the answer: the plan with its numbers, what limits it, or why there is none."""
    names = " and ".join(
        [f"{one.name} (training)" for one in [answer.space.train] if one is not None]
        + [f"{one.name} (inference)" for one in answer.space.infer]
    )
    n_all = sum(one.time_s.size for one in answer.space.workloads)
    lines = [
        f"{ORIGINS[answer.provenance]}: {names} on {answer.device}",
        f"asked     {_asked(answer)}",
        f"looked at {answer.n_profiles:,} of {n_all:,} profiles (job, mode, mini-batch size); "
        f"solver {solver}",
        "",
    ]
    if answer.plan is not None:
        return [*lines, *_plan_lines(answer, answer.plan), "", *_limits(answer)]
    if answer.best is not None:
        return [
            *lines,
            "answer    none: no profile that the solver looked at keeps the budgets",
            "",
            "A plan exists; --solver exhaustive finds it:",
            *_plan_lines(answer, answer.best),
        ]
    return [
        *lines,
        "answer    none: no mode and mini-batch size keeps the budgets",
        *_least(answer),
    ]


def _asked(answer: Answer) -> str:
    problem = answer.problem
    words = [
        f"{one.rate_per_s:g} requests/s, each within {1e3 * one.max_latency_s:g} ms"
        for one in problem.streams
    ]
    return "; ".join([*words, f"{RULES[problem.power_rule]} at most {problem.max_power_w:g} W"])


def _plan_lines(answer: Answer, plan: Plan) -> list[str]:
    rows = [("mode", plan.mode.of_parts(answer.space.workloads[0].parts))]
    trains, training = answer.problem.trains, f"{plan.throughput_per_s:.4g} mini-batches/s"
    for size, latency_s in zip(plan.batch_sizes, plan.latency_s, strict=True):
        played = _at_random(answer, plan)
        late = f"{100 * played.share_late:.3g} % of requests late"
        rows.append(("mini-batch", counted(size, "requests")))
        rows.append(("latency", f"{1e3 * latency_s:.4g} ms at worst, with steady arrivals"))
        rows.append(
            ("", f"random arrivals (Poisson): {late}, 99 % within {1e3 * played.p99_s:.4g} ms")
        )
        training += (
            f" with steady arrivals, {plan.n_train} after each of inference; "
            f"{played.throughput_per_s:.4g}/s with random ones"
        )
    if trains and plan.n_train:
        rows.append(("training", training))
    elif trains:
        rows.append(("training", f"none: {_why_none(answer, plan)}"))
    rows.append(("power", f"{plan.power_w:.4g} W ({RULES[answer.problem.power_rule]})"))
    return aligned(rows)


def _infer_s(answer: Answer, plan: Plan) -> float:
    """Return the time of a mini-batch of the one stream."""
    (infer,) = answer.space.infer
    return float(infer.time_s[plan.place, infer.batch_sizes.tolist().index(plan.batch_sizes[0])])


def _at_random(answer: Answer, plan: Plan) -> AsRun:
    """Return what comes of requests of the one stream that arrive at random."""
    (stream,), train = answer.problem.streams, answer.space.train
    return at_random(
        stream.rate_per_s,
        plan.batch_sizes[0],
        _infer_s(answer, plan),
        plan.n_train,
        1.0 if train is None else float(train.time_s[plan.place, 0]),
        stream.max_latency_s,
    )


def _why_none(answer: Answer, plan: Plan) -> str:
    """Return why a plan trains nothing beside its stream."""
    (stream,), train = answer.problem.streams, answer.space.train
    assert train is not None
    gap_s = plan.batch_sizes[0] / stream.rate_per_s - _infer_s(answer, plan)
    train_s, train_w = (float(values[plan.place, 0]) for values in (train.time_s, train.power_w))
    if train_s > gap_s:
        return (
            "no gap between mini-batches of inference holds one of training, which takes "
            f"{1e3 * train_s:.4g} ms of {1e3 * gap_s:.4g}"
        )
    return f"it would draw {train_w:.4g} W, and no mode trains and serves within the budgets"


def _limits(answer: Answer) -> list[str]:
    """Return how far the plan is from the best, and what each budget costs."""
    assert answer.plan is not None
    rows = []
    best = answer.best
    if best is not None and _gain(answer, answer.plan, best) > NEARLY:
        rows.append(("best of all modes", _value(answer, best)))
    start = best or answer.plan
    if answer.problem.trains and not start.throughput_per_s:
        least_w = least_power_to_train_w(answer.space, answer.problem)
        nothing = math.isnan(least_w)
        rows.append(
            ("to train at all", "needs more latency" if nothing else f"at least {least_w:.4g} W")
        )
    for name, other in (
        ("with any power", without_power(answer.space, answer.problem)),
        ("with any latency", without_latency(answer.space, answer.problem)),
    ):
        if other is not None and _gain(answer, start, other) > NEARLY:
            rows.append((name, f"{_value(answer, other)}, {other.power_w:.4g} W"))
    if not rows:
        return ["No budget holds it back: it is the best that the board can do."]
    return ["What limits it:", *aligned(rows)]


def _value(answer: Answer, plan: Plan) -> str:
    if answer.problem.trains:
        return f"{plan.throughput_per_s:.4g} mini-batches of training/s"
    return f"{1e3 * max(plan.latency_s):.4g} ms at worst"


def _gain(answer: Answer, plan: Plan, other: Plan) -> float:
    """Return by how much another plan is better, relative."""
    if answer.problem.trains:
        return other.throughput_per_s / max(plan.throughput_per_s, 1e-12) - 1
    return max(plan.latency_s) / max(other.latency_s) - 1


def _least(answer: Answer) -> list[str]:
    """Return which budget fails, and the least that would do."""
    least, problem = least_budgets(answer.space, answer.problem), answer.problem
    lines = []
    if not math.isnan(least.power_w):
        lines.append(f"power     needs at least {least.power_w:.4g} W, all else as asked")
    if problem.streams:
        (stream,) = problem.streams
        asked_ms = 1e3 * stream.max_latency_s
        if math.isnan(least.any_latency_s):
            return [f"rate      no mode serves more than {least.rate_per_s:.4g} requests/s"]
        if least.any_latency_s > stream.max_latency_s:
            shortest = 1e3 * least.any_latency_s
            lines.append(f"latency   {asked_ms:g} ms fail in every mode: {shortest:.4g} at least")
        if not math.isnan(least.latency_s):
            lines.append(
                f"latency   needs at least {1e3 * least.latency_s:.4g} ms "
                f"within {problem.max_power_w:g} W"
            )
        else:
            lines.append(
                f"power     no mode that draws at most {problem.max_power_w:g} W "
                f"serves {stream.rate_per_s:g} requests/s, however late"
            )
    return lines
