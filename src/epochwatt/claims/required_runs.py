"""Determine which runs the claims need, from the numbers that their predicates ask for."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from epochwatt.claims.evaluate import Claim, load_claims, reads_of
from epochwatt.claims.number_sources import BEST, CLOCKS, METRICS, PREDICTED, key_of
from epochwatt.claims.tolerances import Terms, load_terms
from epochwatt.published.numbers import PAPERS
from epochwatt.study.runs import Run, RunTable


class Questions(NamedTuple):
    """Runs and numbers that predicates ask for; runs by `number_sources.key_of`."""

    runs: set[tuple[Any, ...]]  # those that predictions are made from among them
    clocks: set[tuple[Any, ...]]  # those whose clocks are asked for, which are not in epochs.csv
    predicted_for: set[str]  # devices


def questions_of(claims: Iterable[Claim], terms: Terms) -> Questions:
    """List the runs, clocks and devices that predicates ask for; errors as of `evaluate`."""
    reads = reads_of(claims, terms)
    predicted_for = {r.factors["device"] for r in reads if r.metric in (*PREDICTED, BEST)}
    learned = {
        key_of({"setup": PAPERS[0], **terms.factors(device, model, {"pm": mode})})
        for device in predicted_for
        for model in terms.sets["MODELS4"]
        for mode in terms.sets["COMMON_MODES"]
    }
    return Questions(
        {key_of(read.factors) for read in reads if read.metric in METRICS} | learned,
        {key_of(read.factors) for read in reads if read.metric in CLOCKS},
        predicted_for,
    )


class ClaimInputs(NamedTuple):
    """The runs, records and networks of a run table that the claims need."""

    # whose epochs they ask for: of simulated runs those that a predicate names; of measured ones
    # all, since a general form is judged on whatever a board has
    runs: list[Run]
    records: dict[str, str]  # run -> folder of its records, of runs whose clocks are asked for
    models: list[str]  # networks of the simulated runs
    backends: list[str]  # of all runs of the table
    power_modes: dict[str, dict[str, dict[str, float]]]  # device -> mode -> settings


def needed(table: RunTable, root: Path = Path()) -> ClaimInputs:
    """Select from a run table what the claims need of it.

    Raises ConfigError: config/claims.yaml or a predicate is wrong.
    """
    questions = questions_of(load_claims(root), load_terms(root))
    runs = [
        r for r in table.runs.values() if not r.is_simulated or key_of(r.factors) in questions.runs
    ]
    modes: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    for run in runs:
        f = run.factors
        modes[f["device"]][f["power_mode"]] = f.get("power_mode_settings", {})
    return ClaimInputs(
        runs,
        {run.id: run.records for run in runs if key_of(run.factors) in questions.clocks},
        sorted({run.factors["model"] for run in runs if run.is_simulated}),
        sorted({run.factors["backend"] for run in table.runs.values()}),
        dict(modes),
    )
