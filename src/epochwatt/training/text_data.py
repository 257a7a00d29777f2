"""Readers of texts, which are in memory before any timed epoch (board side: Python 3.6 grammar)."""

import os
from typing import Any, Dict, Tuple

import numpy as np

from epochwatt.training import text
from epochwatt.training.dataset_files import read_checked
from epochwatt.training.text import Asked


class SquadQuestions:
    """SQuAD 1.1's questions for training, and a vocabulary of word pieces."""

    in_memory = True

    def __init__(self, folder: str, manifest: Dict[str, Any]) -> None:
        content = read_checked(folder, text.PIECES, manifest)
        self.vocabulary = text.decode_pieces(content, os.path.join(folder, text.PIECES))
        content = read_checked(folder, text.SQUAD, manifest)
        self.questions = text.decode_squad(content, os.path.join(folder, text.SQUAD))

    def __len__(self) -> int:
        return len(self.questions)

    def read(self, index: int) -> Tuple[Asked, int]:
        """Return a question with the vocabulary; there is no label beside its answer: 0."""
        return Asked(self.questions[index], self.vocabulary), 0


class WikiWords:
    """WikiText's training text, cut into sequences of `text.SEQUENCE` words."""

    in_memory = True

    def __init__(self, folder: str, manifest: Dict[str, Any]) -> None:
        content = read_checked(folder, text.WIKITEXT, manifest)
        self.words = text.decode_wikitext(content, os.path.join(folder, text.WIKITEXT))

    def __len__(self) -> int:
        return (len(self.words) - 1) // text.SEQUENCE

    def read(self, index: int) -> Tuple[np.ndarray, int]:
        """Return a sequence and the word that follows it, int64 (T + 1,); no label: 0."""
        start = index * text.SEQUENCE
        return self.words[start : start + text.SEQUENCE + 1].astype(np.int64), 0
