"""The artifact: equal files give equal archives; a rerun that differs is told, file by file."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from release import artifact, compare

RELEASE = Path(artifact.__file__).parent


@pytest.fixture
def results(tmp_path):
    """The results of an archive, and those of a rerun that are the same."""
    for side in ("archive", "rerun"):
        folder = tmp_path / side
        (folder / "figures").mkdir(parents=True)
        (folder / "claims.csv").write_text("claim,here\nT5,0.123456789012\n")
        (folder / "figures/fig02.svg").write_text('<path d="M 1.25 2.5"/>')
        (folder / "index.html").write_text(side)
    return tmp_path / "archive", tmp_path / "rerun"


def test_a_last_digit_at_the_edge_of_a_rounding_is_the_same_number():
    assert compare.is_close(b"x 0.12345678849999999", b"x 0.12345678850000001")
    assert not compare.is_close(b"x 0.1234567884", b"x 0.1234567887")


@pytest.mark.parametrize(
    ("file", "content", "said", "status"),
    [
        ("claims.csv", "claim,here\nT5,0.1234567890124\n", compare.ROUNDED, 0),
        ("claims.csv", "claim,here\nT5,0.12345679\n", "claims.csv: DIFFERENT", 1),
        ("claims.csv", "claim,here\nT6,0.123456789012\n", "claims.csv: DIFFERENT", 1),
        ("figures/fig02.svg", None, "figures/fig02.svg: not made", 1),
    ],
)
def test_what_differs_is_named(results, capsys, file, content, said, status):
    path = results[1] / file
    path.write_text(content) if content else path.unlink()
    assert compare.main(*results) == status
    assert said in capsys.readouterr().out


def test_equal_files_give_equal_archives(results):
    folder = results[0]
    first = artifact.pack(folder, 1_800_000_000).read_bytes()
    (folder / "claims.csv").touch()
    assert artifact.pack(folder, 1_800_000_000).read_bytes() == first
    with tarfile.open(folder.parent / "archive.tar.gz") as archive:
        assert "archive/figures/fig02.svg" in archive.getnames()


def test_the_script_stops_at_a_damaged_archive(results):
    folder = results[0]
    (folder / "rerun.sh").write_bytes((RELEASE / "rerun.sh").read_bytes())
    (folder / "SHA256SUMS").write_text(f"{'0' * 64}  claims.csv\n")
    done = subprocess.run(["sh", "rerun.sh"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1
    assert "claims.csv: FAILED" in done.stdout
    assert not (folder / "rerun").exists()


def test_the_script_to_compare_needs_nothing_but_python(results):
    command = [sys.executable, "-I", "-S", str(RELEASE / "compare.py"), *map(str, results)]
    assert subprocess.run(command, check=True, capture_output=True).stdout
