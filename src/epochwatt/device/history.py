"""What was measured last on this machine (board side: Python 3.6 grammar).

Within a run an epoch normally follows the one before it directly. When something else was measured
in between, caches and temperature are no longer those the epoch before left behind, so the epoch is
flagged `resumed` with reason and gap.
"""

import os
import time
from typing import Any, Dict, Optional

from epochwatt.device import host
from epochwatt.device.locks import machine_folder
from epochwatt.errors import RecordError
from epochwatt.records import files


def _path() -> str:
    return os.path.join(machine_folder(), "last-measurement.json")


def remember(measurement_id: str, run: str, epoch: int) -> None:
    """Note that this measurement is the latest on the machine (call it under the machine lock)."""
    path = _path()
    with files.writing("the machine's last measurement", path):
        files.write_json(path, {"measurement_id": measurement_id, "run": run, "epoch": epoch})
        if os.stat(path).st_uid == os.getuid():
            os.chmod(path, 0o666)


def interruption(previous: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return why an epoch does not directly follow `previous` (a record's meta), or None.

    The answer has `reason` (str) and `gap_s` (float, seconds since the end of `previous`).
    """
    gap_s = max(0.0, time.time() - previous["t_end_unix_s"])
    if previous["boot_id"] != host.boot_id():
        return {"reason": "the machine was restarted, or it is another one", "gap_s": gap_s}
    try:
        last = files.read_json(_path())
    except RecordError:
        return {"reason": "what was measured in between is not known", "gap_s": gap_s}
    if last.get("measurement_id") == previous["measurement_id"]:
        return None
    reason = "epoch {} of {} was measured in between".format(last.get("epoch"), last.get("run"))
    return {"reason": reason, "gap_s": gap_s}
