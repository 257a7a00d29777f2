"""The IDX format, written and read."""

import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from epochwatt.errors import DataError
from epochwatt.training import idx

arrays = npst.arrays(np.uint8, npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6))

# SOURCE: first bytes of train-labels-idx1-ubyte on the MNIST page: magic 2049, 60000 items, 5, 0.
MNIST_LABELS_HEADER = struct.pack(">II", 2049, 2)


@given(array=arrays)
def test_any_array_comes_back(array):
    back = idx.decode(idx.encode(array), "x")
    np.testing.assert_array_equal(back, array)
    assert back.dtype == np.uint8


@given(array=arrays, data=st.data())
def test_any_truncation_is_refused_by_name(array, data):
    content = idx.encode(array)
    length = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(DataError, match="train-images"):
        idx.decode(content[:length], "train-images")


@given(array=arrays, extra=st.binary(min_size=1, max_size=9))
def test_bytes_too_many_are_refused(array, extra):
    with pytest.raises(DataError, match="its header asks for"):
        idx.decode(idx.encode(array) + extra, "x")


@given(header=st.binary(max_size=40))
def test_any_bytes_are_an_array_or_refused(header):
    with suppress(DataError):
        assert idx.decode(b"\0\0\x08" + header, "x").dtype == np.uint8


@pytest.mark.parametrize(
    "content",
    [
        struct.pack(">HBB3I", 0, 8, 3, 2**31, 2**31, 4),  # 2**64 bytes: no 64-bit product holds it
        struct.pack(">HBB100I", 0, 8, 100, *[1] * 100) + b"x",
    ],
    ids=["2**64 bytes", "100 dimensions"],
)
def test_header_of_an_impossible_shape_is_refused(content):
    with pytest.raises(DataError, match="train-images"):
        idx.decode(content, "train-images")


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\0\x08", b"\x1f\x8b\x08\x00" + bytes(20), b"\0\0\x0d\x01" + bytes(8)],
    ids=["empty", "three bytes", "gzip", "float32"],
)
def test_what_is_no_idx_file_of_bytes_is_refused_by_name(content):
    with pytest.raises(DataError, match="train-labels is not an IDX file of unsigned bytes"):
        idx.decode(content, "train-labels")


def test_bytes_are_those_of_the_mnist_page():
    assert idx.encode(np.array([5, 0], dtype=np.uint8)) == MNIST_LABELS_HEADER + b"\x05\x00"


def test_last_index_varies_fastest():
    content = struct.pack(">IIII", 0x803, 1, 2, 3) + bytes([1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(idx.decode(content, "x"), [[[1, 2, 3], [4, 5, 6]]])


def test_array_in_another_memory_order_is_written_the_same():
    array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    assert idx.encode(np.asfortranarray(array)) == idx.encode(array)


def test_other_types_are_not_written():
    with pytest.raises(ValueError, match="int64"):
        idx.encode(np.array([1, 2], dtype=np.int64))
