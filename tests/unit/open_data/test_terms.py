"""The licence of public sweeps and packages stays theirs when they are passed on."""

import json
import shutil
from pathlib import Path

import pytest

from epochwatt.errors import ConfigError
from epochwatt.open_data import package as layout
from epochwatt.open_data.check import check_folder
from epochwatt.open_data.export import export
from epochwatt.open_data.package import Terms
from epochwatt.open_data.read import find_tables
from epochwatt.sweeps.public.registry import load_registry

ROOT = Path(__file__).parents[3]
NAME = "translucence-tx2-20000"


@pytest.fixture
def public(checkout):
    """The public sweeps in a small checkout, which is the working folder."""
    shutil.copytree(ROOT / "config/sweeps", checkout.path / "config/sweeps")
    return load_registry()


def test_a_public_sweep_keeps_licence_source_and_authors(public):
    lines = export([NAME], Path("pack"), Terms())
    assert lines[0] == "pack  measured by others; MIT"
    assert check_folder(Path("pack")) == []
    assert "Permission is hereby granted" in Path("pack", layout.LICENCE).read_text()
    stated = json.loads(Path("pack", layout.DESCRIPTOR).read_text())
    source = public.source(NAME)
    assert stated["licenses"][0]["name"] == "MIT"
    assert stated["sources"][0]["path"] == f"{source.repository}/tree/{source.commit}"
    assert stated["contributors"][0]["title"] == source.authors
    assert [table.key for table in find_tables("pack")] == [t.key for t in find_tables(NAME)]


SWEEPS = sorted(path.name for path in ROOT.glob("config/sweeps/*.csv.gz"))


@pytest.mark.parametrize(
    "sweep", [SWEEPS[0], *(pytest.param(n, marks=pytest.mark.thorough) for n in SWEEPS[1:])]
)
def test_every_public_sweep_can_be_passed_on(public, sweep):
    export([sweep.partition(".")[0]], Path("pack.zip"), Terms())


def test_another_licence_than_the_authors_is_refused(public):
    with pytest.raises(ConfigError, match=f"the licence of {NAME} is MIT") as error:
        export([NAME], Path("pack"), Terms("CC0-1.0"))
    assert (error.value.found, error.value.allowed) == ("CC0-1.0", "MIT")
