"""Packages that tests make, and damage."""

import json

import pytest

from epochwatt.board.records.checksums import write_sums
from epochwatt.board.records.files import sha256_of
from epochwatt.open_data import package as layout
from epochwatt.open_data.export import export
from epochwatt.open_data.package import Terms
from epochwatt.sweeps.mode_table import SweepRow, tables_of, write_mode_tables

GPU_MHZ = (114.75, 318.75, 522.75, 726.75)


def sweep_rows(provenance="measured", sweep="planted", workloads=("lenet", "resnet")):
    """Rows of two workloads on an AGX Orin in four modes; the numbers follow a rule."""
    return [
        SweepRow(
            **{"sweep": sweep, "provenance": provenance, "device": "agx_orin", "instance": "d1"},
            **{"workload": workload, "task": "train", "batch_size": 16, "precision": "fp32"},
            **{"cores": 12, "cpu_mhz": 2201.6, "gpu_mhz": gpu_mhz, "emc_mhz": 3199},
            **{"n_minibatches": 40, "time_s": (1 + i) * 10 / gpu_mhz, "time_sd_s": 0.001},
            **{"power_w": 5 + gpu_mhz / 100, "power_scope": "module"},
        )
        for i, workload in enumerate(workloads)
        for gpu_mhz in GPU_MHZ
    ]


def record(folder, workload):
    """Write what stands for the record of a mode of a workload."""
    factors = {"model": workload.workload, "instance": workload.instance}
    factors |= {"batch_size": workload.batch_size, "task": workload.task}
    factors["precision"] = workload.precision
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mode.json").write_text(json.dumps({"factors": factors}))
    write_sums(str(folder), durable=False)


@pytest.fixture
def plant(checkout):
    """Return a function that puts a sweep into results/sweeps of a small checkout; gives its name.

    The checkout is the working folder.
    """

    def put(rows, name="planted"):
        path = checkout.path / "results/sweeps" / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        tables = tables_of(rows)
        write_mode_tables(path, tables)
        for i, table in enumerate(tables):
            if table.key.provenance == "measured":
                record(checkout.path / f"measured/sweep-{i}/mode-c12-x-{i}-x", table.key)
        return name

    return put


@pytest.fixture
def package(plant, checkout):
    """Return a function that makes a package of planted rows; gives its folder."""

    def make(rows=None, name="pack"):
        plant(sweep_rows() if rows is None else rows)
        lines = export(["planted"], checkout.path / name, Terms("CC-BY-4.0", "Planted"))
        (folder,) = checkout.path.glob(f"{name}*")
        assert lines[0].startswith(str(folder))
        return folder

    return make


@pytest.fixture
def reseal():
    """Return a function that makes all checksums of a package anew, as who falsifies one can."""

    def make(folder):
        descriptor = json.loads((folder / layout.DESCRIPTOR).read_text())
        croissant = json.loads((folder / layout.CROISSANT).read_text())
        for resource in descriptor["resources"]:
            path = folder / resource["path"]
            digest = sha256_of(str(path))
            resource["hash"], resource["bytes"] = f"sha256:{digest}", path.stat().st_size
            for file in croissant["distribution"]:
                if file["contentUrl"] == path.name:
                    file["sha256"] = digest
        (folder / layout.DESCRIPTOR).write_text(json.dumps(descriptor))
        (folder / layout.CROISSANT).write_text(json.dumps(croissant))
        write_sums(str(folder), durable=False)

    return make


@pytest.fixture
def replace_everywhere():
    """Return a function that replaces a word in all files of a package, and in their names."""

    def replace(folder, old, new):
        for path in sorted(folder.iterdir()):
            path.write_text(path.read_text().replace(old, new))
            path.rename(folder / path.name.replace(old, new))

    return replace
