"""Name the runs of the run table, each by an id that holds all its factors.

The id of a run carries everything that would have to cause a new measurement: readable parts, the
protocol, and a hash over the canonical JSON of all factors that differ from their default plus the
recipe of the data set. So a change of any of them is another run in another folder, and no
measurement is ever repeated because of a changed parameter (docs/decisions/0002).
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from epochwatt import columns
from epochwatt.board.records.dataset_folder import folder_name
from epochwatt.columns import Factors

TWIN = columns.TWIN
MEASURED = "measured"  # folder of all records


@dataclass(frozen=True)
class Run:
    """One row of the run table."""

    id: str
    factors: Factors  # all of columns.FACTORS, and `recipe`
    canonical: str  # JSON of the factors that differ from their default: what is hashed
    epochs: int  # the most that any selected study asks for
    studies: tuple[str, ...]
    data_root: str
    python: tuple[str, ...]  # words that start the interpreter owning torch; empty: ours
    machine: str  # JSON that tells the measuring side about its machine: paths, sensors, unit
    node: str = ""  # features of the Slurm node that measures it; empty: none is asked for
    here: bool = True  # False: measured on another machine, all of it; nothing is left to measure

    @property
    def data_folder(self) -> str:
        """Folder of the data set, below the root of its storage medium."""
        f = self.factors
        return (
            f"{self.data_root}/{folder_name(f['dataset'], f['dataset_source'], f['dataset_scale'])}"
        )

    @property
    def manifest(self) -> str:
        """Path of what lists the data set's files; made once."""
        return f"{self.data_folder}/manifest.json"

    @property
    def is_simulated(self) -> bool:
        """Whether the twin makes it: nothing is measured for it anywhere."""
        return bool(self.factors["backend"] == TWIN)

    @property
    def epochs_csv(self) -> str:
        """Path of the table of its epochs."""
        return f"results/runs/{self.id}/epochs.csv"

    @property
    def energy_csv(self) -> str:
        """Path of the table of their energies, by power scope."""
        return f"results/runs/{self.id}/energy.csv"

    @property
    def records(self) -> str:
        """Folder with the records of its epochs."""
        return f"{'results/simulated' if self.is_simulated else 'measured'}/{self.id}"

    @property
    def counts(self) -> str:
        """Path of the counts of its work."""
        f = self.factors
        return counts_path(f["model"], f["task"], f["precision"])

    @property
    def parts(self) -> list[tuple[int, int]]:
        """First and last epoch of each job that measures; none of an imported or simulated run."""
        if self.factors["imported"] or self.is_simulated:
            return []
        step = self.factors["epochs_per_job"]
        firsts = range(0, self.epochs, step)
        return [(first, min(first + step, self.epochs) - 1) for first in firsts]

    @property
    def receipts(self) -> list[str]:
        """Paths of the receipts that the run's epochs leave."""
        return [receipt_path(self.id, first, last) for first, last in self.parts]


@dataclass(frozen=True)
class RunTable:
    """All runs of the selected studies, in the order in which they are measured."""

    runs: dict[str, Run]
    excluded: list[tuple[Run, str]] = field(default_factory=list)  # with the reason
    elsewhere: list[tuple[Run, str]] = field(default_factory=list)  # of other machines: left alone

    def __getitem__(self, run_id: str) -> Run:
        return self.runs[run_id]

    def of_backend(self, backend: str) -> list[Run]:
        """Return the runs of one backend, in order."""
        return [run for run in self.runs.values() if run.factors["backend"] == backend]


def counts_path(model: str, task: str = "train", precision: str = "fp32") -> str:
    """Return the path of the counts of a network's kernels; tf32 asks for those of fp32."""
    precision = "fp32" if precision == "tf32" else precision
    if (task, precision) == ("train", "fp32"):
        return f"results/twin/workloads/{model}.json"
    return f"results/roofline/counts/{model}-{task}-{precision}.json"


def receipt_path(run_id: str, first: int, last: int) -> str:
    """Return the path of the receipt of one part of a run."""
    return f"results/runs/{run_id}/part-{first}-{last}.json"


def canonical_json(factors: Factors) -> str:
    """Return what a run's id hashes: factors that differ from their default, as sorted JSON."""
    differing = {
        k: v
        for k, v in factors.items()
        if not (k in columns.FACTOR_DEFAULTS and v == columns.FACTOR_DEFAULTS[k])
    }
    return json.dumps(differing, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def run_id(factors: Factors, canonical: str) -> str:
    """Return the id of a run: readable parts, protocol, first 8 hex digits of the hash."""
    backend, device = factors["backend"], factors["device"]
    prefix = [backend] if backend == device else [backend, device]
    parts = [
        *prefix,
        factors["instance"],
        factors["model"],
        factors["storage"],
        f"w{factors['num_workers']}",
        f"bs{factors['batch_size']}",
        factors["power_mode"],
        f"p{columns.PROTOCOL}",
        hashlib.sha256(canonical.encode("ascii")).hexdigest()[:8],
    ]
    return "-".join(parts).lower()


# factor -> the factor that holds what its value stands for, and so differs with it
BROUGHT = {"container": "container_settings", "model": "network"}


def pairs_of(runs: Iterable[Run], study: str, pairs: Mapping[str, Any]) -> list[tuple[Run, Run]]:
    """Return the pairs (run of A, run of B) of a study that agree in all but the compared factor.

    A run without its counterpart is left out. `pairs`: the study's key of that name, with `factor`
    and its two `values`, A and B
    """
    factor, (a, b) = pairs["factor"], pairs["values"]
    differing = {factor, BROUGHT.get(factor)}
    by_shared: dict[str, dict[Any, Run]] = {}  # JSON of all other factors -> value -> run
    for run in runs:
        if study in run.studies:
            shared = {k: v for k, v in run.factors.items() if k not in differing}
            by_shared.setdefault(json.dumps(shared, sort_keys=True), {})[run.factors[factor]] = run
    return [(sides[a], sides[b]) for sides in by_shared.values() if sides.keys() >= {a, b}]
