"""The papers' numbers and the folder of the folds, as they stand."""

import pytest

from epochwatt.published.numbers import load_published


@pytest.fixture(scope="session")
def published(pytestconfig):
    return load_published(pytestconfig.rootpath / "config/published")


@pytest.fixture(scope="session")
def twin(pytestconfig):
    return pytestconfig.rootpath / "config/twin"


@pytest.fixture
def copy(tmp_path, pytestconfig):
    """Return a function that copies a file of config/ and replaces a text in it."""

    def change(path, old, new):
        text = (pytestconfig.rootpath / "config" / path).read_text("utf-8")
        assert old in text
        (tmp_path / path).parent.mkdir(exist_ok=True)
        for beside in (pytestconfig.rootpath / "config" / path).parent.glob("*.csv"):
            (tmp_path / path).with_name(beside.name).write_text(beside.read_text("utf-8"), "utf-8")
        (tmp_path / path).write_text(text.replace(old, new, 1), "utf-8")
        return (tmp_path / path).parent

    return change
