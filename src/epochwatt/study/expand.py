"""Studies expanded to the run table: every block a product of its lists, equal rows one run."""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from epochwatt import fields
from epochwatt.datasets.recipes import recipe
from epochwatt.device.boards import identify
from epochwatt.errors import ConfigError
from epochwatt.study.config import (
    Closed,
    Config,
    Device,
    Exclusion,
    FactorValues,
    PowerMode,
    Study,
    WorkloadRow,
    read_yaml,
    validated,
)
from epochwatt.study.imported import IMPORTED, imported_runs
from epochwatt.study.place import absence, board_at_hand, is_board, is_measured
from epochwatt.study.runs import Run, RunTable, canonical_json, run_id
from epochwatt.study.starter import starter

STUDIES = "config/studies.yaml"
WORKLOADS = "config/workloads.yaml"
EXCLUSIONS = "config/exclusions.yaml"
DEVICES = "config/devices"
HOST_STUDIES = ("host-pipeline", "host-photographs")  # what `auto` is where there is no board
STARTER = "starter"
GROUPS = ("auto", STARTER, "paper", IMPORTED)  # names in config.yaml that stand for several studies

OWN_KEYS = {"build", "like", "transform", "made_up"}  # of a workload: a network of the user's own

T = TypeVar("T", bound=Closed)


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
    asked = validated(Config, config, "config/config.yaml").studies
    workloads = read_rows(WorkloadRow, root / WORKLOADS)
    _check_names(WORKLOADS, workloads)
    exclusions = _exclusions(root / EXCLUSIONS)
    devices = Devices(root)
    merged: dict[str, Run] = {}
    names = [asked] if isinstance(asked, str) else asked
    for name, study in selected(names, devices):
        for run in _expand(name, study, devices, workloads):
            merged[run.canonical] = _merge(merged.get(run.canonical), run)
    table = _table(_grouped(merged.values()), exclusions, devices)
    if IMPORTED in names:
        table.runs.update(imported_runs(root))
    return table


