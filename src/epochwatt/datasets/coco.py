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
SIDES = (30, 260)  # pixels, likewise
PICTURES = "val2017"


class BoxPainter(Painter):
    """Paints pictures with boxes on them, whose colours are those of their categories."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, coco.CATEGORIES, SIZE, QUALITY)

    def described(self, index: int) -> coco.Picture:
        """Return name, size and objects of a picture."""
        random = np.random.default_rng([self.seed, index, 2])
        n_objects = int(random.integers(*OBJECTS))
        sides = random.integers(*SIDES, (n_objects, 2))
        corners = random.integers(0, np.array(SIZE) - sides)
        boxes = np.concatenate([corners, corners + sides], axis=1).astype(np.float32)
        labels = random.integers(1, coco.CATEGORIES, n_objects)
        return coco.Picture(index + 1, f"{index + 1:012d}.jpg", *SIZE, boxes, labels)

    def picture(self, index: int) -> Image.Image:
        """Return a picture before it is encoded."""
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
    return _annotated(folder, coco.encode_instances(pictures), names)


def _annotated(folder: Path, content: bytes, names: list[str]) -> list[str]:
    (folder / coco.INSTANCES).parent.mkdir()
    (folder / coco.INSTANCES).write_bytes(content)
    return [coco.INSTANCES, *names]


def make_official(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Unpack the original's pictures and annotations; return the files' names.

    Raises DataError: files are missing, damaged or not those of the original.
    """
    downloads = official.downloads_of(folder, "coco")
    archive, annotations = obtain(list(official.COCO), downloads, "COCO 2017")
    with official.whole(downloads):
        with zipfile.ZipFile(annotations) as packed:
            content = packed.read(coco.INSTANCES)
        pictures = coco.decode_instances(content, str(annotations))
        counts = ([len(pictures)], [n_samples], "{} pictures")
        official.check_counts("the annotations of val2017", annotations, *counts)
        (folder / PICTURES).mkdir()
        names = []
        with zipfile.ZipFile(archive) as packed:
            members = {PurePosixPath(info.filename).name: info for info in packed.infolist()}
            for picture in pictures:
                names.append(coco.picture_name(picture.file_name))
                (folder / names[-1]).write_bytes(packed.read(members[picture.file_name]))
    return _annotated(folder, content, names)
