"""The run table: what is one run, what its id carries, in which order runs come."""

import json
import re

import pytest

from epochwatt import columns
from epochwatt.datasets import recipes
from epochwatt.study import expand

# One row as it is measured today. Who changes this gives every run a new id and every user's
# measurements up: raise PROTOCOL instead, if that is what is meant (docs/decisions/0002).
PINNED_ID = "host-local-lenet-disk-w0-bs16-asis-p1-cead9cc3"
PINNED_JSON = (
    '{"backend":"host","dataset":"mnist","dataset_scale":8,"dataset_source":"digits",'
    '"device":"host","dvfs":"on","instance":"local","model":"lenet","num_workers":0,'
    '"power_mode":"asis","prefetch_factor":null,"recipe":{"name":"mnist","scale":8,"seed":0,'
    '"source":"digits","version":1},"storage":"disk","torch_threads":1}'
)

# Every factor that a sweep may set, with two values that are two measurements.
FACTOR_VALUES = {
    "instance": ("local", "second"),
    "dataset_scale": (1, 2),
    "storage": ("disk", "flash"),
    "num_workers": (0, 1),
    "prefetch_factor": (2, 4),
    "batch_size": (16, 32),
    "power_mode": ("asis", "low"),
    "torch_threads": (1, 2),
    "cache_policy": ("kept", "dropped"),
    "gpu_timing": ("synchronised", "pooled"),
    "seed": (0, 1),
    "epochs_per_job": (1, 3),
    "task": ("train", "infer"),
    "precision": ("fp32", "bf16"),
    "compile": ("off", "on"),
    "container": ("none", "again"),
}


@pytest.fixture
def only(checkout):
    """Return a function that gives the one run of a sweep of one block."""

    def one(**block):
        checkout.sweep(block)
        (run,) = checkout.runs
        return run

    return one


class TestId:
    """What the id carries, and what it does not."""

    def test_is_the_pinned_one(self, checkout):
        assert checkout.ids[0] == PINNED_ID
        assert checkout.runs[0].canonical == PINNED_JSON

    def test_has_only_characters_of_the_workflow_constraint(self, checkout):
        checkout.edit("devices/host.yaml", "asis: {}", "MAXN.10W: {}")
        checkout.edit("devices/host.yaml", "[local, second]", "[AGX.2]")
        checkout.edit("studies.yaml", "num_workers: [0, 2]", "num_workers: [0, 2]\n      seed: 7")
        assert [i for i in checkout.ids if not re.fullmatch(r"[a-z0-9.-]+", i)] == []
        assert checkout.ids[0].startswith("host-agx.2-lenet-disk-w0-bs16-maxn.10w-p1-")

    @pytest.mark.parametrize(("factor", "values"), FACTOR_VALUES.items())
    def test_changes_with_the_factor(self, factor, values, only):
        workers = {} if factor == "num_workers" else {"num_workers": 1}
        first, second = (only(**workers, **{factor: value}) for value in values)
        assert first.id != second.id

    def test_changes_with_recipe_protocol_and_settings_of_its_power_mode(
        self, only, checkout, monkeypatch
    ):
        low, before = only(power_mode="low").id, only().id
        checkout.edit("devices/host.yaml", "cpu_mhz: 800", "cpu_mhz: 1000")
        assert only(power_mode="low").id != low
        assert only().id == before
        with monkeypatch.context() as patch:
            patch.setattr(columns, "PROTOCOL", 2)
            assert only().id == before.replace("-p1-", "-p2-")
        maker = recipes.MAKERS["mnist", "digits"]._replace(version=2)
        monkeypatch.setitem(recipes.MAKERS, ("mnist", "digits"), maker)
        assert only().id != before

    def test_does_not_change_with_epochs_places_and_defaults_that_are_written_out(self, checkout):
        before = checkout.ids
        checkout.edit("studies.yaml", "epochs: 3", "epochs: 30")
        checkout.edit("devices/host.yaml", "root: data", "root: /mnt/elsewhere")
        checkout.edit("devices/host.yaml", "backends:", "python: [/usr/bin/python3]\nbackends:")
        told = "model: lenet\n      storage: disk\n      power_mode: asis\n      instance: local"
        checkout.edit("studies.yaml", "model: lenet", told)
        assert checkout.ids == before

    def test_does_not_change_with_a_factor_that_is_added_later(self, checkout, monkeypatch):
        before = checkout.ids
        added = columns.Column("runtime", "str", "", "", "native", "runtime")
        monkeypatch.setattr(columns, "FACTORS", (*columns.FACTORS, added))
        monkeypatch.setitem(columns.FACTOR_DEFAULTS, "runtime", "native")
        assert [run.factors["runtime"] for run in checkout.runs] == ["native"] * 4
        assert checkout.ids == before

    def test_says_all_that_the_measuring_program_needs(self, checkout):
        checkout.sweep({"num_workers": [0, 1, 4], "epochs_per_job": [1, 3], "power_mode": "low"})
        for run in checkout.runs:
            assert columns.with_defaults(json.loads(run.canonical)) == run.factors

    def test_is_refused_to_two_different_runs(self, checkout, refused, monkeypatch):
        monkeypatch.setattr(expand, "run_id", lambda factors, canonical: "host-same")
        found, advice = refused()
        assert "host-same" in found
        assert "seed" in advice


