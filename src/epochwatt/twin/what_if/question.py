"""`epochwatt what-if`: one question to a simulated board, and how far the answer can be trusted.

The answer is the closed form's (`steady`): an epoch of the long run, or one with a cold page cache.
What a question leaves out is the default of SIGMETRICS 2023, section 4.4.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from epochwatt.errors import EpochwattError
from epochwatt.published.numbers import DEFAULTS, DEVICE_DEFAULTS
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import Devices, read_rows
from epochwatt.twin.calibration.power_modes import load_modes
from epochwatt.twin.calibration.queries import Modes, Question
from epochwatt.twin.inputs.boards import Board
from epochwatt.twin.inputs.kernel_counts import Workload, generic_workload, load_workload
from epochwatt.twin.inputs.numbers import number
from epochwatt.twin.inputs.parameters import Parameters
from epochwatt.twin.inputs.samples import SampleFacts
from epochwatt.twin.inputs.twin import Twin, load_twin
from epochwatt.twin.model.epoch import FLOAT_BYTES, Setting, epoch
from epochwatt.twin.model.power import Clocks
from epochwatt.twin.model.storage import MEDIA
from epochwatt.twin.what_if.answer import CONFIG, Answer, Side, answer_lines

WORKLOADS = Path("results/twin/workloads")
LONGEST_S = 365.25 * 86400.0  # of an epoch; what takes longer is a slip
ROUNDED_MHZ = 1.0  # nominal clocks are rounded: this far beyond a limit still is the limit
TOTALS = {  # option -> name
    "flops": "--flops",
    "moved_bytes": "--bytes",
    "launches": "--launches",
    "parameters": "--parameters",
    "sample_bytes": "--sample-bytes",
    "file_bytes": "--file-bytes",
    "pixels": "--pixels",
    "samples": "--samples",
}
MAY_BE_ZERO = ("file_bytes", "pixels")
CLOCKS = {"cores": "cores", "cpu_mhz": "CPU MHz", "gpu_mhz": "GPU MHz", "emc_mhz": "memory MHz"}


@dataclass(frozen=True)
class Asked:
    """A question as the options tell it; None: not told.

    Attributes
    ----------
    device : a board, or that and a unit of it: `agx`, `agx-d1`; units are simulated alike
    """

    device: str
    model: str | None
    totals: Mapping[str, float | None]
    storage: str | None = None
    workers: int | None = None
    power_mode: str | None = None
    batch_size: int | None = None
    dvfs: str | None = None
    scale: float | None = None
    cold: bool = False


class Network(NamedTuple):
    """A network, its samples, and where its counts are from, in words."""

    work: Workload
    samples: SampleFacts
    source: str


def what_if_lines(asked: Asked, root: Path = Path()) -> list[str]:
    """Return the answer to a question.

    Parameters
    ----------
    asked : the question
    root : the checkout

    Raises
    ------
    EpochwattError : a key is missing or cannot be: what was found, what is allowed
    """
    works = {path.stem: str(path) for path in sorted((root / WORKLOADS).glob("*.json"))}
    twin = load_twin(root / CONFIG, works)
    asked = replace(asked, device=_board_of(asked.device, twin, root))
    network = network_of(asked, twin, root)
    modes = {device: dict(own) for device, own in load_modes(list(twin.boards), root).items()}
    default = default_of(asked.device, network)
    question = _question(asked, default, twin.boards[asked.device], modes[asked.device])
    here, there = (_side(q, twin, network, modes) for q in (question, default))
    _check_sizes(asked, here, twin.parameters)
    too_large = asked.model in Devices(root).get(asked.device, "--device").out_of_memory
    return answer_lines(Answer(here, there, twin, modes, network.source, too_large), root)


def _wrong(option: str, found: Any, allowed: str) -> EpochwattError:
    return EpochwattError(f"{option} is {found}\n  allowed: {allowed}")


def _board_of(told: str, twin: Twin, root: Path) -> str:
    """Return the board that is told, without its unit."""
    name, dash, unit = told.partition("-")
    if name not in twin.boards:
        raise _wrong("--device", told, ", ".join(twin.boards))
    units = Devices(root).get(name, "--device").instances
    if dash and unit not in units:
        raise _wrong("--device", told, ", ".join([name, *(f"{name}-{one}" for one in units)]))
    return name


def default_of(device: str, network: Network) -> Question:
    """Return the paper's default configuration of a board and a network."""
    keys = {**DEFAULTS, **DEVICE_DEFAULTS[device]}
    names = ("storage", "num_workers", "batch_size", "power_mode", "dvfs")
    return Question(device, network.work.model, *(keys[name] for name in names))


