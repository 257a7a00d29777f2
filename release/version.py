"""Make a version: write its number and date, cut the changelog, print the text of its tag.

`make release VERSION=1.0.0` changes files and commits nothing. `--tagged v1.0.0` only says whether
a checkout may be published under that tag, as `.github/workflows/release.yml` asks.
"""

import argparse
import datetime
import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
NUMBERS = {  # file -> its line with the number of the version
    "pyproject.toml": r'(?m)^version = "(.+)"$',
    "src/epochwatt/__init__.py": r'(?m)^__version__ = "(.+)"$',
    "CITATION.cff": r"(?m)^version: (.+)$",
}
HEAD = "## [Unreleased]"
NEW_HEAD = f"{HEAD}\n\n### Affects the results\n\n### Affects the workflow\n\n"
PLACEHOLDER = "PLACEHOLDER"  # of authors
TAG_TEXT = ".cache/tag.txt"  # which git ignores
SECTIONS = "release/changelog-sections.txt"  # what `digests` gave when the last version was cut


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Make or check a version; return 0 if it is one, else 1."""
    parser = argparse.ArgumentParser(prog="python -m release.version", description=__doc__)
    parser.add_argument("version", nargs="?", default="", help="such as 1.0.0")
    parser.add_argument("--tagged", metavar="TAG", help="only check a checkout of this tag")
    asked = parser.parse_args(arguments)
    problems = (
        tag_problems(asked.tagged, root) if asked.tagged else new_problems(asked.version, root)
    )
    for problem in (found := [*problems, *author_problems(root)]):
        print(f"no release: {problem}", file=sys.stderr)
    if found:
        return 1
    if not asked.tagged:
        version = asked.version
        text = cut(version, datetime.datetime.now(datetime.UTC).date(), root)
        (root / TAG_TEXT).parent.mkdir(exist_ok=True)
        (root / TAG_TEXT).write_text(text, "utf-8")
        print(text)
        print(
            f"Look at `git diff`. Then, with the text above, which is in {TAG_TEXT}:\n"
            f"  git commit -am 'Version {version}'\n"
            f"  git tag -a v{version} -F {TAG_TEXT}\n"
            f"  git push origin HEAD v{version}    # builds and publishes it",
            file=sys.stderr,
        )
    return 0


def new_problems(version: str, root: Path) -> Iterator[str]:
    """Yield what keeps the checkout from becoming this version."""
    before = written(root)
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", version):
        yield f"VERSION={version!r} is not MAJOR.MINOR.PATCH"
    elif _parts(version) <= max(map(_parts, before.values())):
        yield f"{version} is not newer than {', '.join(sorted({*before.values()}))}"
    elif _git(root, "tag", "--list", f"v{version}"):
        yield f"there is a tag v{version}"
    if changes := _git(root, "status", "--porcelain"):
        yield f"the checkout has uncommitted changes:\n{changes}"
    if not _entries(unreleased(root)):
        yield f"CHANGELOG.md has no entry under {HEAD}"


def tag_problems(tag: str, root: Path) -> Iterator[str]:
    """Yield what keeps a checkout of this tag from being published."""
    for file, number in written(root).items():
        if f"v{number}" != tag:
            yield f"{file} says {number}, the tag {tag}"
    if f"\n## [{tag.removeprefix('v')}] - " not in _read(root, "CHANGELOG.md"):
        yield f"CHANGELOG.md has no section of {tag}"
    if _entries(unreleased(root)):
        yield f"CHANGELOG.md has entries under {HEAD}"


def author_problems(root: Path) -> Iterator[str]:
    """Yield what is wrong with the authors in CITATION.cff and paper/paper.md."""
    authors = yaml.safe_load(_read(root, "CITATION.cff"))["authors"]
    if not any("family-names" in author for author in authors):
        yield "CITATION.cff names no person under authors (family-names, given-names, orcid)"
    if PLACEHOLDER in _read(root, "paper/paper.md").split("\n---", 1)[0]:
        yield (
            "paper/paper.md has placeholders for its authors: "
            "name them in paper/paper.md.jinja, then `make paper`"
        )


def cut(version: str, date: datetime.date, root: Path) -> str:
    """Write number and date of the version into the checkout; return the text of its tag."""
    for file, line in NUMBERS.items():
        text = _read(root, file)
        number = re.search(line, text)
        assert number, file
        text = f"{text[: number.start(1)]}{version}{text[number.end(1) :]}"
        if file == "CITATION.cff":
            text = re.sub(r"(?m)^date-released: .+$", f"date-released: {date}", text)
        (root / file).write_text(text, "utf-8")
    entries = unreleased(root)
    kept = re.sub(r"(?m)^### .+\n+(?=###|\Z)", "", entries).strip()  # no heading above nothing
    section = f"{NEW_HEAD}## [{version}] - {date}\n\n{kept}\n\n"
    changelog = _read(root, "CHANGELOG.md").replace(f"{HEAD}\n{entries}", section)
    (root / "CHANGELOG.md").write_text(changelog, "utf-8")
    (root / SECTIONS).write_text("\n".join([*digests(root), ""]), "utf-8")
    plain = re.sub(
        r"(?m)^### (.+)", r"\1:", kept
    )  # git takes a line that begins with # for a comment
    return f"epochwatt {version}\n\n{plain}\n"


def unreleased(root: Path) -> str:
    """Return what stands in the changelog below its head of unreleased changes."""
    return re.split(r"(?m)^## \[.+\n", _read(root, "CHANGELOG.md"))[1]


def digests(root: Path) -> list[str]:
    """Return for each version in the changelog a line with its number and the hash of its section.

    A branch from before a version was cut adds its entries to that section when it is merged.
    """
    _, *sections = re.split(r"(?m)^## (?=\[\d)", _read(root, "CHANGELOG.md"))
    numbers = [section[1 : section.index("]")] for section in sections]
    hashes = [hashlib.sha256(section.strip().encode()).hexdigest() for section in sections]
    return [f"{number} {text[:12]}" for number, text in zip(numbers, hashes, strict=True)]


def written(root: Path) -> dict[str, str]:
    """Return file -> the number that it has."""
    return {file: re.findall(line, _read(root, file))[0] for file, line in NUMBERS.items()}


def _entries(section: str) -> list[str]:
    return re.findall(r"(?m)^\* .+", section)


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _read(root: Path, file: str) -> str:
    return (root / file).read_text("utf-8")


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
