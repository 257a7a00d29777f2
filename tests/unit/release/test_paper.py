"""paper/paper.md: each number is read from a table, its length and its form are those of JOSS."""

import re

import pytest
import yaml

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


def test_every_named_number_is_shown():
    template = paper.TEMPLATE.read_text("utf-8")
    assert [
        name for name in paper.numbers() if not re.search(rf"\{{[{{%].*\b{name}\b", template)
    ] == []


def test_form(text):
    _, head, body = text.split("---\n", 2)
    words = re.sub(r"\[@[^\]]*\]", "", body.split("# References")[0]).split()
    assert 750 <= len(words) <= 1750
    fields = yaml.safe_load(head)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= fields.keys()
    sections = re.findall("(?m)^# (.+)$", body)
    for wanted in ("Summary", "Statement of need", "State of the field", "Software design"):
        assert wanted in sections
    cited = {*re.findall(r"@([\w]+)", body)}
    known = {
        *re.findall(r"(?m)^@\w+\{(\w+),", (paper.PAPER.parent / "paper.bib").read_text("utf-8"))
    }
    assert cited == known
