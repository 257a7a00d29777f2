"""Print the findings of the self-test."""

import textwrap
from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

from epochwatt.text import aligned

WIDTH = 76  # of messages, right of level and topic
Level = Literal["ok", "info", "warning", "problem"]


class Finding(NamedTuple):
    """The result of one check."""

    level: Level  # whether something is wrong
    topic: str  # what was checked, in a word or two
    message: str  # the result
    do: str = ""  # what the user can do about it


ok = partial(Finding, "ok")  # all is well
info = partial(Finding, "info")  # good to know
warning = partial(Finding, "warning")  # measurements lose quality, or some values
problem = partial(Finding, "problem")  # nothing can be measured


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Format findings as a table, with what to do below each, and the number of problems last."""
    rows: list[tuple[str, str, str]] = []
    for finding in findings:
        texts = textwrap.wrap(finding.message, WIDTH)
        if finding.do:
            texts += textwrap.wrap(f"do: {finding.do}", WIDTH, subsequent_indent="    ")
        rows.append((finding.level, finding.topic, texts[0]))
        rows += [("", "", text) for text in texts[1:]]
    levels = [finding.level for finding in findings]
    counts = f"problems: {levels.count('problem')}, warnings: {levels.count('warning')}"
    return [*aligned(rows), counts]
