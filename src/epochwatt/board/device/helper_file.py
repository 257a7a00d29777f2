"""Pack the root helper into one file (board side: Python 3.6 grammar).

The file is a Python program in a ZIP archive behind a `#!` line (zipapp, PEP 441). Its modules and
the table of kinds are stored uncompressed, so `less` shows their text.
"""

import io
import os
import zipfile

_FILES = ("kinds.py", "kinds.json", "board_files.py", "root_helper.py")
_MAIN = """import sys

from epochwatt.board.device.root_helper import main

sys.exit(main(sys.argv[1:]))
"""


def helper_file(interpreter: str = "/usr/bin/python3") -> bytes:
    """Return the content of the executable file `root_helper.INSTALLED`.

    `interpreter` is the board's own Python; it imports nothing but its standard library.
    """
    packages = ("epochwatt/", "epochwatt/board/", "epochwatt/board/device/")
    texts = {"__main__.py": _MAIN, **{package + "__init__.py": "" for package in packages}}
    for name in _FILES:
        with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as handle:
            texts[packages[-1] + name] = handle.read()
    content = io.BytesIO()
    content.write(f"#!{interpreter} -IS\n".encode())
    with zipfile.ZipFile(content, "a") as archive:
        for name, text in texts.items():
            archive.writestr(zipfile.ZipInfo(name), text)  # its date is always the same
    return content.getvalue()
