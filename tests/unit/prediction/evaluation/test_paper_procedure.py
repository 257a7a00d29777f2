"""The paper's procedure without files says what the files say."""

import numpy as np
import pytest

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.data.workloads import ProfiledWorkload, board_groups, read_workloads
from epochwatt.prediction.evaluation.paper_procedure import paper_procedure
from epochwatt.prediction.evaluation.score_predictions import load_stored, predict_workload
from epochwatt.prediction.registry import load_methods


@pytest.fixture
def noisy(planted):
    """A linear world whose epochs are off by some per cent, each by its own."""
    paths, modes = planted(n_later=8)  # more than are meant
    for n, path in enumerate(paths):
        with open(path, encoding="utf-8") as handle:
            head, *rows = handle.read().splitlines()
        place = head.split(",").index("e2e_s")
        rng = np.random.default_rng(n)
        for k, row in enumerate(rows):
            cells = row.split(",")
            cells[place] = str(float(cells[place]) * (1 + 0.03 * rng.normal()))
            rows[k] = ",".join(cells)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write("\n".join([head, *rows, ""]))
    return paths, modes


def test_best_modes_and_errors_are_those_of_the_files(noisy, models):
    paths, modes = noisy
    workloads: list[ProfiledWorkload] = read_workloads(paths, modes)
    found = paper_procedure(board_groups(workloads)[0])
    stored, methods = load_stored(str(models(paths, modes))), load_methods()
    told = {
        (row["target"], row["model"], row["power_mode"]): row
        for of in workloads
        for row in predict_workload(of, stored, methods).to_dict("records")
        if (row["method"], row["learned_from"]) == ("paper", "paper")
    }
    assert found.mape_pct == pytest.approx({key: row["mape_pct"] for key, row in told.items()})
    assert len(found.mape_pct) == 80
    trained = [mode for (target, network, mode), row in told.items()
               if (target, network) == ("time_s", "lenet") and row["in_training_set"]]  # fmt: skip
    assert found.best == tuple(sorted(trained))


def test_without_energy_only_times_are_judged(planted):
    (group,) = board_groups(read_workloads(*planted(energy=False)))
    assert {target for target, *_ in paper_procedure(group).mape_pct} == {"time_s"}


def test_no_search_is_refused(planted):
    (group,) = board_groups(read_workloads(*planted(("lenet",))))
    with pytest.raises(PredictionError, match="a search needs 2 networks"):
        paper_procedure(group)
