"""YAML files make no objects and bring nothing down, with libyaml and without it."""

import pytest

from epochwatt.errors import ConfigError
from epochwatt.study.yaml_files import read_yaml
from epochwatt.twin.boards import read_rows

READERS = [read_yaml, read_rows]
WITHOUT_LIBYAML = """
import sys, yaml
del yaml.CSafeLoader
from pathlib import Path
from epochwatt.errors import ConfigError
from epochwatt.twin.boards import read_rows
try:
    print(read_rows(Path(sys.argv[1])))
except ConfigError as error:
    print("refused", error)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.yaml"


@pytest.mark.parametrize("read", READERS)
def test_object_of_python_is_refused(path, tmp_path, read):
    path.write_text(f"a: !!python/object/apply:os.mkdir [{tmp_path}/made]\n")
    with pytest.raises(ConfigError, match=r"a\.yaml"):
        read(path)
    assert not (tmp_path / "made").exists()


def test_object_of_python_is_refused_where_libyaml_is_missing(path, tmp_path, python):
    path.write_text(f"a: !!python/object/apply:os.mkdir [{tmp_path}/made]\n")
    assert "refused" in python(WITHOUT_LIBYAML, path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("text", ["a: " + "[" * 100_000, "a:\n " + "- " * 5000, "{a: " * 60 + "1"])
def test_deep_nesting_is_refused_with_its_line(path, read, text):
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"a\.yaml, line [12]: nested more than 50 levels"):
        read(path)
