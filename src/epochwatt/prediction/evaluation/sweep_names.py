"""Words of results/sweeps/scores.csv: its columns, statistics, and how modes are chosen."""

N_PROFILED = (4, 10, 25, 50, 100)  # modes that methods learn from
RANDOM, DESIGNED = "random", "designed"  # how they are chosen

PROFILED = "best profiled mode"  # no method: the fastest of the profiled modes within the budget
RECOMMENDED = "recommended mode"  # in place of a target
OVER_W, OVER_SHARE = 1.0, 0.05  # a budget that is broken by more than that

MEDIAN, P90 = "median error, %", "90th percentile of errors, %"
TO_PAPER, TO_BEST = "median over the paper's", "median over the best method's"
HELD, WIDTH = "held by intervals of 90 %, %", "width of intervals, %"
BY_WORKLOAD = "median error by workload, %"
REGRET, REGRET_P90 = "regret in time, %", "90th percentile of regret, %"
BROKEN = "broken budgets, %"
BROKEN_W = f"broken by more than {OVER_W:g} W, %"
BROKEN_SHARE = f"broken by more than {100 * OVER_SHARE:g} %, %"
NO_ANSWER, LEFT_OUT = "no answer, %", "left out"

COLUMNS = (
    *("sweep", "provenance", "device", "workload", "n_workloads", "n_modes", "knobs"),
    *("power_scope", "learned_from", "n_profiled", "n_draws", "method", "target", "statistic"),
    *("value", "low", "high", "note"),
)
