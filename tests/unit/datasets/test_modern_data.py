"""ImageNet-, SQuAD-, WikiText- and COCO-like data: made up and original, in their true formats."""

import io
import json
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from epochwatt.board.records.dataset_folder import folder_name
from epochwatt.board.records.files import sha256_of
from epochwatt.board.training import coco, pictures, text
from epochwatt.board.training.data import open_dataset
from epochwatt.datasets import coco as make_coco
from epochwatt.datasets import imagenet as make_imagenet
from epochwatt.datasets import official, recipes, squad, wikitext
from epochwatt.datasets.downloads import md5_of
from epochwatt.datasets.make import make_dataset
from epochwatt.errors import DataError

SCALES = {"imagenet": 1e-4, "wikitext": 2e-4, "squad": 2e-4, "coco": 8e-4, "tokens": 2e-4}
SYNSETS = [f"n{n:08d}" for n in range(1000)]


def named(dataset, source, scale):
    return {"dataset": dataset, "dataset_source": source, "dataset_scale": scale}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Data set -> folder of a small made-up one, and its reader."""
    root = tmp_path_factory.mktemp("data")
    found = {}
    for dataset, scale in SCALES.items():
        recipe = recipes.recipe(dataset, "synthetic", scale)
        folder = root / folder_name(dataset, "synthetic", scale)
        make_dataset(folder, recipe)
        factors = {**named(dataset, "synthetic", scale), "recipe": recipe}
        found[dataset] = folder, open_dataset(str(root), factors)[0]
    return found


def jpeg():
    file = io.BytesIO()
    Image.new("L", (40, 30), 90).save(file, "JPEG")
    return file.getvalue()


def stand_in(monkeypatch, name, *paths):
    """Let files stand for those of the original, and have their checksums compared."""
    wanted = tuple(official.Wanted(path.name, md5_of(path), ()) for path in paths)
    monkeypatch.setattr(official, name, wanted if len(wanted) > 1 else wanted[0])


@pytest.mark.parametrize("dataset", SCALES)
def test_a_larger_set_begins_with_the_smaller_one(made, dataset, tmp_path):
    scale = 2 * SCALES[dataset]
    small, large = made[dataset][0], tmp_path / folder_name(dataset, "synthetic", scale)
    make_dataset(large, recipes.recipe(dataset, "synthetic", scale))
    if dataset == "wikitext":
        there, here = ((f / text.WIKITEXT).read_text("utf-8") for f in (small, large))
        assert here.startswith(there[: there.rindex(" \n", 0, -3)])
    elif dataset == "tokens":
        there, here = ((f / text.TOKENS).read_bytes() for f in (small, large))
        assert here.startswith(there)
    elif dataset == "squad":
        files = [(f / text.SQUAD).read_bytes() for f in (small, large)]
        there, here = (text.decode_squad(content, "f") for content in files)
        n_whole = len(there) // squad.QUESTIONS_A_TEXT * squad.QUESTIONS_A_TEXT
        assert here[:n_whole] == there[:n_whole]
    else:
        for path in small.rglob("*"):
            if path.suffix.lower() in (".jpg", ".jpeg"):
                assert (large / path.relative_to(small)).read_bytes() == path.read_bytes()


# -- originals -----------------------------------------------------------------------------------


@pytest.fixture
def validation(tmp_path, monkeypatch):
    """Archives of the form of ImageNet's: a picture for each class, in mixed order."""
    downloads = tmp_path / "downloads/imagenet"
    downloads.mkdir(parents=True)
    numbers = np.random.default_rng(0).permutation(1000)  # picture -> ILSVRC id - 1
    picture = jpeg()
    pictures = {f"ILSVRC2012_val_{n + 1:08d}.JPEG": picture for n in range(1000)}
    meta = io.BytesIO()
    kind = [("ILSVRC2012_ID", "O"), ("WNID", "O")]
    rows = [(n + 1, SYNSETS[(7 * n) % 1000]) for n in range(1000)]
    savemat(meta, {"synsets": np.array(rows, dtype=kind)})
    truth = "".join(f"{n + 1}\n" for n in numbers).encode()
    kit = {make_imagenet.TRUTH: truth, make_imagenet.META: meta.getvalue()}
    paths = downloads / "ILSVRC2012_img_val.tar", downloads / "ILSVRC2012_devkit_t12.tar.gz"
    for path, members in zip(paths, (pictures, kit), strict=True):
        with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as tar:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    stand_in(monkeypatch, "IMAGENET", *paths)
    return tmp_path, [SYNSETS[(7 * n) % 1000] for n in numbers]


def test_imagenets_archives_become_synset_folders(validation):
    root, synset_of = validation
    folder = root / "imagenet-official-x1"
    folder.mkdir()
    names = make_imagenet.make_official(folder, 1000, 0)
    expected = {pictures.picture_name(synset, n) for n, synset in enumerate(synset_of, 1)}
    assert set(names[1:]) == expected
    assert pictures.decode_synsets((folder / pictures.SYNSETS).read_bytes(), "f") == SYNSETS
    label = sorted(SYNSETS).index(synset_of[2])
    manifest = {"files": {n: {"bytes": (folder / n).stat().st_size} for n in names}}
    manifest["files"][pictures.SYNSETS]["sha256"] = sha256_of(str(folder / pictures.SYNSETS))
    reader = pictures.ImagenetTree(str(folder), manifest)
    index = next(i for i, path in enumerate(reader.paths) if path.endswith("_00000003.JPEG"))
    image, found = reader.read(index)
    assert (image.mode, image.size, found) == ("RGB", (40, 30), label)


