"""Verdicts on the claims of the take-aways: holds, does not hold, or cannot be evaluated."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import CodeType
from typing import Any, Literal, NamedTuple

from epochwatt.claims import expression, functions
from epochwatt.claims.functions import Front, collected
from epochwatt.claims.number_sources import BEST, HIPCW, METRICS, PREDICTED, Source
from epochwatt.claims.tolerances import Terms
from epochwatt.claims.verdict import Comparison, Judgement, NotEvaluable, Percentage
from epochwatt.errors import ConfigError
from epochwatt.tables import read_table

TAKEAWAYS = "config/published/takeaways.csv"
Status = Literal["holds", "does_not_hold", "not_evaluable"]


class Claim(NamedTuple):
    """One testable claim of a take-away: a row of config/published/takeaways.csv."""

    id: str
    takeaway: str
    paper: str
    section: str
    role: str
    claim: str
    predicate: str
    general_form: str
    tolerances: str
    threshold_source: str
    devices: str
    models: str
    note: str

    @property
    def fold(self) -> str:
        """Take-away in config/twin/folds.csv whose numbers are left out to judge it held out."""
        number = self.takeaway.partition("-")[0]
        return f"H-{number}" if self.paper == HIPCW else number


class Verdict(NamedTuple):
    """The outcome of judging a claim on a table."""

    claim: Claim
    board: str  # of the general form: setup, device, instance; "" for the papers' own form
    status: Status
    margin_pct: float | None  # of judgement.py: positive where it holds
    comparisons: tuple[Comparison, ...]  # that decide it: all that fail, else the nearest to it
    missing: tuple[str, ...]  # of `not_evaluable`
    inputs: tuple[str, ...]  # ids of the runs, or of the printed values, that were read
    n_cases: int  # judged: 1, or the settings in which a board has the runs of a general form
    made: tuple[Comparison, ...] = ()  # all of it, also where runs of others are missing

    @property
    def sides(self) -> str:
        """The deciding comparisons in words."""
        return "; ".join(map(str, self.comparisons))


def load_claims(root: Path = Path()) -> list[Claim]:
    """Read config/published/takeaways.csv below `root`, the checkout.

    Raises ConfigError: the file is missing, its columns differ, or an id is there twice.
    """
    claims: dict[str, Claim] = {}
    for line, row in read_table(root / TAKEAWAYS):
        where = f"{TAKEAWAYS}, line {line}"
        if tuple(row) != Claim._fields:
            raise ConfigError("other columns", where=where, found=row, allowed=Claim._fields)
        if row["id"] in claims:
            raise ConfigError(f"id {row['id']} is there twice", where=where)
        claims[row["id"]] = Claim(**row)
    if not claims:
        raise ConfigError("no claims", where=TAKEAWAYS, allowed=Claim._fields)
    return list(claims.values())


def evaluate(claims: Iterable[Claim], source: Source, terms: Terms) -> list[Verdict]:
    """Return what a source says about each claim, in order.

    Raises ConfigError: a predicate is not allowed or cannot be computed; says where.

    Parameters
    ----------
    claims : of config/published/takeaways.csv
    source : epochs of one backend, or the printed values; runs of other papers are not looked at
    terms : config/claims.yaml
    """
    return [_evaluated(claim, source, terms) for claim in claims]


def _evaluated(claim: Claim, source: Source, terms: Terms) -> Verdict:
    log = expression.Log()
    names = namespace(source, claim.paper, terms, log)
    source.inputs.clear()
    judgement, missing = expression.judge(parsed(claim, "predicate", names), names, log)
    made = tuple(log.comparisons)
    return verdict(claim, "", judgement, missing, source.inputs)._replace(made=made)


def parsed(
    claim: Claim, column: Literal["predicate", "general_form"], names: Mapping[str, Any]
) -> CodeType:
    """Return a claim's expression, checked; ConfigError says claim, column and character."""
    where = f"{TAKEAWAYS}, {claim.id}, {column}"
    return expression.parse(getattr(claim, column), where, names)


def verdict(
    claim: Claim,
    board: str,
    judgement: Judgement | None,
    missing: tuple[str, ...],
    inputs: Iterable[str],
    n_cases: int = 1,
) -> Verdict:
    """Return the verdict that follows from a judgement, or from what is missing for one."""
    read = tuple(sorted(inputs))
    if judgement is None:
        return Verdict(claim, board, "not_evaluable", None, (), missing, read, 0)
    status: Status = "holds" if judgement.holds else "does_not_hold"
    margin, comparisons = judgement.margin_pct, judgement.comparisons
    return Verdict(claim, board, status, margin, comparisons, (), read, n_cases)


