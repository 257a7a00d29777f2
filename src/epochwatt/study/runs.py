"""The run table: studies expanded to one row per run, each with an id that says it all.

The id of a run carries everything that would have to cause a new measurement: readable parts, the
protocol, and a hash over the canonical JSON of all factors that differ from their default plus the
recipe of the data set. So a change of any of them is another run in another folder, and no
measurement is ever repeated because of a changed parameter (docs/decisions/0002).
"""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from epochwatt import fields
from epochwatt.datasets.recipes import recipe
from epochwatt.errors import ConfigError
from epochwatt.study.config import (
    Closed,
    Config,
    Device,
    Exclusion,
    FactorValues,
    Study,
    WorkloadRow,
    read_yaml,
    validated,
)
from epochwatt.training.data import folder_name

STUDIES = "config/studies.yaml"
WORKLOADS = "config/workloads.yaml"
EXCLUSIONS = "config/exclusions.yaml"
DEVICES = "config/devices"

OWN_KEYS = {"build", "like", "transform", "made_up"}  # of a workload: a network of the user's own

T = TypeVar("T", bound=Closed)


@dataclass(frozen=True)
class Run:
    """One row of the run table."""

    id: str
    factors: dict[str, Any]  # all of fields.FACTORS, and `recipe`
    canonical: str  # JSON of the factors that differ from their default: what is hashed
    epochs: int  # the most that any selected study asks for
    studies: tuple[str, ...]
    data_root: str
    python: tuple[str, ...]  # words that start the interpreter owning torch; empty: ours

    @property
    def data_folder(self) -> str:
        """Folder of the data set, below the root of its storage medium."""
        f = self.factors
        return (
            f"{self.data_root}/{folder_name(f['dataset'], f['dataset_source'], f['dataset_scale'])}"
        )

    @property
    def parts(self) -> list[tuple[int, int]]:
        """First and last epoch of each job, in order."""
        step = self.factors["epochs_per_job"]
        return [(k, min(k + step, self.epochs) - 1) for k in range(0, self.epochs, step)]

    @property
    def receipts(self) -> list[str]:
        """Paths of the receipts that the run's epochs leave."""
        return [receipt_path(self.id, first, last) for first, last in self.parts]


@dataclass(frozen=True)
class RunTable:
    """All runs of the selected studies, in the order in which they are measured."""

    runs: dict[str, Run]
    excluded: list[tuple[Run, str]] = field(default_factory=list)  # with the reason

    def __getitem__(self, run_id: str) -> Run:
        return self.runs[run_id]

    def of_backend(self, backend: str) -> list[Run]:
        """Return the runs of one backend, in order."""
        return [run for run in self.runs.values() if run.factors["backend"] == backend]


def receipt_path(run_id: str, first: int, last: int) -> str:
    """Return the path of the receipt of one part of a run."""
    return f"results/runs/{run_id}/part-{first}-{last}.json"


def load_table(config: dict[str, Any], root: Path = Path()) -> RunTable:
    """Expand the selected studies.

    Parameters
    ----------
    config : what config/config.yaml holds
    root : the checkout

    Raises
    ------
    ConfigError : two lines that name file, key, value and what is allowed
    """
    selected = validated(Config, config, "config/config.yaml").studies
    studies = read_rows(Study, root / STUDIES)
    workloads = read_rows(WorkloadRow, root / WORKLOADS)
    _check_names(WORKLOADS, workloads)
    exclusions = _exclusions(root / EXCLUSIONS)
    devices: dict[str, Device] = {}
    merged: dict[str, Run] = {}
    for name in selected:
        if name not in studies:
            raise ConfigError(
                f"config/config.yaml: studies names {name!r}\n  {STUDIES} has: {', '.join(studies)}"
            )
        study = studies[name]
        if study.device not in devices:
            devices[study.device] = _device(root, study.device, f"{STUDIES}: {name}.device")
        for run in _expand(name, study, devices[study.device], workloads):
            merged[run.canonical] = _merge(merged.get(run.canonical), run)
    return _table(_grouped(merged.values()), exclusions)


