"""Choose the four power modes that models learn from: the paper's search, and other choices.

SIGMETRICS 2023, section 5.7.1: of all subsets of four modes the one whose fits have the lowest
RMSE, summed over LeNet, MobileNet and ResNet, on modes a to j: a choice that has seen what it
predicts. VGG-11 is left out: it is the network that the search never saw. As the search looks at
what it will predict, each network also has a choice from a search without it.

Writes results/models/{backend}/power_modes.json and power_modes.csv. A board group has no name: its
place in power_modes.json, counted from 0, is the column `board_group` of every table.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from epochwatt.board.records import files
from epochwatt.columns import Factors
from epochwatt.prediction.data.modes import Mode, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.data.workloads import (
    PER_NETWORK,
    BoardGroup,
    ProfiledWorkload,
    board_groups,
    read_workloads,
)
from epochwatt.prediction.models.features import plain
from epochwatt.prediction.models.model_store import SCHEMA_VERSION
from epochwatt.prediction.models.paper import least_norm
from epochwatt.prediction.names import DESIGNED, LEFT_OUT, PUBLISHED, SEARCHED, STANDARDISED
from epochwatt.prediction.predictor import Json
from epochwatt.prediction.selection.optimal_design import choose_modes, design_of_modes
from epochwatt.tables import write_frame
from epochwatt.text import counted

PAPER = "sigmetrics2023"
NETWORKS = ("lenet", "mobilenet", "resnet")  # of its search
MODES = tuple("abcdefghij")
REPRESENTATIVE = ("e", "f", "i", "j")
N_EPOCHS = 2  # the last epoch that trains: 1 and 2, the first is dropped
N_MODES = 4
LEAST_NETWORKS, LEAST_MODES = 2, N_MODES + 1  # for a search that chooses among something
TIE = 0.01  # of the lowest sum: about what epochs differ by (section 5.4)

# factors that say which board group a row of a table belongs to
PLACE = ("backend", "setup", "device", "instance", "storage", "num_workers", "batch_size")


class Subset(NamedTuple):
    """One candidate for the representative modes."""

    modes: tuple[Mode, ...]
    rmse_s: tuple[float, ...]  # of each network
    total_s: float


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


@dataclass(frozen=True)
class Chosen:
    """A board group as power_modes.json has it."""

    factors: Factors  # that its runs share
    data: Mapping[str, Factors]  # network -> what it trains on
    networks: Sequence[str]  # of the search
    unseen: Sequence[str]
    modes: Mapping[str, Sequence[float]]  # name -> parts of the mode, of those searched
    missing: str  # why nothing was searched; empty: it was
    choices: Json  # training set -> its modes, rank and ties; of `LEFT_OUT` by network

    @property
    def named_modes(self) -> dict[str, Mode]:
        """Name -> mode."""
        return {name: Mode(int(n), *clocks) for name, (n, *clocks) in self.modes.items()}


def choose_power_modes(
    epochs: Iterable[str], modes: Mapping[str, Sequence[float]], backend: str, path: str, table: str
) -> None:
    """Choose modes in every board group of a backend; write power_modes.json and power_modes.csv.

    `epochs`: path of the `epochs.csv` of each run; `modes`: numbers of each run's power mode;
    `path`, `table`: of the choices and of the ranking
    """
    import pandas as pd

    groups, rankings = [], []
    for number, group in enumerate(board_groups(read_workloads(epochs, modes))):
        search = search_of(group)
        ranking = {} if search.missing else ranked(group, search)
        chosen = Chosen(
            factors=group.factors,
            data={
                name: {k: workload.factors[k] for k in PER_NETWORK if k != "model"}
                for name, workload in group.workloads.items()
            },
            networks=search.networks,
            unseen=[name for name in group.workloads if name not in search.networks],
            modes=search.modes,
            missing=search.missing,
            choices=choices(group, search, ranking) if ranking else {},
        )
        groups.append(asdict(chosen))
        place = {"board_group": number, **{name: group.factors[name] for name in PLACE}}
        for features, subsets in ranking.items():
            lowest = subsets[0].total_s
            for rank, subset in enumerate(subsets, 1):
                rmse_s = zip(search.networks, subset.rmse_s, strict=True)
                rankings.append(
                    {
                        **place,
                        "search": features,
                        "rank": rank,
                        "modes": "".join(search.letters(subset.modes)),
                        "n_fixed": n_fixed(subset.modes),
                        "rmse_sum_s": subset.total_s,
                        "ratio_to_lowest": subset.total_s / lowest if lowest else 1.0,
                        **{f"rmse_{name}_s": value for name, value in rmse_s},
                    }
                )
    content = {"schema_version": SCHEMA_VERSION, "backend": backend, "board_groups": groups}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, content)
    ranking_frame = pd.DataFrame(rankings, dtype=object)
    write_frame(table, "the ranking of subsets of modes", ranking_frame)


def search_of(group: BoardGroup) -> Search:
    """Return the networks and modes to search in a board group.

    As in the paper on its setup; else all networks, and the modes that all of them were run in.
    """
    workloads, networks = group.workloads, tuple(group.workloads)
    if group.factors["setup"] == PAPER:
        networks = tuple(name for name in NETWORKS if name in workloads)
    observed = [set(_training(workloads[name]).distinct()) for name in networks]
    shared = set.intersection(*observed) if observed else set()
    named = workloads[networks[0]].modes if networks else {}
    common = {name: mode for name, mode in named.items() if mode in shared}
    if group.factors["setup"] == PAPER and set(MODES) <= common.keys():
        common = {name: common[name] for name in MODES}
    first_name = {mode: name for name, mode in reversed(common.items())}
    modes = {name: mode for name, mode in common.items() if first_name[mode] == name}
    missing = ""
    if len(networks) < LEAST_NETWORKS or len(modes) < LEAST_MODES:
        present = f"{', '.join(networks) or 'no network'}: {counted(len(modes), 'power modes')}"
        needs = f"a search needs {LEAST_NETWORKS} networks and {LEAST_MODES} modes"
        missing = f"{present} in common; {needs}"
    return Search(networks, modes, missing)


def _training(workload: ProfiledWorkload) -> Observations:
    return workload.observed.after_first(N_EPOCHS)


def ranked(group: BoardGroup, search: Search) -> dict[str, list[Subset]]:
    """Rank all subsets of four modes, the best first, by raw and by standardised features."""
    wanted = list(search.modes.values())
    observed = [_training(group.workloads[name]).only(wanted) for name in search.networks]
    return {
        name: rank_subsets(observed, standardise=name == STANDARDISED)
        for name in (SEARCHED, STANDARDISED)
    }


def choices(group: BoardGroup, search: Search, ranking: Mapping[str, Sequence[Subset]]) -> Json:
    """Return the modes of each training set, with rank and ties, as JSON data.

    `paper`, `paper_standardised`: the search; `published`: e, f, i, j; `designed`: by design of
    experiments, before any run (`choose_modes`); `left_out`: the search without a network.
    """

    def choice(subsets: Sequence[Subset], rank: int) -> Json:  # ties: of the best subset only
        chosen, lowest_s = subsets[rank], subsets[0].total_s
        tied = [other for other in subsets if other.total_s <= (1 + TIE) * lowest_s]
        return {
            "modes": search.letters(chosen.modes),
            "rank": rank + 1,
            "n_subsets": len(subsets),
            "total_s": chosen.total_s,
            "ratio_to_lowest": chosen.total_s / lowest_s if lowest_s > 0 else 1.0,
            "n_fixed": n_fixed(chosen.modes),  # of the five coefficients
            "ties": ["".join(search.letters(other.modes)) for other in tied if other != chosen]
            if rank == 0
            else [],
        }

    searched = ranking[SEARCHED]
    by_modes = {frozenset(subset.modes): n for n, subset in enumerate(searched)}
    chosen = {name: choice(subsets, 0) for name, subsets in ranking.items()}
    processes = int(group.factors["num_workers"]) + 1
    rows = as_rows(list(search.modes.values()))
    design = design_of_modes(str(group.factors["device"]), rows, processes)
    others = {DESIGNED: choose_modes(design, N_MODES).modes}
    if group.factors["setup"] == PAPER and set(REPRESENTATIVE) <= search.modes.keys():
        others[PUBLISHED] = tuple(search.modes[name] for name in REPRESENTATIVE)
    for name, modes in others.items():
        chosen[name] = choice(searched, by_modes[frozenset(modes)])
    chosen[LEFT_OUT] = {
        network: choice(without_network(searched, number), 0)
        for number, network in enumerate(search.networks)
        if len(search.networks) > 1
    }
    return chosen


def n_fixed(modes: Sequence[Mode]) -> int:
    """Count how many of the model's five coefficients these modes can fix."""
    rows = plain(modes)
    return int(np.linalg.matrix_rank(np.column_stack([rows, np.ones(len(rows))])))


