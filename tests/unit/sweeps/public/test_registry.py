"""Public sweeps: tables that are passed on, their licences, and where the others come from."""

from pathlib import Path

import pytest

from epochwatt.errors import ConfigError
from epochwatt.sweeps.find import find_tables
from epochwatt.sweeps.public.registry import (
    FOLDER,
    OPTION,
    VARIABLE,
    licence_path,
    load_registry,
    shipped_path,
)

ROOT = Path(__file__).parents[4]
REGISTRY = load_registry(ROOT)
SHIPPED = [name for name in REGISTRY.sweeps if REGISTRY.is_shipped(name)]
OTHERS = [name for name in REGISTRY.sweeps if not REGISTRY.is_shipped(name)]
MODES = {"translucence-tx1-5000": 736, "translucence-tx2-5000": 416, "translucence-tx2-20000": 92}


def test_what_lies_beside_the_registry_is_in_it():
    folder = ROOT / FOLDER
    assert sorted(folder.glob("*.csv.gz")) == sorted(shipped_path(n, ROOT) for n in SHIPPED)
    licensed = {name for name, s in REGISTRY.sources.items() if s.licence != "none"}
    licences = sorted(licence_path(name, ROOT) for name in licensed)
    assert sorted((folder / "licences").iterdir()) == licences


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_table_is_public_and_its_licence_the_one_it_names(name):
    text = licence_path(REGISTRY.sweeps[name].source, ROOT).read_text("utf-8")
    words = {"MIT": "MIT License", "Apache-2.0": "Apache License", "BSD-3-Clause": "BSD 3-Clause"}
    assert words[REGISTRY.source(name).licence] in text
    tables = find_tables(name, ROOT)
    assert {(t.key.sweep, t.key.provenance) for t in tables} == {(name, "public")}
    assert all(row.valid for table in tables for row in table.rows)
    assert all(table.power_scope in ("module", "gpu") for table in tables)
    if name in MODES:
        (table,) = tables
        assert f"{MODES[name]} modes" in REGISTRY.sweeps[name].title
        assert sum(row.repeat == 0 for row in table.rows) == MODES[name]


@pytest.mark.parametrize("name", OTHERS[:1])
def test_without_its_files_a_sweep_says_where_to_get_them(name, tmp_path):
    source = REGISTRY.source(name)
    for folder in (None, tmp_path):
        with pytest.raises(ConfigError) as caught:
            find_tables(name, ROOT, folder)
        for word in (source.repository, source.commit, OPTION, VARIABLE):
            assert word in str(caught.value)
