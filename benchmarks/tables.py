"""Store results as the CSV files that the documentation reads: `python -m benchmarks.tables`.

The coverage of the energy bounds comes from benchmarks/bounds.csv, all others from results/, where
they exist: `MADE` says which table is made of which file. `python -m benchmarks.external` and other
commands write theirs (README.md).
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import bounds, fleet, monitor
from benchmarks.methods import CASES, OURS, OUT, TUNED
from benchmarks.results import HEADER, REPOSITORY, Row, wide, write_tables
from epochwatt.claims.claims_table import HOLDS, read_claims_table
from epochwatt.claims.table_claims import read_rows
from epochwatt.claims.takeaway_counts import status_of, takeaways
from epochwatt.figures.frames import numbers, read_texts
from epochwatt.figures.fulcrum import names as schedules
from epochwatt.figures.roofline.tuning import name_of
from epochwatt.pages import studies as study
from epochwatt.prediction.evaluation.sweep_scores import (
    BROKEN,
    BROKEN_SHARE,
    HELD,
    MEDIAN,
    N_PROFILED,
    RANDOM,
    RECOMMENDED,
    REGRET,
    REGRET_P90,
    TITLES,
    error_table,
    heading,
    judged,
    short,
    summary_table,
)
from epochwatt.prediction.names import ENERGY, EVERY, POWER, REFERENCE, TIME
from epochwatt.published.numbers import TITLES as PAPERS
from epochwatt.roofline.tuning import FASTEST, LEAST
from epochwatt.schedule.solver_means import summarised
from epochwatt.study.runs import TWIN
from epochwatt.tables import read_frame

Tables = dict[str, pd.DataFrame]
FOLDER = REPOSITORY / "benchmarks/tables"
RESULTS = REPOSITORY / "results"
TIMED = {  # benchmark -> its table
    "interleaver": "instrument/interleaver",
    "fleet": "instrument/fleet",
    "monitor": "instrument/monitor",
    "flower": "federated/flower",
}


def _texts(values: pd.Series, digits: int) -> pd.Series:
    """Return numbers as texts, and a dash for what is missing."""
    return values.map(lambda value: "-" if pd.isna(value) else f"{value:.{digits}f}")


def bound_tables(path: Path = bounds.TABLE) -> Tables:
    """Return how often the bounds of energy and of stall energy hold, a row per sensor."""
    cells = pd.read_csv(path, comment="#")
    made = {}
    for what, part in cells.groupby("what"):
        over_all = bounds.pooled(part)
        table = pd.DataFrame({"sensor": over_all.sensor})
        if what == "energy":
            table["void %"] = _texts(over_all.void_pct, 0)
        else:
            table["published %"] = _texts(100 - over_all.void_pct, 0)
        table["covered %"] = _texts(over_all.covered_pct, 1)
        table["mean bound %"] = _texts(over_all.mean_bound_pct, 1)
        table["rms error %"] = _texts(over_all.rms_error_pct, 2)
        if (
            what == "energy"
        ):  # the signal with the lowest coverage, of those with at least 20 bounds
            known = part[part.n * (1 - part.void_pct / 100) >= 20]
            worst = known.loc[known.groupby("sensor").covered_pct.idxmin()].set_index("sensor")
            covered, low, high = (_texts(worst[f"{n}_pct"], 0) for n in ("covered", "low", "high"))
            words = covered + " [" + low + ", " + high + "] " + worst.signal
            title = "worst signal, covered % [95 % interval]"
            table[title] = table.sensor.map(words).fillna("-")
        made["energy-bounds" if what == "energy" else "stall-energy-bounds"] = table
    return made


def write_timed(benchmarks: dict[str, Any]) -> None:
    """Write the tables of benchmarks that have one: name -> what results/benchmarks.json holds."""
    made = {
        name: pd.DataFrame([Row.from_json(row).cells() for row in found["rows"]], columns=HEADER)
        for benchmark, name in TIMED.items()
        if (found := benchmarks.get(benchmark))
    }
    if "fleet" in benchmarks:
        made["instrument/fleet-growth"] = fleet.growth(benchmarks["fleet"]["details"])
    if "peers" in benchmarks:
        made["instrument/peers"] = monitor.peer_table(benchmarks["peers"]["details"]["tools"])
    write_tables(FOLDER, made)


# -- real sweeps ---------------------------------------------------------------------------------


def sweep_tables(path: Path) -> Tables:
    """Return how well methods predict real sweeps, of scores.csv."""
    rows = read_rows(str(path))
    units, scores = judged(rows), pd.DataFrame(rows)
    names = [f"{unit.key[0]}: {unit.key[2]}" for unit in units]
    head, *said = summary_table(units) or [[]]
    made = {"said": pd.DataFrame(said, columns=head)}
    for target, title in TITLES.items():
        cells = {
            (name, column, method): cell
            for name, unit in zip(names, units, strict=True)
            if (table := error_table(unit, target))
            for place, column in enumerate(table[0][1:], 1)
            for method, cell in ((row[0], row[place]) for row in table[1:])
        }
        index = pd.MultiIndex.from_tuples(cells, names=["sweep", "learned from", "method"])
        made[title] = wide(pd.Series(list(cells.values()), index), "method")
    from_four = [
        table[table["learned from"].eq(heading((RANDOM, N_PROFILED[0])))]
        .set_index("sweep")
        .drop(columns=["learned from", "paper_observed_time"], errors="ignore")
        .add_prefix(f"{title}: ")
        for title, table in made.items()
        if title in (TITLES[TIME], TITLES[ENERGY])
    ]
    four = pd.concat(from_four, axis=1).reindex(pd.Index(names, name="sweep"))
    made["four"] = four.fillna("").reset_index()
    budgets = []
    for name, unit in zip(names, units, strict=True):
        # from the most random modes of each sweep
        random = [column for column in unit.columns if column[0] == RANDOM]
        for method in unit.methods(RECOMMENDED) if random else ():
            statistics = (REGRET, REGRET_P90, BROKEN, BROKEN_SHARE)
            parts = [unit.cell(random[-1], method, RECOMMENDED, each) for each in statistics]
            if all(parts):
                regret, p90, broken, by_share = parts
                lost = f"{short(regret.value)} / {short(p90.value)}"
                share = f"{broken.value:.0f} ({broken.low:.0f} to {broken.high:.0f})"
                row = [name, heading(random[-1]), method, lost, share, f"{by_share.value:.0f}"]
                budgets.append(row)
    head = ["sweep", "learned from", "method", "regret, %: median / 90th percentile"]
    head += ["broken budgets, % (bootstrap)", "by over 5 %, %"]
    return {
        **made,
        "held": _held(scores),
        "budgets": pd.DataFrame(budgets, columns=head),
    }


def _held(scores: pd.DataFrame) -> pd.DataFrame:
    """Return what intervals of 90 % hold: mean, least and most over sweeps and numbers of modes."""
    rows = []
    held = scores[scores.statistic.eq(HELD)]
    held = held.assign(value=held.value.astype(float), n=held.n_profiled.astype(int))
    for target, title in TITLES.items():
        for method in scores[scores.target.eq(target)].method.unique():
            own = held[held.target.eq(target) & held.method.eq(method)]
            kinds = {"four modes": own.n.eq(N_PROFILED[0]), "more": own.n.gt(N_PROFILED[0])}
            for words, is_kind in kinds.items():
                if len(values := own[is_kind].value):
                    shares = [f"{of:.0f}" for of in (values.mean(), values.min(), values.max())]
                    rows.append([title, method, words, str(len(values)), *shares])
    head = ["target", "method", "from", "comparisons", "mean, %", "least, %", "most, %"]
    return pd.DataFrame(rows, columns=head)


ROOFLINE_METHODS = {"physical": "physical terms (sum)", "roofline": "roofline over clocks (max)"}
BOARDS = "translucence-"  # sweeps of whole workloads in all parts of a mode
SIZES = (4, 10, 50)  # random modes


def roofline_tables(path: Path) -> Tables:
    """Return errors of time of the roofline and of `physical`, of scores.csv."""
    rows = []
    for unit in judged(read_rows(str(path))):
        if unit.key[0].startswith(BOARDS):
            for method, words in ROOFLINE_METHODS.items():
                cells = [unit.cell((RANDOM, size), method, TIME, MEDIAN) for size in SIZES]
                texts = [
                    c and f"{short(c.value)} ({short(c.low)} to {short(c.high)})" for c in cells
                ]
                rows.append([f"{unit.key[0]}, {unit.shared['n_modes']} modes", words, *texts])
    return {
        "method": pd.DataFrame(rows, columns=["sweep", "method", *(f"{n} modes" for n in SIZES)])
    }


YARDSTICKS = {"maxn": "MAXN", FASTEST: "fastest mode"}
PARTS = {"cores": "cores", "cpu_mhz": "CPU", "gpu_mhz": "GPU", "emc_mhz": "EMC"}


def tuning_tables(path: Path) -> Tables:
    """Return what the modes of least energy save, of tuning.csv."""
    rows = read_texts(path)
    keys = ["sweep", "device", "workload", "task"]
    little, most = (
        rows[rows.aim.eq(aim)].drop_duplicates(keys, keep="last").set_index(keys, drop=False)
        for aim in (f"{LEAST}_within_5", LEAST)
    )

    def mode(row: dict[str, Any]) -> str:
        """Return the stated parts of a mode: `12 cores, 2201.6 CPU`."""
        return ", ".join(f"{row[part]} {word}" for part, word in PARTS.items() if row[part])

    pairs = zip(little.to_dict("records"), most.loc[little.index].to_dict("records"), strict=True)
    cells = [
        [
            *(within["provenance"], name_of(within), YARDSTICKS[within["against"]]),
            *(f"{float(within['saved_pct']):.1f}", mode(within)),
            *(f"{float(least['saved_pct']):.1f}", f"{float(least['slower_pct']):.0f}", mode(least)),
        ]
        for within, least in pairs
    ]
    head = ["origin", "workload", "against", "saved at most 5 % slower, %", "in mode (MHz)"]
    head += ["most saved, %", "slower by, %", "in mode (MHz)"]
    return {"tuning": pd.DataFrame(cells, columns=head)}


# -- methods beside PowerTrain's networks, of results/methods/ -----------------------------------

HOLD, LEAST_MODES = (85, 95), 10  # %, and from how many modes on
WANTED = 0.7  # of the error of the better network
NEW = OURS[2:]  # the methods that are judged by it
NOT_CARRIED = ("opml19-tx2",)  # no licence: its tables are not passed on


def _title(case: str) -> str:
    """Return the name of a case with its marks: seen while choices were made; not carried."""
    seen = "*" if case in TUNED else ""
    return f"{case}{seen}†" if CASES[case].sweep in NOT_CARRIED else f"{case}{seen}"


def is_met(rows: pd.DataFrame, method: str, network: str | None) -> bool | None:
    """Say whether an error is so much lower, and intervals lie apart; None: not compared."""
    if network is None or method not in rows.index:
        return None
    ours, theirs = rows.loc[method], rows.loc[network]
    is_apart = ours.median_pct_high < theirs.median_pct_low
    return bool(is_apart and ours.median_pct <= WANTED * theirs.median_pct)


def _spread(row: pd.Series, name: str, text: Callable[[float], str] = short) -> str:
    low, high = (text(row[f"{name}_{end}"]) for end in ("low", "high"))
    return f"{text(row[name])} ({low} to {high})"


def method_tables(rows: pd.DataFrame) -> Tables:
    """Return errors, what intervals hold, choices, and in how many comparisons the goal is met."""
    for name in ("held_pct", "regret_pct"):  # of no method, or without power
        rows = rows if name in rows else rows.assign(**{name: float("nan")})
    errors: dict[str, list[list[str]]] = {target: [] for target in (TIME, POWER)}
    held, risk, verdicts = [], [], []
    for (case, size, target), part in rows.groupby(["case", "n_profiled", "target"], sort=False):
        methods = part.set_index("method")
        networks = [name for name in CASES[case].networks if name in methods.index]
        better = str(methods.median_pct[networks].idxmin()) if networks else None
        place, cells = [_title(case), str(size)], {}
        for name in (
            *networks,
            *OURS,
        ):  # the paper's first, as far as it can be had, then a variant
            cells[name] = _spread(methods.loc[name], "median_pct") if name in methods.index else "-"
            variant = name.removeprefix("powertrain").strip("_").replace("_", " ")
            cells[name] += f", {variant}" if name in networks and variant else ""
        ratios = []
        for name in NEW:
            met = is_met(methods, name, better)
            if met is None:
                ratios.append("-")
            else:
                over = _spread(methods.loc[name], f"over_{better}", "{:.2f}".format)
                ratios.append(f"{over}, {'met' if met else 'not met'}")
            paper = networks[0] if networks else None
            for title, network in (("PowerTrain", paper), ("the better one", better)):
                met = is_met(methods, name, network)
                verdicts.append((target, name, title, f"{case} from {size}", case in TUNED, met))
        networks_of = [cells[name] for name in networks] or ["-", "-"]
        errors[target].append([*place, *networks_of, *(cells[name] for name in OURS), *ratios])
        held.append([*place, TITLES[target], *_texts(methods.held_pct.reindex(OURS), 0)])
        for name in (*NEW, better) if target == POWER else ():
            if name in methods.index and pd.notna(methods.regret_pct[name]):
                columns = ["answered_pct", "regret_pct", "over_pct", "over_1w_pct"]
                risk.append([*place, name, *_texts(methods.loc[name, columns], 0)])
    ratios = [f"{name} over the better network" for name in NEW]
    head = ["sweep", "modes", "PowerTrain", "its variant", *OURS, *ratios]
    risk_head = ["sweep", "modes", "method", "answered, %", "slower than the best, %"]
    return {
        **{TITLES[t]: pd.DataFrame(cells, columns=head) for t, cells in errors.items()},
        "held": pd.DataFrame(held, columns=["sweep", "modes", "target", *OURS]),
        "inside": _inside(rows),
        "risk": pd.DataFrame(risk, columns=[*risk_head, "limit exceeded, %", "by over 1 W, %"]),
        "goal": _goal(verdicts),
    }


def _goal(verdicts: Sequence[tuple[str, str, str, str, bool, bool | None]]) -> pd.DataFrame:
    """Return in how many comparisons the goal is met, with and without the sweeps seen before."""
    columns = ["target", "method", "network", "comparison", "seen", "met"]
    found = pd.DataFrame(verdicts, columns=columns)
    rows = []
    for target in (TIME, POWER):
        for name in NEW:
            for title in ("PowerTrain", "the better one"):
                own = found[
                    found.target.eq(target) & found.method.eq(name) & found.network.eq(title)
                ]
                own = own.dropna(subset="met")
                counts = [f"{sum(of.met)} of {len(of)}" for of in (own, own[~own.seen])]
                missed = ", ".join(own.comparison[~own.met.astype(bool)]) or "-"
                rows.append([TITLES[target], name, title, *counts, missed])
    head = ["target", "method", "network", "all sweeps", "those held out", "not met"]
    return pd.DataFrame(rows, columns=head)


def _inside(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how often intervals of 90 % hold what they should, from ten modes on."""
    low, high = HOLD
    shares = rows[rows.n_profiled.ge(LEAST_MODES)].dropna(subset="held_pct")
    shares = shares.assign(share=shares.held_pct.round().astype(int)).groupby("method").share
    table = shares.agg(
        comparisons="count",
        inside=lambda of: of.between(low, high).sum(),
        least="min",
        most="max",
    )
    table = table.loc[[name for name in OURS if name in table.index]].reset_index()
    titles = {"inside": f"hold {low} to {high} %", "least": "least, %", "most": "most, %"}
    return table.rename(columns=titles)


