"""The conda environment of the rules asks for what the package asks for."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
CONDA = {"snakemake": "snakemake-minimal", "torch": "pytorch"}  # where conda-forge has another name


def parts(requirement):
    """Return name and version of `name[extra]>=1.2`, as conda writes them."""
    name, version = re.fullmatch(r"([\w.-]*\w)(?:\[\w+\])?(.*)", requirement).groups()
    return CONDA.get(name, name), version.replace("==", "=")


def test_the_environment_of_the_rules_is_that_of_the_package():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["host"]]
    environment = yaml.safe_load((REPOSITORY / "workflow/envs/workflow.yaml").read_text("utf-8"))
    assert {parts(each) for each in environment["dependencies"]} == {
        ("python", project["requires-python"]),
        *map(parts, wanted),
    }


STUB = """\
#!/bin/sh
case "$*" in
*--editable*) echo "$PWD/src" >.venv/lib/python3.11/site-packages/epochwatt.pth ;;
esac
"""  # stands for the Python of .venv, and for uv in it


def test_a_checkout_with_umlauts_is_found_in_any_locale(tmp_path):
    """Python 3.11 reads .pth files as text of the locale, which over ssh often is not there."""
    root = tmp_path / "labor f\u00fcr dnn"
    packages = root / ".venv/lib/python3.11/site-packages"
    for folder in (packages, root / ".venv/bin", root / "src", root / "requirements"):
        folder.mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, root / name)
    (root / "requirements/host.txt").touch()
    (root / ".venv/path").write_text(f"{root}\n")
    (root / ".venv/bin/python").write_text(STUB)
    (root / ".venv/bin/python").chmod(0o755)
    subprocess.run(["make", ".venv/host-ready"], cwd=root, check=True, capture_output=True)
    entry = (packages / "epochwatt.pth").read_text("ascii").strip()
    assert (packages / entry).resolve() == root / "src"
