"""Check forecasts of memory against real training: `python -m benchmarks memory`.

21 networks, with batch size, precision, optimiser, checkpointing and accumulation drawn. Each
trains in processes of its own on the CPU: under torch's profiler, whose peak of allocated bytes
counts, and free of it, whose largest resident memory counts, with glibc's malloc as it is and with
its threshold fixed. `python -m benchmarks memory_limits` trains ten of them within the limit of a
control group, as on a small board; `make gpu-check` trains 24 on a GPU (`on_gpu`), and `python -m
benchmarks memory_gpu` forecasts anew what was seen there. What a killed run has seen is in `SEEN`:
the next one goes on from there.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.memory_steps import CONFIGS, NETWORKS, manner_of, subject
from benchmarks.results import REPOSITORY, Result, Row, at_most, write_tables
from epochwatt.board.training import allocated, resident
from epochwatt.board.training.resident import MIB, MMAP_THRESHOLD
from epochwatt.errors import EpochwattError
from epochwatt.memory import fit

FOLDER = REPOSITORY / "benchmarks/tables/memory"
SEEN = REPOSITORY / ".cache/benchmarks/memory.jsonl"  # until a benchmark has ended
SLOW = {"bert": 4, "convnext_tiny": 8, "swin_t": 8, "vit_b_16": 8, "densenet121": 8}
BESIDE = 6  # processes that train at once, at most
SMALL_MIB = 50  # below it one part in a hundred is less than a page of code
FIXED = {"MALLOC_MMAP_THRESHOLD_": str(MMAP_THRESHOLD)}
LIMITED = {  # limits of control groups, MiB
    **dict.fromkeys(("squeezenet1_1", "lenet", "resnet18"), 1200.0),
    **dict.fromkeys(("mobilenet", "resnet50", "lstm"), 1500.0),
    **dict.fromkeys(("ssdlite", "efficientnet_b0", "densenet121", "gpt2"), 2000.0),
}


def draw(seed: int = 1, each: int = 1) -> list[dict[str, Any]]:
    """Draw cases, `each` of every network."""
    draws = random.Random(seed)
    sizes = (1, 2, 4, 8, 16, 32)
    return [
        {
            "network": name,
            "batch_size": draws.choice([n for n in sizes if n <= SLOW.get(name, 32)]),
            "precision": draws.choice(["fp32", "bf16"]),
            "optimiser": draws.choice(list(allocated.STATES)),
            "checkpointing": draws.random() < 0.5,
            "accumulate": draws.choice([1, 1, 2]),
        }
        for name in NETWORKS
        for _ in range(each)
    ]


def in_process(task: str, case: dict[str, Any], group: str = "", **environment: str) -> Any:
    """Run a task of `memory_steps` in a process of its own; None: the kernel killed it.

    `group`: folder of a control group that it joins
    """

    def join() -> None:
        if group:
            Path(group, "cgroup.procs").write_text(str(os.getpid()))

    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory_steps", task, json.dumps(case)],
        env={**os.environ, **environment},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=join,
    )
    if done.returncode == -9:
        return None
    if done.returncode:
        raise EpochwattError(f"{case} failed", found=done.stderr.strip().split("\n")[-1])
    return json.loads(done.stdout.splitlines()[-1])


def once(key: list[Any], make: Callable[[], Any]) -> Any:
    """Return what was made for a key, JSON; it outlives a run that is killed."""
    if SEEN.exists():
        for line in SEEN.read_text("utf-8").splitlines():
            known, value = json.loads(line)
            if known == key:
                return value
    value = make()
    SEEN.parent.mkdir(parents=True, exist_ok=True)
    with SEEN.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps([key, value]) + "\n")
    return value


def forget(*kinds: str) -> None:
    """Remove what `once` keeps of these kinds, the first words of keys."""
    lines = SEEN.read_text("utf-8").splitlines(keepends=True) if SEEN.exists() else []
    SEEN.write_text("".join(line for line in lines if json.loads(line)[0][0] not in kinds), "utf-8")


@contextmanager
def limited(n_bytes: int) -> Iterator[str]:
    """Yield the folder of a control group below this process's own, with a limit of memory.

    Raises EpochwattError: this user, or this machine, permits none.
    """
    rows = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    own = next((path for _, names, path in rows if "memory" in names.split(",")), None)
    name = "memory.limit_in_bytes"
    top = "/sys/fs/cgroup/memory"
    if own is None:
        own, name, top = rows[-1][2], "memory.max", "/sys/fs/cgroup"
    folder = Path(f"{top}{own}", f"epochwatt-{os.getpid()}")
    try:
        folder.mkdir()
    except OSError as error:
        raise EpochwattError(f"no control group can be made here: {error}") from None
    try:
        try:
            Path(folder, name).write_text(str(n_bytes))
        except OSError as error:
            raise EpochwattError(f"no limit of memory can be set here: {error}") from None
        yield str(folder)
    finally:
        folder.rmdir()


def libraries_mib(case: dict[str, Any]) -> float:
    """Return what a case imports, MiB, whatever others have imported here."""
    theirs = set() if case["network"] in CONFIGS else {"transformers"}
    return allocated.libraries_mib(manner_of(case), resident.CPU, sys.modules.keys() - theirs)


def checked(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case with forecasts and what was seen, MiB and %."""
    made = allocated.forecast(subject(case["network"]), case["batch_size"], manner_of(case))
    row: dict[str, Any] = {**case, "allocated_mib": made.peak / MIB}
    seen = once(["profiled", case], partial(in_process, "profiled", case))
    row["profiler_mib"] = seen["peak"] / MIB
    for name, threshold, environment in (("default", None, {}), ("fixed", MMAP_THRESHOLD, FIXED)):
        need = resident.need_of(
            made,
            resident.CPU,
            threshold=threshold,
            libraries=libraries_mib(case),
        )
        row[f"resident_{name}_mib"] = (need.total - need.in_flight) / MIB
        watch = partial(in_process, "watched", case, **environment)
        seen = once(["watched", case, environment], watch)
        row[f"rss_{name}_mib"] = seen["peak"] / MIB
        row["rss_before_mib"] = seen["before"] / MIB
    return row


