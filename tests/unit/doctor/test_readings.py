"""A board's files: values under their real names, links, what cannot be read."""

import pytest

from epochwatt.doctor.bundle import read_all
from tests.fakeboard.tree import IO_ERROR

HWMON = "sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon3"


@pytest.fixture
def root(tmp_path):
    """The folder of a board, open to strangers."""
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def put(root):
    """Return a function that writes a file, or a link, below the root."""

    def write(name, content=None, link=None):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if link is not None:
            path.symlink_to(link)
        else:
            path.write_text(content)

    return write


def test_a_value_is_kept_once_under_its_real_name(put, root):
    real = "sys/devices/i2c-1/1-0040"
    put(real + "/hwmon/hwmon3/in1_label", "VDD_IN\n")
    put("sys/bus/i2c/drivers/ina3221/1-0040", link="../../../../devices/i2c-1/1-0040")
    put("sys/class/hwmon/hwmon3", link="../../devices/i2c-1/1-0040/hwmon/hwmon3")
    put(real + "/hwmon/hwmon3/name", "ina3221\n")
    board = read_all(str(root))
    assert board.values == {
        real + "/hwmon/hwmon3/in1_label": b"VDD_IN\n",
        real + "/hwmon/hwmon3/name": b"ina3221\n",
    }
    assert board.links == {
        "sys/bus/i2c/drivers/ina3221/1-0040": real,
        "sys/class/hwmon/hwmon3": real + "/hwmon/hwmon3",
    }
    assert board.errors == {}


def test_what_cannot_be_read_is_noted_with_its_error(put, root):
    put(HWMON + "/in1_label", "NC\n")
    put(HWMON + "/in1_input", link=IO_ERROR)
    board = read_all(str(root))
    expected = {"errno": 5, "at": "read", "text": "Input/output error"}
    assert board.errors == {HWMON + "/in1_input": expected}
    assert board.links == {}


def test_a_file_that_this_user_may_not_open_is_noted(put, root, as_stranger):
    put(HWMON + "/in1_input", "5000\n")
    (root / HWMON / "in1_input").chmod(0)
    board = as_stranger(root, read_all, ".")
    assert board.errors[HWMON + "/in1_input"]["at"] == "open"
    assert board.errors[HWMON + "/in1_input"]["text"] == "Permission denied"
