"""The transfer matrix and the example, from rows written by hand."""

import pandas as pd
import pytest

from epochwatt.prediction.transfer.collect import (
    example_choices,
    reported,
    transfer_matrix,
)
from epochwatt.prediction.transfer.config import PowertrainExample

SHARED = {"provenance": "simulated", "group": "g", "device": "d", "workload": "w"}


def records(frame):
    return frame.to_dict("records")


def errors(method="powertrain", reference="r", n=50, mapes=((10, 4), (30, 8), (20, 6))):
    return [
        {**SHARED, "method": method, "reference": reference, "n_profiled": str(n)}
        | {"draw": str(draw), "target": target, "mape_pct": str(mape)}
        for draw, pair in enumerate(mapes)
        for target, mape in zip(("time_s", "power_w"), pair, strict=True)
    ]


def choice(method, draw, time_s, power_w, n=50, reference=""):
    return {
        **SHARED,
        **{"method": method, "reference": reference, "n_profiled": str(n), "draw": str(draw)},
        **{"limit_w": "30", "cores": "4", "predicted_time_s": "0.1", "predicted_power_w": "29"},
        **{"time_s": str(time_s), "power_w": str(power_w), "best_time_s": "0.1"},
        **{"best_power_w": "29.5", "penalty_pct": str(100 * (time_s / 0.1 - 1))},
        "over_w": str(power_w - 30),
    }


def test_the_reported_draw_is_the_sixth_of_ten_by_both_errors():
    ten = {str(draw): float(draw) for draw in range(10)}
    assert reported(pd.DataFrame({"time_s": ten, "power_w": dict.fromkeys(ten, 0.0)})) == "5"
    mapes = {"time_s": [1.0, 9.0, 5.0], "power_w": [9.0, 9.0, 1.0]}
    assert reported(pd.DataFrame(mapes, index=["0", "1", "2"])) == "0"


def test_the_matrix_has_all_draws_of_fifty_modes_and_the_whole_network_on_its_diagonal():
    whole = errors("powertrain_all", "", 4368, [(8, 3)])
    rows = records(
        transfer_matrix(pd.DataFrame(errors() + errors(n=10) + errors("physical", "") + whole))
    )
    assert [(row["reference"], row["target"]) for row in rows] == [
        *(("r", "time_s"), ("r", "power_w"), ("w", "time_s"), ("w", "power_w")),
    ]
    first = rows[0]
    assert (first["mape_pct"], first["low_pct"], first["high_pct"]) == (20, 15, 25)
    assert (first["reported_pct"], first["n_draws"]) == (20, 3)
    assert rows[3]["mape_pct"] == 3


def test_the_example_is_in_whole_epochs_and_says_what_was_broken():
    choices = [
        choice("powertrain", draw, t, w, reference="r")
        for draw, t, w in ((0, 0.1, 30), (1, 0.2, 31), (2, 0.11, 29))
    ]
    choices += [
        choice("maxn", 0, 0.05, 48, n=0),
        choice("powertrain", 0, 9, 9, n=10, reference="r"),
    ]
    example = PowertrainExample(workload="w", limit_w=30, minibatches=1000)
    best, transferred, maxn = records(
        example_choices(pd.DataFrame(errors()), pd.DataFrame(choices), example)
    )
    assert (best["method"], best["epoch_s"], best["power_w"]) == ("observed", 100, 29.5)
    assert (transferred["draw"], transferred["epoch_s"]) == ("2", pytest.approx(110))
    assert transferred["predicted_epoch_s"] == pytest.approx(100)
    assert (maxn["method"], float(maxn["over_w"])) == ("maxn", 18)


def test_no_choice_of_the_example_is_no_row():
    example = PowertrainExample(workload="other", limit_w=30, minibatches=1)
    choices = pd.DataFrame([choice("maxn", 0, 0.05, 48, n=0)])
    assert example_choices(pd.DataFrame(errors()), choices, example).empty
