"""Prepare the package's docstrings for Sphinx.

They are written to be read in the source: a parameter is `name : what it holds`, an indented block
is shown as it is, and `|` and `*` mean themselves, except where `*` begins an item of a list.
"""

import re
from typing import Any

PARAMETER = re.compile(r"^(\s*)(\w[\w, ]*?) : (.*)$")
MARKUP = re.compile(r"(`[^`]*`|^\s*\* )|([|*])")


def setup(app: Any) -> dict[str, bool]:
    """Run before napoleon, which reads the sections."""
    app.connect("autodoc-process-docstring", prepare, priority=400)
    return {"parallel_read_safe": True}


def prepare(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Rewrite the lines of a docstring in place."""
    prepared: list[str] = []
    block_indent = None
    for place, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if block_indent is not None and line.strip() and indent <= block_indent:
            block_indent = None
        if block_indent is None:
            line = MARKUP.sub(lambda match: match[1] or f"\\{match[2]}", line)
            if parameter := PARAMETER.match(line):
                prepared += [f"{parameter[1]}{parameter[2]}", f"{parameter[1]}    {parameter[3]}"]
                continue
            if line.endswith(":") and _begins_block(lines[place + 1 : place + 3], indent):
                line, block_indent = f"{line}:", indent
        prepared.append(line)
    lines[:] = prepared


def _begins_block(following: list[str], indent: int) -> bool:
    """Say whether an empty line and an indented one follow."""
    if len(following) < 2 or following[0].strip():
        return False
    return len(following[1]) - len(following[1].lstrip()) > indent
