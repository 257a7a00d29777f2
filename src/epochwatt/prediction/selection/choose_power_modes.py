"""Which four power modes a model learns from: the paper's search, beside other choices.

Source: SIGMETRICS 2023, section 5.7.1: of all subsets of four modes the one whose fits have the
lowest RMSE, summed over LeNet, MobileNet and ResNet, on modes a to j. VGG-11 is left out: it stands
for the network that the search never saw. The search looks at what it will predict, so there is
also a choice for each network that leaves it out.

Writes results/models/{backend}/power_modes.json and power_modes.csv. A bench has no name: its place
in power_modes.json, counted from 0, is the column `bench` of every table.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from epochwatt.device.board_files import Tables
from epochwatt.prediction.data.modes import Board, Mode, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.data.workloads import (
    PER_NETWORK,
    Bench,
    Workload,
    benches,
    read_workloads,
)
from epochwatt.prediction.models.model_store import SCHEMA_VERSION
from epochwatt.prediction.selection.optimal_design import board_design, choose_modes
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
PUBLISHED = ("e", "f", "i", "j")
LEAST_NETWORKS, LEAST_MODES = 2, N_MODES + 1  # for a search that chooses among something
TIE = 0.01  # of the lowest sum: about what epochs differ by (section 5.4)

RAW, STANDARDISED, DESIGNED, AS_PUBLISHED = "paper", "paper_standardised", "designed", "published"

Ranked = dict[str, list[Subset]]  # raw and standardised features -> subsets, the best first


@dataclass(frozen=True)
class Search:
    """What is searched on a bench.

    Attributes
    ----------
    networks : whose errors are summed
    modes : name -> mode, of which subsets are taken; each mode once
    missing : why nothing can be searched; empty: it can
    """

    networks: tuple[str, ...]
    modes: Mapping[str, Mode]
    missing: str

    def letters(self, modes: Iterable[Mode]) -> list[str]:
        """Return the names of some modes, sorted."""
        chosen = set(modes)
        return sorted(name for name, mode in self.modes.items() if mode in chosen)


def search_of(bench: Bench) -> Search:
    """Return what is searched: as in the paper on its setup, else all networks and common modes."""
    own, networks = bench.workloads, tuple(bench.workloads)
    if bench.about["setup"] == PAPER:
        networks = tuple(name for name in NETWORKS if name in own)
    observed = [_training(own[name]) for name in networks]
    shared = set.intersection(*(set(of.distinct()) for of in observed)) if observed else set()
    known = {n: m for n, m in own[networks[0]].modes.items() if m in shared} if networks else {}
    if bench.about["setup"] == PAPER and set(MODES) <= known.keys():
        known = {name: known[name] for name in MODES}
    first = {mode: name for name, mode in reversed(known.items())}
    modes = {name: mode for name, mode in known.items() if first[mode] == name}
    enough = len(networks) >= LEAST_NETWORKS and len(modes) >= LEAST_MODES
    found = f"{', '.join(networks) or 'no network'}: {counted(len(modes), 'power modes')} in common"
    told = f"{found}; a search needs {LEAST_NETWORKS} networks and {LEAST_MODES} modes"
    return Search(networks, modes, "" if enough else told)


def _training(workload: Workload) -> Observations:
    return workload.observed.after_first(N_EPOCHS)


def ranked(bench: Bench, search: Search) -> Ranked:
    """Return all subsets of four modes, by raw and by standardised features."""
    wanted = list(search.modes.values())
    observed = [_training(bench.workloads[name]).only(wanted) for name in search.networks]
    return {
        name: rank_subsets(observed, standardise=name == STANDARDISED)
        for name in (RAW, STANDARDISED)
    }


def choices(bench: Bench, search: Search, found: Ranked) -> dict[str, Any]:
    """Return what each way to choose gives, as JSON data.

    `paper`, `paper_standardised`: the search; `published`: e, f, i, j; `designed`: by design of
    experiments, before any run (`choose_modes`); `left_out`: the search without a network.
    """
    by_modes = {frozenset(subset.modes): n for n, subset in enumerate(found[RAW])}
    told = {name: _told(search, subsets, 0) for name, subsets in found.items()}
    designed = _designed(bench, search)
    others = {DESIGNED: designed}
    if bench.about["setup"] == PAPER and set(PUBLISHED) <= search.modes.keys():
        others[AS_PUBLISHED] = tuple(search.modes[name] for name in PUBLISHED)
    for name, modes in others.items():
        told[name] = _told(search, found[RAW], by_modes[frozenset(modes)])
    told["left_out"] = {
        network: _told(search, left_out(found[RAW], place), 0)
        for place, network in enumerate(search.networks)
        if len(search.networks) > 1
    }
    return told


def _told(search: Search, subsets: Sequence[Subset], place: int) -> dict[str, Any]:
    chosen, lowest = subsets[place], subsets[0].total_s
    tied = ties(subsets, TIE) if place == 0 else []
    return {
        "modes": search.letters(chosen.modes),
        "rank": place + 1,
        "of": len(subsets),
        "total_s": chosen.total_s,
        "times_lowest": chosen.total_s / lowest if lowest > 0 else 1.0,
        "n_fixed": n_fixed(chosen.modes),  # of the five coefficients
        "ties": ["".join(search.letters(subset.modes)) for subset in tied if subset != chosen],
    }


def _designed(bench: Bench, search: Search) -> tuple[Mode, ...]:
    """Return the best four of the modes that were run, by the terms of the physical model."""
    rows = as_rows(list(search.modes.values()))
    steps = [
        sorted({round(float(v)) for v in column}) for column in (rows[:, :4] * [1, 1e3, 1e6, 1e6]).T
    ]
    kind = str(bench.about["device"])
    board = Board(kind, steps[0][-1], Tables(*(tuple(of) for of in steps[1:])))
    processes = int(bench.about["num_workers"]) + 1
    design = replace(board_design(board, processes=processes), candidates=rows)
    return choose_modes(design, N_MODES).modes


def choose_power_modes(
    epochs: Iterable[str], modes: Mapping[str, Sequence[float]], backend: str, path: str, table: str
) -> None:
    """Choose on every bench of a backend, and write the choices and the ranking.

    Parameters
    ----------
    epochs : path of the `epochs.csv` of each run
    modes : run -> numbers of its power mode
    backend : of the runs
    path, table : power_modes.json and power_modes.csv
    """
    told, rows = [], []
    for place, bench in enumerate(benches(read_workloads(epochs, modes))):
        search = search_of(bench)
        found = {} if search.missing else ranked(bench, search)
        told.append(
            {
                "about": bench.about,
                "data": {name: _data(of) for name, of in bench.workloads.items()},
                "networks": list(search.networks),
                "unseen": [name for name in bench.workloads if name not in search.networks],
                "modes": {name: list(mode) for name, mode in search.modes.items()},
                "missing": search.missing,
                "choices": choices(bench, search, found) if found else {},
            }
        )
        rows += [
            {"bench": place, **row}
            for features, of in found.items()
            for row in _rows(bench, search, features, of)
        ]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, {"schema_version": SCHEMA_VERSION, "backend": backend, "benches": told})
    write_rows(table, rows)


def _data(of: Workload) -> dict[str, Any]:
    """Return what a network trains on."""
    return {name: of.factors[name] for name in PER_NETWORK if name != "model"}


def named_modes(bench: Mapping[str, Any]) -> dict[str, Mode]:
    """Return name -> mode of a bench as in power_modes.json."""
    return {name: Mode(int(n), *clocks) for name, (n, *clocks) in bench["modes"].items()}


def _rows(
    bench: Bench, search: Search, features: str, subsets: Sequence[Subset]
) -> list[dict[str, Any]]:
    place = ("backend", "setup", "device", "instance", "storage", "num_workers", "batch_size")
    return [
        {
            **{name: bench.about[name] for name in place},
            "search": features,
            "rank": n + 1,
            "modes": "".join(search.letters(subset.modes)),
            "n_fixed": n_fixed(subset.modes),
            "rmse_sum_s": subset.total_s,
            "times_lowest": subset.total_s / subsets[0].total_s if subsets[0].total_s else 1.0,
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
