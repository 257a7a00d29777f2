"""Page of a study in pairs: verdicts, figure, claims, and pairs that do not count."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt.analysis.pairs import METRICS, UNDECIDED
from epochwatt.claims.table_claims import read_rows
from epochwatt.templates import render

Row = Mapping[str, str]


def write_pairs(
    pairs: str, verdicts: str, figure: str, claims: Sequence[str] | str, path: str
) -> None:
    """Write the page.

    Parameters
    ----------
    pairs, verdicts : tables of `analysis.pairs`
    figure : drawing (SVG), beside its caption (.txt)
    claims : table of claims; empty: nobody claims anything of this study
    path : where to write
    """
    rows = read_rows(verdicts)
    first = rows[0] if rows else {}
    title, _, caption = Path(figure).with_suffix(".txt").read_text("utf-8").partition("\n\n")
    text = render(
        "pairs.html",
        title=f"In pairs: {first['b']} against {first['a']}" if rows else "No pair was measured",
        provenance=first.get("provenance", ""),
        in_short=[*in_short(rows), *busy(read_rows(pairs))],
        verdicts=[_verdict(row) for row in rows],
        figure={
            "path": os.path.relpath(figure, Path(path).parent),
            "title": title,
            "caption": " ".join(caption.split()),
        },
        claims=[_claim(row) for row in read_rows(str(claims))] if claims else [],
        left_out=_left_out(read_rows(pairs)),
    )
    Path(path).write_text(text, "utf-8")


def in_short(rows: Sequence[Row]) -> list[str]:
    """Return a sentence for each verdict: of which metrics it is said."""
    verdicts = dict.fromkeys(row["verdict"] for row in rows if row["difference_pct"])
    named = {
        verdict: dict.fromkeys(
            METRICS[row["metric"]].title
            for row in rows
            if row["verdict"] == verdict and row["difference_pct"]
        )
        for verdict in verdicts
    }
    return [f"{verdict}: {', '.join(titles)}" for verdict, titles in named.items()]


def busy(rows: Sequence[Row]) -> list[str]:
    """Return a warning where other programs took part in the CPUs: then little can be decided."""
    pairs = {(row["run_a"], row["run_b"]): row["flags"].split() for row in rows}
    shared = sum("machine_shared" in flags for flags in pairs.values())
    if not shared:
        return []
    return [f"other programs took CPUs during {shared} of {len(pairs)} pairs: repeat it in quiet"]


def _verdict(row: Row) -> dict[str, str]:
    reason = f" ({row['reason']})" if row["verdict"] == UNDECIDED else ""
    interval = f"{_number(row['low_pct'])} to {_number(row['high_pct'])}" if row["low_pct"] else ""
    return {
        "what": METRICS[row["metric"]].title,
        "where": f"{row['device']}, {row['model']}, {row['num_workers']} workers, "
        f"batch {row['batch_size']}, mode {row['power_mode']}",
        "pairs": row["n_pairs"],
        row["a"]: _number(row["mean_a"]),
        row["b"]: _number(row["mean_b"]),
        "difference %": _number(row["difference_pct"]),
        "90 % interval": interval,
        "margin %": _number(row["margin_pct"]),
        "verdict": row["verdict"] + reason,
    }


def _number(cell: str) -> str:
    return f"{float(cell):.4g}" if cell else ""


def _claim(row: Row) -> dict[str, str]:
    statuses = {"holds": "holds", "does_not_hold": "does not hold", "not_evaluable": "not known"}
    words = ("claim", "sentence", "paper_value", "our_value", "provenance")
    return {**{word: row[word] for word in words}, "verdict": statuses[row["status"]]}


def _left_out(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the pairs whose sides have other software, each once."""
    apart = {(row["run_a"], row["run_b"]): row["differs"] for row in rows if row["differs"]}
    return [{"A": a, "B": b, "other software": text} for (a, b), text in apart.items()]
