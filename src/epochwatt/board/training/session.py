"""Measure epochs of one run in one process (board side: Python 3.6 grammar; imports torch)."""

import copy
import hashlib
import json
import logging
import math
import os
import time
import uuid
from contextlib import contextmanager
from typing import Any, Iterator, List, Optional, Tuple

import torch

from epochwatt.board.device import host, notes, page_cache, remedies
from epochwatt.board.device.machine import Machine
from epochwatt.board.records.run_folder import CHECKPOINT, RunFolder
from epochwatt.board.records.shapes import Document
from epochwatt.board.telemetry.discover import AUTO
from epochwatt.board.telemetry.which_gpu import gpu_of, why_none
from epochwatt.board.training import arithmetic, checkpoint, timing
from epochwatt.board.training.data import dataset_paths, open_dataset
from epochwatt.board.training.loaders import TimedMinibatches, make_loader
from epochwatt.board.training.loop import run_epoch
from epochwatt.board.training.memory_check import check_memory
from epochwatt.board.training.observation import (
    EpochObserver,
    circumstances,
    has_stopped,
    noticed_stops,
    raised,
)
from epochwatt.board.training.progress import Progress
from epochwatt.board.training.workloads import Trainer, make_trainer, transform_of, workload_of
from epochwatt.columns import Factors
from epochwatt.errors import DamagedError, RecordError, TrainingError

log = logging.getLogger(__name__)

WARMUP = -1  # stands for the number of an epoch
WARMUP_MINIBATCHES = 3  # enough for context, kernels and allocators


class MadeUpSamples:
    """One raw sample in memory, again and again: the warm-up must read no disk."""

    def __init__(self, raw: Any, n_samples: int) -> None:
        self._raw = raw
        self._n = n_samples

    def __len__(self) -> int:
        return self._n

    def read(self, index: int) -> Tuple[Any, int]:
        """Return a new raw sample and its label: a transform may change what it is given."""
        return copy.deepcopy(self._raw), 0


def epoch_seed(seed: int, epoch: int) -> int:
    """Return the seed of one epoch: random state is derived, never carried from epoch to epoch."""
    digest = hashlib.sha256(f"{seed}/{epoch}".encode("ascii")).digest()
    return int.from_bytes(digest[:7], "big")