def read_rows(model: type[T], path: Path) -> dict[str, T]:
    """Read a YAML file that maps names to entries of one schema."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: holds no mapping\n  allowed: one key per entry")
    shown = str(Path(*path.parts[-2:]))
    return {str(k): validated(model, v, shown, str(k)) for k, v in content.items()}


def _check_names(where: str, names: Iterable[str]) -> None:
    """Refuse names that cannot stand in the id of a run, which is also a file name."""
    for name in names:
        if not re.fullmatch(r"[a-zA-Z0-9.]+", name):
            raise ConfigError(f"{where} has a name {name!r}\n  allowed: letters, digits and dots")


def _exclusions(path: Path) -> list[Exclusion]:
    content = read_yaml(path) or []
    if not isinstance(content, list):
        raise ConfigError(f"{EXCLUSIONS}: holds no list\n  allowed: entries with where and reason")
    exclusions = [validated(Exclusion, e, EXCLUSIONS, f"[{i}]") for i, e in enumerate(content)]
    known = {factor.name: factor.kind for factor in fields.FACTORS}
    for i, exclusion in enumerate(exclusions):
        for key, value in exclusion.where.items():
            if key not in known:
                raise ConfigError(
                    f"{EXCLUSIONS}: unknown factor {key!r} in [{i}].where\n"
                    f"  allowed: {', '.join(known)}"
                )
            if isinstance(value, str) != (known[key] == "str"):
                raise ConfigError(
                    f"{EXCLUSIONS}: [{i}].where.{key} is {value!r}\n"
                    f"  allowed: {'a word' if known[key] == 'str' else 'a number'}"
                )
    return exclusions


def _device(root: Path, name: str, where: str) -> Device:
    _check_names(where, [name])
    path = root / DEVICES / f"{name}.yaml"
    if not path.exists():
        there = sorted(p.stem for p in path.parent.glob("*.yaml"))
        raise ConfigError(f"{where} is {name!r}\n  {DEVICES}/ has: {', '.join(there)}")
    shown = f"{DEVICES}/{name}.yaml"
    device = validated(Device, read_yaml(path), shown)
    for kind, words in (
        ("instances", device.instances),
        ("storage", device.storage),
        ("power_modes", device.power_modes),
    ):
        _check_names(f"{shown}: {kind}", words)
    return device


def _expand(
    name: str, study: Study, device: Device, workloads: dict[str, WorkloadRow]
) -> list[Run]:
    if study.backend not in device.backends:
        raise _not_allowed(f"{name}.backend", study.backend, device.backends)
    runs = []
    for i, block in enumerate(study.sweep):
        where = f"{name}.sweep[{i}]"
        for key in block:
            if key not in FactorValues.model_fields:
                raise ConfigError(
                    f"{STUDIES}: unknown key {key!r} in {where} (value {block[key]!r})\n"
                    f"  allowed keys: {', '.join(FactorValues.model_fields)}"
                )
            if block[key] == []:
                raise ConfigError(
                    f"{STUDIES}: {where}.{key} is []\n  allowed: a value, or a list of at least one"
                )
        axes = [v if isinstance(v, list) else [v] for v in block.values()]
        for values in product(*axes):
            row = validated(FactorValues, dict(zip(block, values, strict=True)), STUDIES, where)
            factors = _resolve(row, study, device, workloads, where)
            runs.append(_run(factors, study.epochs, name, device))
    return runs


def _not_allowed(where: str, value: Any, allowed: Any) -> ConfigError:
    return ConfigError(
        f"{STUDIES}: {where} is {value!r}\n  allowed: {', '.join(map(str, allowed))}"
    )


def _resolve(
    row: FactorValues,
    study: Study,
    device: Device,
    workloads: dict[str, WorkloadRow],
    where: str,
) -> dict[str, Any]:
    """Return all factors of a row: the study's own, then the defaults of device and workload."""
    if row.model not in workloads:
        raise _not_allowed(f"{where}.model", row.model, workloads)
    workload = workloads[row.model]
    factors: dict[str, Any] = {
        "setup": study.setup,
        "backend": study.backend,
        "device": study.device,
        "dataset": workload.dataset,
    } | row.model_dump()
    for key, allowed in (
        ("instance", device.instances),
        ("storage", list(device.storage)),
        ("power_mode", list(device.power_modes)),
        ("dvfs", device.dvfs),
    ):
        if factors[key] is None:
            factors[key] = allowed[0]
        elif factors[key] not in allowed:
            raise _not_allowed(f"{where}.{key}", factors[key], allowed)
    if factors["torch_threads"] is None:
        factors["torch_threads"] = device.torch_threads
    if factors["dataset_source"] is None:
        factors["dataset_source"] = workload.dataset_source
    if factors["num_workers"] == 0:
        factors["prefetch_factor"] = None  # nothing is prefetched: one run, whatever was asked
    scale = factors["dataset_scale"]
    factors["dataset_scale"] = int(scale) if scale == int(scale) else scale
    try:
        factors["recipe"] = recipe(
            factors["dataset"], factors["dataset_source"], factors["dataset_scale"]
        )
    except ConfigError as error:
        raise ConfigError(f"{STUDIES}: {where}.dataset_source\n  {error}") from None
    if own := _own_network(row.model, workloads):
        factors["network"] = own
    if mode := device.power_modes[factors["power_mode"]].model_dump(exclude_none=True):
        factors["power_mode_settings"] = mode
    return fields.with_defaults(factors)


