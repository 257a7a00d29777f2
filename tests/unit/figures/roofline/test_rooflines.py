"""Figures of rooflines: the numbers of their CSV, what they say of themselves, what is left out."""

import csv
import json
from dataclasses import replace

import pytest

from epochwatt.figures.roofline.rooflines import draw
from epochwatt.roofline.fits import FitRow, write_fits
from epochwatt.roofline.points import Point, write_points

STYLE, PEAKS = "config/paper.mplstyle", "config/rooflines/peaks.csv"


MODE = {"cores": 12, "cpu_mhz": 2200, "gpu_mhz": 1300, "emc_mhz": 3200}
SHARED = {"provenance": "simulated", "device": "orin", "processor": "gpu", "precision": "fp32"}
RATES = {"flops_per_s": 2e12, "bytes_per_s": 1e11, "launch_s": 1e-5}
COSTS = {"j_per_flop": 5e-12, "j_per_byte": 6e-11, "constant_w": 9.0}
FIT = FitRow(
    **SHARED, **MODE, **RATES, **COSTS, ridge_flop_per_byte=20.0, balance_flop_per_byte=12.0, n=20
)
WORK = {"workload": "lenet", "task": "train", "flops": 1e9, "bytes": 2e8, "time_s": 0.01}
POINT = Point(**SHARED, **MODE, **WORK, power_w=20.0, power_scope="module")
OTHERS = [
    replace(FIT, gpu_mhz=300, flops_per_s=5e11),
    replace(FIT, emc_mhz=600, bytes_per_s=2e10),
    replace(FIT, cores=4),
    replace(FIT, gpu_mhz=300, emc_mhz=600),  # differs in two parts: not shown
]


@pytest.fixture
def drawn(tmp_path, pytestconfig):
    def call(fits, points, origin="simulated", records=()):
        write_fits(tmp_path / "fits.csv", fits)
        write_points(tmp_path / "points.csv", points)
        root = pytestconfig.rootpath
        inputs = [str(tmp_path / "fits.csv"), str(tmp_path / "points.csv")]
        inputs += [str(root / "config/rooflines/peaks.csv"), str(root / STYLE)]
        draw(*inputs, str(tmp_path), origin, {"lenet": "LeNet-5"}, records)
        tables = {}
        for what in ("time", "energy"):
            with open(tmp_path / f"{what}_{origin}.csv", newline="", encoding="utf-8") as handle:
                tables[what] = list(csv.DictReader(handle))
        return tables

    return call


def test_roofs_ridges_and_workloads_are_where_the_numbers_say(drawn, tmp_path):
    tables = drawn([FIT, *OTHERS], [POINT])
    (mark,) = [row for row in tables["time"] if row["what"] == "train"]
    assert float(mark["intensity_flop_per_byte"]) == 5
    assert float(mark["flop_per_s"]) == pytest.approx(1e11)
    roofs = [row for row in tables["time"] if row["what"] == "roof"]
    assert {r["mode"] for r in roofs} == {"highest mode", "lowest GPU clock", "lowest memory clock"}
    top = max(float(r["flop_per_s"]) for r in roofs if r["mode"] == "highest mode")
    assert top == pytest.approx(2e12)
    assert any(row["what"] == "data sheet" for row in tables["time"])
    (mark,) = [row for row in tables["energy"] if row["what"] == "train"]
    assert float(mark["flop_per_j"]) == pytest.approx(1e9 / 0.2)
    ridge = [r for r in tables["energy"] if r["what"] == "ridge" and r["mode"] == "highest mode"]
    assert float(ridge[0]["intensity_flop_per_byte"]) == 20
    for what in ("time", "energy"):
        text = (tmp_path / f"{what}_simulated.txt").read_text()
        assert "Simulated boards, not measured." in text
        spec = json.loads((tmp_path / f"{what}_simulated.vl.json").read_text())
        assert spec["title"]["subtitle"].startswith("simulated boards, not measured")
        assert len(spec["data"]["values"]) == len(tables[what])
        assert (tmp_path / f"{what}_simulated.png").stat().st_size > 5000


MODELESS = {"provenance": "measured", "device": "host", "instance": "local", "processor": "cpu"}
MODELESS |= {"cores": 1, "cpu_mhz": None, "gpu_mhz": None, "emc_mhz": None}
PLAIN = {"j_per_flop": None, "j_per_byte": None, "constant_w": None, "balance_flop_per_byte": None}
HOST = replace(FIT, **MODELESS, **PLAIN)
RUN = replace(POINT, **MODELESS, power_w=None, power_scope="", batch_size=32)


def test_without_power_the_energy_figure_says_so_and_describes_nothing(drawn, tmp_path):
    tables = drawn([HOST], [RUN], "measured")
    assert tables["energy"] == []
    svg = (tmp_path / "energy_measured.svg").read_text()
    assert ">Energy roofline: not drawn" in svg
    text = (tmp_path / "energy_measured.txt").read_text()
    assert "Power was not measured" in svg
    assert "`epochwatt doctor` says" in text
    assert "circles" not in text
    head = (tmp_path / "energy_measured.csv").read_text().splitlines()[0]
    assert head.endswith("intensity_flop_per_byte,flop_per_j,line")
    assert "measured on this machine" in (tmp_path / "time_measured.txt").read_text().lower()


def test_work_that_costs_nothing_and_other_precisions_are_not_drawn(drawn):
    free = replace(FIT, j_per_flop=0.0, constant_w=0.0, balance_flop_per_byte=None)
    assert drawn([free], [POINT])["energy"] == []
    tables = drawn([replace(FIT, j_per_byte=0.0, constant_w=0.0)], [POINT])
    assert {row["what"] for row in tables["energy"]} == {"roof", "ridge", "train"}
    tables = drawn([FIT], [replace(POINT, precision="fp16")])
    assert "train" not in {row["what"] for row in tables["time"]}


def test_ceilings_of_a_shared_machine_are_never_what_it_does_at_best(drawn, tmp_path):
    shared = replace(HOST, flags="machine_shared")
    for fit, is_shared in ((HOST, False), (shared, True)):
        drawn([fit], [RUN], "measured")
        svg = (tmp_path / "time_measured.svg").read_text()
        caption = " ".join((tmp_path / "time_measured.txt").read_text().split())
        assert ("could do at best" in caption) is not is_shared
        assert ("of the roof" in svg) is not is_shared
        for text in (svg, caption):
            assert ("machine_shared" in text) is is_shared
