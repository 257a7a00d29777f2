"""Rules fit_public_rooflines and draw_rooflines: what others measured, fitted and drawn."""

import csv
import shutil
from pathlib import Path

from epochwatt.roofline.fits import read_fits

REPOSITORY = Path(__file__).resolve().parents[2]


def test_public_rooflines_are_fitted_and_drawn(checkout, run_rule):
    for name in ("sweeps", "rooflines"):
        shutil.copytree(REPOSITORY / "config" / name, checkout.path / "config" / name)
    run_rule("fit_public_rooflines", "results/roofline/fits_public.csv")
    run_rule("draw_rooflines", "results/figures/roofline/time_public.svg")
    fits = read_fits("results/roofline/fits_public.csv")
    assert {row.provenance for row in fits} == {"public"}
    assert {row.device for row in fits} == {"orin.nano", "orin.nx", "tx2"}
    with open("results/figures/roofline/time_public.csv", newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert {row["field"] for row in rows} == {
        "Orin Nano",
        "Orin NX",
        "AGX Orin 64 GB",
        "Jetson TX2",
    }
    assert "Measured by others." in Path("results/figures/roofline/energy_public.txt").read_text()
