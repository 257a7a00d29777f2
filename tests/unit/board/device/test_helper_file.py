"""The root helper as the one file that is installed."""

import io
import zipfile
from pathlib import Path

from epochwatt.board.device import root_helper
from epochwatt.board.device.helper_file import helper_file


def test_the_file_names_its_interpreter_and_isolates_it():
    assert helper_file().startswith(b"#!/usr/bin/python3 -IS\n")
    assert helper_file("/opt/python").startswith(b"#!/opt/python -IS\n")


def test_the_file_shows_its_text_and_holds_nothing_else():
    content = helper_file()
    folder = Path(root_helper.__file__).parent
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == [
            "__main__.py",
            "epochwatt/__init__.py",
            "epochwatt/board/__init__.py",
            "epochwatt/board/device/__init__.py",
            "epochwatt/board/device/kinds.py",
            "epochwatt/board/device/board_files.py",
            "epochwatt/board/device/root_helper.py",
        ]
    for name in ("kinds.py", "board_files.py", "root_helper.py"):
        assert (folder / name).read_bytes() in content
