"""Determine which runs the claims need, by a source that has no data and logs every question."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from epochwatt.claims.evaluate import Claim, evaluate, load_claims
from epochwatt.claims.number_sources import CLOCKS, Row, key_of
from epochwatt.claims.tolerances import Terms, load_terms
from epochwatt.claims.verdict import NotEvaluable
from epochwatt.published.numbers import PAPERS
from epochwatt.study.runs import Run, RunTable


class QuestionLog:
    """A source without data.

    Attributes
    ----------
    runs : keys of the runs that were asked for (`number_sources.key_of`)
    clocks : those of them whose clocks were asked for, which are not in epochs.csv
    predicted_for : devices that a prediction was asked of
    """

    def __init__(self) -> None:
        self.inputs: set[str] = set()
        self.runs: set[tuple[Any, ...]] = set()
        self.clocks: set[tuple[Any, ...]] = set()
        self.predicted_for: set[str] = set()

    def number(self, metric: str, factors: Row, epoch: str) -> float:
        """Remember the run."""
        self.runs.add(key_of(factors))
        if metric in CLOCKS:
            self.clocks.add(key_of(factors))
        raise NotEvaluable("data")

    def series(self, metric: str, factors: Row, n_epochs: int) -> list[float]:
        """Remember the run."""
        return [self.number(metric, factors, "all")]

    def idle_w(self, factors: Row, state: str, scope: str) -> float:
        """There are no idle powers."""
        raise NotEvaluable("data")

    def predicted(self, metric: str, device: str, model: str, power_mode: str) -> Any:
        """Remember the device."""
        self.predicted_for.add(device)
        raise NotEvaluable("data")

    def stacks(self, setup: str, device: str) -> list[str]:
        """There are no software stacks."""
        raise NotEvaluable("data")


def questions_of(claims: Iterable[Claim], terms: Terms) -> QuestionLog:
    """Return what the predicates ask for, and the runs that predictions are made from.

    Raises ConfigError as `evaluate`.
    """
    source = QuestionLog()
    evaluate(claims, source, terms)
    source.runs |= {
        key_of({"setup": PAPERS[0], **terms.factors(device, model, {"pm": mode})})
        for device in source.predicted_for
        for model in terms.sets["MODELS4"]
        for mode in terms.sets["COMMON_MODES"]
    }
    return source


class ClaimInputs(NamedTuple):
    """The runs, records and networks of a run table that the claims need."""

    # whose epochs they ask for: of simulated runs those that a predicate names; of measured ones
    # all, since a general form is judged on whatever a board has (`boards`)
    runs: list[Run]
    records: dict[str, str]  # run -> folder of its records, of runs whose clocks are asked for
    models: list[str]  # networks of the simulated runs
    backends: list[str]  # of all runs of the table
    power_modes: dict[str, dict[str, dict[str, float]]]  # device -> mode -> settings


def needed(table: RunTable, root: Path = Path()) -> ClaimInputs:
    """Return what the claims need of the selected studies of a checkout.

    Raises ConfigError: config/claims.yaml or a predicate is wrong.
    """
    questions = questions_of(load_claims(root), load_terms(root))
    runs = [
        r for r in table.runs.values() if not r.is_simulated or key_of(r.factors) in questions.runs
    ]
    clocked = [r for r in runs if key_of(r.factors) in questions.clocks]
    modes: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    for run in runs:
        f = run.factors
        modes[f["device"]][f["power_mode"]] = f.get("power_mode_settings", {})
    return ClaimInputs(
        runs,
        {run.id: run.records for run in clocked},
        sorted({run.factors["model"] for run in runs if run.is_simulated}),
        sorted({run.factors["backend"] for run in table.runs.values()}),
        dict(modes),
    )
