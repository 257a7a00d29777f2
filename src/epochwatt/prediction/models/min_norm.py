"""Linear regression as scikit-learn's LinearRegression does it, for many sets of modes at once.

Features and target are centred; of all coefficients that fit best those of least norm are taken,
where singular values below 1e-6 of the largest count as zero (`tol` of scikit-learn 1.7 and later).
Epochs of one mode have the same features, so that their mean and their number are all that counts.
"""

import numpy as np

from epochwatt.prediction.data.modes import Numbers

TOLERANCE = 1e-6


def least_norm(
    features: Numbers, target: Numbers, weights: Numbers, standardise: bool = False
) -> tuple[Numbers, Numbers]:
    """Return coefficients (s, k) and intercepts (s,) of the fits to s sets of m modes.

    Parameters
    ----------
    features : (s, m, k)
    target : (s, m), mean over the epochs of each mode
    weights : (s, m), number of these epochs
    """
    share = (weights / weights.sum(-1, keepdims=True))[..., None]
    x_mean = (share * features).sum(-2, keepdims=True)
    y_mean = (share[..., 0] * target).sum(-1, keepdims=True)
    x, y = features - x_mean, target - y_mean
    spread = np.sqrt((share * x**2).sum(-2, keepdims=True))
    differs = np.ptp(features, axis=-2, keepdims=True) > 0  # a mean is rounded, and so is spread
    scale = np.where(differs & standardise, spread, 1.0)
    root = np.sqrt(weights)[..., None]
    solved = np.linalg.pinv(root * x / scale, rcond=TOLERANCE) @ (root * y[..., None])
    coefficients = solved[..., 0] / scale[..., 0, :]
    return coefficients, y_mean[..., 0] - (coefficients * x_mean[..., 0, :]).sum(-1)