def namespace(
    source: Source, paper: str, terms: Terms, log: expression.Log | None = None
) -> dict[str, Any]:
    """Return every name that a predicate about one paper may use, with its meaning.

    Parameters
    ----------
    log : gets what is read of the source
    """
    data = _Data(source, paper, terms, log or expression.Log())
    return {
        **terms.constants(),
        **functions.PLAIN,
        **functions.tolerant(terms.numbers),
        **{metric: data.metric(metric) for metric in METRICS},
        **{metric: data.predicted(metric) for metric in PREDICTED},
        "epoch_values": data.epoch_values,
        "idle_power_w": data.idle_power_w,
        "baseload_wh": data.baseload_wh,
        "pareto": data.pareto,
        "best_mode_set": data.best_mode_set,
        "software_stack": data.software_stack,
        "software_spread_pct": data.software_spread_pct,
    }


class _Data:
    """The functions of a predicate that look at data."""

    def __init__(self, source: Source, paper: str, terms: Terms, log: expression.Log) -> None:
        self.source = source
        self.paper = paper
        self.terms = terms
        self.log = log

    def factors(
        self, metric: str, device: str, model: str, keys: dict[str, Any], epoch: str = "1+"
    ) -> dict[str, Any]:
        """Return the factors of a run that is read, and log them with the metric and epochs."""
        factors = {"setup": self.paper, **self.terms.factors(device, model, keys)}
        self.log.reads.append((metric, {**factors, "epoch": epoch}))
        return factors

    def metric(self, name: str) -> Callable[..., float]:
        """Return the function of one metric: (device, model, epoch and keys) -> number."""

        def number(device: str, model: str, epoch: str = "1+", **keys: Any) -> float:
            return self.source.number(name, self.factors(name, device, model, keys, epoch), epoch)

        return number

    def predicted(self, name: str) -> Callable[..., Percentage]:
        """Return the function of one error of a prediction: (device, model, pm) -> %."""

        def number(device: str, model: str, pm: str) -> Percentage:
            self.factors(name, device, model, {"pm": pm})
            return Percentage(self.source.predicted(name, device, model, pm))

        return number

    def epoch_values(self, metric: str, device: str, model: str, instance: str) -> list[float]:
        """Return a metric of each epoch of one unit's 15 h run."""
        factors = self.factors(metric, device, model, {"instance": instance})
        return self.source.series(metric, factors, self.terms.long_run_epochs[device])

    def idle_power_w(self, device: str, state: str, scope: str, pm: str = "") -> float:
        """Return the power of an idle board; by default in its default mode."""
        factors = self.factors("idle_power_w", device, "", {"pm": pm} if pm else {}, "")
        self.log.reads[-1][1].update(state=state)  # type: ignore[attr-defined]
        return self.source.idle_w(factors, state, scope)

    def baseload_wh(self, device: str, model: str, **keys: Any) -> float:
        """Return idle power (i) of the mode, by the module's sensors, times the epoch's time."""
        factors = self.factors("baseload_wh", device, model, keys)
        idle_w = self.source.idle_w(factors, "i", "module")
        return idle_w * self.source.number("e2e_s", factors, "1+") / 3600.0

    def pareto(self, device: str, model: str) -> Front:
        """Return the front over the modes that the papers run the model in."""
        modes = self.terms.sets["MODES"][model]
        energy_wh = collected(modes, lambda p: self.metric("energy_wh")(device, model, pm=p))
        return Front(energy_wh, {p: self.metric("e2e_s")(device, model, pm=p) for p in modes})

    def best_mode_set(self, device: str) -> str:
        """Return the modes that the time prediction learns from best, as letters in order."""
        self.factors(BEST, device, "", {})
        return str(self.source.predicted(BEST, device, "", ""))

    def software_stack(self, device: str) -> list[str]:
        """Return the software stack of each run of a device."""
        return self.source.stacks(self.paper, device)

    @staticmethod
    def software_spread_pct() -> Percentage:
        """The paper mentions other software stacks, but no run with them."""
        raise NotEvaluable("runs with other software stacks; the paper describes none")
