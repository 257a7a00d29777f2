"""What a self-test finds, and how it is shown."""

import textwrap
from collections.abc import Sequence
from typing import Literal, NamedTuple

from epochwatt.text import aligned

WIDTH = 76  # of the text beside level and topic


class Finding(NamedTuple):
    """One thing that was looked at."""

    level: Literal["ok", "info", "warning", "problem"]
    topic: str
    found: str
    do: str = ""  # what the user can do about it


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Return the findings as aligned lines, each with what to do below it, and their number."""
    rows: list[tuple[str, str, str]] = []
    for finding in findings:
        texts = textwrap.wrap(finding.found, WIDTH)
        if finding.do:
            texts += textwrap.wrap(f"do: {finding.do}", WIDTH, subsequent_indent="    ")
        heads = [(finding.level, finding.topic)] + [("", "")] * (len(texts) - 1)
        rows += [(*head, text) for head, text in zip(heads, texts, strict=True)]
    n = {level: sum(f.level == level for f in findings) for level in ("problem", "warning")}
    return [*aligned(rows), f"problems: {n['problem']}, warnings: {n['warning']}"]
