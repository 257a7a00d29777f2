"""Make the original data sets: downloaded, or from files put beside the data sets by hand.

They lie in `downloads/{data set}` below the root of the storage medium and are kept there, so that
a data set can be made again without a network; the archives may be removed by hand.

Source: addresses and MD5 sums of MNIST and CIFAR-10: torchvision 0.24.1, `datasets/mnist.py` and
`datasets/cifar.py`. GLD-23k: address and MD5 sum of the map: TensorFlow Federated, `gldv2.py`;
address of the pictures: FedML, `data/gld/download_from_aws_s3.sh` (no checksum is published; the
archive holds a CRC-32 of each picture, and number of pictures and classes are compared). ImageNet:
MD5 sums of torchvision's `datasets/imagenet.py`; no address may be published. SQuAD 1.1 and
WikiText-2: torchtext, `datasets/squad1.py` and `datasets/wikitext2.py`. COCO: addresses of
cocodataset.org, MD5 sums as several public projects publish them.
"""

import gzip
import logging
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from epochwatt.board.training import landmarks
from epochwatt.board.training.dataset_files import MNIST_IMAGES, MNIST_LABELS
from epochwatt.datasets.downloads import Wanted, md5_of, obtain
from epochwatt.errors import DataError

log = logging.getLogger(__name__)

_MNIST_URLS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "http://yann.lecun.com/exdb/mnist/",
)
MNIST = [
    Wanted(f"{name}.gz", md5, tuple(f"{url}{name}.gz" for url in _MNIST_URLS))
    for name, md5 in (
        (MNIST_IMAGES, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        (MNIST_LABELS, "d53e105ee54ea40749a09fcbcd1e9432"),
    )
]
CIFAR10 = Wanted(
    "cifar-10-python.tar.gz",
    "c58f30108f718f92721af3b95e74349a",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",),
)
CIFAR10_FOLDER = "cifar-10-batches-py"
CIFAR10_MD5 = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
}
GLD23K_FOLDER = "images"  # where loose pictures may be put: {image_id}.jpg
GLD23K_MAP = Wanted(
    landmarks.MAP,
    "9fd62cf79a67046fdd673d3a0ac52841",
    (f"https://storage.googleapis.com/tff-datasets-public/{landmarks.MAP}",),
)
GLD23K_IMAGES = Wanted(
    "images.zip",
    "",
    ("https://fedcv.s3-us-west-1.amazonaws.com/landmark/images.zip",),
    "23 GB: all of GLD-160k; or a folder images/ with the 23,080 files {image_id}.jpg",
)
IMAGENET_FOLDER = "val"  # where sorted pictures may be put: {synset}/ILSVRC2012_val_*.JPEG
IMAGENET = (
    Wanted(
        "ILSVRC2012_img_val.tar",
        "29b22e2961454d5413ddabcf34fc5622",
        (),
        "6.7 GB, for registered users of image-net.org",
    ),
    Wanted("ILSVRC2012_devkit_t12.tar.gz", "fa75699e90414af021442c21a62c3abf", ()),
)
SQUAD = Wanted(
    "train-v1.1.json",
    "981b29407e0affa3b1b156f72073b945",
    ("https://rajpurkar.github.io/SQuAD-explorer/dataset/train-v1.1.json",),
)
WIKITEXT2 = Wanted(
    "wikitext-2-v1.zip",
    "542ccefacc6c27f945fb54453812b3cd",
    ("https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-v1.zip",),
)
COCO = (
    Wanted(
        "val2017.zip",
        "442b8da7639aecaf257c1dceb8ba8c80",
        ("http://images.cocodataset.org/zips/val2017.zip",),
        "0.8 GB",
    ),
    Wanted(
        "annotations_trainval2017.zip",
        "f4bbac642086de4f52a3fdda2de5fa2c",
        ("http://images.cocodataset.org/annotations/annotations_trainval2017.zip",),
        "0.25 GB",
    ),
)