def all_method_tables(folder: Path) -> Tables:
    """Return the tables of the cases that were judged."""
    parts = [pd.read_json(p) for name in CASES if (p := folder / f"{name}.json").is_file()]
    made = method_tables(pd.concat(parts)) if parts else {}
    return {f"methods-{name}": table for name, table in made.items()}


# -- studies -------------------------------------------------------------------------------------


def powertrain_tables(path: Path) -> Tables:
    """Return the tables of the study of PowerTrain: methods, claims in short, those that fail."""
    errors, penalties = (
        read_texts(path.parent / f"{name}.csv") for name in ("errors", "penalties")
    )
    claims = read_rows(str(path))
    failing = [row for row in claims if row["status"] == "does_not_hold"]
    rows = {
        f"methods-{provenance}": study.methods_rows(errors, penalties, provenance)
        for provenance in ("simulated", "public")
    }
    rows["claims-failing"] = study.claim_rows(failing)
    made = {name: pd.DataFrame(some).fillna("") for name, some in rows.items()}
    return made | {"claims": pd.DataFrame({"the claims": study.in_short(claims)})}


def subset_tables(path: Path) -> Tables:
    """Return errors from every subset of four modes, and how many times the paper's they are."""
    rows = read_texts(path)
    rows = rows[rows.learned_from.eq(EVERY)].set_index(["method", "target"])
    found = rows.filter(regex="_pct$|^error_ratio_to_paper_").apply(numbers)
    errors = _texts(found.median_pct, 1)
    for name in ("p90_pct", "worst_pct"):
        errors += " / " + _texts(found[name], 0)
    low, median, high = (
        _texts(found[f"error_ratio_to_paper_{q}"], 2) for q in ("q25", "q50", "q75")
    )
    over = (median + " (" + low + " to " + high + ")").where(
        found.index.get_level_values("method") != REFERENCE, "-"
    )
    errors, over = (wide(of, "target", "-").set_index("method") for of in (errors, over))
    columns = (errors[TIME], over[TIME], errors[POWER], errors[ENERGY], over[ENERGY])
    table = pd.concat(columns, axis=1)
    table.columns = ["time", "over the paper's", "power", "energy", "over the paper's"]
    return {"every-subset-of-four": table.rename_axis("model").reset_index()}


