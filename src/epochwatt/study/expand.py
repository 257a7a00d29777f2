"""Expand studies to the run table: every block a product of its lists, equal rows one run."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from epochwatt import columns
from epochwatt.board.device.container import NONE
from epochwatt.board.device.kinds import KINDS
from epochwatt.board.records.shapes import Document
from epochwatt.columns import CLOCKS, Factors
from epochwatt.datasets.recipes import recipe
from epochwatt.errors import ConfigError
from epochwatt.study.config import Device, Exclusion, FactorValues, Pairs, Study, WorkloadRow
from epochwatt.study.devices import DEVICES, Devices, check_names, read_rows
from epochwatt.study.imported import IMPORTED, OWN, imported_runs
from epochwatt.study.place import absence, is_measured
from epochwatt.study.runs import TWIN, Run, RunTable, canonical_json, run_id
from epochwatt.study.selection import STUDIES, asked_names, selected
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml

WORKLOADS_FILE = "config/workloads.yaml"
EXCLUSIONS = "config/exclusions.yaml"

_MODE = ("backend", "device", "instance", "power_mode", "dvfs")
OWN_KEYS = {"build", "like", "transform", "loss", "made_up"}  # of a network of the user's own


def load_table(config: Document, root: Path = Path()) -> RunTable:
    """Return the run table of the studies that `config` selects, imported and own runs included.

    Raises ConfigError: a file of config/ has a wrong key or value, or a run cannot be made.
    """
    names = asked_names(config)
    workloads = read_rows(WorkloadRow, root / WORKLOADS_FILE)
    check_names(WORKLOADS_FILE, workloads)
    exclusions = _exclusions(root / EXCLUSIONS)
    devices = Devices(root)
    merged: dict[str, Run] = {}
    for name, study in selected(names, devices):
        for run in expanded(name, study, devices, workloads):
            merged[run.canonical] = _merge(merged.get(run.canonical), run)
    table = _table(_grouped(merged.values()), exclusions, devices)
    if {IMPORTED, OWN} & {*names}:
        imported = imported_runs(root).values()
        table.runs.update((run.id, run) for run in imported if run.studies[0] in names)
    return table


def _exclusions(path: Path) -> list[Exclusion]:
    """Read the exclusions; ConfigError: one names no factor, or a value of the wrong type."""
    content = read_yaml(path) or []
    if not isinstance(content, list):
        raise ConfigError(
            "holds no list", where=EXCLUSIONS, allowed="entries with where and reason"
        )
    exclusions = [validated(Exclusion, e, EXCLUSIONS, f"[{i}]") for i, e in enumerate(content)]
    kinds = {factor.name: factor.kind for factor in columns.FACTORS}
    for i, exclusion in enumerate(exclusions):
        for key, value in exclusion.where.items():
            if key not in kinds:
                raise ConfigError(
                    f"unknown factor {key!r} in [{i}].where", where=EXCLUSIONS, allowed=kinds
                )
            if isinstance(value, str) != (kinds[key] == "str"):
                raise ConfigError(
                    f"[{i}].where.{key} is {value!r}",
                    where=EXCLUSIONS,
                    allowed="a word" if kinds[key] == "str" else "a number",
                )
    return exclusions


def expanded(
    name: str, study: Study, devices: Devices, workloads: dict[str, WorkloadRow]
) -> list[Run]:
    """Return the runs of a study, one for each combination of values in each block of its sweep.

    Raises ConfigError: a key or value that is unknown, or that device or workload do not have.
    """
    runs = []
    for i, block in enumerate(study.sweep):
        where = f"{name}.sweep[{i}]"
        for key in block:
            if key not in FactorValues.model_fields:
                raise ConfigError(
                    f"unknown key {key!r} in {where} (value {block[key]!r})",
                    where=STUDIES,
                    allowed=FactorValues.model_fields,
                )
            if block[key] == []:
                raise _not_allowed(f"{where}.{key}", [], "a value, or a list of at least one")
        if study.pairs and (factor := study.pairs.factor) in block:
            allowed = "nothing: pairs gives its values"
            raise _not_allowed(f"{where}.{factor}", block[factor], allowed)
        for settings in _rows(block, study.pairs):
            row = validated(FactorValues, settings, STUDIES, where)
            device_key = f"{where}.device" if row.device else f"{name}.device"
            device_name = row.device or study.device
            device = devices.get(device_name, f"{STUDIES}: {device_key}")
            if study.backend not in device.backends:
                raise _not_allowed(f"{name}.backend", study.backend, device.backends)
            factors = _resolve(row, study, device_name, device, workloads, where)
            runs.append(_run(factors, study.epochs, name, device))
    return runs


def _rows(block: Document, pairs: Pairs | None) -> Iterator[Document]:
    """Yield factor -> value for each combination in a block; with pairs twice: AB, BA, AB ..."""
    axes = [v if isinstance(v, list) else [v] for v in block.values()]
    for index, values in enumerate(product(*axes)):
        row = dict(zip(block, values, strict=True))
        if pairs is None:
            yield row
        else:
            sides = reversed(pairs.values) if index % 2 else pairs.values
            yield from ({**row, pairs.factor: side} for side in sides)


def _not_allowed(where: str, value: Any, allowed: Any) -> ConfigError:
    """Return the error of a value in config/studies.yaml."""
    return ConfigError(f"{where} is {value!r}", where=STUDIES, allowed=allowed)


def _resolve(
    row: FactorValues,
    study: Study,
    device_name: str,
    device: Device,
    workloads: dict[str, WorkloadRow],
    where: str,
) -> Document:
    """Return all factors of a row of a sweep; what it leaves open is the device's or workload's.

    Raises ConfigError: the device or the workload does not have a value.
    """
    if row.model not in workloads:
        raise _not_allowed(f"{where}.model", row.model, workloads)
    workload = workloads[row.model]
    factors: Factors = row.model_dump() | {
        "setup": study.setup,
        "backend": study.backend if study.backend == TWIN or device.sysroot == "/" else "fake",
        "device": device_name,
        "dataset": workload.dataset,
    }
    for key, allowed in (
        ("instance", device.instances),
        ("storage", list(device.storage)),
        ("power_mode", list(device.power_modes)),
        ("dvfs", device.dvfs),
        ("container", [NONE, *(device.containers if study.backend != TWIN else ())]),
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
        problem = f"{where}.dataset_source: {error.problem}"
        raise ConfigError(problem, where=STUDIES, allowed=error.allowed) from None
    if network := own_network(row.model, workloads):
        factors["network"] = network
    refuse_arithmetic(factors, device, STUDIES, where)
    factors |= _settings_factors(factors, device, where)
    return columns.with_defaults(factors)


def _settings_factors(factors: Factors, device: Device, where: str) -> Document:
    """Return what the names of power mode, board and container stand for, as far as it is set.

    Keys: `power_mode_settings`, `board_settings`, `container_settings`. Raises ConfigError: the
    twin cannot simulate the mode.
    """
    mode = device.power_modes[factors["power_mode"]].model_dump(exclude_none=True)
    if factors["backend"] == TWIN and not mode.keys() >= set(CLOCKS):
        allowed = f"on the twin: a mode with all of {', '.join(CLOCKS)}"
        raise _not_allowed(f"{where}.power_mode", factors["power_mode"], [allowed])
    if factors["backend"] == TWIN and mode.get("gpu_share", 1) != 1:
        allowed = "on the twin: a mode that leaves the whole GPU on (gpu_share)"
        raise _not_allowed(f"{where}.power_mode", factors["power_mode"], [allowed])
    settings: Document = {"power_mode_settings": mode} if mode else {}
    if device.board:
        # jtop was the default, with sysfs where it failed: ids stay, and records say what was read
        source = "jtop" if device.power_source == "auto" else device.power_source
        settings["board_settings"] = {"power_source": source}
        if device.settle:
            settle = device.settle.model_dump(exclude_defaults=True)
            settings["board_settings"]["settle"] = settle
    if container := device.containers.get(factors["container"]):
        settings["container_settings"] = container.model_dump()
    return settings


def own_network(model: str, workloads: dict[str, WorkloadRow]) -> dict[str, str]:
    """Return the settings of a user's own network (`OWN_KEYS`), part of the id; else an empty dict.

    Raises ConfigError: they lack `build`, or `like` names no network of this package.
    """
    keys = workloads[model].model_dump(include=OWN_KEYS, exclude_defaults=True)
    built_in = [name for name, row in workloads.items() if not row.build]
    if keys and "build" not in keys:
        raise ConfigError(
            f"{model} has {', '.join(keys)} without build",
            where=WORKLOADS_FILE,
            do=f"add build, or remove {', '.join(keys)}",
        )
    if keys and keys.get("like") not in built_in:
        raise ConfigError(
            f"{model}.like is {keys.get('like')!r}", where=WORKLOADS_FILE, allowed=built_in
        )
    return keys


def _run(factors: Factors, epochs: int, study: str, device: Device) -> Run:
    """Make a run of its factors: id, root of its data, interpreter, machine, Slurm node."""
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
        node=f"{device.constraint}&{factors['instance']}" if device.constraint else "",
    )


def machine_settings(factors: Factors, device: Device) -> Document:
    """Return how the measuring job finds its board, medium and sensors; no part of a run's id."""
    return {
        "backend": factors["backend"],
        "root": device.sysroot,
        "kind": device.board,
        "unit": device.units.get(factors["instance"], ""),
        "storage": device.storage[factors["storage"]].model_dump(exclude={"title"}),
        "power_source": device.power_source if device.board else "none",
        "settle": device.settle.model_dump() if device.settle else None,
        "check_memory": device.check_memory,
    }


