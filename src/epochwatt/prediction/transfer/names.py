"""Words of results/powertrain/: the columns of its tables, groups, and baselines."""

from epochwatt.columns import CLOCKS

NO_REFERENCE = "none"  # in paths, in place of a reference's name

_TRIAL = (
    *("provenance", "group", "reference", "workload", "device", "method", "n_profiled", "draw"),
)
_PREDICTED = ("predicted_time_s", "predicted_power_w")
_OBSERVED = ("time_s", "power_w")

# A row per method, target, number of profiled modes and draw: absolute errors, % of the observed
# value, over all modes that were not profiled; of `powertrain_all`, over all it learned from.
# `minutes`: of 40 mini-batches in each profiled mode; empty where the work is no mini-batch.
ERRORS = (*_TRIAL, "target", "n_judged", "median_pct", "p90_pct", "mape_pct", "minutes")
# A row per power limit: the fastest mode by prediction within it. Without a mode: no answer.
CHOICES = (
    *(*_TRIAL, "limit_w", *CLOCKS, *_PREDICTED, *_OBSERVED),
    *("best_time_s", "best_power_w", "penalty_pct", "over_w"),
)
# A row per mode that no other beats in both predicted time and predicted power.
FRONTS = (*_TRIAL, *CLOCKS, *_PREDICTED, *_OBSERVED)
# A row per draw, over all limits: see `limits.Judgement`.
PENALTIES = (
    *(*_TRIAL, "n_limits", "n_answered", "penalty_pct"),
    *("over_pct", "over_1w_pct", "excess_area_pct"),
)
# From which workload to which: median and quartiles of the draws' `mape_pct`, and the draw that
# the paper reports (`collect.reported`).
TRANSFER = (
    *("provenance", "device", "reference", "workload", "method", "n_profiled", "target"),
    *("n_draws", "mape_pct", "low_pct", "high_pct", "reported_pct"),
)
# One limit for one workload, in whole epochs: the optimum, and each method's reported draw.
EXAMPLE = (
    *("provenance", "workload", "device", "limit_w", "minibatches", "method", "n_profiled"),
    *("draw", *CLOCKS, "predicted_epoch_s", "predicted_power_w", "epoch_s", "power_w"),
    *("penalty_pct", "over_w"),
)
TABLES = {
    "errors": ERRORS,
    "choices": CHOICES,
    "fronts": FRONTS,
    "penalties": PENALTIES,
    "transfer": TRANSFER,
    "example": EXAMPLE,
}
OF_JOBS = ("errors", "choices", "fronts", "penalties")  # what a job writes; the rest is made of it

OBSERVED = "observed"  # of fronts, and the optimum of the example: no method
POWERTRAIN_ALL, MAXN = "powertrain_all", "maxn"
RANDOM_FRONT, STOCK_MODES = "random_front", "stock_modes"
BASELINES = {  # what is judged beside the registry -> title
    POWERTRAIN_ALL: "PowerTrain's network on all modes",
    MAXN: "MAXN",
    STOCK_MODES: "the board's preset modes",
    RANDOM_FRONT: "best of the profiled modes",
}
WITHOUT_DRAWS = (POWERTRAIN_ALL, MAXN, STOCK_MODES)