class Session:
    """Trains and measures epochs of one run, one after the other, in this process.

    `folder`: where the run's epochs are kept
    `factors`: all of the run's factors, with `recipe`
    `data_root`: folder of the storage medium that holds the data set
    `machine`: the machine at hand, in the run's power mode
    `conditions`: how it was made ready, for the records; empty on a host
    `inside`: the container of this process, for the records; None: there is none
    """

    def __init__(
        self,
        folder: RunFolder,
        factors: Factors,
        data_root: str,
        machine: Machine,
        conditions: Document,
        inside: Optional[Document] = None,
    ) -> None:
        self.folder, self.factors, self.machine = folder, factors, machine
        self.conditions, self.inside = conditions, inside
        if factors["torch_threads"]:
            torch.set_num_threads(factors["torch_threads"])
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if self.device.type == "cpu" and machine.backend == "jetson":
            log.warning("training runs on the CPU: %s", remedies.in_full(why_none(torch)))
        self.source, self.manifest = open_dataset(data_root, factors)
        self.workload = workload_of(factors)
        if not folder.has(0):
            check_memory(factors, self.workload, machine, self.device.type == "cuda")
        arithmetic.check(factors, self.device)
        self.gpu = gpu_of(self.device, torch)
        paths = dataset_paths(data_root, factors, self.manifest)
        for data_folder in {os.path.dirname(os.path.realpath(path)) for path in paths}:
            machine.check_medium(data_folder)
        in_memory = getattr(self.source, "in_memory", False)
        power = self._power_source()
        self.monitor = EpochObserver(paths, in_memory, factors, machine, self.gpu, power)
        self.transform = transform_of(self.workload, factors)
        self.trainer: Optional[Trainer] = None
        self.trained_epoch = -1  # the epoch after which the trainer's weights stand
        self.first_epoch: Optional[int] = None
        self.warmup_s = 0.0
        self.set_aside: Optional[str] = None  # where a checkpoint went that cannot be used

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *exception: object) -> None:
        self.monitor.__exit__()

    def _power_source(self) -> str:
        """Return the machine's power source; for `auto`, jtop where epoch 0 was sampled with it."""
        source = str(self.machine.settings["power_source"])
        if source != AUTO or not self.folder.has(0):
            return source
        try:
            periods_s = self.folder.read(0).meta.get("sampler_periods_s") or {}
        except RecordError:  # collecting says what is wrong with it
            return source
        return "jtop" if "jtop" in periods_s else source

    def measure(self, epoch: int) -> None:
        """Train and measure one epoch, and write its record and checkpoint.

        Raises TrainingError: a loader worker died, or the network cannot be compiled;
        RecordWriteError: a file cannot be written. The epoch then does not count.
        """
        if self.first_epoch is None:
            self.first_epoch = epoch
            if epoch > 0:
                self._warm_up()
        resumed = self._open_attempt(epoch)
        measurement_id = uuid.uuid4().hex
        notes.remember(measurement_id, self.folder.run, epoch)
        trainer, weights = self._trainer_before(epoch)
        self.monitor.drop_cache(epoch)
        self.monitor.begin(self.folder.attempt_path(epoch))
        with noticed_stops() as stops:
            trained = self._train(trainer, self.source, epoch)
        observed = self.monitor.end()
        self.trainer, self.trained_epoch = trainer, epoch
        checkpoint.save(os.path.join(self.folder.attempt_path(epoch), CHECKPOINT), trainer)
        meta = self._meta(trained)
        meta.update(
            observed,
            run=self.folder.run,
            epoch=epoch,
            epoch_seed=epoch_seed(self.factors["seed"], epoch),
            cold_process=epoch == self.first_epoch,
            measurement_id=measurement_id,
            weights=weights,
            resumed=resumed,
            checkpoint_set_aside=self.set_aside,
            stops=stops,
        )
        meta["arithmetic"]["compile_s"] = trainer.compile_s
        meta["flags"] = raised(
            {
                "cold_process": epoch == self.first_epoch,
                "resumed": resumed is not None,
                "warmup_skipped": 0 < epoch == self.first_epoch and self.warmup_s == 0.0,
                "fresh_weights": weights == "fresh",
                "checkpoint_damaged": self.set_aside is not None,
                "cache_advised": meta["cache"]["action"] == page_cache.ADVISED,
                "sampler_lost": meta["telemetry_lost"],
                "stopped": has_stopped(stops),
            }
        )
        self.folder.finish(epoch, meta, trained.minibatch_s)
        overhead_s = meta["e2e_s"] - meta["wait_s"] - meta["copy_s"] - meta["compute_s"]
        log.info(
            "epoch {epoch}: {e2e_s:.3f} s = wait {wait_s:.3f} + copy {copy_s:.3f} + compute "
            "{compute_s:.3f} + overhead {overhead_s:.3f}; loss {loss}".format(
                overhead_s=overhead_s, **meta
            )
        )

    def _open_attempt(self, epoch: int) -> Optional[Document]:
        """Open an epoch's attempt; return `reason` and `gap_s` of an interruption before it."""
        resumed: Optional[Document] = None
        unfinished = self.folder.begin(epoch)
        if unfinished is not None:
            gap_s = max(0.0, time.time() - unfinished["started_unix_s"])
            resumed = {"reason": "an unfinished attempt of this epoch was found", "gap_s": gap_s}
        elif epoch > 0 and not self.folder.has(epoch - 1):
            resumed = {"reason": "the epoch before is not there", "gap_s": 0.0}
        elif epoch > 0:
            try:
                resumed = notes.interruption(self.folder.read(epoch - 1).meta)
            except DamagedError as error:  # it is measured again by the job that has to read it
                log.warning("%s", error)
                resumed = {"reason": "the record of the epoch before is damaged", "gap_s": 0.0}
        if resumed is not None:
            log.warning(
                "epoch %d is resumed: %s (%.0f s ago)", epoch, resumed["reason"], resumed["gap_s"]
            )
        return resumed

    def _trainer_before(self, epoch: int) -> Tuple[Trainer, str]:
        """Return a trainer in the state before `epoch` and the origin of its weights.

        That is `carried` from the epoch before, `initial`, `checkpoint`, or `fresh` where the
        checkpoint is lost; a damaged one is moved to the trash (`set_aside`).
        """
        if self.trainer is not None and self.trained_epoch == epoch - 1:
            return self.trainer, "carried"
        trainer = self._new_trainer()
        self.set_aside = None
        if epoch == 0:
            return trainer, "initial"
        path = self.folder.checkpoint_path(epoch - 1)
        has_checkpoint = os.path.exists(path)
        damage = self.folder.checkpoint_fault(epoch - 1) if has_checkpoint else ""
        if not damage and checkpoint.load(path, trainer):
            return trainer, "checkpoint"
        if has_checkpoint:
            self.set_aside = self.folder.set_checkpoint_aside(epoch - 1)
            log.warning("%s: fresh weights; it lies in %s now", damage or path, self.set_aside)
        return self._new_trainer(), "fresh"  # a trainer that is half loaded is not fresh

    def _new_trainer(self) -> Trainer:
        """Return a trainer in its initial state, compiled for an epoch's sizes of mini-batch."""
        trainer = make_trainer(self.factors, self.device)
        if self.factors.get("compile") == "on":  # an epoch's last mini-batch may be smaller
            n_samples, batch_size = len(self.source), self.factors["batch_size"]
            for size in sorted({min(batch_size, n_samples), n_samples % batch_size} - {0}):
                made_up = MadeUpSamples(self.workload.made_up(), size)
                minibatches = TimedMinibatches(made_up, self.transform, 0)
                trainer.rehearse(minibatches[list(range(size))])
        return trainer

    def _warm_up(self) -> None:
        """Train a throw-away network on made-up data: warms context and kernels; set `warmup_s`."""
        start_s = time.perf_counter()
        n_samples = WARMUP_MINIBATCHES * self.factors["batch_size"]
        made_up = MadeUpSamples(self.workload.made_up(), n_samples)
        self._train(self._new_trainer(), made_up, WARMUP)
        self.warmup_s = time.perf_counter() - start_s

    def seeded(self, seed: int) -> torch.Generator:
        """Seed torch, and return a generator of that seed for a loader."""
        torch.manual_seed(seed)
        generator = torch.Generator()
        generator.manual_seed(seed)
        return generator

    @property
    def cuda(self) -> Any:
        """Module `torch.cuda`; None where the network runs on the host."""
        return torch.cuda if self.device.type == "cuda" else None

    def _train(self, trainer: Trainer, source: Any, epoch: int) -> timing.Timed:
        """Train one pass over `source`; return the mini-batches' times, the mean loss, and more."""
        generator = self.seeded(epoch_seed(self.factors["seed"], epoch))
        minibatches = TimedMinibatches(source, self.transform, self.factors["num_workers"])
        loader = make_loader(minibatches, len(source), self.factors, generator)
        timer = timing.make_timer(self.factors["gpu_timing"], self.cuda)
        losses: List[Any] = []
        with Progress(timer, epoch, len(loader)), explained(f"epoch {epoch}"):
            bounds = run_epoch(loader, trainer.copy, trainer.step, losses.append, timer)
        fetch_s, preprocess_s = minibatches.seconds()
        trained = timing.timed(timer, bounds)
        trained.facts.update(
            n_samples=len(source),
            fetch_s=fetch_s,
            preprocess_s=preprocess_s,
            loss=mean_loss(losses, len(source), self.factors["batch_size"]),
        )
        return trained

    def _meta(self, trained: timing.Timed) -> Document:
        """Return a record's keys on times and circumstances; not those that name run and epoch."""
        meta: Document = circumstances(self.machine, self.device, self.gpu)
        manifest = json.dumps(self.manifest, sort_keys=True).encode("utf-8")
        meta.update(
            timing.times_of(trained),
            factors=self.factors,
            warmup_s=self.warmup_s,
            arithmetic=arithmetic.describe(self.factors, self.device),
            manifest_sha256=hashlib.sha256(manifest).hexdigest(),
        )
        if meta["loss"] is not None and not math.isfinite(meta["loss"]):
            meta["loss"] = None  # JSON has no NaN; the flag loss_not_finite says it
        if self.conditions:
            meta["board"] = dict(self.conditions)
        if self.inside is not None:
            meta["inside"] = dict(self.inside)
        return meta


