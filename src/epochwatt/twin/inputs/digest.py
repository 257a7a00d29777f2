"""Digest the part of `config/twin/` that a board's simulation depends on.

The workflow simulates again when it changes, so a comment, another layout or the `spread` of a
parameter simulates nothing, and a board's own parameter that board alone.
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from epochwatt.twin.inputs.boards import load_boards, load_samples
from epochwatt.twin.inputs.parameters import load_parameters

WORDS = ("title", "source", "sources")  # of an entry: what no simulation reads


def digests(folder: Path) -> dict[str, str]:
    """Return 16 hex digits for each board; equal ones mean the same simulation.

    Raises ConfigError: a file is missing, or an entry of it cannot be.
    """
    boards, p = load_boards(folder), load_parameters(folder)
    samples = {name: _numbers_of(facts) for name, facts in load_samples(folder).items()}
    powers = {board.power for board in boards.values()}
    digest = {}
    for name, board in boards.items():
        of_others = tuple(f"{power}_" for power in powers - {board.power})
        values = {key: float(p[key]) for key in p if not key.startswith(of_others)}
        content = json.dumps([_numbers_of(board), samples, values], sort_keys=True)
        digest[name] = hashlib.sha256(content.encode()).hexdigest()[:16]
    return digest


def _numbers_of(entry: Any) -> dict[str, Any]:
    return {key: value for key, value in asdict(entry).items() if key not in WORDS}
