"""Read SQuAD's and WikiText's formats, word pieces and tokens (board side: Python 3.6 grammar).

Sources: SQuAD 1.1's own page (rajpurkar.github.io/SQuAD-explorer); WikiText's (Merity et al.,
Pointer Sentinel Mixture Models, 2016): tokens separated by spaces, a paragraph a line; BERT's word
pieces (Devlin et al., 2018): lower case, accents stripped, the longest piece first. Files of tokens
as nanoGPT reads and writes them (github.com/karpathy/nanoGPT, MIT): `train.bin`, uint16, no header.
"""

import json
import os
import re
import unicodedata
from collections import Counter
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np

from epochwatt.board.records.shapes import Document
from epochwatt.board.training.dataset_files import check_size, read_checked, unreadable
from epochwatt.errors import DataError

SQUAD = "train-v1.1.json"
PIECES = "vocab.txt"
N_PIECES = 30522  # of BERT-base, uncased
PAD, UNKNOWN, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL = {PAD: 0, UNKNOWN: 100, CLS: 101, SEP: 102, MASK: 103}  # and their places
LONGEST_WORD = 100  # letters; a longer one is unknown
MARK = "##"  # before a piece that continues a word

WIKITEXT = "wiki.train.tokens"
N_WORDS = 29423  # of the language model; rarer ones are unknown
SEQUENCE = 8  # words of a sample
UNKNOWN_WORD, END_OF_LINE = "<unk>", "<eos>"

TOKENS = "train.bin"
N_TOKENS = 49152  # of the vocabulary
LENGTH = 512  # tokens of a sample

_CJK = "\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile("[%s]|[^\\W_%s]+|[^\\w\\s]|_" % (_CJK, _CJK))


class Question(NamedTuple):
    """A question about a text; `start` is where in it the answer begins, in characters."""

    context: str
    question: str
    answer: str
    start: int


class Asked(NamedTuple):
    """A raw sample: a question, and the vocabulary that its data set comes with."""

    question: Question
    vocabulary: "Vocabulary"


def decode_squad(content: bytes, where: str) -> List[Question]:
    """Decode SQuAD's JSON to its questions, in order, each with its first answer.

    Raises DataError, naming the file `where`: another form, or an answer is not in its text.
    """
    try:
        questions = []
        for article in json.loads(content.decode("utf-8"))["data"]:
            for paragraph in article["paragraphs"]:
                for row in paragraph["qas"]:
                    answer, context = row["answers"][0], paragraph["context"]
                    text, start = answer["text"], int(answer["answer_start"])
                    if start < 0 or not text or not context.startswith(text, start):
                        raise ValueError("question %s: its answer is not there" % row.get("id"))
                    questions.append(Question(context, row["question"], text, start))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{where} is not SQuAD 1.1 ({error!r})") from error
    return questions


def words_of(text: str) -> Iterator[Tuple[str, int, int]]:
    """Split a text as BERT does; yield lower-case words without accents, with begin and end.

    A punctuation mark is a word; other than in BERT, so is a symbol beyond ASCII.
    """
    for match in _WORD.finditer(text):
        word = match.group().lower()
        if max(word) > "~":  # beyond ASCII
            letters = unicodedata.normalize("NFD", word)  # accents apart, of the category Mn
            word = "".join(c for c in letters if unicodedata.category(c) != "Mn")
        if word:
            yield word, match.start(), match.end()


class Vocabulary:
    """Word pieces and their numbers.

    `pieces`: in order; those that continue a word begin with `##`
    """

    def __init__(self, pieces: List[str]) -> None:
        self.numbers = {piece: number for number, piece in enumerate(pieces)}

    def __deepcopy__(self, memo: Any) -> "Vocabulary":
        return self  # never changed, and large

    def pieces_of(self, word: str) -> List[int]:
        """Split a word greedily into the longest known pieces; return their numbers.

        A word that cannot be split, or is too long, is the one piece `UNKNOWN`.
        """
        numbers, pieces, start = self.numbers, [], 0
        if len(word) > LONGEST_WORD:
            return [numbers[UNKNOWN]]
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end]
                if start > 0:
                    piece = MARK + piece
                if piece in numbers:
                    break
            else:
                return [numbers[UNKNOWN]]
            pieces.append(numbers[piece])
            start = end
        return pieces


