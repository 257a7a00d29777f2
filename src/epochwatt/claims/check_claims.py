"""`results/claims.csv` and its summary: what each backend's runs say about each take-away.

`results/tables/comparisons.csv` has each comparison of each claim (`comparisons`). In claims.csv a
row per claim and backend, and for measured ones a row per board and general form (`boards`). Runs
of two backends never meet. Simulated claims are judged again (`held_out`).
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt.board.records import files
from epochwatt.claims.boards import evaluate_boards
from epochwatt.claims.claims_table import (
    FAILS,
    GENERAL,
    NOT_HELD_OUT,
    PAPER,
    ClaimRow,
    ComparisonRow,
    write_claims_table,
    write_comparisons,
)
from epochwatt.claims.clocks import with_clocks
from epochwatt.claims.comparisons import comparison_rows, facts_by_reads, in_words
from epochwatt.claims.evaluate import Claim, Verdict, evaluate, load_claims
from epochwatt.claims.held_out import UNTOUCHED, Rejudgement, Simulation, rejudge
from epochwatt.claims.mechanisms import Mechanisms, load_mechanisms, weakest
from epochwatt.claims.number_sources import EpochTable, Row, read_rows
from epochwatt.claims.predictions import read_predictions
from epochwatt.claims.summary import headline
from epochwatt.claims.tolerances import load_terms
from epochwatt.published.numbers import load_published
from epochwatt.study.runs import TWIN
from epochwatt.twin.power_modes import load_twin_with_modes
from epochwatt.twin.refits import CLAIMS, FOLD, load_refits, load_setups

TWIN_CONFIG = "config/twin"


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
    """Judge all claims on all backends, and write the table and the headline.

    Raises ConfigError, RecordError: a file of config/ is wrong; a record is missing or damaged.

    Parameters
    ----------
    epochs : paths of `epochs.csv`
    idle : path of idle.csv; empty: there are no idle powers
    backends : that the claims are judged on, also without a run
    records : run -> folder of its records, of runs whose clocks are asked for
    power_modes : device -> mode -> settings
    workloads : paths of the counts of the simulated networks, each named like its network
    predictions : paths of `predictions.csv`, each in a folder named like its backend with the rest
    titles : model or device -> name for people
    path, comparisons, text : where to write
    root : the checkout
    """
    claims, terms = load_claims(root), load_terms(root)
    rows, idle_rows = with_clocks(read_rows(epochs), records), read_idle(idle)
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
            again = rejudge(verdicts, _simulation(epoch_rows, still, workloads, root), terms)
            mechanisms = load_mechanisms(root / TWIN_CONFIG, claims)
        else:
            verdicts += evaluate_boards(claims, table, terms)
        for verdict in verdicts:
            rows_of_claim = comparison_rows(verdict, backend, facts, titles, terms)
            compared += rows_of_claim
            row, name = finding(verdict, backend, in_words(rows_of_claim)), verdict.claim.id
            if backend == TWIN:
                row = simulated(row, verdict.claim, again[name], mechanisms[name])
            findings.append(row)
    write_claims_table(path, findings)
    write_comparisons(comparisons, compared)
    with files.writing("the claims", text):
        Path(text).write_text("\n".join(headline(findings)) + "\n", encoding="utf-8")


def read_idle(path: str) -> list[dict[str, Any]]:
    """Return the rows of idle.csv; none where there is no path."""
    if not path:
        return []
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def _simulation(
    epochs: Sequence[Row], idle: Sequence[Row], workloads: Iterable[str], root: Path
) -> Simulation:
    twin = load_twin_with_modes(workloads, root)
    folder, p = root / TWIN_CONFIG, twin.parameters
    folds, read = (load_refits(folder, p, [kind]) for kind in (FOLD, CLAIMS))
    return Simulation(epochs, idle, twin, folds, {**read, **load_setups(folder, p)})


def finding(verdict: Verdict, backend: str, words: str) -> ClaimRow:
    """Return the row of a verdict; `words` say what it fails by."""
    claim, margin = verdict.claim, verdict.margin_pct
    return ClaimRow(
        claim=claim.id,
        takeaway=claim.takeaway,
        paper=claim.paper,
        role=claim.role,
        claim_text=claim.claim,
        backend=backend,
        form=GENERAL if verdict.board else PAPER,
        board=verdict.board,
        status=verdict.status,
        comparison=verdict.sides,
        missing="; ".join(verdict.missing),
        margin_pct="" if margin is None else f"{margin:.3g}",
        threshold_source=claim.threshold_source,
        n_cases=str(verdict.n_cases),
        runs=" ".join(verdict.inputs),
        in_words=words,
    )


def simulated(row: ClaimRow, claim: Claim, again: Rejudgement, mechanisms: Mechanisms) -> ClaimRow:
    """Return the row of a verdict on simulated runs with what is known of those."""
    fails = FAILS in (row.status, again.held_out)
    untouched = UNTOUCHED if again.held_out == NOT_HELD_OUT else ""
    return row._replace(
        status_held_out=again.held_out,
        rests_on=rests_on(claim, again, mechanisms),
        fragile="" if again.holding_pct is None else "yes" if again.is_fragile else "no",
        draws_holding_pct="" if again.holding_pct is None else f"{again.holding_pct:g}",
        draws_turning_pct="" if again.turned_pct is None else f"{again.turned_pct:g}",
        mechanisms=mechanisms.mechanisms,
        why="; ".join(filter(None, (mechanisms.why if fails else "", untouched))),
    )


def rests_on(claim: Claim, again: Rejudgement, mechanisms: Mechanisms) -> str:
    """Return what a simulated claim rests on: at best what its take-away does.

    The size of an effect rests on fitted numbers; so does what turns within their spread.
    """
    fitted = claim.role == "quant" or again.is_fragile
    return weakest(
        mechanisms.rests_on,
        "fitted" if fitted else "mechanism",
        "assumed" if again.rests_on_assumed else "mechanism",
    )
