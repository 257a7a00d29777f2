"""Recipes: everything that decides the content of a data set, known before it exists.

A recipe is part of a run's id. Whoever changes what a recipe makes raises its version. An original
carries the checksums of its files instead.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from epochwatt.board.records.shapes import Document
from epochwatt.board.training.references import is_reference, resolve
from epochwatt.datasets import official
from epochwatt.errors import ConfigError


class Maker(NamedTuple):
    """Recipe that makes one source of one data set."""

    version: int  # of what `make` writes; an original is told by its checksums
    n_samples: int  # at scale 1
    make: Callable[[Path, int, int], list[str]]  # (folder, n_samples, seed) -> names of the files
    checksums: dict[str, str] | None = None  # of an original, which exists at scale 1 only


def _lazy(name: str) -> Callable[[Path, int, int], list[str]]:
    """Return `module.function` of this package as a `make` that imports the module when called."""
    module_name, function = name.rsplit(".", 1)

    def make(folder: Path, n_samples: int, seed: int) -> list[str]:
        module = import_module(f"epochwatt.datasets.{module_name}")
        names: list[str] = getattr(module, function)(folder, n_samples, seed)
        return names

    return make


def _md5(*files: official.Wanted) -> dict[str, str]:
    return {file.name: file.md5 for file in files}


MAKERS = {
    ("mnist", "digits"): Maker(version=1, n_samples=1797, make=_lazy("digits.make_digits")),
    ("mnist", "synthetic"): Maker(1, 60_000, _lazy("synthetic.make_mnist")),
    ("mnist", "official"): Maker(1, 60_000, official.make_mnist, _md5(*official.MNIST)),
    ("cifar10", "synthetic"): Maker(1, 50_000, _lazy("synthetic.make_cifar10")),
    ("cifar10", "official"): Maker(1, 50_000, official.make_cifar10, official.CIFAR10_MD5),
    ("gld23k", "synthetic"): Maker(1, 23_080, _lazy("photographs.make_gld23k")),
    ("gld23k", "official"): Maker(1, 23_080, official.make_gld23k, _md5(official.GLD23K_MAP)),
    ("imagenet", "synthetic"): Maker(1, 50_000, _lazy("imagenet.make_synthetic")),
    ("imagenet", "official"): Maker(
        1, 50_000, _lazy("imagenet.make_official"), _md5(*official.IMAGENET)
    ),
    ("squad", "synthetic"): Maker(1, 87_599, _lazy("squad.make_synthetic")),
    ("squad", "official"): Maker(
        *(1, 87_599, _lazy("squad.make_official")),
        {**_md5(official.SQUAD), "vocab.txt": "made from its text, version 1"},
    ),
    ("wikitext", "synthetic"): Maker(1, 261_078, _lazy("wikitext.make_synthetic")),
    ("wikitext", "official"): Maker(
        1, 261_078, _lazy("wikitext.make_official"), _md5(official.WIKITEXT2)
    ),
    ("tokens", "synthetic"): Maker(1, 20_000, _lazy("wikitext.make_tokens")),
    ("coco", "synthetic"): Maker(1, 5_000, _lazy("coco.make_synthetic")),
    ("coco", "official"): Maker(1, 5_000, _lazy("coco.make_official"), _md5(*official.COCO)),
}

SEED = 0


def _is_ours(dataset: str) -> bool:
    from epochwatt.board.training.data import READERS  # here: it imports numpy

    return dataset in READERS


def maker_of(dataset: str, source: str) -> Maker:
    """Return the maker of a data set from a source, such as "official".

    A source with a dot is imported as a reference to a user's own `Maker`. Raises ConfigError:
    there is no such maker.
    """
    if is_reference(source) and (is_reference(dataset) or _is_ours(dataset)):
        maker = resolve(source, "the data set's source")
        if isinstance(maker, Maker):
            return maker
        raise ConfigError(
            f"the data set's source {source!r} is no Maker", do="see docs/tutorials/own-data.md"
        )
    try:
        return MAKERS[dataset, source]
    except KeyError:
        makers = ", ".join(f"{d} from {s}" for d, s in sorted(MAKERS))
        raise ConfigError(
            f"no data set {dataset!r} from source {source!r}", allowed=makers
        ) from None


def recipe(dataset: str, source: str, scale: float) -> Document:
    """Return a recipe, part of a run's id: with `checksums`, or `seed` and `version`.

    Raises ConfigError: there is no such source, or an original is asked for at another scale.
    """
    maker = maker_of(dataset, source)
    shared: Document = {"name": dataset, "source": source, "scale": scale}
    if maker.checksums is None:
        return {**shared, "seed": SEED, "version": maker.version}
    if scale != 1:
        raise ConfigError(
            f"dataset_scale is {scale:g}: the original {dataset} has one size", allowed="1"
        )
    return {**shared, "checksums": maker.checksums}


def n_samples(dataset: str, source: str, scale: float) -> int:
    """Return the number of samples at that scale."""
    return max(1, round(maker_of(dataset, source).n_samples * scale))
