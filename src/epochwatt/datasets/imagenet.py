"""Make ImageNet's validation set: the original, or one made up, as synset folders of JPEG files.

Made-up pictures have the original's number and mean size on disk, and its usual 500x375 pixels.

Source: 50,000 pictures, 6.7 GB: the archive's own size (torchvision: `datasets/imagenet.py`).
"""

import tarfile
from pathlib import Path
from typing import Any

from epochwatt.board.training import pictures
from epochwatt.datasets import official
from epochwatt.datasets.downloads import obtain
from epochwatt.datasets.photographs import Painter, paint

SIZE, QUALITY = (500, 375), 100  # 139 kB on average; the original's pictures have 135
TRUTH = "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt"
META = "ILSVRC2012_devkit_t12/data/meta.mat"


def make_synthetic(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Write `n_samples` made-up pictures and a list of made-up synsets; return the files' names."""
    painter = Painter(seed, pictures.CLASSES, SIZE, QUALITY)
    synsets = [f"n{9 * 10**7 + label:08d}" for label in range(pictures.CLASSES)]
    labels = [painter.label(index) for index in range(n_samples)]
    names = [pictures.picture_name(synsets[label], n) for n, label in enumerate(labels, start=1)]
    for label in set(labels):
        (folder / "val" / synsets[label]).mkdir(parents=True)
    paint(painter, folder, names)
    (folder / pictures.SYNSETS).write_bytes(pictures.encode_synsets(synsets))
    return [pictures.SYNSETS, *names]


def make_official(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Write the original's pictures into synset folders, or link sorted ones; return the names.

    Raises DataError: files are missing, or numbers of pictures or classes are not the original's.
    """
    downloads = official.downloads_of(folder, "imagenet")
    names = []
    if (sorted_already := downloads / official.IMAGENET_FOLDER).is_dir():
        for path in sorted(sorted_already.glob("n*/*.JPEG")):
            names.append(str(path.relative_to(downloads)))
            (folder / names[-1]).parent.mkdir(parents=True, exist_ok=True)
            official.link_or_copy(path, folder / names[-1])
    else:
        archive, kit = obtain(official.IMAGENET, downloads, "ImageNet's validation set")
        synsets = _synsets_by_number(kit)
        with tarfile.open(archive) as tar:
            for member in tar:
                file = tar.extractfile(member)
                if file is not None and member.name.endswith(".JPEG"):
                    number = int(Path(member.name).stem.rpartition("_")[2])
                    names.append(pictures.picture_name(synsets[number - 1], number))
                    (folder / names[-1]).parent.mkdir(parents=True, exist_ok=True)
                    (folder / names[-1]).write_bytes(file.read())
        names.sort()
    synsets = sorted({Path(name).parent.name for name in names})
    found, expected = (len(names), len(synsets)), (n_samples, pictures.CLASSES)
    official.check_counts(
        "ImageNet's validation set", downloads, found, expected, "{} pictures of {} synsets"
    )
    (folder / pictures.SYNSETS).write_bytes(pictures.encode_synsets(synsets))
    return [pictures.SYNSETS, *names]


def _synsets_by_number(kit: Path) -> list[str]:
    """Return the synset of each picture in order of their numbers, from the development kit."""
    from scipy.io import loadmat

    with tarfile.open(kit) as tar:
        truth, meta = tar.extractfile(TRUTH), tar.extractfile(META)
        assert truth is not None, "the archive's checksum was compared"
        assert meta is not None, "the archive's checksum was compared"
        numbers = [int(line) for line in truth.read().split()]
        table: Any = loadmat(meta, squeeze_me=True)["synsets"]
    synsets = {int(row["ILSVRC2012_ID"]): str(row["WNID"]) for row in table}
    return [synsets[number] for number in numbers]
