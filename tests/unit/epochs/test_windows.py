"""Pure functions of columns: what the energies' own tests do not show."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.epochs.windows import distinct


@given(st.lists(st.sampled_from([-1.5, 0.0, 0.25, 3.0, 1e9]) | st.floats(-1e9, 1e9)))
def test_distinct_values_are_those_of_numpy(values):
    array = np.array(values, dtype=float)
    np.testing.assert_array_equal(distinct(array), np.unique(array))
