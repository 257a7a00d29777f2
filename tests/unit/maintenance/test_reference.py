"""The pages of docs/ and config/: made blocks agree with the code."""

import difflib
import functools
import re
from pathlib import Path
from unittest import mock

import pytest

from epochwatt.maintenance import reference
from epochwatt.study.expand import load_table
from epochwatt.study.yaml_files import read_yaml

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module", autouse=True)
def _made_once():
    """All blocks of a checkout are made once."""
    with mock.patch.object(reference, "blocks", functools.cache(reference.blocks)):
        yield


@pytest.mark.parametrize("page", reference.PAGES)
def test_page_says_what_the_code_says(page):
    there, made = (ROOT / page).read_text("utf-8"), reference.pages(ROOT)[page]
    drift = "\n".join(difflib.unified_diff(there.splitlines(), made.splitlines(), page, "code"))
    assert there == made, f"run make docs\n{drift}"


def test_every_block_stands_in_one_page_and_no_other_exists():
    text = "".join((ROOT / page).read_text("utf-8") for page in reference.PAGES)
    assert sorted(m[2] for m in reference.BLOCK.finditer(text)) == sorted(reference.blocks(ROOT))
    assert text.count("<!-- made") == text.count("<!-- end") == len(reference.blocks(ROOT))


def test_the_run_that_docs_follow_is_in_the_run_table():
    pages = (ROOT / "docs/explanation").glob("one-run*.md")
    text = "".join(page.read_text("utf-8") for page in pages)
    studies = read_yaml(ROOT / "config/config.yaml")
    runs = set(load_table(studies, ROOT).runs)
    assert set(re.findall(r"host-local-[a-z0-9.-]+-p\d+-[0-9a-f]{8}", text)) <= runs
