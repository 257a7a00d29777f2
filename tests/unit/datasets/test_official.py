"""The originals: downloaded and compared, continued after a broken connection, or put by hand."""

import gzip
import hashlib
import io
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from PIL import Image

from epochwatt.board.records.dataset_folder import folder_name
from epochwatt.board.training import cifar, idx, landmarks
from epochwatt.board.training.data import open_dataset
from epochwatt.datasets import downloads, official, recipes
from epochwatt.datasets.downloads import Wanted
from epochwatt.datasets.make import make_dataset
from epochwatt.errors import DataError

NOWHERE = "http://127.0.0.1:9"  # the discard port: nobody listens


class Server:
    """Gives files by their name; what it was asked for stands in `asked`."""

    def __init__(self):
        self.files = {}
        self.asked = []  # (name, the header Range)
        self.breaks_after = None  # bytes of an answer
        self.knows_ranges = True
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.answer(self)

            def log_message(self, *about):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.handle_error = lambda *about: None  # a client that hangs up is what a test does
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def answer(self, request):
        name, span = request.path.lstrip("/"), request.headers.get("Range")
        self.asked.append((name, span))
        if name not in self.files:
            request.send_error(404)
            return
        content, start = self.files[name], 0
        if span and self.knows_ranges:
            start = int(span.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                request.send_error(416)
                return
        request.send_response(206 if start else 200)
        request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        request.wfile.write(content[start:][: self.breaks_after])

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


def md5(content):
    return hashlib.md5(content).hexdigest()


def wanted(server, name, content):
    """Let the server give a file; return what a maker has to say of it."""
    server.files[name] = content
    return Wanted(name, md5(content), (f"{server.url}/{name}",))


@pytest.fixture
def file(server):
    """A file of 3 MB, and what is wanted of it."""
    content = np.random.default_rng(0).bytes(3_000_000)
    return content, wanted(server, "set.bin", content)


# -- downloading ---------------------------------------------------------------------------------


def test_file_is_downloaded_once(server, file, tmp_path):
    content, about = file
    for _ in range(2):
        (path,) = downloads.obtain([about], tmp_path / "new/folder", "the set")
        assert path.read_bytes() == content
    assert server.asked == [("set.bin", None)]
    assert [p.name for p in path.parent.iterdir()] == ["set.bin"]


def test_wrong_checksum_leaves_nothing(server, file, tmp_path):
    server.files["set.bin"] = b"a page that asks to log in"
    with pytest.raises(DataError) as told:
        downloads.obtain([file[1]], tmp_path, "the set")
    assert f"what {file[1].urls[0]} gives has not the MD5 {file[1].md5}" in str(told.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_broken_connection_is_told_and_continued(server, file, tmp_path, knows_ranges):
    content, about = file
    server.breaks_after, server.knows_ranges = 1_000_000, knows_ranges
    with pytest.raises(DataError, match="the connection ended after 1000000 of 3000000 bytes"):
        downloads.obtain([about], tmp_path, "the set")
    server.breaks_after = None
    (path,) = downloads.obtain([about], tmp_path, "the set")
    assert path.read_bytes() == content
    assert server.asked == [("set.bin", None), ("set.bin", "bytes=1000000-")]


@pytest.mark.parametrize("n_bytes", [1000, 3_000_001])
def test_what_continues_a_wrong_beginning_is_downloaded_anew(server, file, tmp_path, n_bytes):
    content, about = file
    (tmp_path / "set.bin.part").write_bytes(b"x" * n_bytes)
    (path,) = downloads.obtain([about], tmp_path, "the set")
    assert path.read_bytes() == content
    assert server.asked == [("set.bin", f"bytes={n_bytes}-"), ("set.bin", None)]


def test_whole_file_that_lacked_its_name_is_taken_and_a_second_address_tried(file, tmp_path):
    content, about = file
    (tmp_path / "set.bin.part").write_bytes(content)
    about = about._replace(urls=(f"{NOWHERE}/set.bin", *about.urls))
    (path,) = downloads.obtain([about], tmp_path, "the set")
    assert path.read_bytes() == content
    path.unlink()
    (path,) = downloads.obtain([about], tmp_path, "the set")
    assert path.read_bytes() == content


def test_without_a_network_it_says_which_files_to_put_where(tmp_path):
    files = [Wanted(name, md5(name.encode()), (f"{NOWHERE}/{name}",)) for name in "ab"]
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets/a").write_bytes(b"a")
    with pytest.raises(DataError) as told:
        downloads.obtain(files, tmp_path / "sets", "The set")
    error = told.value
    assert (error.where, error.problem[:31]) == ("The set", "not all its files are here, and")
    assert "Connection refused" in error.found
    first, *lacking = error.do.split("\n")
    assert first.startswith(f"put these into {tmp_path / 'sets'} by hand and start again")
    assert first.endswith("dataset_source: synthetic")
    assert lacking == [f"    b  (MD5 {files[1].md5})  from {NOWHERE}/b"]


def test_wrong_file_put_by_hand_is_named(file, tmp_path):
    (tmp_path / "set.bin").write_bytes(file[0][:-1])
    with pytest.raises(DataError, match="cut short, or not a file of the set") as caught:
        downloads.obtain([file[1]], tmp_path, "the set")
    assert caught.value.where == f"{tmp_path}/set.bin"
    assert caught.value.found == f"MD5 {md5(file[0][:-1])}"
    assert caught.value.allowed == f"MD5 {file[1].md5}"
    assert (tmp_path / "set.bin").exists()


def test_disk_without_room_is_told_before_the_download(file, tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 2_999_999})
    monkeypatch.setattr(downloads.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(DataError, match=r"no room to download set\.bin") as caught:
        downloads.obtain([file[1]], tmp_path, "the set")
    assert (caught.value.found, caught.value.allowed) == ("0.0 GB", "0.0 GB or more")


# -- the three originals -------------------------------------------------------------------------


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Return a function that makes and opens an original which is said to have `count` samples."""

    def made(dataset, count):
        maker = recipes.MAKERS[dataset, "official"]._replace(n_samples=count)
        monkeypatch.setitem(recipes.MAKERS, (dataset, "official"), maker)
        factors = {"dataset": dataset, "dataset_source": "official", "dataset_scale": 1}
        factors["recipe"] = recipes.recipe(dataset, "official", 1)
        make_dataset(tmp_path / folder_name(dataset, "official", 1), factors["recipe"])
        return open_dataset(str(tmp_path), factors)[0]

    return made


@pytest.fixture
def mnist(server, monkeypatch):
    """A stand-in for MNIST's two files: five images."""
    images = np.arange(5 * 784, dtype=np.uint32).astype(np.uint8).reshape(5, 28, 28)
    labels = np.arange(5, dtype=np.uint8)
    packed = [gzip.compress(idx.encode(array), mtime=0) for array in (images, labels)]
    names = [about.name for about in official.MNIST]
    files = [wanted(server, n, content) for n, content in zip(names, packed, strict=True)]
    monkeypatch.setattr(official, "MNIST", files)
    return images


def test_mnist_is_downloaded_or_put_by_hand_and_unpacked(
    make, mnist, tmp_path, server, monkeypatch
):
    reader = make("mnist", 5)
    assert len(reader) == 5
    np.testing.assert_array_equal(reader.read(3)[0], mnist[3])
    files, downloaded = dict(server.files), tmp_path / "downloads/mnist"
    assert sorted(path.name for path in downloaded.iterdir()) == sorted(files)
    server.files.clear()
    assert len(make("mnist", 5)) == 5  # made again from what was kept

    for name in files:
        (downloaded / name).unlink()
    away = [f._replace(urls=(f"{NOWHERE}/{f.name}",)) for f in official.MNIST]
    monkeypatch.setattr(official, "MNIST", away)
    with pytest.raises(DataError) as told:
        make("mnist", 5)
    assert all(f"{f.name}  (MD5 {f.md5})" in told.value.do for f in away)
    assert f"put these into {downloaded} by hand" in told.value.do
    assert not (tmp_path / "mnist-official-x1/manifest.json").exists()
    for name, content in files.items():
        (downloaded / name).write_bytes(content)
    assert len(make("mnist", 5)) == 5


@pytest.fixture
def cifar_files(server, monkeypatch):
    """A stand-in for CIFAR-10's archive: five batches of two; and one file that is not wanted."""
    images = np.random.default_rng(0).integers(0, 256, (2, 3, 32, 32), dtype=np.uint8)
    names = list(official.CIFAR10_MD5)
    batches = {name: cifar.encode(images, [n, 9], ["a", "b"], name) for n, name in enumerate(names)}
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, content in {**batches, "../../escaped": b"x"}.items():
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    about = wanted(server, official.CIFAR10.name, file.getvalue())
    monkeypatch.setattr(official, "CIFAR10", about)
    monkeypatch.setattr(official, "CIFAR10_MD5", {n: md5(c) for n, c in batches.items()})
    return batches


def test_cifar_is_downloaded_and_unpacked(make, cifar_files, tmp_path):
    reader = make("cifar10", 10)
    assert [reader.read(i)[1] for i in range(10)] == [0, 9, 1, 9, 2, 9, 3, 9, 4, 9]
    assert not list(tmp_path.rglob("escaped"))


def test_cifar_put_by_hand_unpacked_is_checked_and_needs_no_network(
    make, cifar_files, tmp_path, server
):
    folder = tmp_path / "downloads/cifar10/cifar-10-batches-py"
    folder.mkdir(parents=True)
    for name, content in list(cifar_files.items())[:4]:
        (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{folder}: 1 of 5 files are missing.* data_batch_5"):
        make("cifar10", 10)
    (folder / "data_batch_5").write_bytes(cifar_files["data_batch_4"])
    with pytest.raises(DataError, match="data_batch_5 is not that of CIFAR-10"):
        make("cifar10", 10)
    (folder / "data_batch_5").write_bytes(cifar_files["data_batch_5"])
    assert len(make("cifar10", 10)) == 10
    assert server.asked == []


@pytest.fixture
def pictures(server, monkeypatch):
    """Stand-ins for the map and the archive of GLD-23k: a picture of each class, and one more."""
    rows = [landmarks.Row("1", f"{label:016x}", label) for label in range(203)]
    jpeg = io.BytesIO()
    Image.new("RGB", (8, 6)).save(jpeg, "JPEG")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for row in [*rows, landmarks.Row("1", "f" * 16, 0)]:
            archive.writestr(f"images/{row.image_id}.jpg", jpeg.getvalue())
    about = wanted(server, landmarks.MAP, landmarks.encode_map(rows))
    monkeypatch.setattr(official, "GLD23K_MAP", about)
    server.files["images.zip"] = file.getvalue()
    about = official.GLD23K_IMAGES._replace(urls=(f"{server.url}/images.zip",))
    monkeypatch.setattr(official, "GLD23K_IMAGES", about)
    return {f"{row.image_id}.jpg": jpeg.getvalue() for row in rows}


def test_landmarks_are_taken_from_the_archive(make, pictures, tmp_path):
    reader = make("gld23k", 203)
    assert [reader.read(i)[1] for i in (0, 202)] == [0, 202]
    assert reader.read(7)[0].size == (8, 6)
    assert len(list((tmp_path / "gld23k-official-x1/train").iterdir())) == 203


def test_landmarks_put_by_hand_are_linked_once_all_are_there(make, pictures, tmp_path, server):
    folder = tmp_path / "downloads/gld23k/images"
    folder.mkdir(parents=True)
    for name, content in list(pictures.items())[3:]:
        (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=f"3 of 203 files are missing, the first is {0:016x}.jpg"):
        make("gld23k", 203)
    for name, content in pictures.items():
        (folder / name).write_bytes(content)
    assert len(make("gld23k", 203)) == 203
    assert server.asked == [(landmarks.MAP, None)]
    assert (folder / f"{0:016x}.jpg").stat().st_nlink == 2


def test_a_map_of_another_set_and_a_damaged_archive_are_named(make, pictures, server):
    content = bytearray(server.files["images.zip"])
    content[200] ^= 1  # in the first picture: its CRC-32 is wrong
    server.files["images.zip"] = bytes(content)
    with pytest.raises(DataError, match=r"images\.zip: it is damaged \(Bad CRC-32"):
        make("gld23k", 203)
    with pytest.raises(DataError, match="not the map of GLD-23k") as caught:
        make("gld23k", 23_080)
    assert caught.value.found == "203 pictures of 203 classes"
    assert caught.value.allowed.startswith("23080 of")
