"""Errors of the paper's prediction models, for predicates (`number_sources.EpochTable`).

Read from results/models/{backend}/, or worked out again from epochs in closed form.
"""

from collections.abc import Iterable
from typing import Any

from epochwatt.board.records import files
from epochwatt.claims.number_sources import BEST, Row
from epochwatt.claims.tolerances import Terms
from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.data.workloads import board_groups, workloads_of
from epochwatt.prediction.evaluation.paper_procedure import paper_procedure
from epochwatt.prediction.names import ENERGY, REFERENCE, SEARCHED, TIME
from epochwatt.prediction.selection.choose_power_modes import PAPER
from epochwatt.tables import read_cells
from epochwatt.twin.boards import Modes
from epochwatt.twin.epoch_rows import runs_of

Predictions = dict[tuple[str, str, str, str], Any]  # (metric, device, network, mode) -> value

METRIC = {TIME: "time_mape_pct", ENERGY: "energy_mape_pct"}


def read_predictions(folder: str, terms: Terms) -> Predictions:
    """Read errors and best modes of the prediction models of `folder`, for the papers' runs.

    Of several board groups of a device one that is measured here goes before one imported from the
    2023 scripts, then the first.
    """
    predictions, meant = Predictions(), set()
    groups = enumerate(files.read_json(f"{folder}/power_modes.json")["board_groups"])
    for number, group in sorted(groups, key=lambda item: bool(item[1]["factors"]["imported"])):
        best = (BEST, group["factors"]["device"], "", "")
        data = [{**group["factors"], **network} for network in group["data"].values()]
        is_new = best not in predictions
        if group["choices"] and is_new and all(_is_meant(factors, terms) for factors in data):
            predictions[best] = "".join(group["choices"][SEARCHED]["modes"])
            meant.add(str(number))
    for row in read_cells(f"{folder}/predictions.csv"):
        is_paper = (row["method"], row["learned_from"]) == (REFERENCE, SEARCHED)
        if is_paper and row["board_group"] in meant:
            key = (row["device"], row["model"], row["power_mode"])
            predictions[METRIC[row["target"]], *key] = float(row["mape_pct"])
    return predictions


def predicted(rows: Iterable[Row], modes: Modes, terms: Terms) -> Predictions:
    """Run the paper's prediction procedure on rows of `epochs.csv`; results as `read_predictions`.

    A group of runs that cannot be predicted is left out. `modes`: device -> mode -> clocks
    """
    meant, numbers = [], {}
    for run in runs_of(rows):
        f = run[0]
        clocks = modes.get(f["device"], {}).get(f["power_mode"])
        if f["dvfs"] == "off" and clocks is not None and _is_meant(f, terms):
            meant.append(run)
            numbers[f["run"]] = [float(part) for part in clocks]
    predictions: Predictions = {}
    groups = board_groups(workloads_of(meant, numbers))
    for group in sorted(groups, key=lambda group: bool(group.factors["imported"])):
        device = str(group.factors["device"])
        if (BEST, device, "", "") in predictions:
            continue
        try:
            outcome = paper_procedure(group)
        except PredictionError:
            continue  # what is not predicted cannot be judged, and the verdict says so
        predictions[BEST, device, "", ""] = "".join(outcome.best)
        for (target, model, mode), mape_pct in outcome.mape_pct.items():
            predictions[METRIC[target], device, model, mode] = mape_pct
    return predictions


def _is_meant(factors: Row, terms: Terms) -> bool:
    """Return whether runs are those of the paper that predictions are claimed of: its defaults."""
    wanted = terms.factors(str(factors["device"]), "", {})
    same = ("instance", "storage", "num_workers", "batch_size", "cache_policy")
    alike = all(str(factors[k]) == str(wanted[k]) for k in same)
    as_large = float(factors["dataset_scale"]) == float(wanted["dataset_scale"])
    return factors["setup"] == PAPER and alike and as_large
