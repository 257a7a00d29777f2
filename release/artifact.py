"""Build the artifact for evaluators: `make artifact`.

It is one archive, artifact/epochwatt-VERSION-artifact.tar.gz: the code of the last commit with its
locks and data, the results of both papers on simulated boards as that code makes them in an empty
folder, the workflow's wheels for this platform, a page to open first, a script that makes the
results again, offline, and compares them, and checksums.
"""

import gzip
import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import jinja2

from epochwatt import __version__
from epochwatt.claims.claims_table import read_claims_table
from epochwatt.claims.takeaway_counts import in_short, status_of, takeaways
from epochwatt.published.numbers import TITLES

ROOT = Path(__file__).parents[1]
NAME = f"epochwatt-{__version__}-artifact"
LOCKS = "requirements/workflow.txt"
# not in the archive: records that the tables were made of, and what is other at each run
LEFT_OUT = ("simulated", "logs", "benchmarks", "overview.html", "not_made.json")


def main() -> None:
    """Build the archive in artifact/."""
    target = ROOT / "artifact" / NAME
    shutil.rmtree(target, ignore_errors=True)
    code = target / "code"
    code.mkdir(parents=True)
    if _git("status", "--porcelain"):
        print("uncommitted changes are left out: the artifact is of the last commit", flush=True)
    tree = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "HEAD"], check=True, capture_output=True
    )
    with tarfile.open(fileobj=io.BytesIO(tree.stdout)) as archive:
        archive.extractall(code, filter="data")

    start = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(code / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    workflow = [sys.executable, "-m", "snakemake", "--profile", "profiles/host"]
    workflow += ["--config", "studies=simulated"]
    subprocess.run(workflow, cwd=code, env=environment, check=True)
    minutes = (time.monotonic() - start) / 60
    shutil.copytree(code / "results", target / "results", ignore=shutil.ignore_patterns(*LEFT_OUT))
    for made in ("results", ".snakemake", ".cache", "measured"):
        shutil.rmtree(code / made, ignore_errors=True)

    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--require-hashes", "--no-deps"]
    pip += ["--requirement", str(code / LOCKS), "--wheel-dir", str(target / "wheels")]
    subprocess.run(pip, check=True)
    for script in ("rerun.sh", "compare.py"):
        shutil.copy(ROOT / "release" / script, target)
    (target / "START-HERE.html").write_text(start_page(target / "results", minutes), "utf-8")
    files = sorted(path for path in target.rglob("*") if path.is_file())
    sums = [f"{_sha256(path)}  {path.relative_to(target)}\n" for path in files]
    (target / "SHA256SUMS").write_text("".join(sums), "utf-8")
    packed = pack(target, int(_git("log", "-1", "--format=%ct")))
    print(f"{packed.relative_to(ROOT)}: {packed.stat().st_size / 1e6:.0f} MB, {len(files)} files")


def start_page(results: Path, minutes: float) -> str:
    """Return the page to open first: contents, badges with times, a row for each take-away."""
    claims = [row for row in read_claims_table(str(results / "claims.csv")) if row.form == "paper"]
    rows = [
        {
            "paper": TITLES[paper],
            "takeaway": takeaway,
            "texts": [row.claim_text for row in own],
            "verdict": status_of(row.status for row in own),
            "held_out": status_of(row.status_held_out for row in own),
            "why": [row.in_words for row in own if row.in_words],
        }
        for (paper, takeaway), own in takeaways(claims).items()
    ]
    loader = jinja2.FileSystemLoader(ROOT / "release")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("start-here.html").render(
        version=__version__,
        commit=_git("rev-parse", "HEAD"),
        date=_git("log", "-1", "--format=%cs"),
        minutes=f"{minutes:.1f}",
        platform=f"{platform.system()} on {platform.machine()}",
        cores=os.cpu_count(),
        python=platform.python_version(),
        in_short=in_short(claims),
        rows=rows,
        words={"holds": "holds", "does_not_hold": "does not hold", "": "cannot be judged"},
    )


def pack(folder: Path, at: int) -> Path:
    """Pack a folder into a .tar.gz beside it that is the same for the same files."""
    path = folder.parent / f"{folder.name}.tar.gz"

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = at
        return member

    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=at) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for file in sorted(folder.rglob("*")):
            name = str(file.relative_to(folder.parent))
            archive.add(file, name, recursive=False, filter=plain)
    return path


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
