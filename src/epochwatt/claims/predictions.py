"""Errors of the paper's prediction models, for predicates (`number_sources.EpochTable`).

Read from results/models/{backend}/, or worked out again from epochs in closed form.
"""

import csv
from collections.abc import Iterable, Mapping
from typing import Any

from epochwatt.claims.number_sources import Row
from epochwatt.claims.tolerances import Terms
from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.data.workloads import benches, workloads_of
from epochwatt.prediction.evaluation.paper_procedure import outcome
from epochwatt.prediction.models.model_store import ENERGY, TIME
from epochwatt.prediction.selection.choose_power_modes import PAPER, RAW
from epochwatt.records import files
from epochwatt.twin.calibration.closed_form_rows import runs_of
from epochwatt.twin.inputs.clocks import Modes

Predictions = dict[tuple[str, str, str, str], Any]

METRIC = {TIME: "time_mape_pct", ENERGY: "energy_mape_pct"}
BEST = "best_mode_set"


def read_predictions(folder: str, terms: Terms) -> Predictions:
    """Return (metric, device, network, mode) -> value, of the runs that predicates mean.

    Of several benches that they may mean a measured one goes before one of the 2023 scripts, and
    then the first.

    Parameters
    ----------
    folder : results/models/{backend}
    """
    found, meant = Predictions(), set()
    known = files.read_json(f"{folder}/power_modes.json")["benches"]
    for place, bench in sorted(enumerate(known), key=lambda of: bool(of[1]["about"]["imported"])):
        best = (BEST, bench["about"]["device"], "", "")
        data = [{**bench["about"], **of} for of in bench["data"].values()]
        if bench["choices"] and best not in found and all(_is_meant(of, terms) for of in data):
            found[best] = "".join(bench["choices"][RAW]["modes"])
            meant.add(str(place))
    with open(f"{folder}/predictions.csv", newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            if row["fit"] == RAW and row["bench"] in meant:
                of = (row["device"], row["model"], row["power_mode"])
                found[METRIC[row["target"]], *of] = float(row["mape_pct"])
    return found


def predicted(rows: Iterable[Row], modes: Modes, terms: Terms) -> Predictions:
    """Return the same, worked out from rows of `epochs.csv`.

    Parameters
    ----------
    modes : device -> mode -> its clocks
    """
    meant = [
        run
        for run in runs_of(rows)
        if run[0]["dvfs"] == "off" and run[0]["power_mode"] in modes.get(run[0]["device"], {})
        if _is_meant(run[0], terms)
    ]
    numbers = {
        run[0]["run"]: [float(part) for part in modes[run[0]["device"]][run[0]["power_mode"]]]
        for run in meant
    }
    found: Predictions = {}
    for bench in sorted(
        benches(workloads_of(meant, numbers)), key=lambda of: bool(of.about["imported"])
    ):
        device = str(bench.about["device"])
        if (BEST, device, "", "") in found:
            continue
        try:
            told = outcome(bench)
        except PredictionError:
            continue  # what is not predicted cannot be judged, and the verdict says so
        found[BEST, device, "", ""] = "".join(told.best)
        for (target, model, mode), mape_pct in told.mape_pct.items():
            found[METRIC[target], device, model, mode] = mape_pct
    return found


def _is_meant(about: Mapping[str, Any], terms: Terms) -> bool:
    """Return whether predicates of a prediction mean these runs: of the paper, by its defaults."""
    wanted = terms.factors(str(about["device"]), "", {})
    same = ("instance", "storage", "num_workers", "batch_size", "cache_policy")
    alike = all(str(about[k]) == str(wanted[k]) for k in same)
    as_large = float(about["dataset_scale"]) == float(wanted["dataset_scale"])
    return about["setup"] == PAPER and alike and as_large
