"""The IDX format, written and read."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from epochwatt.board.training import idx
from epochwatt.errors import DataError

arrays = npst.arrays(np.uint8, npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6))


@given(array=arrays)
def test_any_array_comes_back(array):
    back = idx.decode(idx.encode(array), "x")
    np.testing.assert_array_equal(back, array)
    assert back.dtype == np.uint8


@given(header=st.binary(max_size=40))
def test_any_bytes_are_an_array_or_refused(header):
    with suppress(DataError):
        assert idx.decode(b"\0\0\x08" + header, "x").dtype == np.uint8


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\0\x08", b"\x1f\x8b\x08\x00" + bytes(20), b"\0\0\x0d\x01" + bytes(8)],
    ids=["empty", "three bytes", "gzip", "float32"],
)
def test_what_is_no_idx_file_of_bytes_is_refused_by_name(content):
    with pytest.raises(DataError, match="train-labels is not an IDX file of unsigned bytes"):
        idx.decode(content, "train-labels")
