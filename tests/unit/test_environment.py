"""The conda environment of the rules asks for what the package asks for."""

import re
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
