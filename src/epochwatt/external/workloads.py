"""Simulated workloads that stand beside real ones: the papers' networks, with 0 and 4 workers."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from epochwatt.twin.calibration.queries import DATASETS
from epochwatt.twin.inputs.twin import Twin

WORKERS = (0, 4)
BATCH_SIZE = 16  # the papers' default
BOARDS = ("agx", "nx", "nano")  # those whose simulation rests on published numbers


def simulated_workloads(
    twin: Twin, boards: Iterable[str] = BOARDS, batch_sizes: Iterable[int] = (BATCH_SIZE,)
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield board and factors of each workload: every counted network of the papers."""
    models = [model for model in DATASETS if model in twin.works]
    for device, model, num_workers, batch_size in product(boards, models, WORKERS, batch_sizes):
        place = {"device": device, "instance": "d1", "storage": "ssd", "cache_policy": "kept"}
        work = {"model": model, "dataset": DATASETS[model], "dvfs": "off", "setup": ""}
        loading = {"num_workers": num_workers, "batch_size": batch_size, "dataset_scale": 1.0}
        yield device, {**place, **work, **loading}
