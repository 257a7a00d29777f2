"""Other programs read our packages: the libraries of both formats accept and read them."""

import warnings

import pytest

from epochwatt.open_data import package as layout
from epochwatt.open_data.schema import TABLES

from .conftest import sweep_rows


@pytest.fixture
def frictionless():
    return pytest.importorskip("frictionless")  # seconds, so not where tests are collected


@pytest.fixture
def mixed(package):
    return package([*sweep_rows("public"), *sweep_rows("simulated")])


def test_frictionless_accepts_the_package(mixed, frictionless):
    report = frictionless.Package(str(mixed / layout.DESCRIPTOR)).validate()
    assert report.valid, report.flatten(["rowNumber", "fieldName", "message"])
    rows = {task.name: task.stats.get("rows") for task in report.tasks}
    assert (rows["sweeps-public"], rows["sweeps-simulated"]) == (8, 8)


def test_frictionless_knows_every_schema(frictionless):
    for table in TABLES.values():
        schema = frictionless.Schema.from_descriptor(table.descriptor())
        assert schema.field_names == table.header
        assert schema.to_descriptor()["primaryKey"] == list(table.key)


def test_mlcroissant_accepts_the_package_and_reads_its_rows(mixed):
    croissant = pytest.importorskip("mlcroissant")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own libraries
        dataset = croissant.Dataset(jsonld=str(mixed / layout.CROISSANT))
        assert dataset.metadata.issues.errors == set()
        rows = [*dataset.records("sweeps-simulated")]
    assert len(rows) == 8
    assert rows[0]["sweeps-simulated/gpu_mhz"] == 114.75
    assert rows[0]["sweeps-simulated/provenance"] == b"simulated"
