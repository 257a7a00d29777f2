"""Make a data set's folder and its manifest."""

import os
import shutil
from pathlib import Path

from epochwatt.board.records import files
from epochwatt.board.records.shapes import Document
from epochwatt.board.training.data import MANIFEST
from epochwatt.datasets.recipes import SEED, maker_of, n_samples

MANY = 100  # files


def make_dataset(folder: Path, recipe: Document) -> None:
    """Make the data set of a recipe, in place of what `folder` holds; its manifest comes last.

    Raises RecordWriteError: the folder cannot be written (permission, full disk); DataError: an
    original is neither here nor can be downloaded, or is damaged.
    """
    maker = maker_of(recipe["name"], recipe["source"])
    count = n_samples(recipe["name"], recipe["source"], recipe["scale"])
    with files.writing("the data set", str(folder)):
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        names = maker.make(folder, count, recipe.get("seed", SEED))
        if len(names) > MANY:  # one by one would take minutes
            os.sync()
        else:
            for name in names:
                files.sync_file(str(folder / name))
        manifest = {
            "recipe": recipe,
            "n_samples": count,
            "files": {
                name: {
                    "bytes": (folder / name).stat().st_size,
                    "sha256": files.sha256_of(str(folder / name)),
                }
                for name in names
            },
        }
        files.write_json(str(folder / MANIFEST), manifest)
