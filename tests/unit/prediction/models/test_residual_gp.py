"""What deviations of near and far modes tell of each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.prediction.data.modes import Mode, as_rows, logs
from epochwatt.prediction.models.priors import LENGTH, OWN, OWNS
from epochwatt.prediction.models.residual_gp import Deviations, distances

clocks = st.floats(100, 2500)
some_modes = st.lists(
    st.builds(
        Mode,
        st.integers(1, 8),
        clocks,
        clocks,
        clocks,
        st.floats(0.2, 1),
        st.sampled_from([0.0, 60.0, 150.0]),
    ),
    min_size=1,
    max_size=8,
    unique=True,
)


def test_distance_is_to_the_nearest_profiled_mode():
    """e times one clock and e times another are the root of two away; the other mode is further."""
    profiled = as_rows([Mode(4, 1000, 500, 1000), Mode(1, 100, 100, 200)])
    modes = [*profiled, (4, 1000 * np.e, 500 / np.e, 1000, 1, 0)]
    assert distances(as_rows(modes), profiled) == pytest.approx([0, 0, 2**0.5])


def test_one_profiled_mode_by_hand():
    """A correlation of exp(-1/2) at one length, so 1 - exp(-1) of the variance is left open."""
    near = [4, 1000 * np.exp(LENGTH), 500, 1000]
    one = Deviations(as_rows([Mode(4, 1000, 500, 1000)]))
    rows = as_rows([near, [4, 1000, 500, 1000], [4, 1000 * np.exp(9), 500, 1000]])
    assert one.weights(rows)[:, 0] == pytest.approx(
        np.array([np.exp(-0.5), 1, 0]) / (1 + OWN**2), abs=1e-9
    )
    left = 1 - np.array([np.exp(-1), 1, 0]) / (1 + OWN**2) + OWN**2
    assert one.left_open(rows) == pytest.approx(left)


def test_tilt_is_told_by_two_modes_that_differ_in_one_clock():
    """With a tilt, what two modes say of a clock goes on far beyond both of them."""
    two = as_rows([Mode(4, 1000, 300, 1000), Mode(4, 1000, 600, 1000)])
    beyond = as_rows([Mode(4, 1000, 5000, 1000)])
    off = np.array([-0.1, 0.1])
    plain, tilted = Deviations(two), Deviations(two, tilt=3.0)
    assert abs((plain.weights(beyond) @ off)[0]) < 0.02
    assert (tilted.weights(beyond) @ off)[0] > 0.2


@given(
    profiled=some_modes,
    asked=some_modes,
    tilt=st.sampled_from([0.0, 0.7]),
    own=st.sampled_from(OWNS),
)
def test_whitening_and_what_is_left_open_agree_with_the_covariance(profiled, asked, tilt, own):
    """As one Gaussian vector has it, written down once more."""
    deviations = Deviations(as_rows(profiled), tilt, own)
    whole = logs(np.vstack([as_rows(profiled), as_rows(asked)]))
    whole -= logs(as_rows(profiled)).mean(0)
    smooth = [
        [np.exp(-((a - b) ** 2).sum() / (2 * LENGTH**2)) + tilt**2 * (a @ b) for b in whole]
        for a in whole
    ]
    k, n = np.array(smooth) + own**2 * np.eye(len(whole)), len(profiled)
    white = deviations.whitening()
    assert white @ k[:n, :n] @ white.T == pytest.approx(np.eye(n), abs=1e-5)
    weights = np.linalg.solve(k[:n, :n], k[n:, :n].T).T
    rows = as_rows(asked)
    assert deviations.weights(rows) == pytest.approx(weights, abs=1e-5)
    left = np.diag(k[n:, n:] - weights @ k[:n, n:])
    assert deviations.left_open(rows) == pytest.approx(left, abs=1e-5)
