import csv
from collections import defaultdict
from pathlib import Path

import pytest

from tests.fakeboard.kinds import KINDS

DATA = Path(__file__).resolve().parents[2] / "data"
VARIANT = {"agx_orin-jp5": "jp5.0", "agx_orin-jp6": "jp5.1+"}
# seen with the super configuration: highest and lowest clocks, limits of the modes
SUPER = {"cpu": {115200, 729600, 960000, 1344000, 1497600, 1728000}}
SUPER |= {"gpu": {306000, 408000, 612000, 918000, 1020000}, "emc": {204000, 2133000, 3199000}}


@pytest.fixture(scope="module")
def tables():
    """(device, resource) -> variant -> kHz, as the project collected them."""
    found = defaultdict(lambda: defaultdict(list))
    with open(DATA / "frequencies.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found[row["device"], row["resource"]][row["variant"]].append(int(row["freq_khz"]))
    return found


def collected(tables, kind, resource):
    variants = tables[kind.board.name, resource]
    return variants.get(VARIANT.get(kind.name)) or next(iter(variants.values()))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_clocks_are_those_that_were_collected(tables, kind):
    if "cpu" in kind.board.seen_only or (kind.board.name, "cpu") not in tables:
        pytest.skip("tests/data/frequencies.csv has no steps of it")
    if kind.release.cpu_khz:
        assert SUPER["cpu"] <= set(kind.cpu_khz)
        assert SUPER["gpu"] <= {hz // 1000 for hz in kind.gpu_hz}
        assert SUPER["emc"] <= {hz // 1000 for hz in kind.emc_hz}
        return
    assert list(kind.board.cpu_khz) == collected(tables, kind, "cpu")
    assert [hz // 1000 for hz in kind.gpu_hz] == collected(tables, kind, "gpu")
    known = collected(tables, kind, "emc")
    # Orin Nano's list may be incomplete; `jetson_clocks --show` of one has 204 MHz as its lowest
    assert set(known) <= {hz // 1000 for hz in kind.board.emc_hz} <= {*known, 204_000}


def test_modes_are_those_that_were_collected(tables):
    with open(DATA / "nvpmodel/nvpmodel_modes.csv", encoding="utf-8") as file:
        rows = {(r["device"], r["variant"], int(r["mode_id"])): r for r in csv.DictReader(file)}
    variants = {
        "nano": ("nano", "JP4 (copyright 2019)"),
        "xavier_nx": ("xavier_nx", "JP4.6 (copyright 2019-2021)"),
        "agx_xavier": ("agx_xavier", "JP4.5 (copyright 2017-2021)"),
        "agx_orin-jp6": ("agx_orin_64gb", "JP5.1/JP6 (nvpmodel -p --verbose)"),
    }
    for name, place in variants.items():
        for mode in KINDS[name].modes:
            row = rows[(*place, mode.id)]
            clocks = [*mode.cpu_khz, *mode.gpu_hz, mode.emc_hz]
            keys = ("cpu_min_khz", "cpu_max_khz", "gpu_min_hz", "gpu_max_hz", "emc_max_hz")
            assert [row[key] for key in keys] == list(map(str, clocks)), (name, mode.name)
            assert (row["mode_name"], int(row["cores_online"])) == (mode.name, mode.cores)
            assert row["tpc_pg_mask"] == ("" if mode.tpc_mask is None else str(mode.tpc_mask))
