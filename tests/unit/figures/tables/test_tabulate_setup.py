"""Tables 1 to 3: what is printed, what is here, and the steps of the boards' clocks."""

import csv
import json
from pathlib import Path

import pytest

from epochwatt.figures.tables.tabulate_setup import (
    HERE,
    PUBLISHED,
    STEPS,
    boards,
    networks,
    power_modes,
)

TRANSCRIBED = Path(__file__).resolve().parents[3] / "data/published"
BOARDS, FITS = ("nano", "nx", "agx", "orin"), ("agx", "nx", "nano")
CLOCKS = ("cores", "cpu_mhz", "gpu_mhz", "emc_mhz")


@pytest.fixture
def config(pytestconfig):
    return pytestconfig.rootpath / "config"


@pytest.fixture
def counted(tmp_path):
    """Counts of a network of two kernels, of which one is a forward pass."""
    kernels = {"flops_per_sample": [4e6, 8e6], "phase": ["forward", "backward"]}
    path = tmp_path / "lenet.json"
    path.write_text(json.dumps({"parameters": 61706, "kernels": kernels}), "utf-8")
    return path


def of(rows, *names, **about):
    """Return source -> cells of what is about that; without names all of them."""
    found = {r["source"]: r for r in rows if about.items() <= r.items()}
    return {s: [row.get(n) for n in names] for s, row in found.items()} if names else found


def transcribed(name):
    with (TRANSCRIBED / name).open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def test_boards_and_networks_stand_beside_those_that_are_simulated(config, counted):
    assert of(boards(config), *BOARDS, feature="CPU clock") == {
        PUBLISHED: ["1479", "1900", "2265", "2200"],
        HERE: [1479.0, 1907.2, 2265.6, 2201.6],
    }
    assert set(of(boards(config), feature="price")) == {PUBLISHED}
    rows = networks(config, [counted])
    assert of(rows, "parameters_m", "mflop", model="lenet") == {
        PUBLISHED: ["0.06", "4.4"],
        HERE: [0.061706, 2.0],
    }
    assert "mflop" not in of(rows, model="vgg11")[HERE]  # not counted
    fits = of(rows, *FITS, model="resnet")
    assert fits[PUBLISHED] == fits[HERE] == ["yes", "no", "no"]


def test_modes_have_the_papers_clocks_and_steps_of_the_board(config):
    rows = power_modes(config)
    for n in range(0, len(rows), 3):
        published, here, _ = rows[n : n + 3]
        assert [float(published[name]) for name in CLOCKS] == [here[name] for name in CLOCKS]
    agx = of(rows, *CLOCKS, device="agx", power_mode="c")[STEPS]
    assert agx == [8, 1190.4, 905.25, 1331.2]
    assert of(rows, *CLOCKS, device="nx")[STEPS] == [6, 1420.8, 1109.25, 1600.0]
    assert len(rows) == 3 * 17


def test_what_is_published_is_what_the_paper_prints(config):
    modes = [row for row in transcribed("power_modes.csv") if row["figure_or_table"] == "Table 3"]
    names = ("device", "label", "cpu_cores", "cpu_mhz", "gpu_mhz", "emc_mhz")
    expected = {tuple(row[name] for name in names) for row in modes}
    with (config / "published/table3.csv").open(encoding="utf-8", newline="") as handle:
        assert {tuple(row.values()) for row in csv.DictReader(handle)} == expected
    assert len(expected) == 17
    rows = {"cpu_mhz_max": "CPU clock", "cuda_cores": "CUDA cores", "price_usd": "price"}
    rows |= {"cpu_cores": "CPU cores", "gpu_mhz_max": "GPU clock", "peak_power_w": "power"}
    rows |= {"ram_gb": "RAM", "emc_mhz_max": "memory clock", "cpu_arch": "CPU"}
    published = {r["feature"]: r for r in boards(config) if r["source"] == PUBLISHED}
    for device in transcribed("devices.csv"):
        for name, feature in rows.items():
            assert published[feature][device["id"]] == device[name]
    models = {row["id"]: row for row in transcribed("models.csv")}
    for row in (row for row in networks(config, []) if row["source"] == PUBLISHED):
        model = models[row["model"]]
        assert [float(row[n]) for n in ("parameters_m", "mflop", "memory_mb")] == [
            *(float(model["params"]) / 1e6, float(model["flops"]) / 1e6, float(model["mem_mb"]))
        ]
        assert [row[d] for d in FITS] == [model[f"on_{d}"] for d in FITS]