def _own_network(model: str, workloads: dict[str, WorkloadRow]) -> dict[str, str]:
    """Return what a row says about a network that is not of this package; it is part of the id."""
    own = workloads[model].model_dump(include=OWN_KEYS, exclude_defaults=True)
    ours = [name for name, row in workloads.items() if not row.build]
    if own and "build" not in own:
        raise ConfigError(f"{WORKLOADS}: {model} has {', '.join(own)}\n  allowed only beside build")
    if own and own.get("like") not in ours:
        raise ConfigError(
            f"{WORKLOADS}: {model}.like is {own.get('like')!r}\n  allowed: {', '.join(ours)}"
        )
    return own


def canonical_json(factors: dict[str, Any]) -> str:
    """Return the JSON that is hashed: factors that differ from their default, keys sorted."""
    told = {
        k: v
        for k, v in factors.items()
        if not (k in fields.FACTOR_DEFAULTS and v == fields.FACTOR_DEFAULTS[k])
    }
    return json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def run_id(factors: dict[str, Any], canonical: str) -> str:
    """Return the id of a run: readable parts, protocol, first 8 hex digits of the hash."""
    backend, device = factors["backend"], factors["device"]
    place = [backend] if backend == device else [backend, device]
    parts = [
        *place,
        factors["instance"],
        factors["model"],
        factors["storage"],
        f"w{factors['num_workers']}",
        f"bs{factors['batch_size']}",
        factors["power_mode"],
        f"p{fields.PROTOCOL}",
        hashlib.sha256(canonical.encode("ascii")).hexdigest()[:8],
    ]
    return "-".join(parts).lower()


def _run(factors: dict[str, Any], epochs: int, study: str, device: Device) -> Run:
    canonical = canonical_json(factors)
    return Run(
        id=run_id(factors, canonical),
        factors=factors,
        canonical=canonical,
        epochs=epochs,
        studies=(study,),
        data_root=device.storage[factors["storage"]].root.rstrip("/"),
        python=tuple(device.python),
    )


def _merge(known: Run | None, run: Run) -> Run:
    """Return one run for rows that several studies share: most epochs, all studies."""
    if known is None:
        return run
    studies = known.studies + tuple(s for s in run.studies if s not in known.studies)
    return Run(
        **{
            **known.__dict__,
            "epochs": max(known.epochs, run.epochs),
            "studies": studies,
        }
    )


def _grouped(runs: Any) -> list[Run]:
    """Return the runs in order of appearance, but all of one power mode together."""
    places: dict[tuple[str, ...], int] = {}

    def place(run: Run) -> int:
        key = tuple(run.factors[k] for k in ("backend", "device", "instance", "power_mode", "dvfs"))
        return places.setdefault(key, len(places))

    return sorted(runs, key=place)


def _table(runs: list[Run], exclusions: list[Exclusion]) -> RunTable:
    kept: dict[str, Run] = {}
    excluded = []
    for run in runs:
        reason = _excluded(run, exclusions)
        if reason is not None:
            excluded.append((run, reason))
            continue
        if run.id in kept:
            raise ConfigError(
                f"{STUDIES}: two different runs have the id {run.id}\n"
                "  the first 8 digits of their hashes agree: change the seed of one"
            )
        kept[run.id] = run
    return RunTable(kept, excluded)


def _excluded(run: Run, exclusions: list[Exclusion]) -> str | None:
    for exclusion in exclusions:
        if all(run.factors[k] == v for k, v in exclusion.where.items()):
            return exclusion.reason
    return None
