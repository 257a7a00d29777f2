"""Columns, factors, flags: their names, order and defaults."""

import pytest

from epochwatt import columns as c

# The columns that a table of epochs begins with, in this order.
ASKED = [
    *("studies", "run", "setup", "backend", "device", "instance", "model"),
    *("dataset", "dataset_source", "dataset_scale", "storage", "num_workers", "prefetch_factor"),
    *("batch_size", "power_mode", "dvfs", "torch_threads", "protocol", "schema_version", "epoch"),
    *("e2e_s", "wait_s", "copy_s", "stall_s", "compute_s", "overhead_s", "fetch_s"),
    *("preprocess_s", "n_minibatches", "loss", "timing_method", "cold_process", "valid", "flags"),
]

# Found in published ids: a changed default gives an old id a new meaning.
DEFAULTS = {
    "setup": "own",
    "dataset_scale": 1,
    "num_workers": 4,
    "prefetch_factor": 2,
    "batch_size": 16,
    "dvfs": "off",
    "torch_threads": 0,
    "cache_policy": "kept",
    "gpu_timing": "synchronised",
    "seed": 0,
    "epochs_per_job": 1,
    "imported": "",
    "task": "train",
    "precision": "fp32",
    "compile": "off",
    "container": "none",
}

UNIT_ENDINGS = {
    **{"s": "_s", "J": "_j", "Wh": "_wh", "W": "_w", "%": "_pct", "MiB": "_mib", "1/s": "_iops"},
    **{"MiB/s": "_mib_s"},
}


def test_export_has_the_asked_columns_in_the_asked_order():
    exported = ("studies", *c.names(c.RUN_EPOCH_COLUMNS))
    assert [name for name in exported if name in ASKED] == ASKED


def test_unit_ends_the_name_of_every_column_that_has_a_physical_one():
    physical = [f for f in c.RUN_EPOCH_COLUMNS if f.unit in UNIT_ENDINGS]
    assert [f.name for f in physical if not f.name.endswith(UNIT_ENDINGS[f.unit])] == []
    assert len(physical) > 10


def test_every_column_stands_once_and_says_its_kind_and_what_it_is():
    for columns in (c.RUN_EPOCH_COLUMNS, c.RUNS_COLUMNS):
        names = c.names(columns)
        assert sorted(set(names)) == sorted(names)
        assert {f.kind for f in columns} <= {"str", "int", "float", "bool"}
        assert [f.name for f in columns if len(f.description) < 10] == []


def test_defaults_of_factors_are_what_they_were():
    assert {k: v for k, v in c.FACTOR_DEFAULTS.items() if k in DEFAULTS} == DEFAULTS


def test_every_flag_has_one_of_three_effects_and_fits_into_a_cell():
    assert set(c.FLAG_EFFECTS.values()) == {"invalidates", "voids_energy", "informs"}
    assert [flag for flag in c.FLAGS if " " in flag or "," in flag] == []


def test_with_defaults_adds_what_was_not_said_and_names_what_is_missing():
    complete = {f.name: f.name for f in c.FACTORS if f.default is None}
    told = c.with_defaults({"recipe": {"version": 1}, **complete, "prefetch_factor": None})
    assert tuple(told) == (*c.names(c.FACTORS), "recipe")
    assert (told["batch_size"], told["prefetch_factor"]) == (16, None)
    del complete["storage"]
    with pytest.raises(ValueError, match="'storage'"):
        c.with_defaults(complete)
