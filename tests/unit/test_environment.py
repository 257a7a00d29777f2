"""The conda environment of the rules asks for what the package asks for."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
CONDA = {"snakemake": "snakemake-minimal", "torch": "pytorch"}  # where conda-forge has another name


def parts(requirement):
    """Return name and version of `name[extra]>=1.2`, as conda writes them."""
    name, version = re.fullmatch(r"([\w.-]*\w)(?:\[\w+\])?(.*)", requirement).groups()
    return CONDA.get(name, name), version.replace("==", "=")


def test_the_environment_of_the_rules_is_that_of_the_package():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*extras["workflow"], *(each for each in extras["host"] if "epochwatt[" not in each)]
    environment = yaml.safe_load((REPOSITORY / "workflow/envs/workflow.yaml").read_text("utf-8"))
    assert {parts(each) for each in environment["dependencies"]} == {
        ("python", ">=3.11"),
        *map(parts, wanted),
    }


STUB = """\
#!/bin/sh
case "$*" in
*--editable*) echo "$PWD/src" >.venv/lib/python3.11/site-packages/epochwatt.pth ;;
*board_setup*) echo "$@" ;;
esac
"""  # stands for the Python of .venv, and for uv in it


@pytest.fixture
def lab(tmp_path):
    """The Makefile in a folder with spaces and umlauts, where .venv is a stand-in."""
    root = tmp_path / "labor f\u00fcr dnn"
    for name in ("bin", "lib/python3.11/site-packages"):
        (root / ".venv" / name).mkdir(parents=True)
    for name in ("src", "requirements"):
        (root / name).mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, root / name)
    for name in ("host", "workflow"):
        (root / f"requirements/{name}.txt").touch()
    (root / ".venv/path").write_text(f"{root}\n")
    (root / ".venv/bin/python").write_text(STUB)
    (root / ".venv/bin/sudo").write_text('#!/bin/sh\nexec "$@"\n')
    for name in ("python", "sudo"):
        (root / ".venv/bin" / name).chmod(0o755)
    return root


def made(lab, target):
    """Make a target; return what it prints."""
    # without what `make test` tells makes below it: they would print the folders they enter
    environment = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    environment["PATH"] = f"{lab}/.venv/bin:{os.environ['PATH']}"
    return subprocess.run(
        ["make", target], cwd=lab, env=environment, check=True, stdout=subprocess.PIPE
    ).stdout.decode()


def test_a_checkout_with_umlauts_is_found_in_any_locale(lab):
    """Python 3.11 reads .pth files as text of the locale, which over ssh often is not there."""
    made(lab, ".venv/host-ready")
    packages = lab / ".venv/lib/python3.11/site-packages"
    entry = (packages / "epochwatt.pth").read_text("ascii").strip()
    assert (packages / entry).resolve() == lab / "src"


@pytest.mark.parametrize("verb", ["setup", "remove"])
def test_root_is_given_an_interpreter_below_a_folder_with_spaces(lab, verb):
    assert made(lab, f"{verb}-jetson").endswith(f"-m epochwatt.maintenance.board_setup {verb}\n")
