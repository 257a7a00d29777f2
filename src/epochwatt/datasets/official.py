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

from epochwatt.board.records.files import csv_rows
from epochwatt.board.training import landmarks
from epochwatt.datasets.downloads import Wanted, md5_of, obtain
from epochwatt.errors import DataError

log = logging.getLogger(__name__)

CIFAR10_FOLDER = "cifar-10-batches-py"
GLD23K_FOLDER = "images"  # where loose pictures may be put: {image_id}.jpg
IMAGENET_FOLDER = "val"  # where sorted pictures may be put: {synset}/ILSVRC2012_val_*.JPEG


def _originals() -> dict[str, list[Wanted]]:
    """Read the files of each original data set from `originals.csv` beside this module."""
    originals: dict[str, list[Wanted]] = {}
    for data_set, name, md5, size, urls in csv_rows(__file__, "originals.csv"):
        wanted = Wanted(name, md5, tuple(urls.split()), size)
        originals.setdefault(data_set, []).append(wanted)
    return originals


_ORIGINALS = _originals()
MNIST, IMAGENET, COCO = (_ORIGINALS[name] for name in ("mnist", "imagenet", "coco"))
(CIFAR10,), (SQUAD,), (WIKITEXT2,) = (_ORIGINALS[name] for name in ("cifar10", "squad", "wikitext"))
CIFAR10_MD5 = {file.name: file.md5 for file in _ORIGINALS["cifar10 unpacked"]}
GLD23K_MAP, GLD23K_IMAGES = _ORIGINALS["gld23k"]


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
