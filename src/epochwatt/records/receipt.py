"""Write receipts, all that Snakemake sees of measured epochs (board side: Python 3.6 grammar).

`results/runs/{run}/part-{first}-{last}.json` names the epochs of one job, when each was measured,
its flags and the SHA-256 of its record. It can be written again at any time from `measured/`, so
losing `results/` costs no measurement.
"""

import os

from epochwatt.records import files
from epochwatt.records.run_folder import RECORD, RunFolder


def write_receipt(path: str, folder: RunFolder, first: int, last: int) -> None:
    """Write the receipt of epochs `first`..`last` after checking each record.

    Raises RecordError for an epoch that is missing or damaged, RecordWriteError when it cannot be
    written.
    """
    epochs = []
    for epoch in range(first, last + 1):
        record = folder.read(epoch)
        epochs.append(
            {
                "epoch": epoch,
                "measured_unix_s": record.meta["t_start_unix_s"],
                "flags": record.meta["flags"],
                "record_sha256": files.sha256_of(os.path.join(folder.epoch_path(epoch), RECORD)),
            }
        )
    with files.writing("the receipt", path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        files.write_json(path, {"run": folder.run, "first": first, "last": last, "epochs": epochs})
