"""`epochwatt what-if`: simulate one epoch of a configuration, in closed form (`twin/model`).

Settings that are left out take the default of SIGMETRICS 2023, section 4.4. The epoch is one of the
long run, or one that begins with an empty page cache.
"""

import hashlib
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import epochwatt
from epochwatt.board.records import files
from epochwatt.counting.kernel_counts import (
    KernelCounts,
    generic_kernel_counts,
    load_kernel_counts,
)
from epochwatt.errors import EpochwattError
from epochwatt.published.numbers import DEFAULTS, DEVICE_DEFAULTS
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import Devices, read_rows
from epochwatt.study.runs import counts_path
from epochwatt.twin.calibration.queries import Question
from epochwatt.twin.inputs.boards import SampleFacts
from epochwatt.twin.inputs.numbers import number
from epochwatt.twin.inputs.parameters import Parameters
from epochwatt.twin.inputs.power_modes import CONFIG, load_twin_with_modes
from epochwatt.twin.inputs.twin import Twin
from epochwatt.twin.model.epoch import FLOAT_BYTES, Setting, epoch
from epochwatt.twin.model.power import Clocks, check_clocks
from epochwatt.twin.what_if.answer import Answer, Side, answer_lines

WORKLOADS = Path("results/twin/workloads")
CACHE = Path(".cache/kernel-counts")
LONGEST_S = 365.25 * 86400.0  # of an epoch; what takes longer is a mistake
TOTALS = (  # options that describe a network
    *("flops", "bytes", "launches", "parameters"),
    *("sample-bytes", "file-bytes", "pixels", "samples"),
)


class Network(NamedTuple):
    """A network, its samples, and where its counts come from."""

    work: KernelCounts
    samples: SampleFacts
    source: str


def what_if_lines(
    device: str,
    model: str | None,
    totals: Mapping[str, float],
    settings: Mapping[str, Any],
    root: Path = Path(),
) -> list[str]:
    """Return the answer to a question.

    Parameters
    ----------
    device : a board, or a unit of one: `agx`, `agx-d1`; all units are simulated alike
    model : a row of config/workloads.yaml; None: a network described by its totals
    totals : values of `TOTALS`; empty where there is a model
    settings : fields of `Question` that are not to be the default

    Raises EpochwattError: a name that does not exist, or a configuration that cannot run.
    """
    counts = sorted((root / WORKLOADS).glob("*.json"))
    twin = load_twin_with_modes(map(str, counts), root)
    device = _board_of(device, twin, root)
    network = network_of(model, totals, twin, root)
    default = default_of(device, network, root)
    question = default._replace(**settings)
    mode, clocks = mode_of(question.power_mode, twin, device)
    question = question._replace(power_mode=mode)
    twin = replace(twin, modes={**twin.modes, device: {**twin.modes[device], mode: clocks}})
    with np.errstate(over="ignore"):  # an endless epoch is refused below
        request, usual = (_simulate(q, twin, network) for q in (question, default))
        changes: dict[str, tuple[Side, Side]] = {}
        for name, given, usual_value in zip(Question._fields, question, default, strict=True):
            if given != usual_value:
                alone, without = (
                    _simulate(q._replace(**{name: value}), twin, network)  # type: ignore[arg-type]
                    for q, value in ((default, given), (question, usual_value))
                )
                changes[name] = (alone, without)
    _check_sizes(request, twin.parameters)
    too_large = model in Devices(root).get(device, "--device").out_of_memory
    return answer_lines(Answer(request, usual, changes, twin, network.source, too_large, root))


def _board_of(device: str, twin: Twin, root: Path) -> str:
    """Return the board of a unit."""
    name, dash, unit = device.partition("-")
    if name not in twin.boards:
        raise EpochwattError(f"unknown --device {device!r}", allowed=twin.boards)
    units = Devices(root).get(name, "--device").instances
    if dash and unit not in units:
        allowed = [name, *(f"{name}-{unit}" for unit in units)]
        raise EpochwattError(f"unknown --device {device!r}", allowed=allowed)
    return name


def default_of(device: str, network: Network, root: Path) -> Question:
    """Return the default of a board: the paper's, else the first values of its device file."""
    file = Devices(root).get(device, "--device")
    first = {"storage": next(iter(file.storage)), "power_mode": next(iter(file.power_modes))}
    keys = {**first, **DEFAULTS, **DEVICE_DEFAULTS.get(device, {})}
    names = ("storage", "num_workers", "batch_size", "power_mode", "dvfs")
    return Question(device, network.work.model, *(keys[name] for name in names))


def _check_sizes(side: Side, p: Parameters) -> None:
    """Refuse more samples than an epoch has, more memory than the board has, and endless epochs."""
    q, setting, e2e_s = side.question, side.setting, number(side.epoch.e2e_s)
    if q.batch_size > setting.n_samples:
        raise EpochwattError(
            f"--batch-size {q.batch_size} is more than the samples of an epoch",
            allowed=f"1 to {setting.n_samples}",
        )
    work, board = setting.work, setting.board
    activations = work.elements(setting.n_first)[work.phase == "forward"].sum()
    floats = 3 * work.parameters + float(activations)  # weights, gradients, momentum
    needed_mib = p["worker_mib"] * number(setting.num_workers) + FLOAT_BYTES * floats / 2.0**20
    if needed_mib > board.ram_mib:
        raise EpochwattError(
            f"{q.num_workers} workers and {q.model} with batch size {q.batch_size} need "
            f"{needed_mib:.0f} MiB, and {board.title} has {board.ram_mib:.0f} MiB",
            do="choose fewer --workers, a smaller --batch-size or a smaller network",
        )
    if e2e_s > LONGEST_S:
        raise EpochwattError(
            f"one epoch would take {e2e_s / LONGEST_S:.3g} years",
            allowed="up to one year",
            do="check the totals of the network and --scale",
        )


