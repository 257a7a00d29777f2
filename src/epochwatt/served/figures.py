"""Draw a figure, in a process that has imported matplotlib where there is one."""

import json
from collections.abc import Sequence
from typing import Any

from epochwatt.served.ask import run


def draw(log: str, **job: Any) -> None:
    """Draw a figure for one of the rules plot_{figure}; end this process where that fails."""
    run("figures", [log, json.dumps(job)], main)


def prepare(_: Sequence[str]) -> None:
    """Import what all figures need."""
    import epochwatt.figures.draw_figure  # noqa: F401


def main(words: Sequence[str]) -> int:
    """Draw a figure; the words: path of the log file, and the fields of `Job` as JSON."""
    from epochwatt.adapters import job_log
    from epochwatt.figures.common.job import Job  # the asking process needs no matplotlib
    from epochwatt.figures.draw_figure import draw_figure

    log, job = words
    with job_log(log):
        draw_figure(Job(**json.loads(job)))
    return 0