def _merge(earlier: Run | None, run: Run) -> Run:
    """Return one run for rows that several studies share: most epochs, all studies."""
    if earlier is None:
        return run
    studies = earlier.studies + tuple(s for s in run.studies if s not in earlier.studies)
    return replace(earlier, epochs=max(earlier.epochs, run.epochs), studies=studies)


def _grouped(runs: Iterable[Run]) -> list[Run]:
    """Return the runs in order of appearance, but all of one board and power mode together."""
    by_mode: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        by_mode.setdefault(tuple(run.factors[k] for k in _MODE), []).append(run)
    return [run for runs_of_mode in by_mode.values() for run in runs_of_mode]


def _table(runs: list[Run], exclusions: list[Exclusion], devices: Devices) -> RunTable:
    """Sort the runs into the table: to make here, excluded, or of other machines.

    A run of another machine that is measured already counts as one of here. Raises ConfigError:
    two runs have one id.
    """
    kept: dict[str, Run] = {}
    excluded, elsewhere = [], []
    for run in runs:
        matching = [e for e in exclusions if e.where.items() <= run.factors.items()]
        if matching:
            excluded.append((run, matching[0].reason))
            continue
        device = devices.get(run.factors["device"], DEVICES)
        reason_absent = None if run.is_simulated else absence(run, device)
        if reason_absent is not None:
            if not is_measured(run, devices.root):
                elsewhere.append((run, reason_absent))
                continue
            run = replace(run, python=(), here=False)  # receipts need no interpreter of the board
        if run.id in kept:
            raise ConfigError(
                f"two runs have the id {run.id}: the first 8 digits of their hashes agree",
                where=STUDIES,
                do="change the seed of one",
            )
        kept[run.id] = run
    return RunTable(kept, excluded, elsewhere)