def takeaway_tables(path: Path) -> Tables:
    """Return how many take-aways of each paper hold on simulated boards, of claims.csv."""
    rows = [row for row in read_claims_table(str(path)) if row.backend == TWIN]
    made = []
    for paper, title in PAPERS.items():
        claims = takeaways(row for row in rows if row.paper == paper).values()
        cells = [title]
        for column in ("status", "status_held_out"):
            found = [status_of(getattr(claim, column) for claim in own) for own in claims]
            judged = [*filter(None, found)]
            cells += [str(judged.count(HOLDS)), str(len(judged))]
        made.append(cells)
    head = ["paper", "hold", "take-aways", "hold held out", "judged held out"]
    return {"take-aways": pd.DataFrame(made, columns=head)}


def schedule_tables(path: Path) -> Tables:
    """Return the tables of the study of schedules: solvers by kind of jobs, and the claims."""
    scores, arrivals, mean = (
        read_frame(path.parent / f"{name}.csv") for name in ("scores", "arrivals", "scores-mean")
    )
    rows, means = summarised(scores, arrivals), summarised(mean)
    late = rows[rows.late_pct.notna()]
    shown = ["claim", "sentence", "paper_value", "provenance", "our_value", "status"]
    return {
        "solvers": _solvers(rows[rows.provenance.eq("simulated")]),
        "solvers-public": _solvers(rows[rows.provenance.eq("public")]),
        "solvers-mean": _solvers(means[means.provenance.eq("simulated")]),
        # what random arrivals leave late, of solvers whose plans were played
        "arrivals": pd.DataFrame(
            {
                "plans of": late.solver,
                "tables": late.provenance,
                "jobs": late.jobs.map(schedules.JOBS),
                "late requests, %": _texts(late.late_pct, 1),
                "plans with 99 % in time, %": _texts(late.kept_p99_pct, 0),
            }
        ),
        "claims": read_texts(path)[shown],
    }