def test_pictures_that_are_sorted_already_are_taken_up(tmp_path):
    for n, synset in enumerate(SYNSETS, start=1):
        path = tmp_path / "downloads/imagenet" / pictures.picture_name(synset, n)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"picture")
    folder = tmp_path / "imagenet-official-x1"
    folder.mkdir()
    assert len(make_imagenet.make_official(folder, 1000, 0)) == 1001
    other = tmp_path / "imagenet-official-x2"
    other.mkdir()
    with pytest.raises(DataError, match="not ImageNet's validation set"):
        make_imagenet.make_official(other, 50_000, 0)


def test_what_may_not_be_downloaded_is_told_with_checksums(tmp_path):
    folder = tmp_path / "imagenet-official-x1"
    folder.mkdir()
    with pytest.raises(DataError) as error:
        make_imagenet.make_official(folder, 50_000, 0)
    assert "ILSVRC2012_img_val.tar  (MD5 29b22e2961454d5413ddabcf34fc5622" in str(error.value)
    assert "which you have to get" in str(error.value)


def test_cocos_archives_become_pictures_and_annotations(tmp_path, monkeypatch):
    downloads = tmp_path / "downloads/coco"
    downloads.mkdir(parents=True)
    boxes = np.array([[1, 2, 20, 25], [0, 0, 9, 9]], np.float32)
    pictures = [
        coco.Picture(n, f"{n:012d}.jpg", 40, 30, boxes[:n], np.array([1, 90])[:n]) for n in (2, 1)
    ]
    content = json.loads(coco.encode_instances(pictures))
    content["annotations"].append(
        {"image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5], "iscrowd": 1}
    )
    paths = downloads / "val2017.zip", downloads / "annotations_trainval2017.zip"
    with zipfile.ZipFile(paths[0], "w") as packed:
        for picture in pictures:
            packed.writestr(f"val2017/{picture.file_name}", jpeg())
    with zipfile.ZipFile(paths[1], "w") as packed:
        packed.writestr(coco.INSTANCES, json.dumps(content))
    stand_in(monkeypatch, "COCO", *paths)
    folder = tmp_path / "coco-official-x1"
    folder.mkdir()
    names = make_coco.make_official(folder, 2, 0)
    assert names == [coco.INSTANCES, "val2017/000000000001.jpg", "val2017/000000000002.jpg"]
    found = coco.decode_instances((folder / coco.INSTANCES).read_bytes(), "f")
    assert [len(picture.boxes) for picture in found] == [1, 2]  # the crowd is left out
    np.testing.assert_array_equal(found[1].boxes, boxes)
    with pytest.raises(DataError, match="not the annotations of val2017"):
        make_coco.make_official(folder, 5000, 0)


def test_squad_is_taken_as_it_is_with_a_vocabulary_of_its_text(tmp_path, monkeypatch, made):
    downloads = tmp_path / "downloads/squad"
    downloads.mkdir(parents=True)
    content = (made["squad"][0] / text.SQUAD).read_bytes()
    (downloads / text.SQUAD).write_bytes(content)
    stand_in(monkeypatch, "SQUAD", downloads / text.SQUAD)
    folder = tmp_path / "squad-official-x1"
    folder.mkdir()
    n = len(made["squad"][1])
    assert squad.make_official(folder, n, 0) == [text.SQUAD, text.PIECES]
    assert (folder / text.SQUAD).read_bytes() == content
    assert (folder / text.PIECES).read_bytes() == (made["squad"][0] / text.PIECES).read_bytes()
    with pytest.raises(DataError, match="not the training set"):
        squad.make_official(folder, n + 1, 0)


def test_wikitexts_archive_gives_its_training_text(tmp_path, monkeypatch):
    downloads = tmp_path / "downloads/wikitext"
    downloads.mkdir(parents=True)
    path = downloads / "wikitext-2-v1.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(wikitext.MEMBER, " = A = \n words \n")
        packed.writestr("wikitext-2/wiki.test.tokens", "no")
    stand_in(monkeypatch, "WIKITEXT2", path)
    folder = tmp_path / "wikitext-official-x1"
    folder.mkdir()
    assert wikitext.make_official(folder, 1, 0) == [text.WIKITEXT]
    assert (folder / text.WIKITEXT).read_text() == " = A = \n words \n"


# -- damage --------------------------------------------------------------------------------------

IMAGE = {"id": 1, "file_name": "a.jpg", "width": 9, "height": 9}
OBJECT = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5], "iscrowd": 0}


@pytest.mark.parametrize(
    ("images", "objects"),
    [
        ([{"id": 1}], []),
        ({}, 1),
        ([{**IMAGE, "file_name": "../a.jpg"}], []),
        ([IMAGE], [{**OBJECT, "category_id": 91}]),
        ([IMAGE], [{**OBJECT, "bbox": [0, 0, float("nan"), 1]}]),
        ([IMAGE], [{**OBJECT, "image_id": 5}]),
        ([IMAGE], [{**OBJECT, "bbox": [1]}]),
    ],
)
def test_other_annotations_are_refused(images, objects):
    content = json.dumps({"images": images, "annotations": objects}).encode()
    with pytest.raises(DataError, match=r"COCO|leads elsewhere"):
        coco.decode_instances(content, "f")
    for content in (b"[]", b"{"):
        with pytest.raises(DataError, match=r"^f is not COCO's annotations of objects"):
            coco.decode_instances(content, "f")
