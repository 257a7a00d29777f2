"""Make the tables of config/rooflines/ from what branes.ai measured on Jetson Orin boards.

`python -m benchmarks.public_rooflines BLAS SUBGRAPHS`

Of `calibration_data` and `hardware_registry` of github.com/branes-ai/graphs (MIT), flattened to
two tables: STREAM and BLAS with PyTorch (board, mode, sm_clock_mhz, op, size, precision,
latency_ms), and subgraphs of networks with their operations and bytes (mode, precision, model,
file, flops, bytes, latency_ms_mean). What is made of them lies in config/rooflines/.

* A stream's size is MiB of one array. PyTorch's triad is two kernels with an array between them.
* Orin Nano and NX ran at their modes' GPU clocks. On the AGX clocks were left to DVFS: its networks
  have no clock here.
* Modes whose matrix products of 1024 and more are not published have no ceiling.
"""

import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from epochwatt.roofline.ceilings import CeilingRow, write_ceilings
from epochwatt.roofline.points import Point, write_points
from epochwatt.roofline.public import ORIN_SOURCE
from epochwatt.tables import read_table

BOARDS = {  # of the table -> name of the device here; those whose clocks were the modes' own
    "jetson_orin_nano_gpu": "orin.nano",
    "jetson_orin_nx_16gb_gpu": "orin.nx",
}
PRECISION: Literal["fp32"] = "fp32"
MIB, FLOAT = 2**20, 4
LARGE = 1024  # rows of a matrix product that tells a ceiling
# operation -> kernel, operations and bytes by elements (streams) or by size
STREAMS = {  # arrays' elements: operations, arrays
    "stream_copy": ("copy", 0, 2),
    "stream_scale": ("triad", 1, 2),
    "stream_add": ("triad", 1, 3),
    "stream_triad": ("triad", 2, 5),
}
BLAS = {  # size n: operations, elements that are moved
    "blas1_dot": (lambda n: 2 * n, lambda n: 2 * n),
    "blas1_axpy": (lambda n: 2 * n, lambda n: 3 * n),
    "blas2_gemv": (lambda n: 2 * n**2, lambda n: n**2 + 2 * n),
    "blas3_gemm": (lambda n: 2 * n**3, lambda n: 3 * n**2),
}
PRODUCT = "blas3_gemm"
NETWORK_MODES = ("15W", "30W", "50W", "MAXN")
NETWORK = re.compile(r"\w+/(?P<model>\w+)_b(?P<size>\d+)\.json")  # names of its files
NETWORK_DEVICE = "orin64"  # AGX Orin of 64 GB


def read_ceilings_of(path: Path) -> list[CeilingRow]:
    """Return streams and matrix products of the boards whose clocks are known."""
    rows = list(_rows(path))
    has_product = {
        (row["board"], row["mode"])
        for row in rows
        if row["op"] == PRODUCT and int(row["size"]) >= LARGE
    }
    return [
        _ceiling(row)
        for row in rows
        if (row["board"], row["mode"]) in has_product and row["op"] in (*STREAMS, PRODUCT)
    ]


def _rows(path: Path) -> Iterator[Mapping[str, str]]:
    for _, row in read_table(path):
        is_known = row["board"] in BOARDS and row["op"] in (*STREAMS, *BLAS)
        if is_known and row["precision"] == PRECISION and float(row["latency_ms"] or 0) > 0:
            yield row


def _work(row: Mapping[str, str]) -> tuple[float, float]:
    """Return operations and bytes."""
    size = int(row["size"])
    if row["op"] in STREAMS:
        _, per_element, arrays = STREAMS[row["op"]]
        return per_element * size * MIB / FLOAT, float(arrays * size * MIB)
    flops, elements = BLAS[row["op"]]
    return float(flops(size)), float(FLOAT * elements(size))


def _ceiling(row: Mapping[str, str]) -> CeilingRow:
    flops, moved = _work(row)
    is_stream = row["op"] in STREAMS
    size, time_s = int(row["size"]), float(row["latency_ms"]) / 1e3
    return CeilingRow(
        provenance="public",
        device=BOARDS[row["board"]],
        instance=row["mode"],
        gpu_mhz=float(row["sm_clock_mhz"]),
        processor="gpu",
        precision=PRECISION,
        kernel=STREAMS[row["op"]][0] if is_stream else "matmul",  # type: ignore[arg-type]
        size=size * MIB // FLOAT if is_stream else size,
        flops=flops,
        bytes=moved,
        repeats=1,
        time_s=time_s,
        best_s=time_s,
    )


def read_kernel_points(path: Path) -> list[Point]:
    """Return dot products, sums and matrix-vector products of the same boards and modes."""
    modes = {(row.device, row.instance) for row in read_ceilings_of(path)}
    points = []
    for row in _rows(path):
        device = BOARDS[row["board"]]
        if row["op"] in BLAS and row["op"] != PRODUCT and (device, row["mode"]) in modes:
            flops, moved = _work(row)
            points.append(
                Point(
                    provenance="public",
                    device=device,
                    instance=row["mode"],
                    gpu_mhz=float(row["sm_clock_mhz"]),
                    processor="gpu",
                    precision=PRECISION,
                    workload=f"{row['op'].partition('_')[2]} {row['size']}",
                    task="infer",
                    flops=flops,
                    bytes=moved,
                    launches=1,
                    time_s=float(row["latency_ms"]) / 1e3,
                    source=ORIN_SOURCE,
                )
            )
    return points


def read_network_points(path: Path) -> list[Point]:
    """Return whole networks on the AGX Orin, the sums of their subgraphs."""
    sums: dict[tuple[str, ...], list[tuple[float, ...]]] = defaultdict(list)
    for _, row in read_table(path):
        named = NETWORK.fullmatch(row["file"])
        if not named or row["mode"] not in NETWORK_MODES or row["device"] != "cuda":
            continue
        # networks of one picture were measured twice: in the run of more networks they count
        if (named["size"] == "1") == ("agx" in row["hardware_id"]):
            place = (row["mode"], row["precision"].lower(), named["model"], named["size"])
            numbers = (row["flops"], row["bytes"], row["latency_ms_mean"])
            sums[place].append(tuple(map(float, numbers)))
    return [_network(place, parts) for place, parts in sums.items()]


def _network(place: tuple[str, ...], parts: Sequence[tuple[float, ...]]) -> Point:
    mode, precision, model, size = place
    flops, moved, milliseconds = (math.fsum(column) for column in zip(*parts, strict=True))
    return Point(
        provenance="public",
        device=NETWORK_DEVICE,
        instance=mode,
        processor="gpu",
        precision=precision,  # type: ignore[arg-type]
        workload=model,
        task="infer",
        batch_size=int(size),
        flops=flops,
        bytes=moved,
        launches=len(parts),
        time_s=milliseconds / 1e3,
        source=ORIN_SOURCE,
    )


def main(blas: str, subgraphs: str) -> None:
    """Write both tables into config/rooflines/."""
    folder = Path("config/rooflines")
    write_ceilings(folder / "orin-ceilings.csv.gz", read_ceilings_of(Path(blas)))
    points = [*read_kernel_points(Path(blas)), *read_network_points(Path(subgraphs))]
    write_points(folder / "orin-points.csv.gz", points)


if __name__ == "__main__":
    main(*sys.argv[1:])