def _solvers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return profiles, and by kind of jobs the share answered within budgets and its mean loss."""
    rows = rows.set_index(["solver", "jobs"])
    cells = _texts(rows.kept_pct, 1) + " / " + _texts(rows.loss_pct, 1)
    table = wide(cells, "jobs", "-").set_index("solver")
    table = table[[name for name in schedules.JOBS if name in table]].rename(columns=schedules.JOBS)
    both = rows.xs("train_and_infer", level="jobs").reindex(table.index)
    table.insert(0, "profiles of training beside inference", _texts(both.n_profiles, 0))
    table.insert(1, "board minutes", _texts(both.board_minutes, 0))
    return table.reset_index()


def changing_tables(path: Path) -> Tables:
    """Return what came of ways to plan anew as the rate changes; steady arrivals and traces."""
    rows = read_texts(path)
    rows = rows[rows.arrivals.ne("poisson")]
    trained, late, regret = (
        _texts(numbers(rows[name]), digits)
        for name, digits in (("trained_per_s", 2), ("late_pct", 1), ("regret_pct", 0))
    )
    index = {
        "trains, serves": rows.train + ", " + rows.infer,
        "rate": rows.rates,
        "to settle, s": numbers(rows.switch_s).map("{:g}".format),
        "policy": rows.policy,
    }
    cells = trained + " / " + late + " / " + rows.n_switches + " / " + regret
    cells.index = pd.MultiIndex.from_frame(pd.DataFrame(index))
    return {"changing": wide(cells, "policy")}


# -- rounds of simulated fleets ------------------------------------------------------------------


def round_tables(path: Path) -> Tables:
    """Return what rules for the modes of a round save, of summary.csv, and the claims."""
    summary, trainings = (
        read_frame(path.parent / f"{name}.csv") for name in ("summary", "trainings_summary")
    )
    judged = summary[summary.waiting_factor.ne(1)].boards.max()
    plain, fleet = summary[summary.waiting_factor.eq(1)], summary[summary.boards.eq(judged)]
    watts = fleet[fleet.rule.isin(("maxn_lowest", "plan"))]
    factors = watts.waiting_factor.map(" x {:g}".format)
    watts = watts.assign(rule=watts.rule + ", " + watts.waiting + factors)
    other = plain[plain.rule.isin(("plan", "plan_few")) & plain.boards.ne(judged)]
    other = other.assign(rule=other.rule + ", " + other.boards.map("{:,} boards".format))
    trainings = trainings.assign(
        data=trainings.data.where(~trainings.disturbed, trainings.data + ", disturbed")
    )
    shown = ["claim", "sentence", "our_value", "status"]
    return {
        **{
            f"rules-{name}": _saved(rows, "saved", "longer", "waiting_time")
            for name, rows in plain[plain.boards.eq(judged)].groupby("waiting")
        },
        "waiting": _saved(watts, "saved", "rests_on_waiting"),
        "fleets": _saved(other, "saved", "longer", "waiting_time"),
        "trainings": _saved(trainings[trainings.rule.ne("maxn")], "saved", "longer", "lost"),
        "claims": read_texts(path)[shown],
    }


def _saved(rows: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Return rules by data: median of the first number with 10 and 90 %, then further medians."""
    first, *more = names
    low, high = (_texts(rows[f"{first}_{end}_pct"], 0) for end in ("p10", "p90"))
    cells = _texts(rows[f"{first}_pct"], 0) + " [" + low + ", " + high + "]"
    for name in more:
        cells = cells + " / " + _texts(rows[f"{name}_pct"], 0)
    cells.index = pd.MultiIndex.from_frame(rows[["rule", "data"]])
    return wide(cells, "data", "-")


