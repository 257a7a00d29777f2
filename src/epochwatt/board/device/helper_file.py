"""Pack the root helper into one file (board side: Python 3.6 grammar).

The file is a Python program in a ZIP archive behind a `#!` line (zipapp, PEP 441). Its three
modules are stored uncompressed, so `less` shows their text.
"""

import io
import os
import zipfile

_MODULES = ("kinds.py", "board_files.py", "root_helper.py")
_MAIN = """import sys

from epochwatt.board.device.root_helper import main

sys.exit(main(sys.argv[1:]))
"""


def helper_file(interpreter: str = "/usr/bin/python3") -> bytes:
    """Return the content of the executable file `root_helper.INSTALLED`.

    Parameters
    ----------
    interpreter : the board's own Python; it imports nothing but its standard library
    """
    content = io.BytesIO()
    content.write(f"#!{interpreter} -IS\n".encode())
    with zipfile.ZipFile(content, "a") as archive:
        _add(archive, "__main__.py", _MAIN)
        _add(archive, "epochwatt/__init__.py", "")
        _add(archive, "epochwatt/board/__init__.py", "")
        _add(archive, "epochwatt/board/device/__init__.py", "")
        for name in _MODULES:
            with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as handle:
                _add(archive, "epochwatt/board/device/" + name, handle.read())
    return content.getvalue()


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    archive.writestr(zipfile.ZipInfo(name), text)  # its date is always the same
