"""Files of others -> mode tables: the formats that are known, and one way through all of them.

To add one: a module with `read(path, wanted)`, which yields a `SweepRow` per line or a sentence on
why the line is left out, and an entry of `FORMATS`.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from epochwatt.errors import ConfigError
from epochwatt.sweeps.mode_table import ModeTable, SweepRow, tables_of
from epochwatt.sweeps.public import (
    ali,
    broncospace,
    ellis,
    energy_time_fairness,
    hkbu,
    opml19,
    translucence,
    zeus,
)
from epochwatt.sweeps.public.checks import (
    numbered,
    refuse_copies,
    without_copies,
    without_uninformative,
)
from epochwatt.sweeps.public.original import Wanted


class Format(NamedTuple):
    """A form of the authors' own files.

    Attributes
    ----------
    read : yields rows of a file, or why a line is left out
    title : what the files are
    files : how they are called in their repository
    """

    read: Callable[[Path, Wanted], Iterator[SweepRow | str]]
    title: str
    files: str


FORMATS: dict[str, Format] = {
    "translucence": Format(
        translucence.read,
        "inference on Jetson boards over cores, CPU, GPU and memory clocks",
        "data/*.csv of iqbal128855/Translucence",
    ),
    "zeus": Format(
        zeus.read,
        "training under GPU power limits",
        "trace/summary_power_*.csv, tests/profile_data/*.csv of ml-energy/zeus",
    ),
    "energy-time-fairness": Format(
        energy_time_fairness.read,
        "networks and kernels at each GPU clock of a Jetson TX2",
        "models/*/*_profile.json of umassos/energy-time-fairness",
    ),
    "ali": Format(
        ali.read,
        "applications at each core clock of data-centre GPUs",
        "*-dcgm.csv of ghazanfarttu/Optimal-GPU-frequency-using-DNN-based-models",
    ),
    "opml19": Format(
        opml19.read,
        "Xception on a Jetson TX2, full factorial of modes",
        "ConfigLabyrinth/Data/Output/*/output_*.csv of iqbal128855/OpML19-DNNPerfModeling",
    ),
    "hkbu": Format(
        hkbu.read,
        "Caffe training and CUDA kernels over GPU core and memory clocks",
        "caffe/excels/*.csv of blackjack2015/dlbench_dvfs, csvs/*-Performance-Power.csv of "
        "HKBU-HPML/GPU-DVFS-Job-Schedule and blackjack2015/NV-DVFS-Benchmark",
    ),
    "broncospace": Format(
        broncospace.read,
        "complete 1 Hz logs of training on a Jetson AGX Orin in its stock modes",
        "docs/data/*training*.csv of BroncoSpace-Lab/scales-hardware",
    ),
    "ellis": Format(
        ellis.read,
        "PyTorch operators at locked core clocks",
        "data/raw/*/*.csv of DarshEllisd/GPU-Power-Capping-",
    ),
}


class Converted(NamedTuple):
    """Mode tables of others' files.

    Attributes
    ----------
    tables : one per workload and device
    left_out : a sentence for each line that has no row
    """

    tables: list[ModeTable]
    left_out: list[str]


def convert(name: str, paths: Sequence[Path], wanted: Wanted) -> Converted:
    """Return the mode tables of the authors' own files.

    Parameters
    ----------
    name : of the format, a key of `FORMATS`
    paths : the files, all of one format; a mode that is there again is its next repeat
    wanted : name of the sweep, and the device where the files do not say it

    Raises
    ------
    ConfigError : no such format; a file of another form; a cell that cannot be, with file, line and
        column; a table that depends on no part of the mode, or is a copy of another one
    """
    if name not in FORMATS:
        raise ConfigError("no such format", found=name, allowed=FORMATS)
    per_file = [list(FORMATS[name].read(path, wanted)) for path in paths]
    left_out = [reason for some in per_file for reason in some if isinstance(reason, str)]
    found_tables = []
    for some in per_file:
        tables, reasons = without_copies(tables_of(row for row in some if not isinstance(row, str)))
        left_out += reasons
        found_tables.append(tables)
    if not any(found_tables):
        raise ConfigError(
            "no line of use", where=", ".join(map(str, paths)), found=left_out[:1] or "no line"
        )
    for first, second in combinations(found_tables, 2):
        refuse_copies(first, second)
    rows = (row for tables in found_tables for table in tables for row in table.rows)
    return _judged(tables_of(numbered(rows)), left_out)


def _judged(tables: Sequence[ModeTable], left_out: Sequence[str]) -> Converted:
    """Return the tables that say something on modes. Raises ConfigError where none does."""
    informative, reasons = [], list(left_out)
    for table in tables:
        try:
            informative.append(without_uninformative(table))
        except ConfigError as error:
            if len(tables) == 1:
                raise
            reasons.append(f"{table.key.device} {table.key.workload}: {error.problem}")
    if not informative:
        raise ConfigError("no table says anything on modes", found=reasons[-1])
    return Converted(informative, reasons)