def mode_of(mode: str, twin: Twin, device: str) -> tuple[str, Clocks]:
    """Return label and clocks of a power mode; a new one is called by its numbers.

    `mode`: a label, or cores, CPU, GPU and memory clock in MHz, separated by commas.
    """
    board, modes = twin.boards[device], twin.modes[device]
    if mode in modes:
        return mode, modes[mode]
    try:
        cores, *clocks_mhz = mode.split(",")
        clocks = Clocks(int(cores), *map(float, clocks_mhz))
    except (ValueError, TypeError):
        example = ",".join(f"{n:g}" for n in next(iter(modes.values())))
        raise EpochwattError(
            f"unknown --power-mode {mode!r}",
            allowed=[*modes, f"or CORES,CPU,GPU,MEMORY with clocks in MHz, such as {example}"],
        ) from None
    try:
        check_clocks(board, clocks)
    except EpochwattError as error:
        limits = ((1, board.cores), board.cpu_mhz, board.gpu_mhz, board.emc_mhz)
        nearest = (min(max(low, n), high) for n, (low, high) in zip(clocks, limits, strict=True))
        error.do = f"try the nearest: {','.join(f'{n:g}' for n in nearest)}"
        raise
    return next((label for label, listed in modes.items() if listed == clocks), mode), clocks


def network_of(
    model: str | None, totals: Mapping[str, float], twin: Twin, root: Path, task: str = "train"
) -> Network:
    """Return a network by its name or by its totals."""
    rows = read_rows(WorkloadRow, root / "config/workloads.yaml")
    options = [f"--{name}" for name in TOTALS]
    if model is None and not totals:
        raise EpochwattError(
            "no network given", do=f"add --model, one of {', '.join(rows)}; or {' '.join(options)}"
        )
    if model is None:
        return _by_totals(totals)
    if totals:
        given = ", ".join(f"--{name}" for name in totals)
        raise EpochwattError(f"give either --model or the totals of a network ({given}), not both")
    if model not in rows:
        raise EpochwattError(
            f"unknown --model {model!r}",
            allowed=rows,
            do=f"describe another network by {' '.join(options)}",
        )
    dataset = rows[model].dataset
    if dataset not in twin.samples:
        raise EpochwattError(
            f"--model {model} trains on {dataset}, which {CONFIG}/samples.yaml does not have",
            allowed=twin.samples,
            do="add it there, or describe the network by its totals instead",
        )
    path, works = counts_path(model, task), twin.inferred if task == "infer" else twin.works
    if model in works:
        return Network(works[model], twin.samples[dataset], f"kernel counts: {path}")
    source = f"kernels counted just now; to keep the counts: .venv/bin/snakemake {path}"
    return Network(_counted(model, task, rows), twin.samples[dataset], source)


def _by_totals(totals: Mapping[str, float]) -> Network:
    if missing := [f"--{name}" for name in TOTALS if name not in totals]:
        raise EpochwattError(
            f"a network without --model needs all its totals; missing: {', '.join(missing)}"
        )
    flops, moved, launches, parameters, sample_bytes, file_bytes, pixels, n_samples = (
        totals[name] for name in TOTALS
    )
    work = generic_kernel_counts(flops, moved, int(launches), int(parameters), int(sample_bytes))
    mib = int(n_samples) * file_bytes / 2.0**20
    samples = SampleFacts(int(n_samples), file_bytes, pixels, mib, "the question")
    source = "network given by its totals: all kernels alike, each launched like a convolution"
    return Network(work, samples, f"{source} (slow)")


def _counted(model: str, task: str, rows: Mapping[str, WorkloadRow]) -> KernelCounts:
    """Count the kernels of a network now, which needs torch and takes some seconds.

    Counts of networks of this package are kept, by a name that stands for what they depend on.
    """
    try:
        kept = None if rows[model].build else CACHE / f"{model}-{task}-{_counted_by()}.json"
        if kept is not None and kept.is_file():
            return load_kernel_counts(str(kept))
        from epochwatt.counting.count_workload import network_factors, write_workload
    except ModuleNotFoundError as error:
        path = counts_path(model, task)
        raise EpochwattError(
            f"{path} does not exist, and this Python has no {error.name} to make it",
            do=f"run .venv/bin/snakemake {path} where there is torch, and copy the file here",
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/{model}.json"
        write_workload(network_factors(model, rows), path, task)
        if kept is not None:
            with suppress(OSError):  # of a checkout that may not be written to
                kept.parent.mkdir(parents=True, exist_ok=True)
                files.write_bytes(str(kept), Path(path).read_bytes())
        return load_kernel_counts(path)


def _counted_by() -> str:
    """Return a digest of what counts depend on: this code, the networks, the versions of torch."""
    code = Path(epochwatt.__file__).parent
    sources = sorted([*code.glob("counting/*.py"), *code.glob("board/training/*.py")])
    versions = [metadata.version(name) for name in ("torch", "torchvision")]
    parts = [*versions, *(source.read_text("utf-8") for source in sources)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _simulate(q: Question, twin: Twin, network: Network) -> Side:
    """Return a configuration with its simulated epoch."""
    setting = Setting(
        twin.boards[q.device],
        network.work,
        network.samples,
        q.storage,
        q.batch_size,
        Clocks(*(float(n) for n in twin.clocks(q.device, q.power_mode))),
        q.num_workers,
        q.cold,
        q.dvfs == "on",
        q.scale,
    )
    return Side(q, setting, epoch(setting, twin.parameters))
