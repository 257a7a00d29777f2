"""Measure the epochs of anybody's training loop: `EpochMonitor` (Python 3.8 to 3.14, no torch).

::

    monitor = EpochMonitor("my-run", batch_size=32, num_workers=4)
    for epoch in range(epochs):
        for images, labels in monitor.epoch(loader):
            ...
        print(monitor.last)

The records are those of the workflow: `measured/{run}/epoch-0/`, ... Nothing here raises into the
training, and nothing is printed; what goes wrong is logged (logger `epochwatt`).
"""

import _thread
import hashlib
import json
import logging
import math
import numbers
import os
import platform
import re
import shutil
import sys
import tempfile
import threading
import time
import uuid
import weakref
from contextlib import contextmanager
from dataclasses import dataclass
from typing import (
    Any,
    Callable,
    ContextManager,
    Dict,
    Iterable,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from epochwatt import columns
from epochwatt.board.training.loop import ASK, BODY, COPY, DONE, STEP, Bounds

log = logging.getLogger("epochwatt")

OWN = "own"  # study, protocol and data set of runs that are not of the workflow
RECORDED_BY = "source.json"  # beside the epochs: what the run is
COUNTS = "counts.json"  # beside it: what a mini-batch asks of a GPU, where it was counted
J_PER_WH = 3600.0
ANSWER_S = 10.0  # of the sampler to a command; what takes longer is given up
# Columns that this loop does not tell, and factors that only the workflow knows.
_UNKNOWN = ("fetch_s", "preprocess_s", "loss", "cache_policy", "seed", "torch_threads")
_ROW_COLUMNS = (  # of what `Epoch` tells, under the same names
    *("e2e_s", "wait_s", "copy_s", "compute_s", "overhead_s"),
    *("energy_wh", "energy_error_pct", "power_scope"),
)


@dataclass(frozen=True)
class Epoch:
    """One measured epoch; None: not measured, or not told apart.

    Attributes
    ----------
    epoch : number, the first is 0
    e2e_s : from before the first mini-batch was asked for to after the last, s
    wait_s : waiting for data, s
    copy_s : within `monitor.copy()`, s; None: it is never used, and a part of `compute_s`
    compute_s : within `monitor.step()`; where that is never used all of the loop's body, s
    overhead_s : the rest, s
    n_minibatches : that were trained to their end
    energy_wh, energy_error_pct : with the bound of its error, 95 of 100 cases
    power_w : mean
    power_scope : whose: `module`, `board`, `socket`, `gpu` or `cpu_package`
    flags : what speaks against it (docs/reference/columns.md)
    folder : its record; None: it could not be written
    """

    epoch: int
    e2e_s: float
    wait_s: float
    copy_s: Optional[float]
    compute_s: float
    overhead_s: float
    n_minibatches: int
    energy_wh: Optional[float]
    energy_error_pct: Optional[float]
    power_w: Optional[float]
    power_scope: Optional[str]
    flags: Tuple[str, ...]
    folder: Optional[str]

    def __str__(self) -> str:
        waiting_pct = 100.0 * self.wait_s / self.e2e_s if self.e2e_s > 0 else 0.0
        parts = [f"{self.e2e_s:.2f} s, {waiting_pct:.0f} % waiting for data"]
        parts.append(_energy_words(self.energy_wh, self.energy_error_pct, self.power_scope))
        parts.append(", ".join(self.flags) or "no flags")
        return f"epoch {self.epoch}: {'; '.join(parts)}"


@dataclass(frozen=True)
class Window:
    """Time and energy between two points of a program, from `end_window`.

    Attributes
    ----------
    name : as it was begun
    time : s
    total_energy : J; None: no sensor, and the flags say why
    energy_error : bound of its error, J, 95 of 100 cases; None: there is none
    power : mean, W
    scope : whose: `module`, `board`, `socket`, `gpu` or `cpu_package`
    flags : what speaks against it
    """

    name: str
    time: float
    total_energy: Optional[float]
    energy_error: Optional[float]
    power: Optional[float]
    scope: Optional[str]
    flags: Tuple[str, ...]

    def __str__(self) -> str:
        energy_wh = None if self.total_energy is None else self.total_energy / J_PER_WH
        error_pct = None
        if self.total_energy and self.energy_error is not None:
            error_pct = 100.0 * self.energy_error / self.total_energy
        energy = _energy_words(energy_wh, error_pct, self.scope)
        return f"{self.name}: {self.time:.2f} s; {energy}; {', '.join(self.flags) or 'no flags'}"


def _energy_words(
    energy_wh: Optional[float], error_pct: Optional[float], scope: Optional[str]
) -> str:
    if energy_wh is None:
        return "no energy"
    scope = f" ({scope})" if scope else ""
    amount = f"{energy_wh:.3g} Wh" if energy_wh >= 1.0 else f"{1000.0 * energy_wh:.3g} mWh"
    return amount + ("" if error_pct is None else f" +- {error_pct:.1f} %") + scope


class EpochMonitor:
    """Measures where the time and the energy of each epoch of a training loop go.

    Of a training of several processes (torchrun, `RANK` and `LOCAL_RANK`) each times itself; the
    first of a machine alone measures its power, so no energy is counted twice.

    Parameters
    ----------
    name : of the run. A second start of the same name and settings is the run `name.2`
    folder : where records are kept, one folder a run
    resume : go on with the epochs of the run of this name, where there are some
    power : where a board's power is read: `auto`, `sysfs`, `jtop`, `tegrastats`, `none`
    gpu_timing : `pooled`: CUDA events, nothing waits for the GPU; `synchronised`: the GPU is waited
        for at the end of each mini-batch, as in the papers
    log_to : what is told of each epoch: `tensorboard`, `tensorboard:FOLDER`, `mlflow`, `wandb`,
        `prometheus:PORT`, `jsonl:FILE`, or functions that take an `Epoch`
    settings : kept with the record: `model`, `dataset`, `batch_size`, `num_workers`, and any others

    Attributes
    ----------
    last : the latest `Epoch`; None: there is none yet, or the latest loop could not be measured
    run : id of the run, its folder's name
    """

    def __init__(
        self,
        name: str,
        *,
        folder: str = "measured",
        resume: bool = False,
        power: str = "auto",
        gpu_timing: str = "pooled",
        log_to: Union[str, Sequence[Union[str, Callable[[Epoch], Any]]], None] = (),
        **settings: Any,
    ) -> None:
        self.last: Optional[Epoch] = None
        self.run = ""
        self._name, self._folder, self._resume = str(name), os.path.abspath(str(folder)), resume
        self._power, self._settings = power, settings
        self._pid = os.getpid()
        self._rank, self._local_rank = (_environment_int(n) for n in ("RANK", "LOCAL_RANK"))
        self._observer: Any = None
        self._runs: Any = None  # RunFolder
        self._first_meta: Optional[Dict[str, Any]] = None
        self._counts: Optional[Dict[str, Any]] = None  # still to be kept with the run
        self._next = 0  # epoch to be recorded
        self._count = 0  # epoch of the loop: one whose record is lost leaves no gap
        self._loop: Optional["_Loop"] = None
        self._windows: Dict[str, Tuple[float, str]] = {}  # name -> begin, s, and folder
        self._warned: Dict[str, None] = {}
        self._log_to = [log_to] if isinstance(log_to, str) else list(log_to or ())
        self._sinks: List[Callable[[Epoch], Any]] = []
        self._gpu_timing = gpu_timing
        if gpu_timing not in ("pooled", "synchronised"):
            self._warn(f"gpu_timing is {gpu_timing!r}: pooled is taken; there is synchronised")
            self._gpu_timing = "pooled"
        self._begins = threading.Lock()
        self._running: List[Any] = []  # the sampler; ended with this object or the process
        weakref.finalize(self, _stop_samplers, self._running, self._pid)

    def __deepcopy__(self, memo: Any) -> "EpochMonitor":
        return self  # of a module that has it: there is one process to measure

    def __reduce__(self) -> Any:
        return _unpickled, (self._name,)

    def count(self, model: Any, minibatch: Any, **how: Any) -> None:
        """Count what a mini-batch asks of a GPU; kept with the run, for `epochwatt what-if --run`.

        It needs Python 3.10 and torch 2.3 or newer and computes on shapes alone.

        Parameters
        ----------
        model : a `torch.nn.Module`, on any device; it is left as it is
        minibatch : as the loader gives it: a tensor, inputs first in a tuple, or names and tensors
        how : `loss`, a function of both (without it the model's own, or the mean of what comes
            out); `optimiser`, `sgd`, `adam` or `adamw`; `precision`, `fp32`, `tf32`, `fp16`, `bf16`
        """
        if os.getpid() != self._pid or self._rank:
            return
        with self._log_errors("the network is not counted"):
            from epochwatt.counting.count_workload import count_network

            self._counts = count_network(model, minibatch, self._name, **how)
            self._keep_counts()

    def _keep_counts(self) -> None:
        from epochwatt.board.records import files

        if self._counts is not None and self._runs is not None and os.path.isdir(self._runs.path):
            files.write_json(os.path.join(self._runs.path, COUNTS), self._counts)
            self._counts = None

    # -- the loop ----------------------------------------------------------------------------------

    def epoch(self, loader: Iterable[Any]) -> Iterable[Any]:
        """Return the mini-batches of a loader, whose loop is measured as one epoch.

        The last mini-batch of a loop that is left early (`break`, an exception) is not counted. A
        loop within a measured loop is a part of it.
        """
        return _Minibatches(self, loader)

    def copy(self) -> ContextManager[None]:
        """Tell the block's time, moving a mini-batch to the device, apart as `copy_s`."""
        return self._stamp_block(COPY, BODY)

    def step(self) -> ContextManager[None]:
        """Tell the block's time as `compute_s`; what else the loop does is overhead then."""
        return self._stamp_block(STEP, DONE)

    @contextmanager
    def _stamp_block(self, begin: int, end: int) -> Iterator[None]:
        """Stamp begin and end of a block; one within another, another thread or no loop is not."""
        loop = self._loop
        is_own = loop is not None and os.getpid() == self._pid and loop.is_own()
        if loop is None or not is_own or loop.is_in_block:
            yield
            return
        loop.is_in_block = True
        loop.stamp(begin)
        try:
            yield
        finally:
            loop.stamp(end)
            loop.is_in_block = False

    def _begin(self, loader: Iterable[Any]) -> Optional["_Loop"]:
        """Start to measure a loop; None: a fork, or another loop is measured."""
        if os.getpid() != self._pid:
            return None  # a fork of the process that measures
        if not self._begins.acquire(blocking=False):
            self._warn("a loop that begins while another does is not measured")
            return None
        try:
            return self._start_loop(loader)
        finally:
            self._begins.release()

    def _start_loop(self, loader: Iterable[Any]) -> Optional["_Loop"]:
        """Start sampler and timer of a loop and return it; sets `_loop`, resets `last`."""
        if self._loop is not None:
            self._warn("a loop within a measured loop is not measured by itself")
            return None
        self.last = None
        with self._log_errors("this epoch is not measured"):
            from epochwatt.board.training.timing import make_timer

            self._start()
            folder = self._new_sample_folder(loader)
            cuda, device, gpu = _current_gpu()
            timer = make_timer(self._gpu_timing, cuda)
            self._observer.begin(folder)
            self._loop = _Loop(folder, timer, device, gpu)
        return self._loop

    def _new_sample_folder(self, loader: Iterable[Any]) -> str:
        """Make a folder for the samples of the next epoch: its record's, or else a temporary one.

        The first time it opens the run; a number that another process took is skipped.
        """
        from epochwatt.errors import EpochwattError

        if self._runs is None:
            self._open_run(loader)
        while self._runs.has(self._next):  # another process was faster
            self._next += 1
        try:
            self._runs.begin(self._next)
            return str(self._runs.attempt_path(self._next))
        except (EpochwattError, OSError) as error:
            self._warn(f"records cannot be written: {error}")
            return tempfile.mkdtemp(prefix="epochwatt-")

    def _open_run(self, loader: Iterable[Any]) -> None:
        """Choose the run's id and folder, and the number of its next epoch.

        The id is `name-digest` of the factors; where it is taken `name.2-digest`, ... unless the
        run is resumed.
        """
        from epochwatt.board.records.run_folder import RunFolder

        factors, unknown = self._factors(loader)
        canonical = json.dumps(factors, sort_keys=True, default=repr)
        digest = hashlib.sha256(canonical.encode("utf-8")).hexdigest()[:8]
        slug = re.sub(r"[^A-Za-z0-9._]+", "-", self._name).strip("-.") or "run"
        n = 1
        while True:
            rank = f".rank{self._rank}" if self._rank else ""
            self.run = f"{slug}{'' if n == 1 else f'.{n}'}-{digest}{rank}"
            runs = RunFolder(self._folder, self.run)
            if self._resume or self._claim(runs.path):
                break
            n += 1
        measured = runs.measured()
        if n > 1:
            log.warning("there is a run %s already: this start is the run %s", slug, self.run)
        self._next = self._count = measured[-1] + 1 if measured else 0
        if measured:
            log.info("the run %s goes on with epoch %d", self.run, self._next)
        self._runs = runs
        self._run_document = {
            "run": self.run,
            "schema_version": columns.SCHEMA_VERSION,
            "study": OWN,
            "factors": factors,
            "canonical": canonical,
        }
        self._unknown = unknown

    @staticmethod
    def _claim(folder: str) -> bool:
        """Make a run's folder; False: it exists, so the run is another start's.

        True where it cannot be made at all: then records are lost, which is logged later.
        """
        try:
            os.makedirs(folder)
        except FileExistsError:
            return not os.path.isdir(folder)
        except OSError:
            pass
        return True

    def _factors(self, loader: Iterable[Any]) -> Tuple[Dict[str, Any], List[str]]:
        """Return the run's factors, with other settings under `settings`, and unknown columns.

        Numbers that are not among the settings are taken from the loader's attributes.
        """
        types_of_kind = {"str": (str,), "int": (int,), "float": (int, float)}
        types = {factor.name: types_of_kind.get(factor.kind, ()) for factor in columns.FACTORS}
        machine = self._observer.machine
        known: Dict[str, Any] = {
            "setup": OWN,
            "backend": machine.backend,
            "device": machine.settings["kind"] or "host",
            "instance": platform.node() or "local",
            "model": self._name,
            "dataset": OWN,
            "dataset_source": OWN,
            "storage": OWN,
            "power_mode": "asis",
            "dvfs": "on",
            "gpu_timing": self._gpu_timing,
            "imported": "EpochMonitor",
        }
        unknown = set(_UNKNOWN)
        for name in ("num_workers", "batch_size", "prefetch_factor"):
            value = _json_value(self._settings.get(name, getattr(loader, name, None)))
            if type(value) is int:
                known[name] = value
            else:
                unknown.add(name)
        other_settings = {}
        for name, value in self._settings.items():
            value = _json_value(value)
            if type(value) in types.get(name, ()):
                known[name] = value
                unknown.discard(name)
            else:
                other_settings[name] = value
        factors = columns.with_defaults(known)
        if other_settings:
            factors["settings"] = other_settings
        return factors, sorted(unknown)

    def _end(self, loop: "_Loop", is_whole: bool) -> None:
        """End a loop: write its record, set `last` and tell the sinks.

        `is_whole`: it ran to its end. One without a whole mini-batch is dropped with a warning.
        """
        if os.getpid() != self._pid:
            return  # a fork of the process that measures
        self._loop = None
        with self._log_errors("an epoch's record is lost"):
            from epochwatt.board.training.timing import timed

            loop.timer.finish()
            bounds = Bounds(loop.start_s, time.perf_counter(), loop.start_unix_s, time.time())
            observed = self._observer.end()
            times = timed(loop.timer, bounds, is_whole)
            if len(times.minibatch_s) == 0:
                shutil.rmtree(loop.folder, ignore_errors=True)
                self._warn("a loop without a whole mini-batch is no epoch")
                return
            meta = self._make_record(loop, times, observed, is_whole)
            record_folder = self._write_record(meta, times.minibatch_s)
            self.last = self._make_epoch(meta, times.minibatch_s, loop.folder, record_folder)
            self._count += 1
            if record_folder is None:
                shutil.rmtree(loop.folder, ignore_errors=True)
            else:
                self._next += 1
            self._log_epoch(self.last)

    def _log_epoch(self, epoch: Epoch) -> None:
        """Pass an epoch to the sinks of `log_to`; the first time open them."""
        from epochwatt.sinks import open_sink

        unopened, self._log_to = self._log_to, []
        for sink in unopened:
            with self._log_errors(f"nothing is logged to {sink}"):
                self._sinks.append(open_sink(sink, self.run))
        for log_to_sink in self._sinks:
            with self._log_errors("an epoch is not logged"):
                try:
                    log_to_sink(epoch)
                except SystemExit as error:
                    raise RuntimeError("a sink wants to end the program") from error

    def _write_record(self, meta: Dict[str, Any], minibatch_s: Any) -> Optional[str]:
        """Write the record of an epoch; return its folder, None: it cannot be written."""
        from epochwatt.board.records import files
        from epochwatt.errors import EpochwattError

        try:
            path = os.path.join(self._runs.path, RECORDED_BY)
            if not os.path.exists(path):
                files.write_json(path, json.loads(json.dumps(self._run_document, default=repr)))
            self._keep_counts()
            self._runs.finish(self._next, meta, minibatch_s)
            return str(self._runs.epoch_path(self._next))
        except (EpochwattError, OSError) as error:
            self._warn(f"records cannot be written: {error}")
            return None

    def _make_record(
        self, loop: "_Loop", times: Any, observed: Dict[str, Any], is_whole: bool
    ) -> Dict[str, Any]:
        """Return the record of an epoch: machine, sensors, times, factors and flags."""
        from epochwatt.board.training.observation import circumstances, raised
        from epochwatt.board.training.timing import times_of

        is_first, is_elsewhere = self._count == 0, self._local_rank > 0
        meta: Dict[str, Any] = circumstances(self._observer.machine, loop.device, loop.gpu)
        meta.update(observed, **self._observer.sensors(), **times_of(times))
        meta.update(
            run=self.run,
            rank=self._rank,
            epoch=self._next,
            measurement_id=uuid.uuid4().hex,
            factors=self._run_document["factors"],
            cold_process=is_first,
            n_samples=None,
            loss=None,
            fetch_s=0.0,
            preprocess_s=0.0,
            unknown=self._unknown + ([] if loop.timer.has(COPY) else ["copy_s"]),
            flags=raised(
                {
                    "cold_process": is_first,
                    "left_early": not is_whole,
                    "power_elsewhere": is_elsewhere,
                    "sampler_lost": observed["telemetry_lost"] and not is_elsewhere,
                }
            ),
        )
        return meta

    def _make_epoch(
        self, meta: Dict[str, Any], minibatch_s: Any, loop_folder: str, folder: Optional[str]
    ) -> Epoch:
        """Compute time, energy and flags of an epoch as the workflow's tables have them.

        The samples lie in the record's `folder`; where it was not written, in `loop_folder`.
        """
        from epochwatt.board.records.run_folder import EpochRecord
        from epochwatt.epochs.collect import epoch_row
        from epochwatt.epochs.telemetry import read_all

        self._first_meta = self._first_meta or meta
        statistics = self._observer.statistics
        minibatch_s = minibatch_s.astype("float32")
        record = EpochRecord(meta, minibatch_s, statistics, folder or loop_folder)
        row, _ = epoch_row(record, read_all(record), self._first_meta, columns.FLAG_EFFECTS)
        return Epoch(
            epoch=self._count,
            n_minibatches=meta["n_minibatches"],
            power_w=row["power_mean_w"],
            flags=tuple(sorted(row["flags"])),
            folder=folder,
            **{name: row[name] for name in _ROW_COLUMNS},
        )

    # -- windows -----------------------------------------------------------------------------------

    def begin_window(self, name: str) -> None:
        """Begin to measure time and energy; windows may lie in epochs and in one another."""
        if os.getpid() != self._pid:
            return
        name = str(name)
        if name in self._windows:
            self._warn(f"the window {name} is begun again before it was ended")
            self._drop_window(name)
        folder = ""
        with self._log_errors(f"the window {name} has no energy"):
            self._start()
            folder = tempfile.mkdtemp(prefix="epochwatt-")
            self._observer.sampler.begin(folder)
        self._windows[name] = time.perf_counter(), folder

    def end_window(self, name: str) -> Window:
        """End a window; return its time, energy and flags."""
        end_s, name = time.perf_counter(), str(name)
        if os.getpid() != self._pid:
            return Window(name, 0.0, None, None, None, None, ("sampler_lost",))
        if name not in self._windows:
            self._warn(f"the window {name} was not begun")
            return Window(name, 0.0, None, None, None, None, ("not_begun",))
        start_s, folder = self._windows.pop(name)
        found = Window(name, end_s - start_s, None, None, None, None, ("sampler_lost",))
        with self._log_errors(f"the window {name} has no energy"):
            found = self._energy_of_window(name, start_s, end_s, folder)
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        return found

    def _energy_of_window(self, name: str, start_s: float, end_s: float, folder: str) -> Window:
        """End the samples of a window and integrate the power of the widest scope over it."""
        import numpy as np

        from epochwatt.board.records.samples import read_source
        from epochwatt.epochs.collect import voids_energy
        from epochwatt.epochs.telemetry import scope_energy

        sources = self._observer.sampler.end(folder)["sources"]
        names = {s["scope"]: n for n, s in sources.items() if s["scope"] and s["total"]}
        scope = columns.widest_scope(names)
        length_s = end_s - start_s
        if scope is None:
            flag = "power_missing" if sources else "sampler_lost"
            flag = "power_elsewhere" if self._local_rank > 0 else flag
            return Window(name, length_s, None, None, None, None, (flag,))
        source = sources[names[scope]]
        table = read_source(folder, names[scope], source)
        no_stalls = np.empty(0), np.empty(0)
        energy = scope_energy((start_s, end_s), table, source, no_stalls)
        is_void = voids_energy(energy.flags, columns.FLAG_EFFECTS)
        energy_j = None if is_void or np.isnan(energy.energy_j) else float(energy.energy_j)
        error_j = None
        # regular readings may be in step with the window's mini-batches, which are not known
        is_bounded = not np.isnan(energy.error_pct) and "power_sampling_regular" not in energy.flags
        if energy_j is not None and is_bounded:
            error_j = float(energy_j * energy.error_pct / 100.0)
        power_w = None if energy_j is None or length_s <= 0 else energy_j / length_s
        flags = tuple(sorted(energy.flags))
        return Window(name, length_s, energy_j, error_j, power_w, scope, flags)

    def _drop_window(self, name: str) -> None:
        _, folder = self._windows.pop(name)
        if folder:
            with self._log_errors(f"the window {name} cannot be forgotten"):
                self._observer.sampler.drop(folder)
            shutil.rmtree(folder, ignore_errors=True)

    # -- the sampler -------------------------------------------------------------------------------

    def _start(self) -> None:
        """Start the sampler and look at the machine, the first time."""
        if self._observer is not None:
            return
        from epochwatt.board.device.machine import open_this_machine
        from epochwatt.board.telemetry.client import Sampler
        from epochwatt.board.telemetry.discover import no_power_remedy
        from epochwatt.board.training.observation import Observer

        machine = open_this_machine(self._power)
        # the other ranks are children of the same launcher
        tree = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else os.getpid()
        power = self._power if machine.settings["kind"] else "none"
        options: Dict[str, Any] = {"timeout_s": ANSWER_S, "power": power}
        running, is_elsewhere = self._running, self._local_rank > 0

        def start() -> None:  # a thread that stays must not hold this object
            if is_elsewhere:
                running.append(Sampler(lost="another process measures this machine"))
            else:
                running.append(
                    Sampler.start(tree, os.getcwd(), 0, gpu=_current_gpu()[2], **options)
                )

        _start_in_lasting_thread(start)
        sampler = running[-1]
        self._observer = Observer(machine, sampler=sampler)
        if self._power != "none" and sampler.sources and not any(sampler.sources.values()):
            why = "; ".join(sampler.refused.values())
            remedy = why or no_power_remedy(kind=machine.settings["kind"])
            self._warn(f"no power sensor can be read, so there will be no energy: {remedy}")

    def close(self) -> None:
        """End the sampler; a process that ends does it by itself."""
        if os.getpid() != self._pid or self._observer is None:
            return
        for name in list(self._windows):
            self._drop_window(name)
        with self._log_errors("the sampler cannot be ended"):
            _stop_samplers(self._running, self._pid)
        self._observer = None

    def __enter__(self) -> "EpochMonitor":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextmanager
    def _log_errors(self, what: str) -> Iterator[None]:
        """Log what the block raises; the training goes on."""
        try:
            yield
        except Exception as error:  # nothing of ours may end a training
            self._warn(f"{what}: {type(error).__name__}: {error}")
            log.debug("in full", exc_info=True)

    def _warn(self, message: str) -> None:
        """Log a warning, each once."""
        if message not in self._warned:
            self._warned[message] = None
            log.warning("%s", message)


class _Minibatches:
    """The mini-batches of a loader, in a loop that is measured."""

    def __init__(self, monitor: EpochMonitor, loader: Any) -> None:
        self._monitor, self._loader = monitor, loader

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        loop = self._monitor._begin(self._loader)
        if loop is None:
            yield from self._loader
            return
        stamp, is_whole = loop.stamp, False
        handed_over: List[Any] = []
        try:
            stamp(ASK)
            for minibatch in self._loader:
                stamp(BODY)
                handed_over.append(minibatch)
                del minibatch  # no reference stays here: the loop's body may free it
                yield handed_over.pop()
                stamp(ASK)
            is_whole = True
        finally:
            try:
                self._monitor._end(loop, is_whole)
            except KeyboardInterrupt:  # Python drops what a generator raises while it is closed
                threading.Timer(0.05, _thread.interrupt_main).start()


class _Loop:
    """A loop under way; `device` and `gpu` are None and `any` where it is not on a GPU."""

    def __init__(self, folder: str, timer: Any, device: Any, gpu: str) -> None:
        self.folder, self.timer, self.device, self.gpu = folder, timer, device, gpu
        self.stamp: Callable[[int], None] = timer.stamp
        self.is_in_block = False  # a block of `copy` or `step`
        self._thread = threading.get_ident()
        self.start_unix_s, self.start_s = time.time(), time.perf_counter()

    def is_own(self) -> bool:
        """Return whether it runs in this thread."""
        return self._thread == threading.get_ident()


def _json_value(value: Any) -> Any:
    """Return a setting as a bool, int, finite float or text that JSON holds; else its `repr`."""
    if isinstance(value, bool):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else str(float(value))
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception:  # noqa: BLE001  of a stranger's object
        text = ""
    if not isinstance(value, str) and (not text or " at 0x" in text):
        text = f"a {type(value).__name__}"  # an address would be another one at the next start
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _unpickled(name: str) -> EpochMonitor:
    """Return a monitor that measures nothing: it was sent to another process."""
    monitor = EpochMonitor(name)
    monitor._pid = -1
    return monitor


def _stop_samplers(running: List[Any], pid: int) -> None:
    """End the samplers of a process, unless this is a fork of it."""
    while running and os.getpid() == pid:
        running.pop().stop()


def _start_in_lasting_thread(start: Callable[[], None]) -> None:
    """Run `start` in a thread that never ends: a sampler dies with the thread that started it."""
    if threading.current_thread() is threading.main_thread():
        start()
        return
    started = threading.Event()

    def keep() -> None:
        try:
            start()
        finally:
            started.set()
        threading.Event().wait()

    threading.Thread(target=keep, daemon=True).start()
    started.wait()


def _environment_int(variable: str) -> int:
    """Return a number of the environment, 0 where there is none."""
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else 0


def _current_gpu() -> Tuple[Any, Any, str]:
    """Return `torch.cuda`, the current device and the GPU's UUID (`which_gpu.gpu_of`).

    None, None and `any` where this process does not compute on a GPU.
    """
    from epochwatt.board.telemetry.which_gpu import ANY, gpu_of

    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not (cuda.is_available() and cuda.is_initialized()):
        return None, None, ANY
    device = torch.device("cuda", cuda.current_device())  # type: ignore[union-attr]
    return cuda, device, gpu_of(device, torch)
