"""Making a data set's folder and its manifest."""

import shutil
from pathlib import Path
from typing import Any

from epochwatt.datasets.recipes import maker_of, n_samples
from epochwatt.records import files
from epochwatt.training.data import MANIFEST


def make_dataset(folder: Path, recipe: dict[str, Any]) -> None:
    """Make the data set that a recipe describes; the manifest appears last, once all is there.

    Raises
    ------
    RecordWriteError : the folder cannot be written (permission, full disk)
    """
    maker = maker_of(recipe["name"], recipe["source"])
    count = n_samples(recipe["name"], recipe["source"], recipe["scale"])
    with files.writing("the data set", str(folder)):
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        names = maker.make(folder, count, recipe["seed"])
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