def with_errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the errors of the forecasts, %."""
    for error, ours, theirs in (
        ("allocated_error_pct", "allocated_mib", "profiler_mib"),
        ("default_error_pct", "resident_default_mib", "rss_default_mib"),
        ("fixed_error_pct", "resident_fixed_mib", "rss_fixed_mib"),
    ):
        rows[error] = 100.0 * (rows[ours] / rows[theirs] - 1.0)
    return rows.round(2)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the median and the worst error of each forecast, %."""
    large = rows[rows.profiler_mib > SMALL_MIB]
    errors = {
        f"allocated bytes, above {SMALL_MIB} MiB": large.allocated_error_pct,
        "resident memory": rows.default_error_pct,
        "resident memory, malloc's threshold fixed": rows.fixed_error_pct,
    }
    return pd.DataFrame(
        [
            {"forecast": name, "cases": len(e), "median": e.abs().median(), "worst": e.abs().max()}
            for name, e in errors.items()
        ]
    ).round(2)


def run(quick: bool) -> Result:
    """Forecast and train all cases; write their table."""
    cases = draw()[:: 10 if quick else 1]
    with ThreadPoolExecutor(min(os.cpu_count() or 1, BESIDE)) as pool:
        rows = with_errors(pd.DataFrame(list(pool.map(checked, cases))))
    if not quick:
        is_resident = rows.columns.str.contains("rss|resident|default|fixed")
        tables = {"steps": rows.loc[:, ~is_resident], "resident": rows.loc[:, is_resident]}
        tables["resident"].insert(0, "network", rows.network)
        write_tables(FOLDER, {**tables, "summary": summary(rows)})
        forget("profiled", "watched")
    large = rows[rows.profiler_mib > SMALL_MIB]
    made = [
        Row(
            "forecast of allocated bytes, error",
            list(large.allocated_error_pct.abs()),
            "%",
            2,
            at_most(1),
        ),
        Row(
            "forecast of resident memory, error",
            list(rows.default_error_pct.abs()),
            "%",
            2,
            at_most(5),
        ),
        Row(
            "the same, malloc's threshold fixed",
            list(rows.fixed_error_pct.abs()),
            "%",
            2,
            at_most(5),
        ),
    ]
    return Result(made)


