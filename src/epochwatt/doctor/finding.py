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
    """Return the findings as a table, with what to do below each, and their number."""
    rows: list[tuple[str, str, str]] = []
    for finding in findings:
        texts = textwrap.wrap(finding.message, WIDTH)
        if finding.do:
            texts += textwrap.wrap(f"do: {finding.do}", WIDTH, subsequent_indent="    ")
        heads = [(finding.level, finding.topic)] + [("", "")] * (len(texts) - 1)
        rows += [(*head, text) for head, text in zip(heads, texts, strict=True)]
    n = {level: sum(f.level == level for f in findings) for level in ("problem", "warning")}
    return [*aligned(rows), f"problems: {n['problem']}, warnings: {n['warning']}"]