def downloads_of(folder: Path, dataset: str) -> Path:
    """Return the folder beside `folder` that keeps the original files of a data set."""
    return folder.parent / "downloads" / dataset


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """Turn errors of unpacking (damaged, lacks a file) into a DataError that names the archive."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, KeyError) as error:
        problem = f"it is damaged ({error})"
        raise DataError(problem, where=str(path), do="remove it and start again") from error


def check_counts(
    what: str, where: Path, found: Sequence[int], allowed: Sequence[int], words: str
) -> None:
    """Raise DataError unless the numbers found are those of the original, `allowed`.

    `what`: the original, for the message; `words`: `{} pictures of {} classes`, filled with `found`
    """
    if tuple(found) != tuple(allowed):
        raise DataError(
            f"not {what}",
            where=str(where),
            found=words.format(*found),
            allowed=" of ".join(map(str, allowed)),
        )


def link_or_copy(source: Path, target: Path) -> None:
    """Make `target` a hard link to a file, or a copy where there can be no link."""
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, target)


def _check_all(names: Collection[str], present: Collection[str], where: Path) -> None:
    """Raise DataError where one of the names is not present."""
    lacking = [name for name in names if name not in present]
    if lacking:
        raise DataError(
            f"{len(lacking)} of {len(names)} files are missing, the first is {lacking[0]}",
            where=str(where),
            do=f"put them there, or remove {where}, and start again",
        )


def make_mnist(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Unpack MNIST's training files; return their names."""
    archives = obtain(MNIST, downloads_of(folder, "mnist"), "MNIST")
    for archive in archives:
        with gzip.open(archive) as packed, open(folder / archive.stem, "wb") as out:
            shutil.copyfileobj(packed, out)
    return [archive.stem for archive in archives]


def make_cifar10(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Unpack CIFAR-10's five training batches, or copy unpacked ones; return their names.

    Raises DataError: a batch is missing, or its MD5 is not that of CIFAR-10.
    """
    downloads = downloads_of(folder, "cifar10")
    unpacked = downloads / CIFAR10_FOLDER
    if unpacked.is_dir():
        _check_all(CIFAR10_MD5, os.listdir(unpacked), unpacked)
        for name in CIFAR10_MD5:
            shutil.copyfile(unpacked / name, folder / name)
    else:
        (archive,) = obtain([CIFAR10], downloads, "CIFAR-10")
        with tarfile.open(archive) as tar:
            for name in CIFAR10_MD5:
                member = tar.extractfile(f"{CIFAR10_FOLDER}/{name}")
                assert member is not None, "a regular file: the archive's checksum was compared"
                with open(folder / name, "wb") as out:  # no path of the archive is used to write
                    shutil.copyfileobj(member, out)
    for name, md5 in CIFAR10_MD5.items():
        if (actual := md5_of(folder / name)) != md5:
            raise DataError(
                f"{name} is not that of CIFAR-10",
                found=f"MD5 {actual}",
                allowed=f"MD5 {md5}",
                do=f"remove {unpacked} and start again",
            )
    return list(CIFAR10_MD5)


def make_gld23k(folder: Path, n_samples: int, seed: int) -> list[str]:
    """Copy the map of GLD-23k and copy or unpack its pictures; return the files' names.

    Loose pictures are hard-linked where possible. In the archive they may lie in any folder, and
    the CRC-32 of each is checked. Raises DataError: files are missing, damaged or not the original.
    """
    downloads = downloads_of(folder, "gld23k")
    loose = downloads / GLD23K_FOLDER
    wanted = [GLD23K_MAP] if loose.is_dir() else [GLD23K_MAP, GLD23K_IMAGES]
    map_path, *archives = obtain(wanted, downloads, "GLD-23k")
    content = map_path.read_bytes()
    rows = landmarks.decode_map(content, str(map_path))
    found = (len(rows), len({row.label for row in rows}))
    expected = (n_samples, landmarks.CLASSES)
    check_counts("the map of GLD-23k", map_path, found, expected, "{} pictures of {} classes")
    (folder / "train").mkdir()
    pictures = {f"{row.image_id}.jpg": landmarks.image_name(row.image_id) for row in rows}
    if not archives:
        _check_all(pictures, os.listdir(loose), loose)
        for file, name in pictures.items():
            link_or_copy(loose / file, folder / name)
    for archive in archives:
        with whole(archive), zipfile.ZipFile(archive) as packed:
            members = {PurePosixPath(info.filename).name: info for info in packed.infolist()}
            _check_all(pictures, members, archive)
            for n_done, (file, name) in enumerate(pictures.items(), start=1):
                (folder / name).write_bytes(packed.read(members[file]))
                if n_done % 1000 == 0:
                    log.info("%d of %d pictures", n_done, len(pictures))
        log.info("%s is not needed any more and may be removed", archive)
    (folder / landmarks.MAP).write_bytes(content)
    return [landmarks.MAP, *pictures.values()]
