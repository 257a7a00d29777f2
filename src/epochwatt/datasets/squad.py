"""Make SQuAD 1.1's training set: the original, or questions made up about made-up texts.

The vocabulary of word pieces is made from the texts, for nothing but them is needed: its size and
its special pieces are those of BERT-base, so time and energy are, too; what is learned is not.

Source: 87,599 questions on 18,896 texts, 30 MB: train-v1.1.json and torchtext, `squad1.py`.
"""

import json
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import numpy as np

from epochwatt.board.training import text
from epochwatt.datasets import official, wikitext
from epochwatt.datasets.downloads import obtain

QUESTIONS_A_TEXT = 5  # 4.6 in the original
WORDS_OF_TEXT = (60, 190)  # least, and one more than most
FILLER_WORDS, FREQUENT_WORDS = 6, 500  # of a question; from how many frequent ones they are
WORDS_OF_ANSWER = (1, 6)
CUE_WORDS = 3  # words before the answer that the question repeats
TEXTS_OF_ARTICLE = 40
LONGEST_PIECE = 6  # letters of a piece that is part of a word


def make_synthetic(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Write `n_samples` made-up questions and a vocabulary; return the files' names."""
    words = wikitext.words(seed, stream=1)
    random = np.random.default_rng([seed, 1 << 32])
    paragraphs = []
    for first in range(0, n_samples, QUESTIONS_A_TEXT):
        context = list(islice(words, int(random.integers(*WORDS_OF_TEXT))))
        questions = [_question(context, first + n, random) for n in range(QUESTIONS_A_TEXT)]
        paragraph = " ".join(context) + "."
        paragraphs.append({"context": paragraph, "qas": questions[: n_samples - first]})
    articles = [
        {"title": f"Made_up_{n}", "paragraphs": paragraphs[n : n + TEXTS_OF_ARTICLE]}
        for n in range(0, len(paragraphs), TEXTS_OF_ARTICLE)
    ]
    content = json.dumps({"data": articles, "version": "1.1"}).encode("utf-8")
    return _write(folder, content, n_samples)


def _question(context: list[str], number: int, random: np.random.Generator) -> dict[str, object]:
    """Return an entry of SQuAD: a random answer, and a question that ends with the words before it.

    `context`: words of the text
    """
    n_answer = int(random.integers(*WORDS_OF_ANSWER))
    begin = int(random.integers(CUE_WORDS, len(context) - n_answer))  # of the answer, in words
    start = len(" ".join(context[:begin])) + 1  # in characters
    filler = [wikitext.word(int(n)) for n in random.integers(0, FREQUENT_WORDS, FILLER_WORDS)]
    question = " ".join([*filler, *context[begin - CUE_WORDS : begin]]) + "?"
    answer = {"answer_start": start, "text": " ".join(context[begin : begin + n_answer])}
    return {"id": f"{number:024x}", "question": question, "answers": [answer]}


def make_official(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Copy the original's questions and make a vocabulary of its text; return the files' names."""
    (path,) = obtain([official.SQUAD], official.downloads_of(folder, "squad"), "SQuAD 1.1")
    return _write(folder, path.read_bytes(), n_samples)


def _write(folder: Path, content: bytes, n_samples: int) -> list[str]:
    """Write the questions, JSON of SQuAD, and their vocabulary; return the files' names."""
    questions = text.decode_squad(content, str(folder / text.SQUAD))
    official.check_counts(
        "the training set of SQuAD 1.1", folder, [len(questions)], [n_samples], "{} questions"
    )
    texts = {row.context: None for row in questions}
    pieces = vocabulary([*texts, *(row.question for row in questions)])
    (folder / text.SQUAD).write_bytes(content)
    (folder / text.PIECES).write_text("".join(f"{piece}\n" for piece in pieces), "utf-8")
    return [text.SQUAD, text.PIECES]


def vocabulary(texts: Iterable[str]) -> list[str]:
    """Return the word pieces of texts, `text.N_PIECES` of them; the index of a piece is its id.

    First the special ones at their ids; then every letter, alone and within a word; the most
    frequent words, up to 3/4 of what is left; and the most frequent parts within words. The rest
    is `[unused...]`.
    """
    words = Counter(word for line in texts for word, _, _ in text.words_of(line))
    pieces = [f"[unused{n}]" for n in range(max(text.SPECIAL.values()) + 1)]
    for piece, index in text.SPECIAL.items():
        pieces[index] = piece
    letters = sorted({letter for word in words for letter in word})
    pieces += [*letters, *(text.MARK + letter for letter in letters)]
    most_words = (text.N_PIECES - len(pieces)) * 3 // 4
    whole_words = [word for word, _ in _ranked(words) if len(word) > 1]
    pieces += whole_words[:most_words]
    parts: Counter[str] = Counter()
    for word, n in words.items():
        for begin in range(1, len(word)):
            for end in range(begin + 2, min(len(word), begin + LONGEST_PIECE) + 1):
                parts[text.MARK + word[begin:end]] += n
    pieces += [piece for piece, _ in _ranked(parts)]
    pieces = pieces[: text.N_PIECES]
    n_unused = text.N_PIECES - len(pieces)
    return pieces + [f"[unused{104 + n}]" for n in range(n_unused)]


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