def decode_pieces(content: bytes, where: str) -> Vocabulary:
    """Decode a vocabulary of a piece a line; DataError, naming `where`: it is not BERT's form."""
    pieces = content.decode("utf-8", "replace").split("\n")[:-1]
    is_complete = len(pieces) == N_PIECES
    if not is_complete or any(pieces[n] != piece for piece, n in SPECIAL.items()):
        raise DataError(
            f"{where} is not a vocabulary of BERT's form",
            found=f"{len(pieces)} pieces",
            allowed=f"{N_PIECES}, with {', '.join(SPECIAL)} in their places",
        )
    return Vocabulary(pieces)


def answer_pieces(
    context: str, start: int, end: int, vocabulary: Vocabulary
) -> Tuple[List[int], Tuple[int, int]]:
    """Return a text's pieces and the indices of the first and last that overlap an answer.

    The answer is `context[start:end]`.
    """
    pieces: List[int] = []
    first = last = -1
    for word, word_start, word_end in words_of(context):
        if first < 0 and word_end > start:
            first = len(pieces)
        pieces += vocabulary.pieces_of(word)
        if word_start < end:
            last = len(pieces) - 1
    return pieces, (first, max(first, last))


def decode_wikitext(content: bytes, where: str) -> np.ndarray:
    """Decode WikiText to its words' numbers by frequency, int32 (n,); a line's end is a word.

    The most frequent word is 1, the next 2; those beyond the `N_WORDS` of the model are 0. Raises
    DataError, naming the file `where`: it is not UTF-8, or shorter than one sample.
    """
    words: List[str] = []
    try:
        for line in content.decode("utf-8").splitlines():
            words += line.split()
            words.append(END_OF_LINE)
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not text in UTF-8 ({error})") from error
    if len(words) <= SEQUENCE:
        raise DataError(f"{where} holds {len(words)} words, not even one sample")
    counts = Counter(words)
    del counts[UNKNOWN_WORD]
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[: N_WORDS - 1]
    numbers: Dict[str, int] = {word: number for number, word in enumerate(frequent, 1)}
    return np.array([numbers.get(word, 0) for word in words], dtype=np.int32)


class SquadQuestions:
    """SQuAD 1.1's questions for training, and a vocabulary of word pieces."""

    in_memory = True

    def __init__(self, folder: str, manifest: Document) -> None:
        content = read_checked(folder, PIECES, manifest)
        self.vocabulary = decode_pieces(content, os.path.join(folder, PIECES))
        content = read_checked(folder, SQUAD, manifest)
        self.questions = decode_squad(content, os.path.join(folder, SQUAD))

    def __len__(self) -> int:
        return len(self.questions)

    def read(self, index: int) -> Tuple[Asked, int]:
        """Return a question with the vocabulary; there is no label beside its answer: 0."""
        return Asked(self.questions[index], self.vocabulary), 0


class WikiWords:
    """WikiText's training text, cut into sequences of `SEQUENCE` words."""

    in_memory = True

    def __init__(self, folder: str, manifest: Document) -> None:
        content = read_checked(folder, WIKITEXT, manifest)
        self.words = decode_wikitext(content, os.path.join(folder, WIKITEXT))

    def __len__(self) -> int:
        return (len(self.words) - 1) // SEQUENCE

    def read(self, index: int) -> Tuple[np.ndarray, int]:
        """Return a sequence and the word that follows it, int64 (T + 1,); no label: 0."""
        start = index * SEQUENCE
        return self.words[start : start + SEQUENCE + 1].astype(np.int64), 0


class TokenFile:
    """Tokens in a file, cut into samples of `LENGTH`; they stay on the disk (`numpy.memmap`)."""

    def __init__(self, folder: str, manifest: Document) -> None:
        check_size(folder, TOKENS, manifest)
        self.path = os.path.join(folder, TOKENS)
        try:
            self.tokens: Any = np.memmap(self.path, dtype="<u2", mode="r")
        except (OSError, ValueError) as error:  # ValueError: it is empty, or of an odd size
            raise unreadable(self.path, error) from error
        if len(self.tokens) <= LENGTH:
            raise DataError(
                f"holds {len(self.tokens)} tokens, not even one sample", where=self.path
            )

    def __len__(self) -> int:
        return (len(self.tokens) - 1) // LENGTH

    def read(self, index: int) -> Tuple[np.ndarray, int]:
        """Return a sample and the token that follows it, int64 (LENGTH + 1,); no label: 0.

        Raises DataError: a token is beyond the vocabulary.
        """
        start = index * LENGTH
        tokens = np.asarray(self.tokens[start : start + LENGTH + 1], dtype=np.int64)
        if tokens.max() >= N_TOKENS:
            raise DataError(
                "holds a token that the network does not know",
                where=self.path,
                found=str(tokens.max()),
                allowed="below {:,}".format(N_TOKENS),
            )
        return tokens, 0
