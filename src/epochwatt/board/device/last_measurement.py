"""Note the last measurement on this machine (board side: Python 3.6 grammar).

An epoch normally follows the previous one of its run directly. If something else was measured in
between, caches and temperature have changed, so the epoch is flagged `resumed` with reason and gap.
"""

import time
from typing import Any, Dict, Optional

from epochwatt.board.device import host, notes

LAST = "last-measurement.json"


def remember(measurement_id: str, run: str, epoch: int) -> None:
    """Note that this measurement is the latest; call it while holding the machine lock."""
    notes.write_note(LAST, {"measurement_id": measurement_id, "run": run, "epoch": epoch})


def interruption(previous: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return why an epoch does not directly follow `previous` (a record's meta), or None.

    The answer has `reason` (str) and `gap_s` (float, seconds since the end of `previous`).
    """
    gap_s = max(0.0, time.time() - previous["t_end_unix_s"])
    if previous["boot_id"] != host.boot_id():
        return {"reason": "the machine was restarted, or it is another one", "gap_s": gap_s}
    last = notes.newest_note(LAST)
    if last is None:
        return {"reason": "what was measured in between is not known", "gap_s": gap_s}
    if last.get("measurement_id") == previous["measurement_id"]:
        return None
    reason = "epoch {} of {} was measured in between".format(last.get("epoch"), last.get("run"))
    return {"reason": reason, "gap_s": gap_s}
