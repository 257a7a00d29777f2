"""`epochwatt schedule`: plans, what is missing where there is none, and errors."""

import numpy as np
import pytest

from epochwatt.board.training.interleave import scheduler
from epochwatt.board.training.interleave.arrivals import arrivals
from epochwatt.board.training.interleave.plan import QUEUE
from epochwatt.cli import main
from epochwatt.schedule.problem import Problems, Space
from epochwatt.schedule.question import least_budgets
from epochwatt.schedule.simulation import run_as
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


@pytest.mark.parametrize("solver", ["gain", "gmd", "verified", "exhaustive"])
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


def test_a_plan_that_trains_nothing_says_what_training_would_need(tables, capsys):
    words = ["--max-latency-ms", "160", "--tables", tables, "--solver", "exhaustive"]
    assert main([*ASK, "--max-power-w", "8", *words]) == 0
    out = capsys.readouterr().out
    assert "no gap between mini-batches of inference holds one of training" in out
    watts = float(out.partition("to train at all")[2].partition("at least ")[2].partition(" W")[0])
    assert watts > 8
    assert main([*ASK, "--max-power-w", str(watts * 1.001), *words]) == 0
    assert "holds one of training" not in capsys.readouterr().out


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


def one_knob(path, train_w=(10.0, 14.0), infer_w=(9.0, 12.0)):
    """Write modes of which only the GPU's clock is known; training takes 30 ms of 100 or 80."""
    rows = [
        SweepRow(
            sweep="mine",
            provenance="public",
            device="board",
            workload=name,
            task=task,
            batch_size=size,
            gpu_mhz=clock,
            time_s=time_s,
            power_w=power_w,
            power_scope="module",
        )
        for name, task, size, watts, seconds in (
            ("net", "train", 16, train_w, (0.03, 0.02)),
            ("served", "infer", 1, infer_w, (0.02, 0.01)),
        )
        for clock, power_w, time_s in zip((500, 900), watts, seconds, strict=True)
    ]
    write_mode_tables(path, tables_of(rows))


def test_a_plan_says_what_is_trained_beside_random_arrivals(tmp_path, capsys):
    one_knob(tmp_path / "modes.csv")
    words = ["--max-latency-ms", "200", "--max-power-w", "20"]
    assert main([*ASK, *words, "--tables", str(tmp_path / "modes.csv")]) == 0
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("training ")]
    steady, _, random = line.partition("with steady arrivals")
    assert float(steady.split()[1]) == 40  # four of 20 ms in the 90 ms that are left of 100
    at_random = float(random.partition("; ")[2].partition("/s")[0])
    assert 0 < at_random < 40
    plan = scheduler.Plan(10, 1, None, QUEUE)
    times = arrivals("poisson", 10, 500, 1)  # other ones
    assert run_as(plan, 0.01, 0.02, times, 500).throughput_per_s == pytest.approx(
        at_random, rel=0.05
    )


@pytest.mark.parametrize("solver", ["gain", "exhaustive"])
def test_where_training_breaks_the_budget_serving_alone_is_the_plan(tmp_path, capsys, solver):
    one_knob(tmp_path / "modes.csv", train_w=(25.0, 29.0))
    words = ["--max-latency-ms", "200", "--max-power-w", "20", "--solver", solver]
    assert main([*ASK, *words, "--tables", str(tmp_path / "modes.csv")]) == 0
    out = capsys.readouterr().out
    assert "training    none: it would draw 29 W" in out
    assert "power       12 W" in out
    assert "to train at all  at least 25 W" in out
