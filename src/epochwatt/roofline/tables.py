"""The tables that rooflines are drawn and explained from, one of each origin."""

from collections.abc import Iterable
from pathlib import Path

from epochwatt.roofline.fits import fit_tables, write_fits
from epochwatt.roofline.points import read_points, write_points
from epochwatt.roofline.tx2 import fit_points, read_tx2_points


def write_fits_of(ceilings: Iterable[str], path: str) -> None:
    """Fit every device, mode and precision of tables of ceilings: rule fit_roofline.

    Raises
    ------
    EpochwattError : a table cannot be read, or a mode has no kernel of one kind
    RecordWriteError : the fits cannot be written
    """
    write_fits(path, fit_tables(ceilings))


def write_public(ceilings: str, points: str, kernels: str, fits: str, all_points: str) -> None:
    """Fit what others measured, and write their points as one table: rule fit_public_rooflines.

    Parameters
    ----------
    ceilings, points : of config/rooflines/
    kernels : table of modes of the TX2's kernels, which are points and fitted to as well
    fits, all_points : where to write

    Raises
    ------
    EpochwattError : a table cannot be read
    RecordWriteError : one cannot be written
    """
    measured = read_tx2_points(Path(kernels))
    write_fits(fits, [*fit_tables([ceilings]), *fit_points(measured)])
    write_points(all_points, [*read_points(points), *measured])
