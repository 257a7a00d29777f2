"""Read and write COCO's annotations of objects (board side: Python 3.6 grammar).

Source: the format's description on cocodataset.org ("Data format", object detection): JSON with
`images`, `annotations` (`bbox` as left, top, width, height in pixels, `iscrowd`) and `categories`,
whose ids go from 1 to 90 with gaps.
"""

import json
from typing import Any, Dict, Iterable, List, NamedTuple

import numpy as np

from epochwatt.board.records.shapes import Document
from epochwatt.errors import DataError

INSTANCES = "annotations/instances_val2017.json"
CATEGORIES = 91  # ids 1 to 90, and 0 for what is none


class Picture(NamedTuple):
    """A picture and the objects on it."""

    id: int  # of the picture
    file_name: str  # inside `val2017/`
    width: int  # in pixels
    height: int
    boxes: np.ndarray  # (n, 4) float32: left, top, right, bottom, pixels
    labels: np.ndarray  # (n,) int64: ids of the categories


class Annotated(NamedTuple):
    """A raw sample: a decoded picture with its boxes and labels, as `Picture` has them."""

    image: Any
    boxes: np.ndarray
    labels: np.ndarray


def picture_name(file_name: str) -> str:
    """Return the path of a picture inside the data set's folder."""
    return f"val2017/{file_name}"


def decode_instances(content: bytes, where: str) -> List[Picture]:
    """Decode an annotation file to its pictures, ordered by id; crowds are left out, as usual.

    Raises DataError, naming the file `where`: it has another form, or a box or label is impossible.
    """
    try:
        instances = json.loads(content.decode("utf-8"))
        objects: Dict[int, List[List[float]]] = {int(row["id"]): [] for row in instances["images"]}
        for row in instances["annotations"]:
            if not row["iscrowd"]:
                left, top, width, height = (float(value) for value in row["bbox"])
                label = int(row["category_id"])
                box = [left, top, left + width, top + height, label]
                objects[int(row["image_id"])].append(box)
        rows = sorted(instances["images"], key=lambda row: int(row["id"]))
        return [_picture(row, objects[int(row["id"])]) for row in rows]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(f"{where} is not COCO's annotations of objects ({error!r})") from error


def _picture(row: Document, objects: List[List[float]]) -> Picture:
    """Make a `Picture` of its image row and rows of corners and label; raises ValueError."""
    table = np.array(objects, dtype=np.float64).reshape(-1, 5)
    labels = table[:, 4].astype(np.int64)
    if not np.isfinite(table).all() or ((labels < 1) | (labels >= CATEGORIES)).any():
        raise ValueError(f"picture {row['id']} has an object that cannot be")
    name = str(row["file_name"])
    if "/" in name:
        raise ValueError(f"the picture's name {name!r} leads elsewhere")
    boxes = table[:, :4].astype(np.float32)
    has_area = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])  # a few have none
    width, height = int(row["width"]), int(row["height"])
    return Picture(int(row["id"]), name, width, height, boxes[has_area], labels[has_area])


def encode_instances(pictures: Iterable[Picture]) -> bytes:
    """Encode pictures and their objects as the bytes of an annotation file (JSON)."""
    images: List[Document] = []
    annotations: List[Document] = []
    labels = set()
    for picture in pictures:
        images.append(
            {
                "id": picture.id,
                "file_name": picture.file_name,
                "width": picture.width,
                "height": picture.height,
            }
        )
        for box, label in zip(picture.boxes.tolist(), picture.labels.tolist()):
            left, top, right, bottom = box
            width, height = right - left, bottom - top
            labels.add(label)
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": picture.id,
                    "category_id": label,
                    "bbox": [left, top, width, height],
                    "area": width * height,
                    "iscrowd": 0,
                }
            )
    categories = [{"id": label, "name": f"category {label}"} for label in sorted(labels)]
    instances = {"images": images, "annotations": annotations, "categories": categories}
    return json.dumps(instances).encode("utf-8")
