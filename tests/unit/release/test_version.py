"""A version is made of a clean checkout with entries and authors, and of nothing else."""

import datetime
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from release import version

ROOT = Path(__file__).parents[3]


def git(root, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True)


def edit(root, file, old, new):
    text = (root / file).read_text("utf-8")
    assert old in text
    (root / file).write_text(text.replace(old, new, 1), "utf-8")


@pytest.fixture
def checkout(tmp_path):
    """The files that a version is written in, with authors and one entry, committed."""
    for file in (*version.NUMBERS, "CHANGELOG.md", "paper/paper.md", version.SECTIONS):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    citation = (tmp_path / "CITATION.cff").read_text("utf-8")
    person = "authors:\n  - family-names: Doe\n    given-names: Jane\n"
    (tmp_path / "CITATION.cff").write_text(citation.replace("authors:\n", person, 1), "utf-8")
    paper = (tmp_path / "paper/paper.md").read_text("utf-8")
    (tmp_path / "paper/paper.md").write_text(paper.replace(version.PLACEHOLDER, "Jane"), "utf-8")
    for file in version.NUMBERS:
        edit(tmp_path, file, version.written(tmp_path)[file], "0.8.0")
    changelog = tmp_path / "CHANGELOG.md"
    entry = f"{version.NEW_HEAD}* An entry of [a guide](docs/a.md).\n\n"
    old = f"{version.HEAD}\n{version.unreleased(tmp_path)}"
    changelog.write_text(changelog.read_text("utf-8").replace(old, entry), "utf-8")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "all")
    return tmp_path


def test_a_version_is_written_wherever_it_stands(checkout, capsys):
    assert version.main(["0.9.0"], checkout) == 0
    assert {*version.written(checkout).values()} == {"0.9.0"}
    today = str(datetime.datetime.now(datetime.UTC).date())
    citation = (checkout / "CITATION.cff").read_text("utf-8")
    assert re.findall(r"(?m)^date-released: (.+)$", citation) == [today]
    told = capsys.readouterr()
    assert told.out.startswith(
        "epochwatt 0.9.0\n\nAffects the workflow:\n\n* An entry of [a guide](docs/a.md).\n"
    )
    assert "git tag -a v0.9.0 -F .cache/tag.txt" in told.err
    assert (checkout / ".cache/tag.txt").read_text("utf-8").strip() == told.out.strip()
    sections = re.split(r"(?m)^(?=## )", (checkout / "CHANGELOG.md").read_text("utf-8"))[1:]
    assert sections[0] == version.NEW_HEAD
    assert sections[1].startswith(f"## [0.9.0] - {today}\n\n### Affects the workflow\n\n* An entry")
    assert sections[2].startswith("## [0.8.0]")
    assert (checkout / version.SECTIONS).read_text().split() == " ".join(
        version.digests(checkout)
    ).split()
    git(checkout, "commit", "-qam", "Version 0.9.0")
    assert version.main(["--tagged", "v0.9.0"], checkout) == 0
    assert version.main(["--tagged", "v0.9.1"], checkout) == 1


@pytest.mark.parametrize(
    ("file", "old", "new", "asked", "problem"),
    [
        ("CHANGELOG.md", "", "", "0.8.0", "0.8.0 is not newer than 0.8.0"),
        ("CHANGELOG.md", "", "", "0.10", "'0.10' is not MAJOR.MINOR.PATCH"),
        ("CHANGELOG.md", "", "", "", "'' is not MAJOR.MINOR.PATCH"),
        ("CHANGELOG.md", "* An entry of [a guide](docs/a.md).\n", "", "0.9.0", "no entry under"),
        ("CITATION.cff", "family-names: Doe", "name: us", "0.9.0", "CITATION.cff names no person"),
        ("paper/paper.md", "Jane", "PLACEHOLDER", "0.9.0", "placeholders for its authors"),
    ],
)
def test_what_is_no_version_is_refused(checkout, capsys, file, old, new, asked, problem):
    edit(checkout, file, old, new)
    git(checkout, "commit", "-qam", "changed", "--allow-empty")
    before = (checkout / "CHANGELOG.md").read_text("utf-8")
    assert version.main([asked], checkout) == 1
    assert problem in capsys.readouterr().err
    assert (checkout / "CHANGELOG.md").read_text("utf-8") == before


def test_uncommitted_changes_and_tags_are_refused(checkout, capsys):
    git(checkout, "tag", "v0.9.0")
    (checkout / "new.txt").touch()
    assert version.main(["0.9.0"], checkout) == 1
    told = capsys.readouterr().err
    assert "there is a tag v0.9.0" in told
    assert "uncommitted changes:\n?? new.txt" in told


def test_this_checkout_has_one_version_and_dated_sections():
    assert len({*version.written(ROOT).values()}) == 1
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    numbers = re.findall(r"(?m)^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d", changelog)
    assert numbers[0] == version.written(ROOT)["pyproject.toml"]
    assert sorted(numbers, key=lambda n: [int(part) for part in n.split(".")]) == numbers[::-1]
