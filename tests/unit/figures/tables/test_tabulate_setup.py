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
    side_by_side,
    write,
)

TRANSCRIBED = Path(__file__).resolve().parents[3] / "data/published"


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


def of(rows, **about):
    """Return source -> row of what is about that."""
    return {r["source"]: r for r in rows if about.items() <= r.items()}


def test_boards_stand_beside_those_that_are_simulated(config):
    rows = of(boards(config), feature="CPU clock")
    assert [rows[PUBLISHED][name] for name in ("nano", "nx", "agx", "orin")] == [
        *("1479", "1900", "2265", "2200"),
    ]
    assert [rows[HERE][name] for name in ("nano", "nx", "agx", "orin")] == [
        *(1479.0, 1907.2, 2265.6, 2201.6),
    ]
    assert set(of(boards(config), feature="price")) == {PUBLISHED}


def test_networks_stand_beside_those_that_are_counted(config, counted):
    rows = networks(config, [counted])
    lenet = of(rows, model="lenet")
    assert (lenet[PUBLISHED]["parameters_m"], lenet[PUBLISHED]["mflop"]) == ("0.06", "4.4")
    assert (lenet[HERE]["parameters_m"], lenet[HERE]["mflop"]) == (0.061706, 2.0)
    assert "mflop" not in of(rows, model="vgg11")[HERE]  # not counted
    resnet = of(rows, model="resnet")
    fits = ("agx", "nx", "nano")
    assert [resnet[PUBLISHED][d] for d in fits] == [resnet[HERE][d] for d in fits]
    assert [resnet[HERE][d] for d in fits] == ["yes", "no", "no"]


def test_modes_have_the_papers_clocks_and_steps_of_the_board(config):
    rows = power_modes(config)
    clocks = ("cores", "cpu_mhz", "gpu_mhz", "emc_mhz")
    for n in range(0, len(rows), 3):
        published, here, _ = rows[n : n + 3]
        assert [float(published[name]) for name in clocks] == [here[name] for name in clocks]
    c = of(rows, device="agx", power_mode="c")[STEPS]
    assert [c[name] for name in clocks] == [8, 1190.4, 905.25, 1331.2]
    nx = of(rows, device="nx")[STEPS]
    assert [nx[name] for name in clocks] == [6, 1420.8, 1109.25, 1600.0]
    assert len(rows) == 3 * 17


def test_three_tables_are_written(config, counted, tmp_path):
    tables = [str(tmp_path / f"tables/table{n}.csv") for n in (1, 2, 3)]
    write(str(config), [str(counted)], tables)
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == [
        f"table{n}.{form}" for n in (1, 2, 3) for form in ("csv", "html")
    ]


def test_pages_have_units_as_they_are_written_and_one_row_for_a_mode(config, counted, tmp_path):
    tables = [str(tmp_path / f"table{n}.csv") for n in (1, 2, 3)]
    write(str(config), [str(counted)], tables)
    _, networks_page, modes_page = (Path(t).with_suffix(".html").read_text("utf-8") for t in tables)
    heads = ("parameters (M)", "memory (MB)", "multiply-adds (M)", "disk (MB)")
    assert all(f">{head}</th>" in networks_page for head in heads)
    assert "Not counted here: mobilenet, resnet, vgg11" in networks_page
    assert all(f">{unit} clock (MHz)</th>" in modes_page for unit in ("CPU", "GPU", "memory"))
    assert modes_page.count("<tr>") == 1 + 17
    assert ">published<" not in modes_page


def test_clocks_that_differ_from_the_papers_stand_in_brackets():
    rows = [
        {"device": "agx", "power_mode": "a", "source": source, "cores": 4, "cpu_mhz": cpu_mhz,
         "gpu_mhz": 670.0, "emc_mhz": 1333.0}
        for source, cpu_mhz in ((PUBLISHED, 1200), (HERE, 1190.0), (STEPS, 1190.4))
    ]  # fmt: skip
    (row,) = side_by_side(rows)
    assert (row["cpu_mhz"], row["CPU step (MHz)"]) == ("1200 (1190)", 1190.4)
    assert row["cores"] == "4"


def test_published_modes_are_those_of_the_paper(config):
    with (TRANSCRIBED / "power_modes.csv").open(encoding="utf-8", newline="") as handle:
        told = [row for row in csv.DictReader(handle) if row["figure_or_table"] == "Table 3"]
    names = ("device", "label", "cpu_cores", "cpu_mhz", "gpu_mhz", "emc_mhz")
    expected = {tuple(row[name] for name in names) for row in told}
    with (config / "published/table3.csv").open(encoding="utf-8", newline="") as handle:
        assert {tuple(row.values()) for row in csv.DictReader(handle)} == expected
    assert len(expected) == 17


def test_published_boards_and_networks_are_those_of_the_paper(config):
    rows = {"cpu_mhz_max": "CPU clock", "cuda_cores": "CUDA cores", "price_usd": "price"}
    rows |= {"cpu_cores": "CPU cores", "gpu_mhz_max": "GPU clock", "peak_power_w": "power"}
    rows |= {"ram_gb": "RAM", "emc_mhz_max": "memory clock", "cpu_arch": "CPU"}
    published = {r["feature"]: r for r in boards(config) if r["source"] == PUBLISHED}
    with (TRANSCRIBED / "devices.csv").open(encoding="utf-8", newline="") as handle:
        for device in csv.DictReader(handle):
            for name, feature in rows.items():
                assert published[feature][device["id"]] == device[name]
    with (TRANSCRIBED / "models.csv").open(encoding="utf-8", newline="") as handle:
        models = {row["id"]: row for row in csv.DictReader(handle)}
    for row in networks(config, []):
        if row["source"] == PUBLISHED:
            model = models[row["model"]]
            assert float(row["parameters_m"]) == float(model["params"]) / 1e6
            assert float(row["mflop"]) == float(model["flops"]) / 1e6
            assert float(row["memory_mb"]) == float(model["mem_mb"])
            assert [row[d] for d in ("agx", "nx", "nano")] == [
                model[f"on_{d}"] for d in ("agx", "nx", "nano")
            ]
