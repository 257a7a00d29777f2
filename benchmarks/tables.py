"""Store results as the CSV files that the documentation reads: `python -m benchmarks.tables`.

The coverage of the energy bounds comes from benchmarks/bounds.csv, all others from
results/benchmarks.json, results/methods/, results/powertrain/, results/fulcrum/, results/pagoda/,
results/sweeps/ and results/models/twin/, where they exist. `python -m benchmarks prediction` and
`python -m benchmarks.external` write theirs.
"""

import csv
import json
import math
import sys
from pathlib import Path
from typing import Any

from benchmarks import bounds, fleet, methods_tables, roofline_tables
from benchmarks.public_sweeps import SCORES, sweep_tables
from benchmarks.results import REPOSITORY, Budget, Row, Table, write_tables
from epochwatt.claims.table_claims import read_rows
from epochwatt.figures.frames import read_texts
from epochwatt.figures.fulcrum import names as schedules
from epochwatt.pages import studies as study
from epochwatt.prediction.evaluation.sweep_scores import read_scores
from epochwatt.prediction.names import ENERGY, EVERY, POWER, REFERENCE, TIME
from epochwatt.schedule.summary import summarised
from epochwatt.tables import read_frame
from epochwatt.templates import Rows, columns

FOLDER = REPOSITORY / "benchmarks/tables"
TIMES = REPOSITORY / "results/benchmarks.json"
TIMED = {  # benchmark -> its table
    "simulated_sweeps": "simulation/sweeps",
    "interleaver": "instrument/interleaver",
    "fleet": "instrument/fleet",
}
SUBSETS = REPOSITORY / "results/models/twin/scores.csv"
POWERTRAIN = REPOSITORY / "results/powertrain"
FULCRUM = REPOSITORY / "results/fulcrum"


