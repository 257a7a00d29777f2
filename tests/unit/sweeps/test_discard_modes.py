"""Taking modes of a sweep back: into the trash, with the receipts that name them."""

from pathlib import Path

import pytest

from epochwatt.errors import EpochwattError
from epochwatt.sweeps.discard import discard_modes
from epochwatt.sweeps.modes import write_modes

MODES = [{"cores": 1}, {"cores": 2}]
ONE, TWO = ("mode-c1-x-x-x", "mode-c2-x-x-x")


@pytest.fixture
def sweep(sweeps, measure_mode):
    """A sweep with two modes measured, each by a job of its own."""
    swept = sweeps.sweep()
    folder = Path(swept.modes_file).parent
    folder.mkdir(parents=True)
    write_modes(swept.modes_file, MODES)
    for n, mode in enumerate(MODES):
        measure_mode(swept, mode)
        (folder / f"{n}-{n}.json").touch()
    return swept


def left(sweep):
    receipts = Path(sweep.modes_file).parent.glob("[0-9]*.json")
    there = Path("measured", sweep.id)
    names = sorted(p.name for p in there.iterdir()) if there.exists() else []
    return names, sorted(p.name for p in receipts)


def test_one_mode_goes_with_its_receipt_and_no_other(sweep):
    (moved,) = discard_modes("measured", f"one/{TWO}")
    assert Path(moved).is_relative_to("measured/.trash")
    assert Path(moved).name == TWO
    assert any(Path(moved).iterdir())
    assert left(sweep) == ([ONE], ["0-0.json"])


@pytest.mark.parametrize("by", ["name", "id"])
def test_a_whole_sweep_goes_with_all_receipts(sweep, by):
    (moved,) = discard_modes("measured", getattr(sweep, by))
    assert sorted(p.name for p in Path(moved).iterdir()) == [ONE, TWO]
    assert left(sweep) == ([], [])


def test_what_is_not_there_is_said(sweep):
    with pytest.raises(EpochwattError, match="mode 'mode-c9' of one is not measured"):
        discard_modes("measured", "one/mode-c9")
    discard_modes("measured", "one")
    with pytest.raises(EpochwattError, match="nothing is measured of sweep 'one'"):
        discard_modes("measured", "one")
