"""`results/claims.csv` and its summary: what each backend's runs say about each take-away.

`results/tables/comparisons.csv` has each comparison of each claim (`comparisons`). In claims.csv a
row per claim and backend, and for measured ones a row per board and general form. Runs of two
backends never meet. Simulated claims are judged again (`held_out`).

`config/twin/mechanisms.csv` says what of the simulated boards carries a claim, and what they lack:
a line is about a take-away, or about one claim of it by its id, which then counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from epochwatt.board.records import files
from epochwatt.claims.claims_table import (
    FAILS,
    NOT_HELD_OUT,
    ClaimRow,
    ComparisonRow,
    write_claims_table,
    write_comparisons,
)
from epochwatt.claims.comparisons import claim_cells, comparison_rows, facts_by_reads, in_words
from epochwatt.claims.evaluate import Claim, Verdict, evaluate, evaluate_boards, load_claims
from epochwatt.claims.held_out import UNTOUCHED, Rejudgement, Simulation, rejudge
from epochwatt.claims.number_sources import EpochTable, read_rows, with_clocks
from epochwatt.claims.predictions import read_predictions
from epochwatt.claims.takeaway_counts import RESTING, headline, weakest
from epochwatt.claims.tolerances import load_terms
from epochwatt.errors import ConfigError
from epochwatt.published.numbers import load_published
from epochwatt.study.runs import TWIN
from epochwatt.tables import read_cells, read_table
from epochwatt.twin.power_modes import load_twin_with_modes
from epochwatt.twin.refits import CLAIMS, FOLD, load_refits, load_setups

TWIN_CONFIG = "config/twin"
MECHANISMS = "mechanisms.csv"


class Mechanisms(NamedTuple):
    """The mechanisms and assumptions on which a take-away rests where the boards are simulated."""

    mechanisms: str  # by name, separated by semicolons
    # at best; one of `RESTING`: on how the boards are made up, whatever their numbers; on fitted
    # numbers; on assumed ones
    rests_on: str
    lacks: str  # what the boards do not have, or have as an assumption, that may turn it
    contradiction: str  # with which other numbers of the papers it does not go

    @property
    def why(self) -> str:
        """Why a claim may fail: what the simulated boards lack, what the papers contradict."""
        parts = {"the simulation lacks": self.lacks, "the paper disagrees": self.contradiction}
        return "; ".join(f"{name}: {text}" for name, text in parts.items() if text)


def load_mechanisms(folder: Path, claims: Sequence[Claim]) -> dict[str, Mechanisms]:
    """Read what each claim rests on where boards are simulated, by the claim's id.

    Raises ConfigError: the file is missing, a line is malformed or about no claim, or a claim has
    no line.
    """
    path, lines = folder / MECHANISMS, dict[str, Mechanisms]()
    for line, row in read_table(path):
        subject = row.pop("claims", "")
        if row.keys() != set(Mechanisms._fields) or row["rests_on"] not in RESTING:
            allowed = f"{', '.join(Mechanisms._fields)}; rests_on: {', '.join(RESTING)}"
            where = f"{path}, line {line}"
            raise ConfigError("not a row", where=where, found=repr(row), allowed=allowed)
        lines[subject] = Mechanisms(**row)
    for subject in lines.keys() - {name for c in claims for name in (c.id, c.takeaway)}:
        problem = f"a line for {subject!r}"
        raise ConfigError(problem, where=str(path), allowed="a take-away, or a claim's id")
    for claim in claims:
        if not {claim.id, claim.takeaway} & lines.keys():
            do = "add a line for its take-away"
            raise ConfigError(f"no line for {claim.id}", where=str(path), do=do)
    return {c.id: lines.get(c.id) or lines[c.takeaway] for c in claims}


def check_claims(
    epochs: Iterable[str],
    idle: str,
    backends: Iterable[str],
    records: Mapping[str, str],
    power_modes: Mapping[str, Mapping[str, Mapping[str, float]]],
    workloads: Iterable[str],
    predictions: Iterable[str],
    titles: Mapping[str, str],
    path: str,
    comparisons: str,
    text: str,
    root: Path = Path(),
) -> None:
    """Judge all claims on all backends; write claims.csv, comparisons.csv and the headline.

    Raises ConfigError, RecordError: a file of config/ is wrong; a record is missing or damaged.

    `epochs`: paths of `epochs.csv`
    `idle`: path of idle.csv; empty: there are no idle powers
    `backends`: that the claims are judged on, also without a run
    `records`: run -> folder of its records, of runs whose clocks are asked for
    `power_modes`: device -> mode -> settings
    `workloads`: paths of the counts of the simulated networks, each named like its network
    `predictions`: paths of `predictions.csv`, each in a folder named like its backend with the rest
    `titles`: model or device -> name for people
    `path`, `comparisons`, `text`: where to write
    `root`: the checkout
    """
    claims, terms = load_claims(root), load_terms(root)
    rows, idle_rows = with_clocks(read_rows(epochs), records), read_cells(idle) if idle else []
    folders = [Path(path).parent for path in predictions]
    predicted = {folder.name: read_predictions(str(folder), terms) for folder in folders}
    facts = facts_by_reads(load_published(root / "config/published").facts().values())
    findings: list[ClaimRow] = []
    compared: list[ComparisonRow] = []
    for backend in backends:
        epoch_rows = [row for row in rows if row["backend"] == backend]
        still = [row for row in idle_rows if row["backend"] == backend]
        table = EpochTable(epoch_rows, still, predicted.get(backend), power_modes)
        verdicts = evaluate(claims, table, terms)
        if backend == TWIN:
            twin = load_twin_with_modes(workloads, root)
            folder, p = root / TWIN_CONFIG, twin.parameters
            folds, read = (load_refits(folder, p, [kind]) for kind in (FOLD, CLAIMS))
            refits = {**read, **load_setups(folder, p)}
            again = rejudge(verdicts, Simulation(epoch_rows, still, twin, folds, refits), terms)
            mechanisms = load_mechanisms(folder, claims)
        else:
            verdicts += evaluate_boards(claims, table, terms)
        for verdict in verdicts:
            comparison = comparison_rows(verdict, backend, facts, titles, terms)
            compared += comparison
            row = claim_row(verdict, backend, in_words(comparison))
            if backend == TWIN:
                name = verdict.claim.id
                row = simulated(row, verdict.claim, again[name], mechanisms[name])
            findings.append(row)
    write_claims_table(path, findings)
    write_comparisons(comparisons, compared)
    with files.writing("the claims", text):
        Path(text).write_text("\n".join(headline(findings)) + "\n", encoding="utf-8")


def claim_row(verdict: Verdict, backend: str, words: str) -> ClaimRow:
    """Turn a verdict into its row of claims.csv; `words` say what it fails by."""
    margin = verdict.margin_pct
    return ClaimRow(
        **claim_cells(verdict, backend),
        comparison=verdict.sides,
        missing="; ".join(verdict.missing),
        margin_pct="" if margin is None else f"{margin:.3g}",
        threshold_source=verdict.claim.threshold_source,
        n_cases=str(verdict.n_cases),
        runs=" ".join(verdict.inputs),
        in_words=words,
    )


def simulated(row: ClaimRow, claim: Claim, again: Rejudgement, mechanisms: Mechanisms) -> ClaimRow:
    """Add to the row of a verdict on simulated runs its second judgement and what it rests on."""
    reasons = [mechanisms.why] if FAILS in (row.status, again.held_out) else []
    reasons += [UNTOUCHED] if again.held_out == NOT_HELD_OUT else []
    holding, turned = again.holding_pct, again.turned_pct
    return row._replace(
        status_held_out=again.held_out,
        rests_on=rests_on(claim, again, mechanisms),
        fragile="" if holding is None else "yes" if again.is_fragile else "no",
        draws_holding_pct="" if holding is None else f"{holding:g}",
        draws_turning_pct="" if turned is None else f"{turned:g}",
        mechanisms=mechanisms.mechanisms,
        why="; ".join(filter(None, reasons)),
    )


def rests_on(claim: Claim, again: Rejudgement, mechanisms: Mechanisms) -> str:
    """Return the weakest evidence that a simulated claim depends on, a key of `RESTING`.

    It is no better than that of its take-away. It is `fitted` where the claim is about the size of
    an effect or its verdict changes when fitted parameters are drawn anew, and `assumed` where it
    changes when assumed ones are.
    """
    fitted = claim.role == "quant" or again.is_fragile
    return weakest(
        mechanisms.rests_on,
        "fitted" if fitted else "mechanism",
        "assumed" if again.rests_on_assumed else "mechanism",
    )
