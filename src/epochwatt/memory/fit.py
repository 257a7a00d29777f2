"""Find whether a training fits into a device's memory, its largest mini-batch, and what to change.

Memory is forecast (`board.training.allocated`, `resident`); time and energy of an epoch are those
of the simulated board, where there is one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from epochwatt.board.device import host
from epochwatt.board.device.kinds import KINDS
from epochwatt.board.training import resident
from epochwatt.board.training.allocated import Allocated, Manner, libraries_mib
from epochwatt.board.training.language_models import RANK
from epochwatt.board.training.optimisers import ADAM, ADAMW, SGD
from epochwatt.board.training.resident import MIB, Constants, Need
from epochwatt.errors import ConfigError
from epochwatt.memory.networks import LENGTH, NF4, Asked, Tuning, find
from epochwatt.memory.repeated import memory_of
from epochwatt.memory.simulated import Epoch, Simulator, simulator
from epochwatt.study.config import Device
from epochwatt.study.devices import Devices

HOST = "host"


@dataclass(frozen=True)
class Request:
    """A question to `fit`; None: the default of the network or the device."""

    model: str
    like: str | None = None
    device: str | None = None
    batch_size: int = 16
    precision: str = "fp32"
    optimiser: str | None = None
    checkpointing: bool = False
    accumulate: int = 1
    num_workers: int = 4
    prefetch_factor: int = 2
    length: int = LENGTH
    lora: int = 0
    weights: str = "fp32"
    samples: int | None = None
    memory_gib: float | None = None
    task: str = "train"

    threshold: int | None = None  # of malloc, MALLOC_MMAP_THRESHOLD_

    @property
    def tuning(self) -> Tuning:
        """Return which weights are trained, and how they are kept."""
        return Tuning(self.lora, self.weights)


@dataclass(frozen=True)
class Way:
    """One way to train, and what it takes."""

    change: str  # of what was asked
    request: Request
    tensors: Allocated
    need: Need
    largest: int  # mini-batch that fits
    epoch: Epoch | None


@dataclass(frozen=True)
class Answer:
    """Whether a training fits, and what to change."""

    device: Device
    asked: Asked
    constants: Constants
    room: int  # bytes that it may take
    room_source: str
    now: Way
    killed: int  # least power of two that would be killed even if the forecast were too high
    changes: tuple[Way, ...]
    simulator: Simulator

    def verdict(self, need: Need) -> str:
        """Return whether a need is within the room: `fits` with its margin, `tight` or `no`."""
        if with_margin(need, self.constants) <= self.room:
            return "fits"
        return "tight" if at_least(need, self.constants) <= self.room else "no"


def with_margin(need: Need, constants: Constants) -> int:
    """Return what must be free for a need to fit, bytes."""
    return int(need.total * (1.0 + constants.margin))


def at_least(need: Need, constants: Constants) -> int:
    """Return what a need takes at least: files given back, forecast too high by its margin."""
    return int((need.total - constants.files * MIB) / (1.0 + constants.margin))


def bounds(
    need: Callable[[int], Need], constants: Constants, room: int, first: int
) -> tuple[int, int]:
    """Return the largest batch size that fits, and the least power of two that would be killed."""
    largest = resident.largest(lambda n: with_margin(need(n), constants), room, first)
    killed = 1 << largest.bit_length()
    while at_least(need(killed), constants) <= room:
        killed *= 2
    return largest, killed


def answer(request: Request, root: Path = Path()) -> Answer:
    """Answer a request; EpochwattError: an unknown name, or a network that cannot be forecast."""
    devices = Devices(root)
    here = next(iter(devices.here()), HOST)
    name = request.device or here
    device = devices.get(name, "--device")
    constants = resident.constants_of(device.board)
    room, room_source = _room(request, device, name == here)

    @cache
    def asked_for(tuning: Tuning) -> Asked:
        return find(request.model, request.like, request.length, tuning, root)

    asked = asked_for(request.tuning)
    simulates = simulator(name, asked.samples, asked_for, root)
    request = replace(
        request,
        device=name,
        optimiser=request.optimiser or asked.optimiser,
        samples=request.samples or asked.samples.n_samples,
    )

    @cache
    def memory(tuning: Tuning, how: Manner) -> Callable[[int], Allocated]:
        of = asked_for(tuning)
        return cache(memory_of(of.subject, of.stack, how))

    def manner(of: Request) -> Manner:
        optimiser, on_gpu = of.optimiser or SGD, bool(device.board)
        return Manner(of.precision, optimiser, of.task, of.checkpointing, of.accumulate, on_gpu)

    def need(of: Request, batch_size: int) -> Need:
        data_mib = 0.0 if asked.samples.file_bytes else asked.samples.mib
        return resident.need_of(
            memory(of.tuning, manner(of))(batch_size),
            constants,
            of.num_workers,
            of.prefetch_factor,
            int(data_mib * MIB),
            of.threshold,
            libraries_mib(manner(of), constants),
        )

    def way(change: str, of: Request) -> Way:
        largest = resident.largest(
            lambda n: with_margin(need(of, n), constants), room, of.batch_size
        )
        epoch = simulates.epoch(of) if of.batch_size <= (of.samples or 1) else None
        counted = memory(of.tuning, manner(of))(of.batch_size)
        return Way(change, of, counted, need(of, of.batch_size), largest, epoch)

    now = way("as asked", request)
    changes = [way(*change) for change in _changes(request, device, is_config=asked.is_config)]
    _, killed = bounds(lambda n: need(request, n), constants, room, request.batch_size)
    return Answer(
        device,
        asked,
        constants,
        room,
        room_source,
        now,
        killed,
        tuple(sorted(changes, key=lambda way: way.need.total)),
        simulates,
    )


def _room(request: Request, device: Device, is_here: bool) -> tuple[int, str]:
    """Return the bytes that a training may take, and where they are from."""
    if request.memory_gib is not None:
        return int(request.memory_gib * 2**30), "--memory-gib"
    if is_here and device.sysroot == "/":
        return host.free_memory(), "free on this machine now"
    ram_mib = KINDS[device.board].ram_mib if device.board else None
    if ram_mib is None:
        raise ConfigError(
            f"the memory of {device.title} is not known here",
            do="run it there, or add --memory-gib with what is free",
        )
    is_thor = device.board == "agx_thor"
    system_mib = resident.THOR_SYSTEM_MIB if is_thor else resident.SYSTEM_MIB
    words = f"{ram_mib:,} MiB less {system_mib:,} for the system (assumed)"
    return (ram_mib - system_mib) * MIB, words


def _changes(request: Request, device: Device, is_config: bool) -> Iterator[tuple[str, Request]]:
    """Yield changes that may save memory, in words, and the request with each."""
    batch_size, workers = request.batch_size, request.num_workers
    if batch_size > 1:
        yield f"batch size {batch_size // 2}", replace(request, batch_size=batch_size // 2)
    if request.task == "train":
        if batch_size > 3 and request.accumulate == 1:
            parts = replace(request, batch_size=batch_size // 4, accumulate=4)
            yield f"batch size {batch_size // 4}, gradients of 4 accumulated", parts
        if not request.checkpointing:
            yield "checkpointing of blocks", replace(request, checkpointing=True)
        if request.optimiser in (ADAM, ADAMW):
            yield "optimiser sgd", replace(request, optimiser=SGD)
        rank = request.lora or RANK
        if is_config and not request.lora:
            yield f"LoRA of rank {rank}", replace(request, lora=rank)
        if is_config and request.weights != NF4:
            words = f"LoRA of rank {rank} on weights of four bits (QLoRA)"
            yield words, replace(request, lora=rank, weights=NF4)
    if is_config and request.weights == "fp32":
        yield "weights in bf16", replace(request, weights="bf16")
    if request.precision in ("fp32", "tf32"):
        half = "fp16" if device.board in resident.OLD_CUDA else "bf16"
        yield f"precision {half}", replace(request, precision=half)
    if workers:
        yield f"workers {workers // 2}", replace(request, num_workers=workers // 2)
    if not device.board and request.threshold is None:
        threshold = resident.MMAP_THRESHOLD
        words = f"MALLOC_MMAP_THRESHOLD_={threshold}"
        yield words, replace(request, threshold=threshold)
