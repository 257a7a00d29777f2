"""What Snakemake says of files that it cannot write, in three lines."""

import os
import subprocess
import sys

import pytest

from snakemake_logger_plugin_epochwatt.handler import in_short

TRACE = """Traceback (most recent call last):

  File "/x/site-packages/snakemake/{}.py", line 791, in __init__
    os.makedirs(self.cache_path, exist_ok=True)

  File "<frozen os>", line 225, in makedirs

{}"""
NO_HOME = "FileNotFoundError: [Errno 2] No such file or directory: '/proc/nohome'"
NOT_OURS = "PermissionError: [Errno 13] Permission denied: '{}'"


@pytest.mark.parametrize(
    ("module", "error", "remedy"),
    [
        ("sourcecache", NO_HOME, "export XDG_CACHE_HOME="),
        ("sourcecache", NOT_OURS.format("/home/x/.cache/snakemake/tmp1"), "export XDG_CACHE_HOME="),
        ("persistence", NOT_OURS.format(os.path.abspath(".snakemake/x")), "sudo chown -R $USER ."),
        ("persistence", NOT_OURS.format("/etc/x"), "may not write there"),
    ],
)
def test_files_that_cannot_be_written_have_a_remedy(module, error, remedy):
    _, found, do = in_short(TRACE.format(module, error)).splitlines()
    assert error in found
    assert remedy in do
    assert ("chown" in do) == ("chown" in remedy)


def test_snakemake_itself_ends_with_the_message(tmp_path):
    (tmp_path / "Snakefile").write_text("rule all:\n    output: 'x'\n    shell: 'touch x'\n")
    (tmp_path / "cache").write_text("a file where a folder should be")
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "1", "--logger", "epochwatt"],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "error: Snakemake cannot write its cache" in done.stderr
    assert "Traceback" not in done.stderr
