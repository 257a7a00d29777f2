"""The interpreter of commands and scripts."""

import os
import sys
from pathlib import Path

import pytest

from epochwatt.study.settings import lead_the_path


@pytest.fixture
def python(tmp_path, monkeypatch):
    def at(folder: str) -> Path:
        path = tmp_path / folder / "bin/python3"
        path.parent.mkdir(parents=True)
        path.symlink_to(sys.executable)
        monkeypatch.setattr(sys, "executable", str(path))
        monkeypatch.setenv("PATH", os.environ["PATH"])
        return path

    return at


def test_python3_is_the_interpreter_of_the_workflow(python):
    path = python("lab")
    lead_the_path()
    assert os.get_exec_path()[0] == str(path.parent)
    assert sys.executable == str(path)


def test_one_whose_path_would_fall_apart_goes_by_its_name(python):
    path = python("Förster lab")
    lead_the_path()
    assert os.get_exec_path()[0] == str(path.parent)
    assert sys.executable == "python3"
    lead_the_path()  # a second time, as when another workflow has this one as a module
    assert os.get_exec_path()[0] == str(path.parent)
