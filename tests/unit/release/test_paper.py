"""paper/paper.md: each number is read from a table, its length and its form are those of JOSS."""

import re

import pytest

from release import paper

NAMES = (  # with digits that are no results
    r"INA3221|SIGMETRICS 2023|HiPC Workshops 2021|Python 3\.\d+|JetPack \d|LeNet-5|Jetson TX1"
)


@pytest.fixture(scope="module")
def text():
    return paper.render()


def test_committed_paper_has_the_numbers_of_the_tables(text):
    assert paper.PAPER.read_text("utf-8") == text, "`make paper` writes it anew"


def test_no_number_stands_in_the_template():
    _, _, body = paper.TEMPLATE.read_text("utf-8").split("---\n", 2)
    words = re.sub(r"\{[{%].*?[%}]\}|`[^`]*`|\[@[^\]]*\]", "", body)
    assert re.findall(r"\S*\d\S*", re.sub(NAMES, "", words)) == []
