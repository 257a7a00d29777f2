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
    """Return the pictures of an annotation file, by their ids; crowds are left out, as usual.

    Raises DataError, naming `where`, for another form or a box that cannot be.
    """
    try:
        whole = json.loads(content.decode("utf-8"))
        of_picture: Dict[int, List[List[float]]] = {int(row["id"]): [] for row in whole["images"]}
        for row in whole["annotations"]:
            if not row["iscrowd"]:
                left, top, width, height = (float(value) for value in row["bbox"])
                label = int(row["category_id"])
                box = [left, top, left + width, top + height, label]
                of_picture[int(row["image_id"])].append(box)
        rows = sorted(whole["images"], key=lambda row: int(row["id"]))
        return [_picture(row, of_picture[int(row["id"])]) for row in rows]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(f"{where} is not COCO's annotations of objects ({error!r})") from error


def _picture(row: Document, objects: List[List[float]]) -> Picture:
    table = np.array(objects, dtype=np.float64).reshape(-1, 5)
    labels = table[:, 4].astype(np.int64)
    if not np.isfinite(table).all() or ((labels < 1) | (labels >= CATEGORIES)).any():
        raise ValueError(f"picture {row['id']} has an object that cannot be")
    name = str(row["file_name"])
    if "/" in name:
        raise ValueError(f"the picture's name {name!r} leads elsewhere")
    boxes = table[:, :4].astype(np.float32)
    is_area = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])  # a few have none
    size = int(row["width"]), int(row["height"])
    return Picture(int(row["id"]), name, size[0], size[1], boxes[is_area], labels[is_area])


def encode_instances(pictures: Iterable[Picture]) -> bytes:
    """Return the bytes of an annotation file."""
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
            width, height = box[2] - box[0], box[3] - box[1]
            labels.add(label)
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": picture.id,
                    "category_id": label,
                    "bbox": [box[0], box[1], width, height],
                    "area": width * height,
                    "iscrowd": 0,
                }
            )
    categories = [{"id": label, "name": f"category {label}"} for label in sorted(labels)]
    whole = {"images": images, "annotations": annotations, "categories": categories}
    return json.dumps(whole).encode("utf-8")
