"""Make WikiText-2's training text: the original, or one made up of the same size.

Source: 2,088,628 words in 36,718 lines (Merity et al., 2016; torchtext), line ends included.
"""

import zipfile
from itertools import islice
from pathlib import Path

import numpy as np

from epochwatt.board.training.text import SEQUENCE, WIKITEXT
from epochwatt.datasets import made_up_text, official
from epochwatt.datasets.downloads import obtain
from epochwatt.errors import DataError

MEMBER = f"wikitext-2/{WIKITEXT}"
WORDS_A_LINE = (1, 112)  # made up; least, and one more than most: 57 with the line's end


def make_synthetic(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Write a made-up text of `n_samples` sequences; return the file's name."""
    left = n_samples * SEQUENCE + 1
    words = made_up_text.numbers(seed, stream=0)
    random = np.random.default_rng([seed, 1 << 32])
    lines = []
    while left:
        n_words = min(int(random.integers(*WORDS_A_LINE)), left - 1)  # a line's end is a word
        lines.append(" ".join(map(made_up_text.word, islice(words, n_words))))
        left -= n_words + 1
    (folder / WIKITEXT).write_text("".join(f" {line} \n" for line in lines), "utf-8")
    return [WIKITEXT]


def make_official(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Unpack the original's training text; return the file's name."""
    downloads = official.downloads_of(folder, "wikitext")
    (archive,) = obtain([official.WIKITEXT2], downloads, "WikiText-2")
    try:
        with zipfile.ZipFile(archive) as packed:
            (folder / WIKITEXT).write_bytes(packed.read(MEMBER))
    except (zipfile.BadZipFile, KeyError) as error:
        problem = f"it is damaged ({error})"
        raise DataError(problem, where=str(archive), do="remove it and start again") from error
    return [WIKITEXT]
