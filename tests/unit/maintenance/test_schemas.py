"""JSON schemas of config/: as the code makes them, named by each file, right about each file."""

import json
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from epochwatt.maintenance.schemas import FOLDER, LINE, schema_files

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "config").rglob("*.yaml"))


def errors(name, content):
    schema = json.loads((ROOT / FOLDER / f"{name}.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return [e.message for e in jsonschema.Draft202012Validator(schema).iter_errors(content)]


def test_committed_schemas_are_those_of_the_code():
    committed = {
        f"{FOLDER}/{path.name}": path.read_text("utf-8") for path in (ROOT / FOLDER).glob("*")
    }
    assert committed == schema_files(), "run make docs"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_names_its_schema_and_keeps_to_it(path):
    first = path.read_text("utf-8").splitlines()[0]
    assert first.startswith(LINE)
    schema = path.parent / first.removeprefix(LINE)
    assert schema.resolve().parent == ROOT / FOLDER
    content = YAML(typ="safe").load(path)  # YAML 1.2, as an editor reads it
    assert content is None or errors(schema.stem, content) == []


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("config", {"studys": ["paper"]}, "'studys'"),
        ("flags", {"resumd": {"effect": "informs"}}, "'resumd'"),
        ("flags", {"resumed": {"effect": "ignores"}}, "'ignores'"),
        ("parameters", {"cpu": {"share": {"value": 1, "factr": 2}}}, "'factr'"),
    ],
)
def test_mistakes_are_found(name, content, fault):
    assert fault in " ".join(errors(name, content))
