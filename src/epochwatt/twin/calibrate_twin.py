"""`epochwatt calibrate-twin`: fit the parameters, refit the folds, write `config/twin/`.

Reads `config/published/`, the clocks of `config/devices/` and the counts of the networks. Rule
`validate_twin` evaluates what it has written.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from epochwatt.errors import EpochwattError
from epochwatt.published import folds as published_folds
from epochwatt.published.folds import POWER_MODES, Fold, Judged, Leak, fold_of, groupings
from epochwatt.published.numbers import Fact, Published, load_published
from epochwatt.tables import read_frame
from epochwatt.twin import refits, validation
from epochwatt.twin.calibration import (
    POWER,
    Calibration,
    Problem,
    Say,
    fit_with_evidence,
    log_error,
    misfits,
    with_evidence,
)
from epochwatt.twin.parameters import write_parameters
from epochwatt.twin.power_modes import load_twin_with_modes
from epochwatt.twin.predicted import Reading, load_readings, predict, visible
from epochwatt.twin.twin import Twin

NEAR = "near"  # grouping, and how the names of its folds begin
SOURCE = "source"  # the same of readings of rails, by who measured them
COSINE = 0.95  # of two numbers' sensitivities, from which on they are near
MODELS = ("lenet", "mobilenet", "resnet")  # that published numbers are of which can be simulated
N_WORST = 15
N_RANDOM_OF_ALL = 5  # starts of the fit that everything simulated comes of
PRIORS = "priors.csv"


@dataclass(frozen=True)
class Evidence:
    """The published numbers and the simulated boards that they are held against."""

    folder: Path  # config/twin
    published: Published
    rows: dict[str, Judged]
    folds: dict[str, Fold]  # of the cross-validation, by take-away
    claim_folds: dict[str, Fold]  # of the take-aways that claims alone judge
    # by grouping (`published/folds.py`, `near`), then by name
    other_folds: dict[str, dict[str, Fold]]
    leaks: list[Leak]
    twin: Twin
    facts: list[Fact]  # published numbers that a fit may see, then readings of rails

    @property
    def groups(self) -> dict[str, dict[str, str]]:
        """Grouping -> published id -> name of its fold."""
        return {kind: fold_of(members) for kind, members in self.other_folds.items()}


def load_evidence(workloads: Iterable[str], root: Path = Path()) -> Evidence:
    """Read everything that a calibration needs.

    `workloads`: paths of the counts of `MODELS`.
    """
    folder = root / "config/twin"
    published, rows = load_published(root / "config/published"), published_folds.judged(folder)
    twin = load_twin_with_modes(workloads, root)
    facts, by_takeaway = visible(published, rows, twin), published_folds.folds(folder)
    readings = load_readings(folder)
    sources: dict[str, Fold] = {}
    for source in dict.fromkeys(reading.source for reading in readings):
        ids = frozenset(reading.id for reading in readings if reading.source == source)
        sources[f"{SOURCE} {source}"] = Fold(f"{SOURCE} {source}", ids, ids)
    return Evidence(
        folder=folder,
        published=published,
        rows=rows,
        folds=by_takeaway,
        claim_folds=published_folds.claim_folds(folder),
        other_folds={
            **groupings(published, folder),
            NEAR: near_folds(by_takeaway, facts, twin),
            SOURCE: sources,
        },
        leaks=published_folds.load_leaks(folder, rows),
        twin=twin,
        facts=[*facts, *readings],
    )


def near_folds(folds: Mapping[str, Fold], facts: Sequence[Fact], twin: Twin) -> dict[str, Fold]:
    """Return the folds that remove a number, renamed and widened by the numbers near their own.

    The folds leave out every number from which a take-away follows by arithmetic. Other numbers
    may still depend on the parameters in the same proportions: a fit that meets one then meets the
    other. Without these, too, it shows how much of the accuracy is due to them.
    """
    alike = np.abs(_cosines(facts, twin)) >= COSINE
    seen = {fact.id for fact in facts}
    folds_with_near = {}
    for fold in folds.values():
        if fold.removed & seen:
            is_in_fold = [fact.id in fold.ids for fact in facts]
            near = alike[:, is_in_fold].any(axis=1)
            ids = {fact.id for fact, is_near in zip(facts, near, strict=True) if is_near}
            name = f"{NEAR} {fold.takeaway}"
            folds_with_near[name] = Fold(name, fold.ids, fold.removed | ids)
    return folds_with_near


def _cosines(facts: Sequence[Fact], twin: Twin) -> NDArray[np.floating]:
    """Return the cosine of each two numbers' gradients at the priors, shape (numbers, numbers).

    It is 0 for a number that no parameter moves, such as a bound that is met.
    """
    problem = Problem(facts, replace(twin, parameters=twin.parameters.candidates()))
    gradients = problem.jacobian(np.zeros(len(problem.names)))[: len(facts)]
    lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
    directions = gradients / np.maximum(lengths, np.finfo(float).tiny)
    return np.asarray(directions @ directions.T)


def kinds_of_refits(evidence: Evidence) -> dict[str, str]:
    """Return the kinds of the refits that are not a fold of the cross-validation."""
    others = {name: kind for kind, members in evidence.other_folds.items() for name in members}
    claims = dict.fromkeys(evidence.claim_folds, refits.CLAIMS)
    return {**claims, POWER_MODES: refits.PRIOR, **others}


def all_folds(evidence: Evidence) -> dict[str, Fold]:
    """Return every fold to refit by name: take-aways, claims, power modes, other groupings."""
    claims = evidence.claim_folds
    refitted = {name: fold for name, fold in evidence.folds.items() if name not in claims} | claims
    refitted[POWER_MODES] = published_folds.power_mode_fold(evidence.published)
    for members in evidence.other_folds.values():
        refitted |= members
    return refitted


def count_paths(workloads: Path) -> list[Path]:
    """Return the paths of the counts of `MODELS`; EpochwattError: one is not there."""
    counts = [workloads / f"{model}.json" for model in MODELS]
    if missing := [path for path in counts if not path.exists()]:
        raise EpochwattError(
            f"{missing[0]} is not there: the network was not counted yet",
            do=".venv/bin/snakemake workloads, or `make validate`, which does all of it",
        )
    return counts


def recalibrate(workloads: Path, with_folds: bool, say: Say, only_power: bool = False) -> None:
    """Fit and write `parameters.yaml`; with folds, refit and write those, too (`refits.py`).

    `workloads`: folder of the counts of the networks; `say`: takes lines on the progress;
    `only_power`: all but the parameters of power stay as each fold has them
    """
    evidence = load_evidence(map(str, count_paths(workloads)))
    folder, facts, leaks = evidence.folder, evidence.facts, evidence.leaks
    before = refits.load_times(folder, evidence.twin.parameters) if only_power else None
    group = POWER if only_power else ""
    fit = fit_with_evidence(facts, leaks, evidence.twin, say, N_RANDOM_OF_ALL, group)
    p = with_evidence(facts, replace(evidence.twin, parameters=fit.parameters))
    fit, twin = fit._replace(parameters=p), replace(evidence.twin, parameters=p)
    if with_folds:
        fits = {
            refits.ALL: fit,
            **refits.refit(all_folds(evidence), facts, leaks, twin, say, before=before),
        }
        refits.write_refits(folder, fits, kinds_of_refits(evidence))
        committed = refits.load_refits(folder, twin.parameters)
        spreads = refits.spreads(committed, twin.parameters.fitted)
        p = twin.parameters.changed({name: {"spread": spread} for name, spread in spreads.items()})
        setups, n_facts = refits.fit_setups(
            evidence.published, evidence.rows, evidence.folds, replace(twin, parameters=p)
        )
        refits.write_setups(folder, setups, n_facts)
        twin = replace(twin, parameters=p.moved(setups[refits.ALL]))
    write_parameters(folder, twin.parameters)
    evidence = replace(evidence, twin=twin)
    for line in fit_lines(fit, evidence):
        say(line)
    if with_folds:
        for line in ["", *accuracy_lines(evidence, validate(evidence))]:
            say(line)


def fit_lines(fit: Calibration, evidence: Evidence) -> list[str]:
    """Return the fitted parameters as a table, and the numbers that fit worst."""
    p = evidence.twin.parameters
    lines = [f"{'':24s} {'prior':>9s} {'fitted':>9s} {'widths':>7s} {'spread':>7s} serves"]
    for name in p.fitted:
        parameter = p.described[name]
        only = f"  only {parameter.private_to}" if parameter.private_to else ""
        widths = math.log(parameter.value / parameter.prior) / math.log(parameter.factor)
        lines.append(
            f"{name:24s} {parameter.prior:9.4g} {parameter.value:9.4g} {widths:+7.2f} "
            f"{parameter.spread:7.3f} {len(parameter.serves):3d}{only}"
        )
    predictions = predict(evidence.facts, evidence.twin, p)
    off = misfits(evidence.facts, predictions)
    lines.append(f"{len(p.fitted)} parameters, {fit.n_facts} numbers, objective {fit.cost:.2f}")
    lines.append(f"worst of {fit.n_facts}, in tolerances:")
    for i in np.argsort(-np.abs(off), kind="stable")[:N_WORST]:
        fact = evidence.facts[i]
        predicted = "..".join(f"{value:.4g}" for value in predictions[fact.id])
        lines.append(
            f"  {fact.id:13s} {fact.metric:25s} {fact.value:8g} {fact.unit:3s} predicted "
            f"{predicted:>8s}  {off[i]:+5.1f}"
        )
    return lines


def validate(evidence: Evidence) -> pd.DataFrame:
    """Return the table `validation.csv` from the committed refits (`validation.validate`)."""
    p, kinds = evidence.twin.parameters, (refits.FOLD, *evidence.other_folds)
    fits = refits.load_refits(evidence.folder, p, kinds) | refits.load_setups(evidence.folder, p)
    return validation.validate(
        evidence.published, evidence.rows, evidence.twin, fits, evidence.groups
    )


def sum_up(evidence: Evidence, rows: pd.DataFrame) -> pd.DataFrame:
    """Return how far the rows of `validate` are off, by what was left out."""
    takeaways = dict(zip(rows["published_id"], rows["takeaway"], strict=True))
    return validation.accuracies(rows, {**evidence.groups, validation.TAKE_AWAY: takeaways})


def write_validation(workloads: Iterable[str], table: str, groupings: str, text: str) -> None:
    """Write `validation.csv`, `groupings.csv`, and both in words, by the committed refits.

    `workloads`: paths of the counts of `MODELS`.
    """
    evidence = load_evidence(workloads)
    rows = validate(evidence)
    validation.write_errors(table, "the validation", rows, 3)
    validation.write_errors(groupings, "the accuracies", sum_up(evidence, rows), 2)
    Path(text).write_text("\n".join(accuracy_lines(evidence, rows)) + "\n", "utf-8")


def accuracy_lines(evidence: Evidence, rows: pd.DataFrame) -> list[str]:
    """Return how accurate the simulated boards are, for people (`validation.summary_lines`)."""
    judged_ids = set(rows["published_id"])
    unsaid = [
        fact
        for fact in evidence.published.facts().values()
        if evidence.rows[fact.id].is_simulable and fact.id not in judged_ids
    ]
    accuracy = sum_up(evidence, rows)
    lines = ["", validation.headline(accuracy), *validation.accuracy_table(accuracy), ""]
    lines += [*rail_lines(evidence), ""]
    if (evidence.folder / PRIORS).exists():
        lines += [*validation.prior_lines(read_frame(evidence.folder / PRIORS)), ""]
    return validation.summary_lines(rows, len(evidence.twin.parameters.fitted), unsaid, lines)


def rail_lines(evidence: Evidence) -> list[str]:
    """Return how far rails that others measured are off, fitted and by the fit without them."""
    p, readings = evidence.twin.parameters, [f for f in evidence.facts if isinstance(f, Reading)]
    fits = refits.load_refits(evidence.folder, p, (SOURCE,))
    lines = [
        f"{'rails, without their source':42s}{'n':>4s}{'held out':>10s}{'fitted':>8s}{'worst':>8s}"
    ]
    keys = dict.fromkeys((r.source, r.device, r.rail) for r in readings)
    for source, device, rail in keys:
        own = [r for r in readings if (r.source, r.device, r.rail) == (source, device, rail)]
        errors = [
            [100.0 * abs(log_error(r, predict([r], evidence.twin, values)[r.id][0])) for r in own]
            for values in (refits.held_out(p, fits, f"{SOURCE} {source}"), p)
        ]
        held, fitted = (f"{median(of_fit):.1f} %" for of_fit in errors)
        lines.append(
            f"{f'{device} {rail}, {source}':42s}{len(own):4d}{held:>10s}{fitted:>8s}"
            f"{max(errors[1]):6.1f} %"
        )
    return lines
