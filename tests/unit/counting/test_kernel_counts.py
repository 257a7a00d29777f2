"""Counts of kernels: read back, refused when damaged, made from totals."""

import copy
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.counting.count_workload import count_workload
from epochwatt.counting.kernel_counts import (
    generic_kernel_counts,
    load_kernel_counts,
    write_kept_counts,
)
from epochwatt.errors import ConfigError, RecordError

CONTENT = {
    "schema_version": 1,
    "model": "tiny",
    "torch": "2.9.1",
    "classes": 10,
    "input": [1, 4, 4],
    "parameters": 7,
    "kernels": {
        "name": ["aten.convolution", "aten.zero_"],
        "kind": ["convolution", "elementwise"],
        "phase": ["forward", "zero_grad"],
        "flops_fixed": [0, 0],
        "flops_per_sample": [18, 0],
        "bytes_fixed": [36, 28],
        "bytes_per_sample": [80, 0],
        "elements_fixed": [0, 7],
        "elements_per_sample": [4, 0],
    },
}


@pytest.fixture
def written(tmp_path):
    """Return a function that writes `CONTENT`, changed, and gives the path."""

    def write(change=lambda content: None):
        content = copy.deepcopy(CONTENT)
        change(content)
        path = tmp_path / "tiny.json"
        path.write_text(json.dumps(content))
        return str(path)

    return write


def test_counts_are_linear_in_the_mini_batch(written):
    work = load_kernel_counts(written())
    assert (work.model, work.parameters, len(work.kind)) == ("tiny", 7, 2)
    assert (work.input, work.sample_bytes) == ((1, 4, 4), 64)
    assert work.kind.tolist() == ["convolution", "elementwise"]
    assert work.phase.tolist() == ["forward", "zero_grad"]
    assert work.flops(16).tolist() == [288, 0]
    assert work.bytes(16).tolist() == [36 + 16 * 80, 28]
    assert work.elements(16).tolist() == [64, 7]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.update(schema_version=2), "schema_version is 2, not 1"),
        (lambda c: c.pop("parameters"), "'parameters' is missing"),
        (lambda c: c["kernels"].pop("bytes_fixed"), "'bytes_fixed' is missing"),
        (lambda c: c["kernels"]["kind"].append("gemm"), "not equally long"),
        (lambda c: c.update(kernels={k: [] for k in c["kernels"]}), "not equally long"),
        (lambda c: c["kernels"].update(kind=["gemm", "sort"]), "kind is 'sort'; allowed: conv"),
        (lambda c: c["kernels"].update(phase=["loss", "x"]), "phase is 'x'; allowed: zero_grad"),
        (lambda c: c["kernels"].update(flops_fixed=[0, None]), "not finite|NoneType"),
        (lambda c: c["kernels"].update(flops_fixed=[0, "many"]), "many"),
        (lambda c: c.update(kernels=[1]), "indices"),
    ],
)
def test_what_is_not_as_written_is_refused(written, change, said):
    with pytest.raises(RecordError, match=said) as raised:
        load_kernel_counts(written(change))
    assert "make it again" in str(raised.value)


@given(
    flops=st.floats(1, 1e12),
    moved_bytes=st.floats(1, 1e10),
    launches=st.integers(1, 3000),
    b=st.integers(1, 512),
)
def test_totals_are_kept_and_split_evenly(flops, moved_bytes, launches, b):
    work = generic_kernel_counts(flops, moved_bytes, launches, parameters=5, sample_bytes=64)
    assert len(work.kind) == launches
    assert work.flops(b).sum() == pytest.approx(b * flops)
    assert work.bytes(b).sum() == pytest.approx(b * moved_bytes)
    assert np.ptp(work.flops(b)) == 0
    assert (work.parameters, work.sample_bytes) == (5, 64)


@pytest.mark.parametrize("wrong", [0, float("nan")])
@pytest.mark.parametrize("what", ["flops", "moved_bytes", "launches", "parameters", "sample_bytes"])
def test_a_total_that_cannot_be_is_refused(what, wrong):
    totals = dict.fromkeys(("flops", "moved_bytes", "launches", "parameters", "sample_bytes"), 64)
    with pytest.raises(ConfigError, match=f"^{what} of a network is"):
        generic_kernel_counts(**{**totals, what: wrong})


@pytest.mark.parametrize("model", ["lenet", "mobilenet", "resnet", "vgg11"])
def test_counts_that_come_with_the_package_are_those_that_torch_gives(model, tmp_path):
    write_kept_counts({"model": model}, str(tmp_path / "kept.json"), "train", "fp32")
    counted = count_workload({"model": model})
    kept = json.loads((tmp_path / "kept.json").read_text())
    assert kept | {"torch": ""} == json.loads(json.dumps(counted)) | {"torch": ""}


def test_other_counts_want_torch(tmp_path):
    for factors, task in (({"model": "bert"}, "train"), ({"model": "lenet"}, "infer")):
        with pytest.raises(ConfigError, match=r"needs torch.*\n  allowed: training in fp32 of"):
            write_kept_counts(factors, str(tmp_path / "no.json"), task, "fp32")
