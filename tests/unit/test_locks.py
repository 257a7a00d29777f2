"""The locks of requirements/: what a board can install. No network."""

import re
from pathlib import Path

import pytest
from packaging.markers import Marker

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
PIN = re.compile(r"^([a-z0-9-]+)==(\S+)(?: ; (.*?))? \\$", re.M)
OF_THE_BOARD = {"torch", "torchvision", "jetson-stats", "nvidia-ml-py"}  # never in the workflow's
ELSEWHERE = {"win32", "darwin", "emscripten"}  # systems that a pin may be for, and no board is
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def pins(name: str) -> list[tuple[str, str, str]]:
    """Return name, version and marker of each pin of a lock."""
    return PIN.findall((REQUIREMENTS / name).read_text("utf-8"))


def applies(marker: str, python: str, machine: str) -> bool:
    """Say whether a pin is installed on a Linux machine."""
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "platform_machine": machine,
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    return not marker or Marker(marker).evaluate(environment)


def installed(name: str, python: str, machine: str) -> dict[str, str]:
    """Return the versions of a lock that such a machine gets."""
    return {n: v for n, v, marker in pins(name) if applies(marker, python, machine)}


def test_the_workflows_lock_holds_nothing_of_the_boards_interpreter():
    found = {name for name, _, _ in pins("workflow.txt")}
    assert not found & OF_THE_BOARD
    assert not [name for name in found if name.startswith(("nvidia-", "triton"))]


@pytest.mark.parametrize("python", PYTHONS)
def test_a_board_gets_the_same_workflow_as_any_other_machine(python):
    board = installed("workflow.txt", python, "aarch64")
    assert board == installed("workflow.txt", python, "x86_64")
    for name in ("snakemake", "numpy", "pandas", "scikit-learn", "matplotlib", "pydantic"):
        assert name in board


@pytest.mark.parametrize("python", PYTHONS)
def test_what_a_board_does_not_get_is_of_another_system(python):
    board = installed("workflow.txt", python, "aarch64")
    for name, version, marker in pins("workflow.txt"):
        if board.get(name) != version:
            of_python = "python_full_version" in marker or "python_version" in marker
            assert of_python or any(system in marker for system in ELSEWHERE), (name, marker)


def test_every_pin_has_hashes():
    blocks = re.split(r"^(?=\S+==)", (REQUIREMENTS / "workflow.txt").read_text("utf-8"), flags=re.M)
    for block in blocks[1:]:
        assert "--hash=sha256:" in block, block.partition(" ")[0]


def test_uv_is_pinned_alone():
    (pin,) = pins("uv.txt")
    assert pin[0] == "uv"
    assert not pin[2]