class TestOneRun:
    """What is one run and what is two."""

    def test_prefetch_factor_makes_no_difference_without_workers(self, only):
        run = only(num_workers=0, prefetch_factor=[1, 2, 8])
        assert run.factors["prefetch_factor"] is None

    def test_scales_12_and_12_point_0_are_one(self, only):
        run = only(dataset_scale=[12, 12.0])
        assert run.data_folder == "data/mnist-digits-x12"

    @pytest.mark.parametrize("selected", [["small", "long"], ["long", "small"]])
    def test_rows_shared_by_two_studies_are_one_with_the_most_epochs(self, selected, checkout):
        study = {"title": "t", "backend": "host", "device": "host"}
        row, other = {"model": "lenet", "seed": 3}, {"model": "lenet", "seed": 4}
        small = {**study, "epochs": 2, "sweep": [row]}
        long = {**study, "epochs": 5, "sweep": [row, other]}
        checkout.write("studies.yaml", {"small": small, "long": long})
        checkout.write("config.yaml", {"studies": selected})
        shared, alone = checkout.runs
        assert (shared.studies, shared.epochs) == (tuple(selected), 5)
        assert (alone.studies, alone.epochs) == (("long",), 5)


def test_a_study_is_all_its_blocks_and_each_the_product_of_its_lists(checkout):
    checkout.sweep(
        {"num_workers": [0, 2], "batch_size": [16, 32]}, {"num_workers": 1, "seed": [5, 6]}
    )
    rows = [
        tuple(run.factors[k] for k in ("num_workers", "batch_size", "seed"))
        for run in checkout.runs
    ]
    assert rows == [(0, 16, 0), (0, 32, 0), (2, 16, 0), (2, 32, 0), (1, 16, 5), (1, 16, 6)]


def test_runs_of_one_power_mode_come_together_in_order_of_appearance(checkout):
    checkout.sweep({"seed": [0, 1, 2], "power_mode": ["low", "asis"]})
    order = [(run.factors["power_mode"], run.factors["seed"]) for run in checkout.runs]
    assert order == [("low", 0), ("low", 1), ("low", 2), ("asis", 0), ("asis", 1), ("asis", 2)]


@pytest.mark.parametrize(
    ("per_job", "epochs", "parts"),
    [
        (1, 3, [(0, 0), (1, 1), (2, 2)]),
        (3, 3, [(0, 2)]),
        (3, 7, [(0, 2), (3, 5), (6, 6)]),
        (10, 2, [(0, 1)]),
    ],
)
def test_parts_cover_every_epoch_once(per_job, epochs, parts, checkout):
    checkout.sweep({"epochs_per_job": per_job}, epochs=epochs)
    assert checkout.runs[0].parts == parts


class TestExclusion:
    """Rows that cannot be had."""

    def test_takes_the_row_out_and_keeps_the_reason(self, checkout):
        checkout.write(
            "exclusions.yaml",
            [{"where": {"batch_size": 32, "num_workers": 2}, "reason": "out of memory"}],
        )
        before = len(checkout.ids)
        (excluded,) = checkout.settings().table.excluded
        run, reason = excluded
        assert (run.factors["batch_size"], run.factors["num_workers"]) == (32, 2)
        assert reason == "out of memory"
        assert run.id not in checkout.ids
        assert before == 3

    def test_of_an_unknown_factor_is_refused(self, checkout, refused):
        checkout.write("exclusions.yaml", [{"where": {"batchsize": 32}, "reason": "slow"}])
        found, allowed = refused()
        assert found == "config/exclusions.yaml: unknown factor 'batchsize' in [0].where"
        assert "batch_size" in allowed