def _question(asked: Asked, default: Question, board: Board, modes: dict[str, Clocks]) -> Question:
    """Return what is asked, completed and checked; a mode told by numbers is added to `modes`."""
    for option, value, least in (
        ("--workers", asked.workers, 0),
        ("--batch-size", asked.batch_size, 1),
    ):
        if value is not None and value < least:
            raise _wrong(option, value, f"{least} or more")
    if asked.scale is not None and not 0 < asked.scale < float("inf"):
        raise _wrong("--scale", asked.scale, "a number above 0")
    if asked.storage is not None and asked.storage not in MEDIA:
        raise _wrong("--storage", asked.storage, ", ".join(MEDIA))
    given: dict[str, Any] = {
        "storage": asked.storage,
        "num_workers": asked.workers,
        "batch_size": asked.batch_size,
        "power_mode": asked.power_mode and mode_of(asked.power_mode, board, modes),
        "dvfs": asked.dvfs,
        "scale": asked.scale,
    }
    told = {key: value for key, value in given.items() if value is not None}
    return default._replace(cold=asked.cold, **told)


def _check_sizes(asked: Asked, here: Side, p: Parameters) -> None:
    """Refuse more samples than an epoch has, more memory than the board has, and endless epochs."""
    setting, e2e_s = here.setting, number(here.found.e2e_s)
    if asked.batch_size is not None and asked.batch_size > setting.n_samples:
        told = f"1 to {setting.n_samples}, the samples of an epoch"
        raise _wrong("--batch-size", asked.batch_size, told)
    q, board, needed_mib = here.question, setting.board, _needed_mib(setting, p)
    if needed_mib > board.ram_mib:
        raise EpochwattError(
            f"{q.num_workers} workers and {q.model} with batch {q.batch_size} would need "
            f"{needed_mib:.0f} MiB, and {board.title} has {board.ram_mib:.0f} MiB\n"
            "  allowed: fewer --workers, a smaller --batch-size, or a smaller network"
        )
    if e2e_s > LONGEST_S:
        raise EpochwattError(
            f"one epoch would take {e2e_s / LONGEST_S:.3g} years\n"
            "  allowed: up to one; look at the totals of the network and at --scale"
        )


def _needed_mib(setting: Setting, p: Parameters) -> float:
    """Return the memory of the workers, and of weights, gradients, momentum and activations."""
    work = setting.work
    activations = work.elements(setting.n_first)[work.phase == "forward"].sum()
    floats = 3 * work.parameters + float(activations)
    return p["worker_mib"] * number(setting.num_workers) + FLOAT_BYTES * floats / 2.0**20


def mode_of(told: str, board: Board, modes: dict[str, Clocks]) -> str:
    """Return the label of a power mode; one told by numbers is added to `modes` where it is new.

    Parameters
    ----------
    told : a label of `modes`, or cores, CPU, GPU and memory clock in MHz with commas between
    board : whose limits hold
    """
    if told in modes:
        return told
    try:
        numbers = [float(part) for part in told.split(",")]
        clocks = Clocks(*numbers)
    except (ValueError, TypeError):
        raise _wrong(
            "--power-mode",
            repr(told),
            f"{', '.join(modes)}, or numbers: {','.join(CLOCKS)}, such as "
            f"{','.join(f'{n:g}' for n in next(iter(modes.values())))}",
        ) from None
    _check_limits(told, clocks, board)
    for label, mode in modes.items():
        if mode == clocks:
            return label
    modes[told] = clocks
    return told


def _check_limits(told: str, clocks: Clocks, board: Board) -> None:
    limits = {"cores": (1.0, float(board.cores))}
    limits |= {key: getattr(board, key) for key in list(CLOCKS)[1:]}
    nearest = {key: _within(getattr(clocks, key), *limits[key]) for key in CLOCKS}
    far = [
        f"{CLOCKS[key]} {low:g} to {high:g}"
        for key, (low, high) in limits.items()
        if not abs(getattr(clocks, key) - nearest[key]) <= (ROUNDED_MHZ if key != "cores" else 0.0)
    ]
    if far or clocks.cores != int(clocks.cores):
        nearest["cores"] = float(round(nearest["cores"]))
        allowed = "; ".join(far) or "a whole number of cores"
        raise _wrong(
            "--power-mode",
            told,
            f"{allowed} on {board.title}; the nearest is "
            f"{','.join(f'{n:g}' for n in nearest.values())}",
        )


