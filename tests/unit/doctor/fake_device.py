"""A device file that speaks of a fake board; what an interpreter may answer."""

DEVICE = """\
title: a fake board
backends: [jetson]
board: {board}
sysroot: {root}
instances: [d1, d2]
power_source: sysfs
storage: {{ssd: {{title: a disk, root: data}}}}
power_modes: {{{modes}}}
dvfs: ["on"]
"""

# as `epochwatt.board.training.trial libraries` answers on a board's CPU
LIBRARIES = {
    "executable": "python3",
    "python": "3.8.10",
    "torch": "2.0",
    "torchvision": "0.15",
    "numpy": "1.24",
    "PIL": "9.5",
    "pynvml": None,
    "jtop": None,
    "cuda": None,
    "gpu": None,
    "errors": {"jtop": "ModuleNotFoundError: No module named 'jtop'"},
}
