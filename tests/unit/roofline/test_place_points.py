"""Points of measured runs: work and time of the mean mini-batch, whole and cut ones."""

import json

import pytest

from epochwatt.columns import with_defaults
from epochwatt.roofline.collect import place_points
from epochwatt.roofline.points import read_points

KERNELS = {
    "name": ["a", "b"],
    "kind": ["gemm", "elementwise"],
    "phase": ["forward", "backward"],
    **{f"flops_{part}": numbers for part, numbers in (("fixed", [5, 0]), ("per_sample", [3, 7]))},
    **{f"bytes_{part}": numbers for part, numbers in (("fixed", [8, 2]), ("per_sample", [4, 6]))},
    **{f"elements_{part}": [0, 0] for part in ("fixed", "per_sample")},
}
COUNTS = {"schema_version": 1, "model": "lenet", "parameters": 1, "input": [1], "kernels": KERNELS}
COLUMNS = {
    **{"provenance": "measured", "device": "host", "instance": "local", "cores": 1},
    **{"precision": "fp32", "workload": "lenet", "task": "train", "batch_size": 4},
}
EPOCH = {"n_minibatches": 3, "n_samples": 10, "timing_method": "host_clock", "valid": True}


@pytest.fixture
def place(tmp_path, write_epochs):
    """Return a function that places one run of these epochs and reads its points."""

    def call(*epochs, **columns):
        factors = with_defaults(
            {
                **{"backend": "host", "device": "host", "instance": "local", "model": "lenet"},
                **{"dataset": "mnist", "dataset_source": "digits", "storage": "disk"},
                "power_mode": "asis",
            }
        )
        path = write_epochs("one", factors, *epochs, root=tmp_path)
        counts = tmp_path / "lenet.json"
        counts.write_text(json.dumps(COUNTS), "utf-8")
        run = {"run": "one", "epochs": str(path), "counts": str(counts), **COLUMNS, **columns}
        place_points([run], str(tmp_path / "points.csv"))
        return read_points(tmp_path / "points.csv")

    return call


def test_work_and_time_are_those_of_the_mean_mini_batch(place):
    first = {**EPOCH, "compute_s": 99.0}
    later = [{**EPOCH, "compute_s": compute_s} for compute_s in (0.6, 1.2)]
    (point,) = place(first, *later)
    # mini-batches of 4, 4 and 2 samples: 3 x 5 fixed and 10 x (3 + 7)
    assert point.flops == pytest.approx((15 + 100) / 3)
    assert point.bytes == pytest.approx((30 + 100) / 3)
    assert point.time_s == pytest.approx(0.3)
    assert (point.launches, point.processor, point.cores) == (2, "cpu", 1)


def test_cuda_events_tell_that_it_was_the_gpu(place):
    (point,) = place({**EPOCH, "compute_s": 1.0, "timing_method": "cuda_events_synchronised"})
    assert point.processor == "gpu"


@pytest.mark.parametrize("unknown", [{"compute_s": 0.0}, {"n_samples": None}])
def test_a_run_that_does_not_say_what_it_computed_has_no_point(place, unknown):
    assert place({**EPOCH, **unknown}) == []
