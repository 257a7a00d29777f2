"""Choose the four power modes that models learn from: the paper's search, and other choices.

Source: SIGMETRICS 2023, section 5.7.1: of all subsets of four modes the one whose fits have the
lowest RMSE, summed over LeNet, MobileNet and ResNet, on modes a to j. VGG-11 is left out: it is the
network that the search never saw. The search looks at what it will predict, so each network also
has a choice from a search without it.

Writes results/models/{backend}/power_modes.json and power_modes.csv. A board group has no name: its
place in power_modes.json, counted from 0, is the column `board_group` of every table.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochwatt.prediction.data.modes import Mode, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.data.workloads import (
    PER_NETWORK,
    BoardGroup,
    ProfiledWorkload,
    board_groups,
    read_workloads,
)
from epochwatt.prediction.models.model_store import SCHEMA_VERSION
from epochwatt.prediction.names import DESIGNED, LEFT_OUT, PUBLISHED, SEARCHED, STANDARDISED
from epochwatt.prediction.selection.optimal_design import choose_modes, design_of_modes
from epochwatt.prediction.selection.paper_subset_search import (
    N_EPOCHS,
    N_MODES,
    Subset,
    left_out,
    n_fixed,
    rank_subsets,
    ties,
)
from epochwatt.records import files
from epochwatt.text import counted

PAPER = "sigmetrics2023"
NETWORKS = ("lenet", "mobilenet", "resnet")  # of its search
MODES = tuple("abcdefghij")
REPRESENTATIVE = ("e", "f", "i", "j")
LEAST_NETWORKS, LEAST_MODES = 2, N_MODES + 1  # for a search that chooses among something
TIE = 0.01  # of the lowest sum: about what epochs differ by (section 5.4)

# factors that say which board group a row of a table belongs to
PLACE = ("backend", "setup", "device", "instance", "storage", "num_workers", "batch_size")

Ranked = dict[str, list[Subset]]  # raw and standardised features -> subsets, the best first


@dataclass(frozen=True)
class Search:
    """Networks and modes that are searched in a board group."""

    networks: tuple[str, ...]  # whose errors are summed
    modes: Mapping[str, Mode]  # name -> mode, of which subsets are taken; each mode once
    missing: str  # why nothing can be searched; empty: it can

    def letters(self, modes: Iterable[Mode]) -> list[str]:
        """Return the names of some modes, sorted."""
        chosen = set(modes)
        return sorted(name for name, mode in self.modes.items() if mode in chosen)


def search_of(group: BoardGroup) -> Search:
    """Return what is searched: as in the paper on its setup, else all networks and common modes."""
    workloads, networks = group.workloads, tuple(group.workloads)
    if group.factors["setup"] == PAPER:
        networks = tuple(name for name in NETWORKS if name in workloads)
    observed = [set(_training(workloads[name]).distinct()) for name in networks]
    shared = set.intersection(*observed) if observed else set()
    named = workloads[networks[0]].modes if networks else {}
    common = {name: mode for name, mode in named.items() if mode in shared}
    if group.factors["setup"] == PAPER and set(MODES) <= common.keys():
        common = {name: common[name] for name in MODES}
    first = {mode: name for name, mode in reversed(common.items())}
    modes = {name: mode for name, mode in common.items() if first[mode] == name}
    enough = len(networks) >= LEAST_NETWORKS and len(modes) >= LEAST_MODES
    present = f"{', '.join(networks) or 'no network'}: {counted(len(modes), 'power modes')}"
    needs = f"a search needs {LEAST_NETWORKS} networks and {LEAST_MODES} modes"
    return Search(networks, modes, "" if enough else f"{present} in common; {needs}")


def _training(workload: ProfiledWorkload) -> Observations:
    return workload.observed.after_first(N_EPOCHS)


def ranked(group: BoardGroup, search: Search) -> Ranked:
    """Return all subsets of four modes, by raw and by standardised features."""
    wanted = list(search.modes.values())
    observed = [_training(group.workloads[name]).only(wanted) for name in search.networks]
    return {
        name: rank_subsets(observed, standardise=name == STANDARDISED)
        for name in (SEARCHED, STANDARDISED)
    }


def choices(group: BoardGroup, search: Search, ranking: Ranked) -> dict[str, Any]:
    """Return the modes of each training set, as JSON data.

    `paper`, `paper_standardised`: the search; `published`: e, f, i, j; `designed`: by design of
    experiments, before any run (`choose_modes`); `left_out`: the search without a network.
    """
    by_modes = {frozenset(subset.modes): n for n, subset in enumerate(ranking[SEARCHED])}
    chosen = {name: _choice(search, subsets, 0) for name, subsets in ranking.items()}
    others = {DESIGNED: _designed(group, search)}
    if group.factors["setup"] == PAPER and set(REPRESENTATIVE) <= search.modes.keys():
        others[PUBLISHED] = tuple(search.modes[name] for name in REPRESENTATIVE)
    for name, modes in others.items():
        chosen[name] = _choice(search, ranking[SEARCHED], by_modes[frozenset(modes)])
    chosen[LEFT_OUT] = {
        network: _choice(search, left_out(ranking[SEARCHED], place), 0)
        for place, network in enumerate(search.networks)
        if len(search.networks) > 1
    }
    return chosen


def _choice(search: Search, subsets: Sequence[Subset], place: int) -> dict[str, Any]:
    chosen, lowest = subsets[place], subsets[0].total_s
    tied = ties(subsets, TIE) if place == 0 else []
    return {
        "modes": search.letters(chosen.modes),
        "rank": place + 1,
        "n_subsets": len(subsets),
        "total_s": chosen.total_s,
        "ratio_to_lowest": chosen.total_s / lowest if lowest > 0 else 1.0,
        "n_fixed": n_fixed(chosen.modes),  # of the five coefficients
        "ties": ["".join(search.letters(subset.modes)) for subset in tied if subset != chosen],
    }


def _designed(group: BoardGroup, search: Search) -> tuple[Mode, ...]:
    """Return the best four of the modes that were run, by the terms of the physical model."""
    rows = as_rows(list(search.modes.values()))
    processes = int(group.factors["num_workers"]) + 1
    design = design_of_modes(str(group.factors["device"]), rows, processes)
    return choose_modes(design, N_MODES).modes


def choose_power_modes(
    epochs: Iterable[str], modes: Mapping[str, Sequence[float]], backend: str, path: str, table: str
) -> None:
    """Choose in every board group of a backend, and write the choices and the ranking."""
    groups, rows = [], []
    for place, group in enumerate(board_groups(read_workloads(epochs, modes))):
        search = search_of(group)
        ranking = {} if search.missing else ranked(group, search)
        groups.append(
            {
                "factors": group.factors,
                "data": {name: _data(workload) for name, workload in group.workloads.items()},
                "networks": list(search.networks),
                "unseen": [name for name in group.workloads if name not in search.networks],
                "modes": {name: list(mode) for name, mode in search.modes.items()},
                "missing": search.missing,
                "choices": choices(group, search, ranking) if ranking else {},
            }
        )
        rows += [
            {"board_group": place, **row}
            for features, subsets in ranking.items()
            for row in _rows(group, search, features, subsets)
        ]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    content = {"schema_version": SCHEMA_VERSION, "backend": backend, "board_groups": groups}
    files.write_json(path, content)
    write_rows(table, rows)


def _data(workload: ProfiledWorkload) -> dict[str, Any]:
    """Return what a network trains on."""
    return {name: workload.factors[name] for name in PER_NETWORK if name != "model"}


def named_modes(group: Mapping[str, Any]) -> dict[str, Mode]:
    """Return name -> mode of a board group as in power_modes.json."""
    return {name: Mode(int(n), *clocks) for name, (n, *clocks) in group["modes"].items()}


def _rows(
    group: BoardGroup, search: Search, features: str, subsets: Sequence[Subset]
) -> list[dict[str, Any]]:
    return [
        {
            **{name: group.factors[name] for name in PLACE},
            "search": features,
            "rank": n + 1,
            "modes": "".join(search.letters(subset.modes)),
            "n_fixed": n_fixed(subset.modes),
            "rmse_sum_s": subset.total_s,
            "ratio_to_lowest": subset.total_s / subsets[0].total_s if subsets[0].total_s else 1.0,
            **{f"rmse_{k}_s": v for k, v in zip(search.networks, subset.rmse_s, strict=True)},
        }
        for n, subset in enumerate(subsets)
    ]


def write_rows(path: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a table; its columns are those of all rows, in order."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with open(path, "w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
