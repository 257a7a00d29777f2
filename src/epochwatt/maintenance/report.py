"""Make Snakemake's own report when something it shows is newer."""

import os
import subprocess
import sys
from pathlib import Path

from epochwatt.errors import EpochwattError
from epochwatt.project import start_command
from epochwatt.study import not_made

REPORT = Path("results/report.html")
PAGE = Path("results/overview.html")
_SHOWN = ("overview.html", "claims.csv", "figures/**/*.svg", "tables/**/*.*", "models/**/*.*")


def shown_files() -> list[Path]:
    """Return the files that the report shows: results, captions, configuration."""
    results = [path for pattern in _SHOWN for path in REPORT.parent.glob(pattern)]
    results += [not_made.FILE] if not_made.FILE.exists() else []
    return (
        results + list(Path("workflow/report").glob("*.rst")) + list(Path("config").rglob("*.yaml"))
    )


def make_report() -> str:
    """Make results/report.html unless it is up to date; return a sentence that says which."""
    if not PAGE.exists() and not not_made.FILE.exists():
        raise EpochwattError(
            f"there is nothing to report yet: no {PAGE}",
            do=f"run the workflow (`{start_command()}`; on a board: snakemake --profile jetson)",
        )
    newest = max((path.stat().st_mtime for path in shown_files()), default=0.0)
    if REPORT.exists() and REPORT.stat().st_mtime >= newest:
        return f"{REPORT} is up to date"
    # what failed is not asked for: the landing page names it
    environment = {**os.environ, **({not_made.AGAIN: "report"} if not_made.FILE.exists() else {})}
    command = [sys.executable, "-m", "snakemake", "--cores", "all", "--report", str(REPORT)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise EpochwattError(
            "the report cannot be made: not all results of the studies of config/config.yaml are "
            "there",
            found=result.stderr.strip(),
            do="name under `studies:` what was run, and run the workflow again",
        )
    return f"{REPORT} is made"
