"""The table of fits: what is written is read again, one row per device, mode and precision."""

from dataclasses import replace

import pytest
from planted import Planted

from epochwatt.roofline.ceilings import write_ceilings
from epochwatt.roofline.fits import fit_tables, read_fits, write_fits
from epochwatt.roofline.model import Ceilings, EnergyCosts, EnergyRoofline

TRUTH = Planted(Ceilings(2e12, 1e11, 1e-5), EnergyCosts(5e-12, 6e-11, 9.0))


def test_each_mode_and_precision_gets_a_row(tmp_path):
    slow = replace(TRUTH, gpu_mhz=500.0, ceilings=replace(TRUTH.ceilings, flops_per_s=1e12))
    half = [replace(row, precision="fp16") for row in TRUTH.rows()]
    write_ceilings(tmp_path / "c.csv", [*TRUTH.rows(), *half, *slow.rows()])
    rows = fit_tables([tmp_path / "c.csv"], n_draws=10)
    assert [(row.gpu_mhz, row.precision) for row in rows] == [
        (1000, "fp32"),
        (1000, "fp16"),
        (500, "fp32"),
    ]
    write_fits(tmp_path / "fits.csv", rows)
    again = read_fits(tmp_path / "fits.csv")
    assert again[2].flops_per_s == pytest.approx(1e12, rel=0.03)
    for one, other in zip(rows, again, strict=True):
        assert other.ceilings.ridge_flop_per_byte == pytest.approx(one.ridge_flop_per_byte)
        roofline = EnergyRoofline(other.ceilings, other.costs)
        assert one.balance_flop_per_byte == pytest.approx(roofline.balance_flop_per_byte)
        assert one.j_per_byte_low <= one.j_per_byte <= one.j_per_byte_high
        assert (other.mode, other.power_scope, other.provenance) == (one.mode, "gpu", "fake")
