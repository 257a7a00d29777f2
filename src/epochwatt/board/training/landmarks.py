"""Read and write GLD-23k's format, JPEG files and a map (board side: Python 3.6 grammar).

Source: TensorFlow Federated's `gldv2` data set and FedML's copy of it: pictures named by their id,
and a CSV map with the columns user_id, image_id, class; the 2023 scripts read them as
`train/<image_id>.jpg`.
"""

import csv
import io
from typing import Iterable, List, NamedTuple

from epochwatt.errors import DataError

MAP = "mini_gld_train_split.csv"
CLASSES = 203
HEADER = ("user_id", "image_id", "class")

Row = NamedTuple("Row", [("user_id", str), ("image_id", str), ("label", int)])


def image_name(image_id: str) -> str:
    """Return the path of a picture inside the data set's folder."""
    return f"train/{image_id}.jpg"


def decode_map(content: bytes, where: str) -> List[Row]:
    """Decode a CSV map of pictures and classes to its rows, in order.

    Raises DataError, naming the file `where`: a column is missing, or a class or id is impossible.
    """
    try:
        reader = csv.DictReader(io.StringIO(content.decode("utf-8")))
        rows = [Row(r["user_id"], r["image_id"], int(r["class"])) for r in reader]
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise DataError(
            "{} is not a map with the columns {} ({!r})".format(where, ", ".join(HEADER), error)
        ) from error
    for row in rows:
        if not 0 <= row.label < CLASSES or "/" in row.image_id:
            raise DataError(f"{where} has a row that cannot be: {tuple(row)}")
    return rows


def encode_map(rows: Iterable[Row]) -> bytes:
    """Encode rows as the bytes of a CSV map."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8")
