"""Make up tokens in the form in which nanoGPT reads them: a file of uint16.

The text is that of `wikitext.ranks`, over the vocabulary of the language model: frequent tokens,
some of which call for the next, so that there is something to learn.
"""

from itertools import islice
from pathlib import Path

import numpy as np

from epochwatt.board.training.text import LENGTH, N_TOKENS, TOKENS
from epochwatt.datasets.wikitext import ranks


def make_synthetic(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Write the tokens of `n_samples` samples and one more; return the file's name."""
    text = islice(ranks(seed, 1, N_TOKENS), n_samples * LENGTH + 1)
    np.fromiter(text, dtype="<u2").tofile(folder / TOKENS)
    return [TOKENS]
