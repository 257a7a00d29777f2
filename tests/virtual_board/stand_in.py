#!/usr/bin/python3
# epochwatt stand-in
"""Stand-ins of a fake board's tools, by the name they are called by, on a real kernel's files."""

import os
import sys

sys.path.insert(0, "/board/src")

from tests.fakeboard.tools import board_files, jetson_clocks, nvpmodel


class KernelFiles(board_files.BoardFiles):
    """Files that the kernel makes: written as they are, and clocks follow by themselves."""

    def write(self, name, value):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(f"{value}\n")

    def set_clocks(self, *loads, **limits):
        return {}


nvpmodel.BoardFiles = jetson_clocks.BoardFiles = KernelFiles
tool = {"nvpmodel": nvpmodel, "jetson_clocks": jetson_clocks}[os.path.basename(sys.argv[0])]
sys.exit(tool.main("/", sys.argv[1:]))
