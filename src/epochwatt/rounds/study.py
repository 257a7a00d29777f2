"""Judge plans of rounds on simulated fleets beside simpler rules; nothing here is measured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from epochwatt.columns import MODE_PARTS
from epochwatt.errors import ConfigError
from epochwatt.prediction.data.modes import Mode
from epochwatt.rounds.config import FederatedStudy, load_federated
from epochwatt.rounds.plan import least_energy_j
from epochwatt.rounds.rules import LEVELS, RULES, Choice, Played, Task, every_board, play
from epochwatt.rounds.simulated import (
    Catalogue,
    Known,
    draw_fleet,
    known_modes,
    predicted_modes,
    simulate_catalogue,
)
from epochwatt.rounds.trainings import judge_trainings
from epochwatt.tables import write_frame

SIMULATED = "simulated"
AT_OTHER_WATTS = ("maxn", "maxn_lowest", "plan")  # rules that are judged at other powers of waiting
DEADLINES = np.round(np.arange(0.4, 2.01, 0.05), 2)  # times the end in the strongest modes
DRAWN_BOARDS = 12  # of the round that a figure shows
SPREAD = {"": 0.5, "_p10": 0.1, "_p90": 0.9}  # of a summary


def judge_rounds(
    catalogue: Catalogue, study: FederatedStudy, known: Sequence[Known]
) -> Iterator[dict[str, Any]]:
    """Yield a row of rounds.csv for each fleet, power of waiting and rule."""
    for draw in range(study.draws):
        few = predicted_modes(catalogue, study, draw)
        is_first = catalogue.waiting == study.waiting[0]
        for n_boards in study.fleets if is_first else [study.judged_fleet]:
            is_judged = n_boards == study.judged_fleet
            factors = study.waiting_factors if is_judged else [1.0]
            for data, factor in product(study.data, factors):
                drawn = draw_fleet(catalogue, study, n_boards, data, draw)
                task = Task(replace(drawn, waiting_factor=factor), study, known, few, draw)
                base = play(task.fleet, RULES["maxn"](task))
                for name in RULES if factor == 1 else AT_OTHER_WATTS:
                    if name == "plan_work" and not is_judged:  # it takes five times as long
                        continue
                    yield {
                        "provenance": SIMULATED,
                        "boards": n_boards,
                        "data": data,
                        "waiting": catalogue.waiting,
                        "waiting_factor": factor,
                        "draw": draw,
                        "rule": name,
                        **compare(play(task.fleet, RULES[name](task)), base),
                    }


def compare(played: Played, base: Played) -> dict[str, float]:
    """Return what a round is, and how it differs from another of the same fleet."""
    energy_j, base_j = played.energy_j, base.energy_j
    saved_j = base_j - energy_j
    waiting_saved_j = float((base.waiting_j - played.waiting_j).sum())
    per_sample = (energy_j / played.trained) / (base_j / base.trained)
    early = 1 - played.ends_s / played.end_s
    return {
        "end_s": played.end_s,
        "energy_j": energy_j,
        "trained_pct": 100 * played.trained / base.trained,
        "longer_pct": 100 * (played.end_s / base.end_s - 1),
        "saved_pct": 100 * (1 - per_sample),
        # of what is saved; more than all: the fits themselves cost more
        "rests_on_waiting_pct": 100 * waiting_saved_j / saved_j if saved_j > 0 else np.nan,
        "waiting_time_pct": 100 * float(early.mean()),
        "waiting_energy_pct": 100 * float(played.waiting_j.sum()) / energy_j,
        "early_pct": 100 * float(np.median(early)),
        "apart_pct": 100 * float(early.max()),
    }


def summarise(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return median, 10th and 90th percentile over draws of each percentage."""
    groups = rows.groupby([*keys], sort=False)
    parts: dict[str, Any] = {"draws": groups.size()}
    for name in (name for name in rows.columns if name.endswith("_pct")):
        for ending, share in SPREAD.items():
            parts[f"{name.removesuffix('_pct')}{ending}_pct"] = groups[name].quantile(share)
    return pd.DataFrame(parts).reset_index()


