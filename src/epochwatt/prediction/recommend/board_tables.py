"""Clock tables and nvpmodel configuration of the board that power modes are chosen for.

Those of a simulated board are in the table of kinds, those of a board at hand are read from it, and
those of any other board are in the records of its runs, without its nvpmodel configuration.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from epochwatt.board.device.board_files import Conf, Tables, board_conf, cpus, tables
from epochwatt.board.device.kinds import KINDS, Kind
from epochwatt.board.device.stock_modes import stock_conf
from epochwatt.board.records import files
from epochwatt.board.records.run_folder import RECORD, RunFolder
from epochwatt.board.records.shapes import COUNT, NUMBER
from epochwatt.columns import TWIN
from epochwatt.prediction.data.modes import Board, PredictionError
from epochwatt.study.config import Device
from epochwatt.study.place import MEASURED, is_board

_STEPS = {"cpu_steps_mhz": 1e3, "gpu_steps_mhz": 1e6, "emc_steps_mhz": 1e6}  # -> kHz, Hz, Hz
_RECORD = {"machine": {**{name: [NUMBER] for name in _STEPS}, "n_cpus": COUNT}}


class BoardFiles(NamedTuple):
    """Clock tables to choose a power mode from, and the configuration to set it with."""

    board: Board  # its tables
    conf: Conf | None  # its nvpmodel configuration; None: not to be had here
    source: str  # where they are from, in words


def board_files(backend: str, device: Device, runs: Iterable[str], root: Path) -> BoardFiles:
    """Return a board's clock tables and nvpmodel configuration.

    They are those of the table of kinds (simulated boards), of the board's own files where it is at
    hand, else what its `runs` recorded in measured/ of `root`, without a configuration.

    Raises EpochwattError: its tables are not known here, or its runs recorded different ones.
    """
    if backend == TWIN:
        kind = KINDS.get(device.board)
        if kind is None or not kind.releases:
            raise PredictionError(
                "the clocks of boards of this kind are not known",
                where=device.title,
                allowed=[name for name, kind in KINDS.items() if kind.releases],
            )
        # the oldest release is the nearest to what the papers' boards ran
        conf: Conf | None = stock_conf(kind, kind.releases[0])
        return BoardFiles(board_of_kind(kind), conf, "the table of board kinds")
    has_sysroot = device.sysroot != "/"  # a fake board has its files there, a real one in "/"
    is_its_backend = (backend == "fake") if has_sysroot else (backend != "fake")
    if is_its_backend and is_board(device.board, device.sysroot):
        folder, source = device.sysroot, "the board at hand"
        try:
            conf = board_conf(folder)
        except ValueError:
            conf, source = None, f"{source}, whose nvpmodel.conf cannot be read"
        board = Board(device.board, len(cpus(folder)), tables(folder))
        return BoardFiles(board, conf, source)
    return BoardFiles(_recorded(device, runs, root), None, "the records of its runs")


def board_of_kind(kind: Kind) -> Board:
    """Return the clock tables of a kind of board."""
    return Board(kind.name, kind.cores, Tables(kind.cpu_khz, kind.gpu_hz, kind.emc_hz))


def _recorded(device: Device, runs: Iterable[str], root: Path) -> Board:
    """Return the tables that the last epoch of each run recorded."""
    tables_seen: dict[Board, str] = {}
    for run in runs:
        folder = RunFolder(str(root / MEASURED), run)
        for epoch in folder.measured()[-1:]:
            path = os.path.join(folder.epoch_path(epoch), RECORD)
            machine = files.read_json(path, _RECORD)["machine"]
            steps = (tuple(round(k * mhz) for mhz in machine[name]) for name, k in _STEPS.items())
            tables_seen[Board(device.board, machine["n_cpus"], Tables(*steps))] = run
    if not tables_seen:
        raise PredictionError(
            f"it is not at hand, and {MEASURED}/ has no record of its runs to tell its clocks",
            where=device.title,
            do=f"ask on the board, or copy its {MEASURED}/ here (docs/tutorials/jetson.md)",
        )
    if len(tables_seen) > 1:
        raise PredictionError(
            "its runs recorded different tables of clocks",
            where=device.title,
            found=tables_seen.values(),
            do="ask on the board, whose own tables count",
        )
    return next(iter(tables_seen))