@contextmanager
def explained(title: str) -> Iterator[None]:
    """Turn the death of a loader worker inside the block into a `TrainingError` with its remedy.

    Errors that a worker raised pass through. `title`: of the block in the message, as "epoch 1"
    """
    oom_kills = host.oom_kills()
    try:
        yield
    except RuntimeError as error:
        if "DataLoader worker (pid" not in str(error):  # torch's words for a dead one
            raise
        # the worker's signal may stand in this error's cause alone
        text = f"{error.__cause__ or error.__context__ or ''}\n{error}"
        remedy = remedies.remedy_of(text, oom_kills=oom_kills)
        problem = f"a loader worker died in {title}; nothing of it counts"
        raise TrainingError(
            problem if remedy is None else f"{problem}: {remedy.cause}",
            found=str(error),
            do="look at what the kernel says of it (dmesg)" if remedy is None else remedy.do,
        ) from error


def mean_loss(losses: List[Any], n_samples: int, batch_size: int) -> Optional[float]:
    """Return the mean loss of an epoch's samples from those of its mini-batches, in order.

    The last mini-batch may be smaller. None: `losses` are None, as of inference.
    """
    if losses[0] is None:
        return None
    sizes = [batch_size] * len(losses)
    sizes[-1] = n_samples - batch_size * (len(losses) - 1)
    per_minibatch = torch.stack(losses).to("cpu", torch.float64).tolist()
    return sum(size * loss for size, loss in zip(sizes, per_minibatch)) / n_samples