def judge_deadlines(
    catalogue: Catalogue, study: FederatedStudy, known: Sequence[Known]
) -> Iterator[dict[str, Any]]:
    """Yield a row of deadlines.csv: expected energy of a sample by a deadline, relative to MAXN."""
    for data in study.judged_data:
        for draw in range(study.draws):
            drawn = draw_fleet(catalogue, study, study.judged_fleet, data, draw)
            fleet = replace(drawn, varied=np.ones(study.judged_fleet))
            base = play(fleet, every_board(fleet.strongest))
            latest_s = DEADLINES * base.end_s
            levels = [play(fleet, every_board(catalogue.at_level(f)[fleet.kind])) for f in LEVELS]
            level_ends_s = np.array([level.end_s for level in levels])
            level_j = np.array([level.energy_j for level in levels])
            planned_j = least_energy_j(fleet.clients(fleet.of_kinds(known)), latest_s)
            lowest_j = play(fleet, every_board(fleet.strongest, waits_lowest=True)).energy_j
            ends_s = fleet.around_s + fleet.fits_s(fleet.strongest)
            for deadline, by_s, plan_j in zip(DEADLINES, latest_s, planned_j, strict=True):
                in_time = level_ends_s <= by_s
                per_sample = {
                    "plan": plan_j,
                    "one_level": level_j[in_time].min() if in_time.any() else np.nan,
                    "maxn_lowest": lowest_j if deadline >= 1 else np.nan,
                }
                if deadline <= 1 and (is_selected := ends_s <= by_s * (1 + 1e-9)).any():
                    part = play(fleet, Choice(fleet.strongest, is_selected.astype(float)))
                    per_sample["fedcs"] = part.energy_j * base.trained / part.trained
                for name, energy_j in per_sample.items():
                    if not np.isnan(energy_j):
                        yield {
                            "provenance": SIMULATED,
                            "boards": study.judged_fleet,
                            "data": data,
                            "waiting": catalogue.waiting,
                            "draw": draw,
                            "rule": name,
                            "deadline": deadline,
                            "energy_pct": 100 * energy_j / base.energy_j,
                        }


def timeline(
    catalogue: Catalogue, study: FederatedStudy, known: Sequence[Known]
) -> Iterator[dict[str, Any]]:
    """Yield a row of timeline.csv for each board of one small fleet: a round before and after."""
    fleet = draw_fleet(catalogue, study, DRAWN_BOARDS, study.judged_data[0], 0)
    for name in ("maxn", "plan"):
        choice = RULES[name](Task(fleet, study, known, known, 0))
        played = play(fleet, choice)
        for i in np.argsort(fleet.kind, kind="stable"):
            mode = Mode(*catalogue.modes[choice.rows[i]].tolist())
            yield {
                "provenance": SIMULATED,
                "rule": name,
                "board": f"{catalogue.kinds[fleet.kind[i]]} {i // len(catalogue.kinds) + 1}",
                "device": catalogue.kinds[fleet.kind[i]],
                "mode": mode.of_parts(MODE_PARTS[:4]),
                "samples": fleet.minibatches[i] * study.batch_size,
                "around_s": fleet.around_s,
                "fit_s": played.fit_s[i],
                "end_s": played.end_s,
                "power_w": played.fit_j[i] / played.fit_s[i],
                "waiting_w": played.waiting_w[i],
            }


JUDGES = {  # table -> what yields its rows
    "rounds": judge_rounds,
    "deadlines": judge_deadlines,
    "timeline": timeline,
    "trainings": judge_trainings,
}


def write_study(
    paths: Mapping[str, str], root: Path = Path(), say: Callable[[str], None] = print
) -> None:
    """Judge all that config/federated.yaml asks for, and write its tables, by name to `paths`.

    Raises ConfigError: there is no study, or a fleet that cannot be simulated.
    """
    study = load_federated(root)
    if study is None:
        raise ConfigError("there is no config/federated.yaml", where=str(root))
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in JUDGES}
    for waiting in study.waiting:
        catalogue = simulate_catalogue(study, waiting, root)
        known = known_modes(catalogue)
        numbers = ", ".join(
            f"{len(k.rows)} of {n}" for k, n in zip(known, catalogue.kinds, strict=True)
        )
        say(f"waiting {waiting}: modes that can be part of a best plan: {numbers}")
        for name, judge in JUDGES.items():
            if name in ("rounds", "deadlines") or waiting == study.waiting[0]:
                rows[name] += judge(catalogue, study, known)
                say(f"{name}: {len(rows[name]):,} rows")
    tables = {name: pd.DataFrame(of_table) for name, of_table in rows.items()}
    keys = ["provenance", "boards", "data", "waiting"]
    tables["summary"] = summarise(tables["rounds"], [*keys, "waiting_factor", "rule"])
    tables["trainings_summary"] = summarise(tables["trainings"], [*keys, "disturbed", "rule"])
    for name, table in tables.items():
        write_frame(paths[name], "rounds of simulated fleets", table, "%.6g")