MADE = (  # folder of tables, file or folder that they are made of, how
    ("instrument", bounds.TABLE, bound_tables),
    (
        "prediction",
        RESULTS / "sweeps/scores.csv",
        lambda path: {f"real-sweeps-{name}": table for name, table in sweep_tables(path).items()},
    ),
    ("roofline", RESULTS / "sweeps/scores.csv", roofline_tables),
    ("roofline", RESULTS / "pagoda/tuning.csv", tuning_tables),
    ("prediction", OUT, all_method_tables),
    ("prediction", RESULTS / "models/twin/scores.csv", subset_tables),
    ("simulation", RESULTS / "claims.csv", takeaway_tables),
    ("powertrain", RESULTS / "powertrain/claims.csv", powertrain_tables),
    ("fulcrum", RESULTS / "fulcrum/claims.csv", schedule_tables),
    ("fulcrum", RESULTS / "fulcrum/changing.csv", changing_tables),
    ("federated", RESULTS / "federated/claims.csv", round_tables),
)


def main() -> int:
    """Write the tables of which there are results."""
    if (times := RESULTS / "benchmarks.json").exists():
        write_timed(json.loads(times.read_text("utf-8")))
    for folder, path, make in MADE:
        if path.exists():
            write_tables(FOLDER / folder, make(path))
    return 0


if __name__ == "__main__":
    sys.exit(main())