def rank_subsets(
    observations: Sequence[Observations], size: int = N_MODES, standardise: bool = False
) -> list[Subset]:
    """Rank every subset of the common modes by the summed RMSE of its fits, the lowest first.

    `observations`: of each network, the epochs that train; errors are over those of all modes.
    """
    shared = set.intersection(*(set(rows.distinct()) for rows in observations))
    common = [mode for mode in observations[0].distinct() if mode in shared]
    features, members = plain(common), np.array(list(combinations(range(len(common)), size)))
    rmse_s = []
    for observed in observations:
        times_s = [observed.only([mode]).time_s for mode in common]
        mean_s = np.array([time_s.mean() for time_s in times_s])
        n_epochs = np.array([float(len(time_s)) for time_s in times_s])
        coefficients, intercepts = least_norm(
            features[members], mean_s[members], n_epochs[members], standardise
        )
        errors_s = coefficients @ features.T + intercepts[:, None] - mean_s
        # squared errors of epochs: of their mode's mean, and about it
        about_mean = sum(float(((time_s - time_s.mean()) ** 2).sum()) for time_s in times_s)
        rmse_s.append(np.sqrt((errors_s**2 @ n_epochs + about_mean) / n_epochs.sum()))
    stacked = np.stack(rmse_s)
    order = np.argsort(stacked.sum(0), kind="stable")
    return [
        Subset(tuple(common[mode] for mode in members[number]), tuple(rmse), sum(rmse))
        for number, rmse in zip(order.tolist(), stacked.T[order].tolist(), strict=True)
    ]


def without_network(subsets: Sequence[Subset], number: int) -> list[Subset]:
    """Rank the subsets again without the network of this number in `rmse_s`."""
    others = [(s.modes, s.rmse_s[:number] + s.rmse_s[number + 1 :]) for s in subsets]
    kept = [Subset(modes, rmse_s, sum(rmse_s)) for modes, rmse_s in others]
    return sorted(kept, key=lambda subset: subset.total_s)
