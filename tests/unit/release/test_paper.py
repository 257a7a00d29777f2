"""paper/paper.md: each number is read from a table, its length and its form are those of JOSS."""

import re

import pytest

from release import paper

NAMES = (  # with digits that are no results
    r"INA3221|SIGMETRICS 2023|HiPC Workshops 2021|Python 3\.\d+|JetPack \d|LeNet-5|Jetson TX1"
    r"|ten times a second"
)
SPELT = "four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred"
SECTIONS = [
    "Summary",
    "Statement of need",
    "State of the field",
    "Software design",
    "What was validated, and how far",
    "Research impact statement",
    "AI usage disclosure",
    "Acknowledgements",
    "References",
]


@pytest.fixture(scope="module")
def text():
    return paper.render()


def test_committed_paper_has_the_numbers_of_the_tables(text):
    assert paper.PAPER.read_text("utf-8") == text, "`make paper` writes it anew"


def test_no_number_stands_in_the_template():
    _, _, body = paper.TEMPLATE.read_text("utf-8").split("---\n", 2)
    words = re.sub(r"\{[{%].*?[%}]\}|`[^`]*`|\[?@[^\]\s]*\]?", "", body)
    assert re.findall(rf"\S*\d\S*|\b(?:{SPELT})\b", re.sub(NAMES, "", words)) == []


def test_form_is_that_of_joss(text):
    _, _, body = text.split("---\n", 2)
    assert re.findall(r"(?m)^# (.+)", body) == SECTIONS
    prose = re.sub(r"(?m)^\|.*", "", body)
    assert 750 <= len(prose.split()) <= 1750
    bibliography = paper.PAPER.with_suffix(".bib").read_text("utf-8")
    assert {*re.findall(r"@([a-z]+\d*)", body)} == {*re.findall(r"(?m)^@\w+\{(\w+),", bibliography)}
