"""Make up text: words of syllables, frequent ones short, some of which call for the next.

So a language model has something to learn. Blocks of words have generators of their own: a longer
text begins with a shorter one.
"""

from collections.abc import Iterator
from itertools import count

import numpy as np

BLOCK = 4096  # words with one generator; part of the recipe
N_WORDS = 33_278  # different ones, as WikiText-2 has
FALL = 1.05  # of Zipf's law
FOLLOWS = 0.4  # share of words that follow from the word before
STRIDE = 7919  # a prime: from a word to the one that follows it
CONSONANTS, VOWELS = "tnrslhdcmfpgbvkwzjxq", "aeiou"


def word(number: int) -> str:
    """Return the word of a number, 0 being the most frequent."""
    letters = []
    number += 1
    while number:
        number, at = divmod(number - 1, len(CONSONANTS) * len(VOWELS))
        letters.append(CONSONANTS[at // len(VOWELS)] + VOWELS[at % len(VOWELS)])
    return "".join(letters)


def numbers(seed: int, stream: int) -> Iterator[int]:
    """Yield the numbers of the words of an endless text."""
    weights = np.arange(1, N_WORDS + 1, dtype=float) ** -FALL
    shares = np.cumsum(weights) / weights.sum()
    for block in count():
        random = np.random.default_rng([seed, stream, block])
        drawn = np.minimum(np.searchsorted(shares, random.random(BLOCK)), N_WORDS - 1).tolist()
        follows = (random.random(BLOCK) < FOLLOWS).tolist()
        before = 0
        for number, is_called in zip(drawn, follows, strict=True):
            before = (before * STRIDE + 1) % N_WORDS if is_called else number
            yield before
