"""Make up GLD-23k: as many JPEG files as the original, of the papers' size, from a seed.

The cost of reading and decoding a JPEG depends on its bytes and pixels, so both are those of the
papers: 800x600 pixels and about 120 kB. A picture is a smooth gradient of colours, textured in
parts; colours are faintly those of its class, so that training has something to learn. Its pixels
depend on the seed and on its number alone, so a larger scale begins with the same pictures; its
bytes depend on Pillow's JPEG encoder, too.

Source: 800x600 and 100 kB: HiPCW 2021; 2,827 MB in 23,080 files: SIGMETRICS 2023, Table 2.
"""

import hashlib
import io
import logging
import multiprocessing
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from PIL import Image

from epochwatt.board.training import landmarks

log = logging.getLogger(__name__)

WIDTH, HEIGHT = 800, 600
USERS = 233  # as the original has
QUALITY = 90  # of the JPEG encoder; with the figures below it gives 122 kB on average

COARSE = (5, 6)  # rows and columns of the gradient before it is enlarged
TEXTURE_SIDE = 2048  # pixels; each picture shows a part of it
TEXTURE_FALL = 1.2  # amplitude of each octave relative to the next finer one
TEXTURE_LEVELS = 60.0  # deviation
TEXTURE_SHARE = (0.25, 0.9)  # of the texture where it is strongest; sizes vary from 60 to 170 kB

FEW = 64  # pictures that are not worth a second process
LOGGED_EVERY = 1000  # pictures


class Painter:
    """Paints pictures by their number; holds the texture and the class colours that they share.

    `seed`: of everything
    `n_classes`: whose colours differ
    `size`: width and height, pixels
    `quality`: of the JPEG encoder
    """

    def __init__(
        self,
        seed: int,
        n_classes: int = landmarks.CLASSES,
        size: tuple[int, int] = (WIDTH, HEIGHT),
        quality: int = QUALITY,
    ) -> None:
        self.seed = seed
        self.n_classes, self.size, self.quality = n_classes, size, quality
        random = np.random.default_rng([seed, 1 << 32])  # no picture has this number
        self.class_colours = random.standard_normal((n_classes, 1, 1, 3))
        self.class_gradients = random.standard_normal((n_classes, *COARSE, 3))
        self.texture = _texture(random)

    def label(self, index: int) -> int:
        """Return the class of a picture."""
        return int(np.random.default_rng([self.seed, index, 0]).integers(self.n_classes))

    def row(self, index: int) -> landmarks.Row:
        """Return user, id and class of a picture."""
        image_id = hashlib.sha256(f"{self.seed}/{index}".encode("ascii")).hexdigest()[:16]
        return landmarks.Row(str(index % USERS), image_id, self.label(index))

    def jpeg(self, index: int) -> bytes:
        """Return the bytes of a picture."""
        file = io.BytesIO()
        self.picture(index).save(file, "JPEG", quality=self.quality)
        return file.getvalue()

    def picture(self, index: int) -> Image.Image:
        """Paint a picture: gradient in the colours of its class, blended in parts with texture."""
        random = np.random.default_rng([self.seed, index, 1])
        label = self.label(index)
        levels = 0.5 * self.class_colours[label] + 0.5 * self.class_gradients[label]
        levels = levels + 0.7 * random.standard_normal((*COARSE, 3))
        width, height = self.size
        smooth = self._enlarged(np.clip(128 + 45 * levels, 0, 255))
        mask = self._enlarged(random.integers(0, 256, (4, 5)))
        left = int(random.integers(TEXTURE_SIDE - width))
        top = int(random.integers(TEXTURE_SIDE - height))
        patch = self.texture.crop((left, top, left + width, top + height))
        textured = Image.blend(smooth, patch.convert("RGB"), float(random.uniform(*TEXTURE_SHARE)))
        return Image.composite(textured, smooth, mask)

    def _enlarged(self, levels: np.ndarray) -> Image.Image:
        picture = Image.fromarray(levels.astype(np.uint8))
        return picture.resize(self.size, Image.Resampling.BICUBIC)


def _texture(random: np.random.Generator) -> Image.Image:
    """Return a grey texture: sum of seven octaves of noise, coarser ones stronger."""
    total = np.zeros((TEXTURE_SIDE, TEXTURE_SIDE), np.float32)
    for octave in range(7):
        side = TEXTURE_SIDE >> octave
        noise = Image.fromarray(random.standard_normal((side, side), dtype=np.float32))
        enlarged = noise.resize(total.shape, Image.Resampling.BICUBIC)
        total += np.float32(TEXTURE_FALL**octave) * np.asarray(enlarged)
    total *= np.float32(TEXTURE_LEVELS) / total.std()
    return Image.fromarray(np.clip(128 + total, 0, 255).astype(np.uint8))


def make_gld23k(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Write `n_samples` made-up photographs and the CSV of their users; return file names."""
    painter = Painter(seed)
    (folder / "train").mkdir()
    rows = [painter.row(index) for index in range(n_samples)]
    names = [landmarks.image_name(row.image_id) for row in rows]
    paint(painter, folder, names)
    (folder / landmarks.MAP).write_bytes(landmarks.encode_map(rows))
    return [landmarks.MAP, *names]


def paint(painter: Painter, folder: Path, names: Sequence[str]) -> None:
    """Paint picture k and write it to `names[k]` in a folder, for all k; log the progress.

    More than `FEW` pictures are painted in a process for each CPU.
    """
    n_processes = len(os.sched_getaffinity(0)) if len(names) > FEW else 1
    with ExitStack() as stack:
        if n_processes == 1:
            _set_up(painter, folder, names)
            painted: Iterable[int] = map(_paint, range(len(names)))
        else:
            # fork: the texture is shared, and a script of Snakemake cannot be imported anew
            context = multiprocessing.get_context("fork")
            pool = stack.enter_context(context.Pool(n_processes, _set_up, (painter, folder, names)))
            painted = pool.imap_unordered(_paint, range(len(names)), chunksize=32)
        for n_done, index in enumerate(painted, start=1):
            if n_done % LOGGED_EVERY == 0:
                log.info("%d of %d pictures, the last is number %d", n_done, len(names), index)


def _set_up(painter: Painter, folder: Path, names: Sequence[str]) -> None:
    """Keep in this process what `_paint` needs."""
    _paint.arguments = painter, folder, names  # type: ignore[attr-defined]


def _paint(index: int) -> int:
    """Paint and write a picture; return its number."""
    painter, folder, names = _paint.arguments  # type: ignore[attr-defined]
    (folder / names[index]).write_bytes(painter.jpeg(index))
    return index