ARITHMETIC = ("task", "precision", "compile")
NOT_SIMULATED = ("precision", "compile")  # but inference is
BEFORE_AMPERE = {"tegra210": "Maxwell", "tegra194": "Volta"}  # SoC -> generation of its GPU
LAST_TORCH_1 = ("tegra210",)  # whose last JetPack has Python 3.6, hence a torch before torch 2


def refuse_arithmetic(factors: Factors, device: Device, path: str, where: str) -> None:
    """Raise ConfigError for a precision or compile that the twin or the board does not have.

    What only the measuring interpreter knows, its torch and its GPU, is checked when a job starts
    (`epochwatt.board.training.arithmetic`).
    """
    allowed_of: dict[str, str] = {}  # refused factor -> what is allowed
    if factors["backend"] == TWIN:
        for key in NOT_SIMULATED:
            if factors[key] != (only := columns.FACTOR_DEFAULTS[key]):
                allowed_of[key] = f"on the twin: {only}, which alone its parameters were fitted to"
    elif device.board:
        kind = KINDS[device.board]
        if factors["precision"] in ("tf32", "bf16") and kind.soc in BEFORE_AMPERE:
            gpu = f"the {BEFORE_AMPERE[kind.soc]} GPU of {kind.title}"
            allowed_of["precision"] = f"fp32, fp16: {gpu} has no other"
        if factors["compile"] == "on" and kind.soc in LAST_TORCH_1:
            allowed_of["compile"] = f"off: the last JetPack of {kind.title} has no torch 2"
    for key, allowed in allowed_of.items():
        raise ConfigError(f"{where}.{key} is {factors[key]!r}", where=path, allowed=allowed)