def bound_tables(path: Path = bounds.TABLE) -> dict[str, Table]:
    """Return how often the bounds of energy and of stall energy hold, a row per sensor."""
    lines = path.read_text("utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    words = ("what", "sensor", "signal")
    cells = [
        bounds.Cell(
            **{key: text if key in words else float(text or "nan") for key, text in row.items()}
        )
        for row in rows
    ]
    energy = [cell for cell in cells if cell.what == "energy"]
    stalls = [cell for cell in cells if cell.what != "energy"]
    common = ["covered %", "mean bound %", "rms error %"]
    return {
        "energy-bounds": [
            ["sensor", "void %", *common, "worst signal, covered % [95 % interval]"],
            *(
                [name, f"{cell.void_pct:.0f}", *_shares(cell), _worst(energy, name)]
                for name, cell in bounds.pooled(energy).items()
            ),
        ],
        "stall-energy-bounds": [
            ["sensor", "published %", *common],
            *(
                [name, f"{100 - cell.void_pct:.0f}", *_shares(cell)]
                for name, cell in bounds.pooled(stalls).items()
            ),
        ],
    }


def _shares(cell: bounds.Cell) -> list[str]:
    if math.isnan(cell.covered_pct):
        return ["-"] * 3
    return [f"{cell.covered_pct:.1f}", f"{cell.mean_bound_pct:.1f}", f"{cell.rms_error_pct:.2f}"]


def _worst(cells: list[bounds.Cell], sensor: str) -> str:
    """Return the signal with the lowest coverage, of those with at least 20 bounds."""
    known = [x for x in cells if x.sensor == sensor and x.n * (1 - x.void_pct / 100) >= 20]
    if not known:
        return "-"
    cell = min(known, key=lambda x: x.covered_pct)
    return f"{cell.covered_pct:.0f} [{cell.low_pct:.0f}, {cell.high_pct:.0f}] {cell.signal}"


def timed_table(rows: list[dict[str, Any]]) -> Table:
    """Return rows of results/benchmarks.json: median, spread, budget and verdict of each."""
    head = ["what", "median", "middle half", "95 % of median", "n", "budget", "verdict"]
    return [head, *([cell or "-" for cell in _row(row).cells()] for row in rows)]


def _row(saved: dict[str, Any]) -> Row:
    limits = saved["budget"]
    low, high = (limits["low"], limits["high"]) if limits else (None, math.nan)
    text = f"<= {high:g}" if low is None else f"{low:g} to {high:g}"
    budget = limits and Budget(low, high, text)
    return Row(saved["what"], saved["values"], saved["unit"], 2, budget)


def powertrain_tables(folder: Path) -> dict[str, Table]:
    """Return the tables of the study of PowerTrain: methods, claims in short, those that fail."""
    errors, penalties = (read_texts(folder / f"{name}.csv") for name in ("errors", "penalties"))
    claims = read_rows(str(folder / "claims.csv"))
    failing = [row for row in claims if row["status"] == "does_not_hold"]
    rows = {
        f"methods-{provenance}": study.methods_rows(errors, penalties, provenance)
        for provenance in ("simulated", "public")
    }
    rows["claims-failing"] = study.claim_rows(failing)
    said = {"claims": [["the claims"], *([line] for line in study.in_short(claims))]}
    return said | {name: _cells(some) for name, some in rows.items()}


def subsets_table(path: Path) -> Table:
    """Return errors from every subset of four modes, and how many times the paper's they are."""
    rows = [row for row in read_rows(str(path)) if row["learned_from"] == EVERY]
    cells = {(row["method"], row["target"]): row for row in rows}
    table = [["model", "time", "over the paper's", "power", "energy", "over the paper's"]]
    for method in dict.fromkeys(row["method"] for row in rows):
        time, power, energy = (cells.get((method, target)) for target in (TIME, POWER, ENERGY))
        own = [_subset_errors(time), _over_paper(time), _subset_errors(power)]
        table.append([method, *own, _subset_errors(energy), _over_paper(energy)])
    return table


def _subset_errors(row: dict[str, str] | None) -> str:
    if row is None:
        return "-"
    median, *others = (float(row[f"{of}_pct"]) for of in ("median", "p90", "worst"))
    return f"{median:.1f} / " + " / ".join(f"{of:.0f}" for of in others)


def _over_paper(row: dict[str, str] | None) -> str:
    """Return median and middle half of the ratios; `-`: not judged, or the paper's own."""
    if row is None or row["method"] == REFERENCE:
        return "-"
    low, median, high = (float(row[f"error_ratio_to_paper_{of}"]) for of in ("q25", "q50", "q75"))
    return f"{median:.2f} ({low:.2f} to {high:.2f})"


def schedule_tables(folder: Path) -> dict[str, Table]:
    """Return the tables of the study of schedules: solvers by kind of jobs, and the claims."""
    played = read_frame(folder / "arrivals.csv")
    rows = summarised(read_frame(folder / "scores.csv"), played).to_dict("records")
    tables = {
        name: _solvers_table([row for row in rows if row["provenance"] == provenance])
        for name, provenance in (("solvers", "simulated"), ("solvers-public", "public"))
    }
    mean = summarised(read_frame(folder / "scores-mean.csv")).to_dict("records")
    simulated = [row for row in mean if row["provenance"] == "simulated"]
    tables["solvers-mean"] = _solvers_table(simulated)
    shown = ("claim", "sentence", "paper_value", "provenance", "our_value", "status")
    claims = [{name: row[name] for name in shown} for row in read_rows(str(folder / "claims.csv"))]
    return {**tables, "arrivals": _arrivals_table(rows), "claims": _cells(claims)}


def _arrivals_table(rows: list[dict[str, Any]]) -> Table:
    """Return what random arrivals leave late, of solvers whose plans were played."""
    head = ["plans of", "tables", "jobs", "late requests, %", "plans with 99 % in time, %"]
    return [
        head,
        *(
            [
                *(row["solver"], row["provenance"], schedules.JOBS[row["jobs"]]),
                *(f"{row['late_pct']:.1f}", f"{row['kept_p99_pct']:.0f}"),
            ]
            for row in rows
            if not math.isnan(row["late_pct"])
        ),
    ]


def _solvers_table(rows: list[dict[str, Any]]) -> Table:
    by_solver: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        by_solver.setdefault(row["solver"], {})[row["jobs"]] = row
    jobs = {name: words for name, words in schedules.JOBS.items() if name in {*map(_jobs, rows)}}
    head = ["solver", "profiles of training beside inference", "board minutes", *jobs.values()]
    solvers = [
        [name, *_cost(some), *(_answered(some.get(kind)) for kind in jobs)]
        for name, some in by_solver.items()
    ]
    return [head, *solvers]


def _jobs(row: dict[str, Any]) -> str:
    return str(row["jobs"])


def changing_table(path: Path) -> Table:
    """Return what came of ways to plan anew as the rate changes; steady arrivals and traces."""
    rows = [row for row in read_rows(str(path)) if row["arrivals"] != "poisson"]
    ways = list(dict.fromkeys(row["policy"] for row in rows))
    cases: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        case = f"{row['train']}, {row['infer']}", row["rates"], f"{float(row['switch_s']):g}"
        trained, late, regret = (
            float(row[name]) for name in ("trained_per_s", "late_pct", "regret_pct")
        )
        cell = f"{trained:.2f} / {late:.1f} / {row['n_switches']} / {regret:.0f}"
        cases.setdefault(case, []).append(cell)
    head = ["trains, serves", "rate", "to settle, s", *ways]
    return [head, *([*case, *cells] for case, cells in cases.items())]


def _cost(by_jobs: dict[str, dict[str, Any]]) -> tuple[str, str]:
    """Return profiles of training beside inference, and the minutes that they take."""
    row = by_jobs.get("train_and_infer")
    return (
        ("-", "-") if row is None else (f"{row['n_profiles']:.0f}", f"{row['board_minutes']:.0f}")
    )


def _answered(row: dict[str, Any] | None) -> str:
    """Return the share answered within budgets, and the mean loss of these answers."""
    if row is None:
        return "-"
    loss = "-" if math.isnan(row["loss_pct"]) else f"{row['loss_pct']:.1f}"
    return f"{row['kept_pct']:.1f} / {loss}"


def _cells(rows: Rows) -> Table:
    """Return rows as cells, the header first."""
    head = columns(rows)
    return [head, *([str(row.get(name, "")) for name in head] for row in rows)]


def write_timed(benchmarks: dict[str, Any]) -> None:
    """Write the tables of benchmarks that have one: name -> what results/benchmarks.json holds."""
    tables = {
        name: timed_table(benchmarks[b]["rows"]) for b, name in TIMED.items() if b in benchmarks
    }
    if "fleet" in benchmarks:
        tables["instrument/fleet-growth"] = fleet.growth(benchmarks["fleet"])
    write_tables(FOLDER, tables)


def main() -> int:
    """Write the tables of which there are results."""
    prediction = FOLDER / "prediction"
    write_tables(FOLDER / "instrument", bound_tables())
    if TIMES.exists():
        write_timed(json.loads(TIMES.read_text("utf-8")))
    if SCORES.exists():
        scores = read_scores([str(SCORES)])
        sweeps = {f"real-sweeps-{name}": table for name, table in sweep_tables(scores).items()}
        write_tables(prediction, sweeps)
        write_tables(FOLDER / "roofline", {"method": roofline_tables.method_table(scores)})
    if roofline_tables.TUNING.exists():
        tuning = read_rows(str(roofline_tables.TUNING))
        write_tables(FOLDER / "roofline", {"tuning": roofline_tables.tuning_table(tuning)})
    if rows := methods_tables.read():
        made = methods_tables.method_tables(rows)
        write_tables(prediction, {f"methods-{name}": table for name, table in made.items()})
    if methods_tables.NEXT.exists():
        write_tables(prediction, {"methods-next": methods_tables.next_table()})
    if SUBSETS.exists():
        write_tables(prediction, {"every-subset-of-four": subsets_table(SUBSETS)})
    if (POWERTRAIN / "claims.csv").exists():
        write_tables(FOLDER / "powertrain", powertrain_tables(POWERTRAIN))
    if (FULCRUM / "claims.csv").exists():
        write_tables(FOLDER / "fulcrum", schedule_tables(FULCRUM))
    if (FULCRUM / "changing.csv").exists():
        write_tables(FOLDER / "fulcrum", {"changing": changing_table(FULCRUM / "changing.csv")})
    return 0


if __name__ == "__main__":
    sys.exit(main())
