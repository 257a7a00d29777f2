"""Make COCO's validation set of 2017: the original, or pictures with coloured boxes on them.

Source: 5,000 pictures of mostly 640x480 pixels in 815 MB: val2017.zip; some seven objects on each.
"""

import zipfile
from pathlib import Path, PurePosixPath

import numpy as np
from PIL import Image, ImageDraw

from epochwatt.board.training import coco
from epochwatt.datasets import official
from epochwatt.datasets.downloads import obtain
from epochwatt.datasets.photographs import Painter, paint

SIZE, QUALITY = (640, 480), 100  # 167 kB on average; the original's pictures have 163
OBJECTS = (1, 14)  # on a picture: least, and one more than most
SIDES = (30, 260)  # of a box, pixels, likewise
PICTURES = "val2017"


class BoxPainter(Painter):
    """Paints pictures with boxes on them, whose colours are those of their categories."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, coco.CATEGORIES, SIZE, QUALITY)

    def described(self, index: int) -> coco.Picture:
        """Return name, size, boxes (x1, y1, x2, y2 in pixels) and labels of a picture."""
        random = np.random.default_rng([self.seed, index, 2])
        n_objects = int(random.integers(*OBJECTS))
        sides = random.integers(*SIDES, (n_objects, 2))
        corners = random.integers(0, np.array(SIZE) - sides)
        boxes = np.concatenate([corners, corners + sides], axis=1).astype(np.float32)
        labels = random.integers(1, coco.CATEGORIES, n_objects)
        return coco.Picture(index + 1, f"{index + 1:012d}.jpg", *SIZE, boxes, labels)

    def picture(self, index: int) -> Image.Image:
        """Paint a picture with its boxes; colours are those of their categories."""
        image, described = super().picture(index), self.described(index)
        drawing = ImageDraw.Draw(image)
        for box, label in zip(described.boxes.tolist(), described.labels, strict=True):
            colour = np.clip(128 + 70 * self.class_colours[label].reshape(3), 0, 255).astype(int)
            drawing.rectangle(box, fill=tuple(colour.tolist()), outline=(0, 0, 0))
        return image


def make_synthetic(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Write `n_samples` made-up pictures and their annotations; return the files' names."""
    painter = BoxPainter(seed)
    pictures = [painter.described(index) for index in range(n_samples)]
    names = [coco.picture_name(picture.file_name) for picture in pictures]
    (folder / PICTURES).mkdir()
    paint(painter, folder, names)
    return _write_annotations(folder, coco.encode_instances(pictures), names)


def _write_annotations(folder: Path, content: bytes, names: list[str]) -> list[str]:
    """Write the annotations; return their file's name and those of the pictures."""
    (folder / coco.INSTANCES).parent.mkdir()
    (folder / coco.INSTANCES).write_bytes(content)
    return [coco.INSTANCES, *names]


def make_official(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Unpack the original's pictures and annotations; return the files' names.

    Raises DataError: files are missing, damaged or not those of the original.
    """
    downloads = official.downloads_of(folder, "coco")
    archive, annotations = obtain(official.COCO, downloads, "COCO 2017")
    with official.whole(downloads):
        with zipfile.ZipFile(annotations) as packed:
            content = packed.read(coco.INSTANCES)
        pictures = coco.decode_instances(content, str(annotations))
        official.check_counts(
            "the annotations of val2017", annotations, [len(pictures)], [n_samples], "{} pictures"
        )
        (folder / PICTURES).mkdir()
        names = [coco.picture_name(picture.file_name) for picture in pictures]
        with zipfile.ZipFile(archive) as packed:
            members = {PurePosixPath(info.filename).name: info for info in packed.infolist()}
            for name, picture in zip(names, pictures, strict=True):
                (folder / name).write_bytes(packed.read(members[picture.file_name]))
    return _write_annotations(folder, content, names)
