"""Make texts: WikiText-2's, the original or one made up of its size; tokens as nanoGPT reads them.

A made-up text has words of syllables, frequent ones short, some of which call for the next, so that
a language model has something to learn. Blocks of words have generators of their own: a longer text
begins with a shorter one.

Source: 2,088,628 words in 36,718 lines (Merity et al., 2016; torchtext), line ends included.
"""

import zipfile
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import numpy as np

from epochwatt.board.training.text import LENGTH, N_TOKENS, SEQUENCE, TOKENS, WIKITEXT
from epochwatt.datasets import official
from epochwatt.datasets.downloads import obtain

MEMBER = f"wikitext-2/{WIKITEXT}"
WORDS_A_LINE = (1, 112)  # made up; least, and one more than most: 57 with the line's end
BLOCK = 4096  # words with one generator; part of the recipe
N_WORDS = 33_278  # different ones, as WikiText-2 has
FALL = 1.05  # of Zipf's law
FOLLOWS = 0.4  # share of words that follow from the word before
STRIDE = 7919  # a prime: from a word to the one that follows it
CONSONANTS, VOWELS = "tnrslhdcmfpgbvkwzjxq", "aeiou"


def word(number: int) -> str:
    """Return the word of a rank, 0 being the most frequent: the rank as digits of syllables."""
    syllables = []
    number += 1
    while number:
        number, syllable = divmod(number - 1, len(CONSONANTS) * len(VOWELS))
        consonant, vowel = divmod(syllable, len(VOWELS))
        syllables.append(CONSONANTS[consonant] + VOWELS[vowel])
    return "".join(syllables)


def words(seed: int, stream: int) -> Iterator[str]:
    """Yield the words of an endless text; `stream` as of `ranks`."""
    return map(word, ranks(seed, stream, N_WORDS))


def ranks(seed: int, stream: int, n_words: int) -> Iterator[int]:
    """Yield an endless text's words as ranks: by Zipf's law, a share called for by the last word.

    `stream`: texts of one seed but another stream are independent
    """
    weights = np.arange(1, n_words + 1, dtype=float) ** -FALL
    shares = np.cumsum(weights) / weights.sum()
    for block in count():
        random = np.random.default_rng([seed, stream, block])
        drawn = np.minimum(np.searchsorted(shares, random.random(BLOCK)), n_words - 1).tolist()
        follows = (random.random(BLOCK) < FOLLOWS).tolist()
        last = 0
        for rank, follows_last in zip(drawn, follows, strict=True):
            last = (last * STRIDE + 1) % n_words if follows_last else rank
            yield last


def make_synthetic(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Write a made-up text of `n_samples` sequences and one word; return the file's name."""
    n_left = n_samples * SEQUENCE + 1
    text = words(seed, stream=0)
    random = np.random.default_rng([seed, 1 << 32])
    lines = []
    while n_left:
        n_words = min(int(random.integers(*WORDS_A_LINE)), n_left - 1)  # a line's end is a word
        lines.append(f" {' '.join(islice(text, n_words))} \n")
        n_left -= n_words + 1
    (folder / WIKITEXT).write_text("".join(lines), "utf-8")
    return [WIKITEXT]


def make_official(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Unpack the original's training text; return the file's name."""
    downloads = official.downloads_of(folder, "wikitext")
    (archive,) = obtain([official.WIKITEXT2], downloads, "WikiText-2")
    with official.whole(archive), zipfile.ZipFile(archive) as packed:
        (folder / WIKITEXT).write_bytes(packed.read(MEMBER))
    return [WIKITEXT]


def make_tokens(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Write the tokens of `n_samples` samples and one more as uint16; return the file's name."""
    text = islice(ranks(seed, 1, N_TOKENS), n_samples * LENGTH + 1)
    np.fromiter(text, dtype="<u2").tofile(folder / TOKENS)
    return [TOKENS]
