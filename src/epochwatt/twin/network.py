"""Find a network to simulate: by its name, its kernels counted now if need be, or by its totals."""

import hashlib
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import epochwatt
from epochwatt.board.records import files
from epochwatt.counting.kernel_counts import (
    KernelCounts,
    generic_kernel_counts,
    load_kernel_counts,
    write_kept_counts,
)
from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import read_rows
from epochwatt.study.runs import counts_path
from epochwatt.twin.boards import SampleFacts
from epochwatt.twin.power_modes import CONFIG
from epochwatt.twin.twin import Twin

COUNTS = Path("results/twin/workloads")
CACHE = Path(".cache/kernel-counts")
TOTALS = (  # options that describe a network
    "flops",
    "bytes",
    "launches",
    "parameters",
    "sample-bytes",
    "file-bytes",
    "pixels",
    "samples",
)


class Network(NamedTuple):
    """A network, its samples, and where its counts come from."""

    work: KernelCounts
    samples: SampleFacts
    source: str


def network_of(
    model: str | None, totals: Mapping[str, float], twin: Twin, root: Path, task: str = "train"
) -> Network:
    """Return a network by its name or by its totals; EpochwattError: what is missing or unknown."""
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
    work, is_kept = _count_or_load(model, task, rows)
    source = f"kernels counted just now; to keep the counts: .venv/bin/snakemake {path}"
    if is_kept:
        source = "kernel counts that come with epochwatt"
    return Network(work, twin.samples[dataset], source)


def _by_totals(totals: Mapping[str, float]) -> Network:
    """Return a network made of its `TOTALS` alone; EpochwattError: one is missing."""
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


def _count_or_load(
    model: str, task: str, rows: Mapping[str, WorkloadRow]
) -> tuple[KernelCounts, bool]:
    """Return the counts that come with the package, or count the kernels of a network with torch.

    The second value says whether they came with it. Those of other networks of this package, some
    seconds of work, are cached under a digest of what they depend on: this code, the networks, the
    versions of torch. Raises ConfigError: they do not come with it, and there is no torch.
    """
    own: dict[str, object] = {"network": {}} if rows[model].build else {}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/{model}.json"
        try:
            write_kept_counts({"model": model, **own}, path, task, "fp32")
            return load_kernel_counts(path), True
        except ConfigError as error:
            needs_torch = error
        try:
            cached = None
            if not own:
                code = Path(epochwatt.__file__).parent
                sources = sorted([*code.glob("counting/*.py"), *code.glob("board/training/*.py")])
                parts = [metadata.version(name) for name in ("torch", "torchvision")]
                parts += [source.read_text("utf-8") for source in sources]
                digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
                cached = CACHE / f"{model}-{task}-{digest}.json"
                if cached.is_file():
                    return load_kernel_counts(str(cached)), False
            from epochwatt.counting.count_workload import network_factors, write_workload
        except ModuleNotFoundError:
            raise needs_torch from None
        write_workload(network_factors(model, rows), path, task)
        if cached is not None:
            with suppress(OSError):  # of a checkout that may not be written to
                cached.parent.mkdir(parents=True, exist_ok=True)
                files.write_bytes(str(cached), Path(path).read_bytes())
        return load_kernel_counts(path), False