N_ON_GPU = 24


def on_gpu(cases: list[dict[str, Any]]) -> pd.DataFrame:
    """Train cases on this machine's GPU; return them with what they took, MiB, and forecasts."""
    with ThreadPoolExecutor(BESIDE) as pool:
        seen = list(pool.map(lambda case: in_process("on_gpu", case), cases))
    rows = [
        {**case, **{f"{name}_mib": n_bytes / MIB for name, n_bytes in found.items()}}
        for case, found in zip(cases, seen, strict=True)
    ]
    return with_gpu_forecasts(pd.DataFrame(rows))


def with_gpu_forecasts(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the forecasts for a GPU, MiB, and their errors, %."""
    forecasts_mib = []
    for case in rows.to_dict("records"):
        manner = manner_of(case)._replace(on_gpu=True)
        made = allocated.forecast(subject(case["network"]), case["batch_size"], manner)
        forecasts_mib.append(made.peak / MIB + made.blas_threads * case["blas_mib"])
    errors_pct = 100.0 * (forecasts_mib / rows.allocated_mib - 1.0)
    return rows.assign(forecast_mib=forecasts_mib, error_pct=errors_pct).round(2)


def gpu_rows(rows: pd.DataFrame) -> list[Row]:
    """Return the rows of the errors of forecasts for a GPU."""
    large = rows[rows.allocated_mib > SMALL_MIB]
    errors_pct = large.error_pct.abs()
    kept = list(large.reserved_mib / large.allocated_mib - 1.0)
    return [
        Row("memory of a step, error", list(errors_pct), "%", 2, at_most(1.0)),
        Row("memory of a step, worst error", [float(errors_pct.max())], "%", 2, at_most(5.0)),
        Row("kept by torch's allocator, share of the tensors", kept, "", 3),
    ]


def again(quick: bool) -> Result:
    """Forecast anew what trainings on a GPU were seen to take; it needs none."""
    rows = pd.read_csv(FOLDER / "gpu.csv")
    rows = with_gpu_forecasts(rows[:: 10 if quick else 1].reset_index(drop=True))
    if not quick:
        write_tables(FOLDER, {"gpu": rows})
    return Result(gpu_rows(rows[~rows.found_with]))


def within_limit(case: dict[str, Any], limit_mib: float) -> dict[str, Any]:
    """Train within a limit the largest batch size that `fit` names, and two larger ones.

    `next`: the next power of two, of which `fit` says only that it need not fit; `killed`: the one
    that it says dies.
    """
    manner = manner_of(case)

    def need(batch_size: int) -> resident.Need:
        made = allocated.forecast(subject(case["network"]), batch_size, manner)
        return resident.need_of(made, resident.CPU, libraries=libraries_mib(case))

    largest, killed = fit.bounds(need, resident.CPU, int(limit_mib * MIB), first=8)
    following = 2 ** largest.bit_length()
    with limited(int(limit_mib * MIB)) as group:
        ends = {
            size: in_process("watched", {**case, "batch_size": size}, group) is not None
            for size in sorted({largest, following, killed})
        }
    found = {"limit_mib": limit_mib, "largest": largest, "trains": ends[largest]}
    found |= {"next": following, "next_lives": ends[following]}
    return {**case, **found, "killed": killed, "lives": ends[killed]}


def limits(quick: bool) -> Result:
    """Train within the limit of a control group what `fit` says fits, and what it says does not."""
    cases = [({"network": name, "optimiser": "adam"}, mib) for name, mib in LIMITED.items()]
    rows = pd.DataFrame(
        [
            once(["limit", *case], partial(within_limit, *case))
            for case in cases[: 1 if quick else None]
        ]
    )
    if not quick:
        write_tables(FOLDER, {"limits": rows})
        forget("limit")
    trains, dies = list(rows.trains.astype(float)), list(1.0 - rows.lives)
    return Result(
        [
            Row("share of the named batch sizes that train", trains, "", 2),
            Row("share of those that die as it says", dies, "", 2),
            Row("share of the next powers of two that die", list(1.0 - rows.next_lives), "", 2),
        ]
    )
