"""Judge simulated claims again: held out from the fit, and within the spread of parameters.

In closed form (`twin/epoch_rows.py`), in which a whole grid takes milliseconds,
with other parameters:

* those of the fit that saw neither the take-away nor what gives it away
  (`twin/refits.py`); of a take-away that prints no number, those of the fit that saw no
  number of the runs its claims read;
* draws around the fitted ones, as they spread over the folds: a claim that turns is fragile;
* draws of the assumed ones, each within a factor either way: a claim that turns rests on them.

Each draw of fitted ones has its own spread between epochs, so that a tie is recognised as one.

Where the closed form does not say what the simulated epochs say, it cannot judge a claim.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from epochwatt.claims.claims_table import NOT_HELD_OUT
from epochwatt.claims.evaluate import Claim, Status, Verdict, evaluate
from epochwatt.claims.number_sources import EpochTable, Row, closed_form_clocks, key_of
from epochwatt.claims.predictions import predicted
from epochwatt.claims.required_runs import questions_of
from epochwatt.claims.tolerances import Terms
from epochwatt.twin.epoch_rows import epoch_rows_of_each, idle_rows, runs_of
from epochwatt.twin.parameters import Parameters
from epochwatt.twin.refits import Refits, held_out, parameter_draws
from epochwatt.twin.twin import Twin

UNTOUCHED = "not held out: no fitted number is of what its take-away says or its claims read"
HIPCW = "H-"  # begins the folds of the paper of which no shared parameter has seen a number
N_DRAWS, SEED = 20, 0
TURNED_PCT = 5.0  # of the draws: a claim that turns in more of them does not stand fast
ASSUMED_FACTOR = 1.5  # how many times more or less an assumed number may be
BY_HAND = "noise"  # group of parameters that is no part of any mechanism
N_DRAWN_EPOCHS = 3  # the first and two later ones


class Simulation(NamedTuple):
    """Simulated runs and what they come of."""

    epochs: Sequence[Row]  # their rows of `epochs.csv`
    idle: Sequence[Row]  # simulated idle powers, rows of `idle.csv`
    twin: Twin
    refits: Refits  # fitted values by take-away held out, of which the spread is
    # the same of take-aways that claims alone judge, and what set-ups have of their own without
    # each of their take-aways
    claim_refits: Refits


class Rejudgement(NamedTuple):
    """The second judgement of a claim."""

    closed_form: Status  # with the parameters as they are
    held_out: str  # status on the twin refitted without the take-away, or `NOT_HELD_OUT`
    # share of the draws of fitted parameters in which it holds; None: it cannot be evaluated
    holding_pct: float | None
    turned_pct: float | None  # share of the draws of assumed parameters that turn it

    @property
    def is_fragile(self) -> bool:
        """Whether it turns within the spread of the fitted parameters."""
        never_turned_pct = 100.0 if self.closed_form == "holds" else 0.0
        return self.holding_pct not in (None, never_turned_pct)

    @property
    def rests_on_assumed(self) -> bool:
        """Whether it turns with assumed parameters."""
        return self.turned_pct is not None and self.turned_pct > TURNED_PCT


def rejudge(
    verdicts: Iterable[Verdict], simulation: Simulation, terms: Terms, n_draws: int = N_DRAWS
) -> dict[str, Rejudgement]:
    """Judge simulated claims again in closed form: held out, and on drawn parameters; by claim id.

    Where the closed form has another status than the simulated epochs, `held_out` is not evaluable.
    """
    by_id = {v.claim.id: v for v in verdicts}
    claims = [v.claim for v in by_id.values()]
    p, refits = simulation.twin.parameters, simulation.refits
    closed = _ClosedForm(claims, simulation, terms)
    (unchanged,) = closed.statuses([p])
    seeds = range(1, n_draws + 1)
    fitted = closed.statuses(parameter_draws(p, refits, n_draws, SEED), N_DRAWN_EPOCHS, seeds)
    # the first is what draws of assumed parameters turn: as they are, on as few epochs
    base, *assumed = closed.statuses([p, *assumed_draws(p, n_draws, SEED)], N_DRAWN_EPOCHS)
    without = _held_out(claims, simulation, terms)
    judgements = {}
    for name, verdict in by_id.items():
        status = unchanged[name]
        # no parameter has seen a number of HiPCW, so that all its claims are held out as they are
        default = status if verdict.claim.fold.startswith(HIPCW) else NOT_HELD_OUT
        turned = {"holds", "does_not_hold"} - {base[name]}
        judgements[name] = Rejudgement(
            status,
            without.get(name, default) if status == verdict.status else "not_evaluable",
            _share_pct([statuses[name] for statuses in fitted], {"holds"}),
            _share_pct([statuses[name] for statuses in assumed], turned),
        )
    return judgements


def _share_pct(statuses: Sequence[Status], counted: set[str]) -> float | None:
    """Return the share of statuses in `counted`, %; None where one is not evaluable."""
    if not statuses or "not_evaluable" in statuses:
        return None
    return 100.0 * sum(status in counted for status in statuses) / len(statuses)


def assumed_draws(parameters: Parameters, n: int, seed: int) -> list[Parameters]:
    """Draw the assumed parameters within `ASSUMED_FACTOR` of their values, n times.

    A share stays at most 1. Noise put in by hand stays as it is.
    """
    described = parameters.described
    names = [k for k, p in described.items() if p.source == "assumed" and p.group != BY_HAND]
    factors = ASSUMED_FACTOR ** np.random.default_rng(seed).uniform(-1, 1, (n, len(names)))
    is_share = {k: not described[k].unit and described[k].value <= 1 for k in names}
    most = {k: 1.0 if is_share[k] else np.inf for k in names}
    return [
        parameters.moved(
            {k: min(parameters[k] * f, most[k]) for k, f in zip(names, row, strict=True)}
        )
        for row in factors
    ]


def _held_out(claims: Iterable[Claim], simulation: Simulation, terms: Terms) -> dict[str, Status]:
    """Judge claims on the twin refitted without their take-away; statuses by claim id.

    Claims whose fold has no refit are left out.
    """
    statuses: dict[str, Status] = {}
    refits = {**simulation.refits, **simulation.claim_refits}
    by_fold: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_fold[claim.fold].append(claim)
    for fold in by_fold.keys() & refits.keys():
        p = held_out(simulation.twin.parameters, refits, fold)
        statuses |= _ClosedForm(by_fold[fold], simulation, terms).statuses([p])[0]
    return statuses


class _ClosedForm:
    """Claims on the simulated runs that they ask for, in closed form."""

    def __init__(self, claims: Sequence[Claim], simulation: Simulation, terms: Terms) -> None:
        self.claims, self.simulation, self.terms = claims, simulation, terms
        self.questions = questions_of(claims, terms)
        runs = runs_of(simulation.epochs)
        self.runs = [run for run in runs if key_of(run[0]) in self.questions.runs]
        self.top_mhz = {
            run[0]["run"]: simulation.twin.clocks(run[0]["device"], run[0]["power_mode"])._asdict()
            for run in self.runs
            if key_of(run[0]) in self.questions.clocks
        }

    def statuses(
        self,
        draws: Sequence[Parameters],
        n_epochs: int | None = None,
        seeds: Iterable[int] | None = None,
    ) -> list[dict[str, Status]]:
        """Judge the claims on each draw of parameters; a dict of statuses by claim id for each.

        `n_epochs`: first epochs of each run to use; None: all
        `seeds`: of the spread between epochs, one for each draw; None: the same for all
        """
        twin, judged = self.simulation.twin, []
        runs = [run[:n_epochs] for run in self.runs]
        tables = epoch_rows_of_each(runs, twin, draws, seeds or [0] * len(draws))
        for rows, p in zip(tables, draws, strict=True):
            for row in rows:
                if row["run"] in self.top_mhz:
                    row |= closed_form_clocks(row, self.top_mhz[row["run"]])
            asked = self.questions.predicted_for
            predictions = predicted(rows, twin.modes, self.terms) if asked else {}
            table = EpochTable(rows, idle_rows(self.simulation.idle, twin, p), predictions)
            verdicts = evaluate(self.claims, table, self.terms)
            judged.append({v.claim.id: v.status for v in verdicts})
        return judged
