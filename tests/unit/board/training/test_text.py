"""SQuAD, WikiText and word pieces: what is read, what is refused."""

import json

import numpy as np
import pytest

from epochwatt.board.training import text
from epochwatt.board.training.text import Asked, Question, Vocabulary, decode_squad, decode_wikitext
from epochwatt.board.training.transforms import LENGTH, question_pieces
from epochwatt.datasets.squad import vocabulary
from epochwatt.errors import DataError

CONTEXT = "Der Café-Besitzer (born 1901) didn't sell naïve déjà-vu; he sold 3.5 tons."


def squad(start=4, answer="Café-Besitzer", **changes):
    row = {"id": "1", "question": "Who?", "answers": [{"answer_start": start, "text": answer}]}
    paragraph = {"context": CONTEXT, "qas": [{**row, **changes}]}
    return json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": [paragraph]}]})


@pytest.mark.parametrize(
    "content",
    [
        *("[]", "{", '{"data": [{}]}', squad(start=5), squad(answer=""), squad(answers=[])),
        *(squad(start=-1), squad(start=10**9), squad(start="x")),
    ],
)
def test_other_content_is_refused_with_the_file(content):
    with pytest.raises(DataError, match=r"^here is not SQuAD"):
        decode_squad(content.encode(), "here")


def test_words_carry_their_bounds_in_the_text():
    words = list(text.words_of(CONTEXT))
    assert [w for w, _, _ in words][:8] == [
        "der",
        "cafe",
        "-",
        "besitzer",
        "(",
        "born",
        "1901",
        ")",
    ]
    assert all(CONTEXT[a:b].lower()[0] == w[0] for w, a, b in words)


def test_pieces_are_those_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers", reason="compares with transformers")
    pieces = vocabulary([CONTEXT, "sold sells selling sell besitz"])
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), "utf-8")
    tokenizer = transformers.BertTokenizer(vocab=str(tmp_path / "vocab.txt"), do_lower_case=True)
    ours = Vocabulary(pieces)
    for line in (CONTEXT, "Besitz resell unsold: 1901-3.5%!", "x" * 101, "中文 ok"):
        expected = tokenizer(line, add_special_tokens=False)["input_ids"]
        assert [n for word, _, _ in text.words_of(line) for n in ours.pieces_of(word)] == expected


def test_target_marks_the_pieces_of_the_answer():
    pieces = vocabulary([CONTEXT, "who"])
    sample = question_pieces(
        Asked(Question(CONTEXT, "Who?", "Café-Besitzer", 4), Vocabulary(pieces))
    )
    first, last = sample.target.tolist()
    told = [pieces[n] for n in sample.input[0].tolist()]
    assert told[0] == "[CLS]"
    assert told[first : last + 1] == ["cafe", "-", "besitzer"]
    n_pieces = int(sample.input[1].sum())
    assert told[n_pieces - 1] == "[SEP]"
    assert set(told[n_pieces:]) == {"[PAD]"}
    n_question = told.index("[SEP]") + 1
    assert sample.input[2].tolist() == (
        [0] * n_question + [1] * (n_pieces - n_question) + [0] * (LENGTH - n_pieces)
    )


def test_wikitext_numbers_words_by_how_often_they_come():
    words = decode_wikitext(b" \n = A = \n\n the <unk> the = b c d e f \n", "f")
    assert words.dtype == np.int32
    ends = words[[0, 4, 5, -1]]
    assert (ends == ends[0]).all()  # line ends, the most frequent
    assert ends[0] == 1
    assert words[7] == 0  # unknown
    assert len(words) == 16
