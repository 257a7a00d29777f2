"""`epochwatt schedule`: plans, what is missing where there is none, and errors."""

import numpy as np
import pytest

from epochwatt.cli import main
from epochwatt.schedule.problem import Problems, Space
from epochwatt.schedule.question import least_budgets
from epochwatt.sweeps.mode_table import SweepRow, tables_of, write_mode_tables

ASK = ["schedule", "--train", "net", "--infer", "served", "--rate", "10"]
JOBS = (("net", "train", 16), ("served", "infer", 1), ("served", "infer", 4))


@pytest.fixture
def tables(checkout, workload):
    """A file of mode tables of a network that trains, and one that serves at two sizes."""
    made = {("net", 16): workload(1, (16,)), ("served", 1): workload(2, (1,))}
    made["served", 4] = workload(2, (4,))
    rows = [
        SweepRow(
            **{"sweep": "mine", "provenance": "public", "device": "board", "instance": ""},
            **{"workload": name, "task": task, "batch_size": size, "work": "mini-batch"},
            **dict(zip(("cores", "cpu_mhz", "gpu_mhz", "emc_mhz"), mode, strict=False)),
            **{"gpu_share": 1.0, "power_scope": "module", "valid": True},
            time_s=float(one.time_s[place, 0]),
            power_w=float(one.power_w[place, 0]),
        )
        for name, task, size in JOBS
        for one in [made[name, size]]
        for place, mode in enumerate(one.modes.tolist())
    ]
    path = checkout.path / "modes.csv"
    write_mode_tables(path, tables_of(rows))
    return str(path)


@pytest.mark.parametrize("solver", ["gain", "verified", "exhaustive"])
def test_a_plan_of_measured_modes(solver, tables, capsys):
    words = ["--max-latency-ms", "2000", "--max-power-w", "30", "--tables", tables]
    assert main([*ASK, *words, "--solver", solver]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "from measurements of others: net (training) and served (inference) on board"
    )
    assert "asked     10 requests/s, each within 2000 ms; highest power at most 30 W" in out
    assert f"solver {solver}" in out
    assert "ms at worst, with steady arrivals" in out
    assert "random arrivals (Poisson): " in out
    assert "% of requests late, 99 % within " in out


def test_no_plan_names_the_budget_that_fails_and_the_least_that_would_do(tables, capsys):
    words = ["--max-latency-ms", "2000", "--max-power-w", "1", "--tables", tables]
    assert main([*ASK, *words]) == 1
    out = capsys.readouterr().out
    assert "none: no mode and mini-batch size keeps the budgets" in out
    watts = float(out.partition("needs at least ")[2].partition(" W")[0])
    assert main([*ASK, *words[:3], str(watts * 1.001), *words[4:], "--solver", "exhaustive"]) == 0


def test_the_least_budgets_are_those_of_plain_loops(workload):
    infer = workload(2, (1, 4), is_monotone=False)
    limit_w = float(np.median(infer.power_w))
    problem = Problems.one(limit_w, (5, 0.5 * infer.time_s.min()))
    latencies = [
        (size - 1) / 5 + infer.time_s[mode, k]
        for mode in range(len(infer.modes))
        for k, size in enumerate((1, 4))
        if infer.power_w[mode, k] <= limit_w and infer.time_s[mode, k] <= size / 5
    ]
    least = least_budgets(Space(None, (infer,)), problem)
    assert np.isnan(least.power_w)  # no power makes up for such a latency
    assert least.latency_s == pytest.approx(min(latencies))
    assert least.any_latency_s <= least.latency_s
    assert least.rate_per_s == pytest.approx((np.array([1, 4]) / infer.time_s).max())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to run"),
        (["--train", "net", "--rate", "3"], "--rate and --max-latency-ms are of requests"),
        (["--infer", "served"], "--infer needs --rate and --max-latency-ms"),
        (["--train", "net", "--device", "tx2"], "--device tx2 has no grid of modes"),
        (["--train", "lent"], "did you mean lenet?"),
        (["--train", "served", "--tables", "{tables}"], "no table of served (train)"),
        (["--train", "net", "--tables", "nothing.csv"], "nothing.csv"),
    ],
)
def test_what_cannot_be_asked(words, message, tables, capsys):
    words = [word.format(tables=tables) for word in words]
    assert main(["schedule", "--max-power-w", "20", *words]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
