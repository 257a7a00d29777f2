"""Settings of a training, as PowerTrain's authors print them and as their code has them.

Both are the same but for two things, and each reading has a method of its own (`methods.py`): how
many modes are kept to choose the best epoch by, and whether a network that starts from scratch
keeps its best epoch or its last.
"""

from dataclasses import dataclass
from typing import NamedTuple

HIDDEN = (256, 128, 64)  # units of the layers before the last, which has one
DROPOUT = (0.4, 0.3, 0.0)  # share of each hidden layer's outputs that a step leaves out
LEARNING_RATE, EPOCHS, BATCH = 1e-3, 100, 32
ROWS_PER_MODE = 40  # mini-batches that are measured in each mode
# Of a reference. A mode table has one value per mode, so that the rows of a mode are copies: more
# of them are further steps of the same, and 4,368 modes of 40 rows would take half an hour.
MOST_ROWS = 30_000
SEED = 31  # of the authors' splits; here of all that is drawn

MSE, MAPE = "mse", "mape"  # losses: squared error, relative error


class Shares(NamedTuple):
    """Shares of the modes to learn from, and to choose the best epoch by. The rest is unused."""

    train: float
    validation: float


CODE_REFERENCE, CODE_FEW = Shares(0.8, 0.1), Shares(0.8, 0.2)  # of the authors' code
PAPER = Shares(0.9, 0.1)  # of the paper, for all networks


@dataclass(frozen=True)
class Recipe:
    """One way to train the networks."""

    loss: str = MSE  # `MSE` or `MAPE`, of a few modes; a reference is trained by `MSE`
    # whether networks see logarithms of cores and clocks and learn the target's, both standardised;
    # else cores and clocks standardised, and milliseconds or milliwatts as they are
    is_log: bool = False
    # whether a transfer standardises as its reference did; else by its own few modes
    keeps_scaler: bool = False
    keeps_best: bool = True  # whether the epoch of the lowest validation loss counts; else the last
    # reference, few: how the modes of a reference, and a few modes, are split
    reference: Shares = CODE_REFERENCE
    few: Shares = CODE_FEW
    crosses_boards: bool = False  # whether the reference may be of another board
    # whether rows are split and not modes, as in the authors' code. Rows of a mode are then on both
    # sides, and the epoch is chosen by what was learned: optimistic
    by_row: bool = False
