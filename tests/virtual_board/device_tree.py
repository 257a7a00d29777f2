"""Device tree of a virtual board: that of QEMU's machine, with a Jetson's name, sensors and fan."""

import subprocess
from pathlib import Path

from epochwatt.board.device.kinds import Kind, Release

SERIAL = "1420521000001"
SHUNT_UOHM = 2000
N_CHANNELS = 3


def board_tree(qemu_tree: str, kind: Kind, release: Release) -> str:
    """Return the source of a board's device tree.

    Parameters
    ----------
    qemu_tree : source of the tree that QEMU makes for its machine `virt`
    kind, release : the board; its rails' chips become nodes of the kernel's own ina3221 driver
    """
    names = (*(release.compatible or kind.compatible), "linux,dummy-virt")
    compatible = ", ".join(f'"{name}"' for name in names)
    for line, new in (
        (
            'compatible = "linux,dummy-virt";',
            f'compatible = {compatible};\n\tserial-number = "{SERIAL}";',
        ),
        ('model = "linux,dummy-virt";', f'model = "{release.model or kind.model}";'),
    ):
        if line not in qemu_tree:
            raise ValueError(f"no line `{line}` in the device tree of QEMU")
        qemu_tree = qemu_tree.replace(line, new, 1)
    body, _, _ = qemu_tree.rstrip().rpartition("};")
    bus = [
        "\tvi2c {",
        '\t\tcompatible = "epochwatt,vi2c"; #address-cells = <1>; #size-cells = <0>;',
        *_chips(kind),
        "\t};",
    ]
    return body + "\n".join([*bus, '\tpwm-fan { compatible = "epochwatt,fan"; };', "};", ""])


def _chips(kind: Kind) -> list[str]:
    """Return a node for each sensor chip; a channel without a rail is disabled."""
    labels = {(rail.chip, rail.channel): rail.label for rail in kind.rails}
    lines = []
    for chip in sorted({chip for chip, _ in labels}):
        address = chip.partition("-")[2].lstrip("0")
        lines.append(f'\t\tina3221@{address} {{ compatible = "ti,ina3221"; reg = <0x{address}>;')
        lines.append("\t\t\t#address-cells = <1>; #size-cells = <0>;")
        for n in range(N_CHANNELS):
            label = labels.get((chip, n + 1))
            what = (
                f"shunt-resistor-micro-ohms = <{SHUNT_UOHM}>;" if label else 'status = "disabled";'
            )
            lines.append(f'\t\t\tchannel@{n} {{ reg = <{n}>; label = "{label or "NC"}"; {what} }};')
        lines.append("\t\t};")
    return lines


def write_blob(machine: list[str], kind: Kind, release: Release, path: Path) -> None:
    """Write the compiled device tree of a board for a QEMU machine, given as its options."""
    raw, source = path.with_suffix(".qemu"), path.with_suffix(".dts")
    dump = list(machine)
    dump[dump.index("-M") + 1] += f",dumpdtb={raw}"
    quiet = {"check": True, "stderr": subprocess.DEVNULL}
    subprocess.run(["qemu-system-aarch64", *dump, "-nodefaults", "-display", "none"], **quiet)
    tree = subprocess.run(
        ["dtc", "-I", "dtb", "-O", "dts", raw], text=True, stdout=subprocess.PIPE, **quiet
    ).stdout
    source.write_text(board_tree(tree, kind, release), encoding="utf-8")
    subprocess.run(["dtc", "-q", "-I", "dts", "-O", "dtb", "-o", path, source], check=True)
