"""Turn a raw text into the network's input (board side: Python 3.6 grammar; imports torch)."""

import numpy as np
import torch

from epochwatt.board.training import text
from epochwatt.board.training.text import Asked, Question, Vocabulary, answer_pieces
from epochwatt.board.training.transforms import Sample

LENGTH = 384  # word pieces of BERT's input; shorter ones are padded, longer texts cut
LONGEST_QUESTION = 64  # pieces


def next_words(words: np.ndarray) -> Sample:
    """Return words (T + 1,) as an input (T,) and what follows each of them, (T,), both int64."""
    tensor = torch.from_numpy(words)
    return Sample(tensor[:-1], tensor[1:])


def question_pieces(raw: Asked) -> Sample:
    """Return a question and its text as word pieces, and where the answer is.

    Input (3, 384) int64: pieces, 1 where there is one, 1 where it is of the text. Target (2,):
    first and last piece of the answer; both 0 where it was cut off.
    """
    row, numbers = raw.question, raw.vocabulary.numbers
    question = [
        n for word, _, _ in text.words_of(row.question) for n in raw.vocabulary.pieces_of(word)
    ]
    head = [numbers[text.CLS]] + question[:LONGEST_QUESTION] + [numbers[text.SEP]]
    end = row.start + len(row.answer)
    context, answer = answer_pieces(row.context, row.start, end, raw.vocabulary)
    context = context[: LENGTH - len(head) - 1] + [numbers[text.SEP]]
    n_pieces = len(head) + len(context)
    inputs = torch.zeros(3, LENGTH, dtype=torch.int64)
    inputs[0, :n_pieces] = torch.tensor(head + context)
    inputs[1, :n_pieces] = 1
    inputs[2, len(head) : n_pieces] = 1
    places = [len(head) + index for index in answer]
    is_whole = places[1] < n_pieces - 1
    return Sample(inputs, torch.tensor(places if is_whole else [0, 0]))


def made_up_words() -> np.ndarray:
    """Return a sequence of words, for the warm-up."""
    return np.arange(1, text.SEQUENCE + 2, dtype=np.int64)


def made_up_question() -> Asked:
    """Return a question about a text of usual length, for the warm-up."""
    letters = [chr(ord("a") + n) for n in range(26)]
    pieces = ["[unused%d]" % n for n in range(104)]
    for piece, index in text.SPECIAL.items():
        pieces[index] = piece
    pieces += letters + [text.MARK + letter for letter in letters]
    context = "abcd efgh " * 60
    return Asked(Question(context, "where is efgh", "efgh", 5), Vocabulary(pieces))