class Devices:
    """The devices of config/devices/, each read when it is first asked for.

    Parameters
    ----------
    root : the checkout
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, Device] = {}

    def names(self) -> list[str]:
        """Return the names of all device files."""
        return sorted(path.stem for path in (self.root / DEVICES).glob("*.yaml"))

    def get(self, name: str, where: str) -> Device:
        """Return a device; ConfigError with those there are when it is none."""
        if name not in self._known:
            if not self.names():
                raise ConfigError(
                    f"{self.root.absolute()} has no {DEVICES}/, where {name} should be\n"
                    "  run it in the folder of the checkout"
                )
            if name not in self.names():
                raise ConfigError(
                    f"{where} is {name!r}\n  {DEVICES}/ has: {', '.join(self.names())}"
                )
            _check_names(where, [name])
            device = _read_device(self.root, name)
            sysroot = os.path.abspath(self.root / device.sysroot)
            self._known[name] = device.model_copy(update={"sysroot": sysroot})
        return self._known[name]

    def add_modes(self, name: str, modes: dict[str, PowerMode]) -> None:
        """Give a device power modes that its file does not name."""
        device = self._known[name]
        if taken := device.power_modes.keys() & modes.keys():
            raise ConfigError(
                f"{DEVICES}/{name}.yaml: power_modes names {', '.join(sorted(taken))}\n"
                "  allowed: other names; the starter study has modes of these"
            )
        self._known[name] = device.model_copy(update={"power_modes": device.power_modes | modes})

    def here(self) -> dict[str, Device]:
        """Return the devices whose board is the one at hand (or a fake one that is there)."""
        found = {name: self.get(name, DEVICES) for name in self.names()}
        return {name: d for name, d in found.items() if d.board and is_board(d.board, d.sysroot)}


def selected(asked: list[str], devices: Devices) -> list[tuple[str, Study]]:
    """Return the studies that the names stand for, in order: their own or those of a group."""
    studies = read_rows(Study, devices.root / STUDIES)
    chosen: list[tuple[str, Study]] = []
    for name in asked:
        if name == "starter" or (name == "auto" and identify("/")):
            chosen += [(STARTER, study) for study in _starters(devices)]
        elif name == "auto":
            chosen += [(host, studies[host]) for host in HOST_STUDIES]
        elif name == "paper":
            chosen += [(own, study) for own, study in studies.items() if study.setup != "own"]
        elif name in studies:
            chosen.append((name, studies[name]))
        elif name != IMPORTED:  # whose runs are no rows of a study
            raise ConfigError(
                f"config/config.yaml: studies names {name!r}\n"
                f"  allowed: {', '.join(GROUPS)}; {STUDIES} has: {', '.join(studies)}"
            )
    return chosen


def _starters(devices: Devices) -> list[Study]:
    chosen = []
    for name, device in devices.here().items():
        study, modes = starter(name, device)
        devices.add_modes(name, modes)
        chosen.append(study)
    if not chosen:
        raise ConfigError(
            "config/config.yaml: studies names 'starter', and no device is at hand: "
            f"{board_at_hand()}\n  a starter study is made for a Jetson board with a file in "
            f"{DEVICES}/ (docs/add-a-board.md)"
        )
    return chosen


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


def _read_device(root: Path, name: str) -> Device:
    shown = f"{DEVICES}/{name}.yaml"
    device = validated(Device, read_yaml(root / shown), shown)
    for kind, words in (
        ("instances", device.instances),
        ("storage", device.storage),
        ("power_modes", device.power_modes),
    ):
        _check_names(f"{shown}: {kind}", words)
    for instance in device.units.keys() - set(device.instances):
        raise ConfigError(
            f"{shown}: units names {instance!r}\n  allowed: {', '.join(device.instances)}"
        )
    if "jetson" in device.backends and not device.board:
        raise ConfigError(f"{shown}: board is missing\n  it has to be there for backend jetson")
    return device


def _expand(
    name: str, study: Study, devices: Devices, workloads: dict[str, WorkloadRow]
) -> list[Run]:
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
            at = f"{where}.device" if row.device else f"{name}.device"
            device_name = row.device or study.device
            device = devices.get(device_name, f"{STUDIES}: {at}")
            if study.backend not in device.backends:
                raise _not_allowed(f"{name}.backend", study.backend, device.backends)
            factors = _resolve(row, study, device_name, device, workloads, where)
            runs.append(_run(factors, study.epochs, name, device))
    return runs


def _not_allowed(where: str, value: Any, allowed: Any) -> ConfigError:
    return ConfigError(
        f"{STUDIES}: {where} is {value!r}\n  allowed: {', '.join(map(str, allowed))}"
    )


def _resolve(
    row: FactorValues,
    study: Study,
    device_name: str,
    device: Device,
    workloads: dict[str, WorkloadRow],
    where: str,
) -> dict[str, Any]:
    """Return all factors of a row: the study's own, then the defaults of device and workload."""
    if row.model not in workloads:
        raise _not_allowed(f"{where}.model", row.model, workloads)
    workload = workloads[row.model]
    factors: dict[str, Any] = row.model_dump() | {
        "setup": study.setup,
        "backend": study.backend if device.sysroot == "/" else "fake",
        "device": device_name,
        "dataset": workload.dataset,
    }
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
    if device.board:
        factors["board_settings"] = _board_settings(device)
    return fields.with_defaults(factors)


def _board_settings(device: Device) -> dict[str, Any]:
    """Return what else of a board's set-up would change what is measured; it is part of the id."""
    settle = {"settle": device.settle.model_dump(exclude_defaults=True)} if device.settle else {}
    return {"power_source": device.power_source, **settle}


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
        machine=json.dumps(machine_settings(factors, device), sort_keys=True),
    )


def machine_settings(factors: dict[str, Any], device: Device) -> dict[str, Any]:
    """Return what the measuring side has to know of its machine and what is in no run's id."""
    return {
        "backend": factors["backend"],
        "root": device.sysroot,
        "kind": device.board,
        "unit": device.units.get(factors["instance"], ""),
        "storage": device.storage[factors["storage"]].model_dump(exclude={"title"}),
        "power_source": device.power_source if device.board else "none",
        "settle": device.settle.model_dump() if device.settle else None,
    }


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


def _table(runs: list[Run], exclusions: list[Exclusion], devices: Devices) -> RunTable:
    kept: dict[str, Run] = {}
    excluded, elsewhere = [], []
    for run in runs:
        reason = _excluded(run, exclusions)
        if reason is not None:
            excluded.append((run, reason))
            continue
        reason = absence(run, devices.get(run.factors["device"], DEVICES))
        if reason is not None:
            if not is_measured(run, devices.root):
                elsewhere.append((run, reason))
                continue
            run = replace(run, python=(), here=False)  # receipts need no interpreter of the board
        if run.id in kept:
            raise ConfigError(
                f"{STUDIES}: two different runs have the id {run.id}\n"
                "  the first 8 digits of their hashes agree: change the seed of one"
            )
        kept[run.id] = run
    return RunTable(kept, excluded, elsewhere)


def _excluded(run: Run, exclusions: list[Exclusion]) -> str | None:
    for exclusion in exclusions:
        if all(run.factors[k] == v for k, v in exclusion.where.items()):
            return exclusion.reason
    return None
