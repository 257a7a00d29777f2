"""The jobs that fit models to what was run: epoch_time.json and epoch_energy.json of a backend.

Of each workload: the paper's model of time and, at the same profiling cost (epochs 1 and 2 of four
modes), others beside it; and the physical models of all modes, which `recommend` asks, of power as
a meter has it, where the others take the papers' energy. What cannot be fitted is None, and
`missing` says why.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from epochwatt.prediction.data.modes import Mode, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.data.workloads import Workload, benches, read_workloads
from epochwatt.prediction.models.linear_model import FittedModel, from_json
from epochwatt.prediction.models.model_store import SCHEMA_VERSION, read_models
from epochwatt.prediction.models.paper_energy import fit_paper_energy
from epochwatt.prediction.models.paper_time import fit_paper_time
from epochwatt.prediction.models.physical import fit_log_time, fit_physical_time, fit_power
from epochwatt.prediction.selection.choose_power_modes import (
    AS_PUBLISHED,
    DESIGNED,
    RAW,
    STANDARDISED,
    named_modes,
)
from epochwatt.prediction.selection.paper_subset_search import N_EPOCHS
from epochwatt.records import files

Fitter = Callable[[Observations], FittedModel]
Told = dict[str, Any]  # JSON data

PHYSICAL, PHYSICAL_DESIGNED, LEFT_OUT = "physical", "physical_designed", "paper_left_out"
PUBLISHED_MODES = "paper_published_modes"
TIME_FITTERS: dict[str, Fitter] = {
    RAW: fit_paper_time,
    PUBLISHED_MODES: fit_paper_time,
    LEFT_OUT: fit_paper_time,
    STANDARDISED: partial(fit_paper_time, standardise=True),
    "log": fit_log_time,
    PHYSICAL: fit_physical_time,
    PHYSICAL_DESIGNED: fit_physical_time,
}
POWER_FITTERS: dict[str, Fitter] = {PHYSICAL: fit_power, PHYSICAL_DESIGNED: fit_power}
# the paper's model of energy -> whether all searched modes train it, and whether predicted times do
ENERGY_VARIANTS = {
    "paper": (True, True),
    "paper_observed_time": (True, False),
    "paper_four_modes": (False, True),
    "paper_four_modes_observed_time": (False, False),
}


def training_modes(choices: Mapping[str, Any], network: str) -> dict[str, list[str]]:
    """Return the names of the modes that each fit of a network learns from; none: no choice.

    Parameters
    ----------
    choices : of its bench, as in power_modes.json
    """
    if not choices:
        return {}
    paper = choices[RAW]["modes"]
    published = {PUBLISHED_MODES: choices[AS_PUBLISHED]["modes"]} if AS_PUBLISHED in choices else {}
    return {
        RAW: paper,
        **published,
        LEFT_OUT: choices["left_out"].get(network, choices[RAW])["modes"],
        STANDARDISED: choices[STANDARDISED]["modes"],
        "log": paper,
        PHYSICAL: paper,
        PHYSICAL_DESIGNED: choices[DESIGNED]["modes"],
    }


def fit_epoch_time(
    epochs: Iterable[str], modes: Mapping[str, Sequence[float]], choices: str, path: str
) -> None:
    """Fit models of time to each workload.

    Parameters
    ----------
    epochs : path of the `epochs.csv` of each run
    modes : run -> numbers of its power mode
    choices : power_modes.json
    path : epoch_time.json
    """
    told = [
        {**_about(of), **_fitted(of, TIME_FITTERS, fit_physical_time, chosen)}
        for of, chosen in _with_choices(read_workloads(epochs, modes), choices)
    ]
    files.write_json(path, {"schema_version": SCHEMA_VERSION, "workloads": told})


def fit_epoch_energy(
    epochs: Iterable[str],
    modes: Mapping[str, Sequence[float]],
    choices: str,
    times: str,
    path: str,
) -> None:
    """Fit the paper's model of energy to each bench and a model of power to each workload.

    Parameters
    ----------
    epochs, modes, choices : as of `fit_epoch_time`
    times : epoch_time.json
    path : epoch_energy.json
    """
    workloads = read_workloads(epochs, modes)
    found = read_models(Path(choices))["benches"]
    by_runs = {tuple(of["runs"]): of for of in read_models(Path(times))["workloads"]}
    paper = [
        _paper_energy(own.workloads, chosen, by_runs)
        for own, chosen in zip(benches(workloads), found, strict=True)
    ]
    told = [
        {**_about(of), **_fitted(of, POWER_FITTERS, fit_power, chosen)}
        for of, chosen in _with_choices(workloads, choices)
    ]
    files.write_json(path, {"schema_version": SCHEMA_VERSION, "benches": paper, "workloads": told})


def _with_choices(
    workloads: Sequence[Workload], path: str
) -> Iterator[tuple[Workload, dict[str, dict[str, Mode]]]]:
    """Return each workload with the modes that its fits learn from, by name, bench by bench."""
    found = read_models(Path(path))["benches"]
    for bench, chosen in zip(benches(workloads), found, strict=True):
        known = named_modes(chosen)
        for of in bench.workloads.values():
            names = training_modes(chosen["choices"], of.name)
            yield of, {fit: {name: known[name] for name in own} for fit, own in names.items()}


def _about(of: Workload) -> Told:
    modes = {name: list(mode) for name, mode in of.modes.items()}
    return {"workload": of.factors, "runs": list(of.runs), "modes": modes}


def _fitted(
    of: Workload,
    fitters: Mapping[str, Fitter],
    whole: Fitter,
    chosen: Mapping[str, Mapping[str, Mode]],
) -> Told:
    """Return `fits`, each of the modes that were chosen for it, and the model of `all_modes`."""
    fits, missing = {}, []
    profiled = of.observed.after_first(N_EPOCHS)
    for name, modes in chosen.items():
        if name in fitters:
            try:
                own = profiled.only(modes.values())
                own.need_modes(len(modes))
                fits[name] = {"modes": [*modes], "model": fitters[name](own).to_json()}
            except PredictionError as error:
                missing.append(_reason(of, error))
    try:
        all_modes = whole(of.metered.after_first()).to_json()
    except PredictionError as error:
        all_modes = None
        missing.append(_reason(of, error))
    return {"fits": fits, "all_modes": all_modes, "missing": "; ".join(dict.fromkeys(missing))}


def _reason(of: Workload, error: PredictionError) -> str:
    return of.no_energy or str(error).partition("\n")[0]


def _paper_energy(
    workloads: Mapping[str, Workload], chosen: Told, times: Mapping[tuple[str, ...], Told]
) -> Told:
    """Return the paper's universal model in its readings, over the networks of the search."""
    told: Told = {"about": chosen["about"], "fits": {}, "missing": chosen["missing"]}
    if not chosen["choices"]:
        return told
    own = [workloads[name] for name in chosen["networks"]]
    models = [times[of.runs]["fits"].get(RAW) for of in own]
    if None in models:
        return {**told, "missing": "no model of time of every network"}
    if no_energy := [f"{of.name}: {of.no_energy}" for of in own if of.no_energy]:
        return {**told, "missing": "; ".join(no_energy)}
    paper_times = [from_json(model["model"]) for model in models if model]
    known = named_modes(chosen)
    for name, (whole, predicted) in ENERGY_VARIANTS.items():
        names = sorted(chosen["modes"]) if whole else chosen["choices"][RAW]["modes"]
        wanted = [known[mode] for mode in names]
        rows = [of.observed.after_first(N_EPOCHS).only(wanted) for of in own]
        fit = fit_paper_energy(rows, paper_times if predicted else None)
        told["fits"][name] = {
            "networks": chosen["networks"],
            "modes": names,
            "trained_on": [list(mode) for mode in wanted],
            "trained_on_predicted_time": predicted,
            "coefficients": fit.coefficients.tolist(),  # per core, MHz, MHz, MHz, s
            "intercept_wh": fit.intercept_wh,
        }
    return told