def _within(value: float, low: float, high: float) -> float:
    return min(max(value, low), high) if value == value else low


def network_of(asked: Asked, twin: Twin, root: Path) -> Network:
    """Return the network that is asked for, by its name or by its totals."""
    told = {name: value for name, value in asked.totals.items() if value is not None}
    rows = read_rows(WorkloadRow, root / "config/workloads.yaml")
    if asked.model is None and not told:
        raise EpochwattError(
            "neither a model nor totals are told\n"
            f"  needed: --model with {', '.join(rows)}; or {' '.join(TOTALS.values())}"
        )
    if asked.model is None:
        return _by_totals(told)
    if told:
        raise EpochwattError(
            f"--model {asked.model} stands beside {', '.join(TOTALS[name] for name in told)}\n"
            "  allowed: either a model, or a network told by its totals"
        )
    if asked.model not in rows:
        raise _wrong(
            "--model", asked.model, f"{', '.join(rows)}; or totals: {' '.join(TOTALS.values())}"
        )
    dataset = rows[asked.model].dataset
    if dataset not in twin.samples:
        raise EpochwattError(
            f"--model {asked.model} trains on {dataset}, which {CONFIG}/samples.yaml does not have"
            f"\n  it has: {', '.join(twin.samples)}; add it there, or tell totals instead"
        )
    path = WORKLOADS / f"{asked.model}.json"
    if asked.model in twin.works:
        return Network(twin.works[asked.model], twin.samples[dataset], f"counts: {path}")
    source = f"counted just now; to keep the counts: .venv/bin/snakemake {path}"
    return Network(_counted(asked.model, rows), twin.samples[dataset], source)


WHOLE, MOST = ("launches", "parameters", "sample_bytes", "samples"), 1e12
_ALIKE = "totals: kernels taken as alike and each launched as a convolution, which is too slow"


def _by_totals(told: Mapping[str, float]) -> Network:
    if missing := [option for name, option in TOTALS.items() if name not in told]:
        raise EpochwattError(
            f"a network without --model needs all its totals; missing: {', '.join(missing)}"
        )
    for name, option in TOTALS.items():
        least = "0 or more" if name in MAY_BE_ZERO else "above 0"
        if not (0 <= told[name] < float("inf")) or (not told[name] and name not in MAY_BE_ZERO):
            raise _wrong(option, told[name], f"a number {least}")
        if name in WHOLE and (told[name] != int(told[name]) or told[name] > MOST):
            raise _wrong(option, told[name], f"a whole number, at most {MOST:.0e}")
    whole = {name: int(told[name]) for name in ("launches", "parameters", "sample_bytes")}
    work = generic_workload(told["flops"], told["moved_bytes"], **whole)
    n_samples, file_bytes = int(told["samples"]), told["file_bytes"]
    mib = n_samples * file_bytes / 2.0**20
    samples = SampleFacts(n_samples, file_bytes, told["pixels"], mib, "the question")
    return Network(work, samples, _ALIKE)


def _counted(model: str, rows: Mapping[str, WorkloadRow]) -> Workload:
    """Count a network here and now, which needs torch and some seconds."""
    try:
        from epochwatt.twin.counting.count_workload import network_factors, write_workload
    except ModuleNotFoundError as error:
        raise EpochwattError(
            f"{WORKLOADS}/{model}.json is not there, and this Python has no {error.name} to "
            f"count {model}\n"
            f"  do: where torch is, .venv/bin/snakemake {WORKLOADS}/{model}.json, and copy the file"
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/{model}.json"
        write_workload(network_factors(model, rows), path)
        return load_workload(path)


def _side(q: Question, twin: Twin, network: Network, modes: Modes) -> Side:
    """Return a configuration and what the closed form says to it."""
    setting = Setting(
        twin.boards[q.device],
        network.work,
        network.samples,
        q.storage,
        q.batch_size,
        Clocks(*(float(n) for n in modes[q.device][q.power_mode])),
        q.num_workers,
        q.cold,
        q.dvfs == "on",
        q.scale,
    )
    return Side(q, setting, epoch(setting, twin.parameters))
