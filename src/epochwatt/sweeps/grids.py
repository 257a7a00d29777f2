"""Grids of modes: rules over the steps of a machine, checked against the sizes that others print.

A grid is never a list of numbers: it is a rule ("every second CPU clock from the third lowest")
over what a board can be set to. So it holds for any board, and where a board's own steps give
another number of modes than was printed, that is an error and no silent substitute.

The named grids are those of PowerTrain (FGCS 2024, arXiv 2407.13944), Fulcrum (arXiv 2509.20205)
and Pagoda, as the lab's published scripts list them. No rule is known for a part of AGX Xavier's
modes, so its only named grid is the whole of it (SIGMETRICS 2023, section 1).
"""

import os
import random
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

from epochwatt.board.device.board_files import Tables, cpus, tables
from epochwatt.board.device.cpu_clocks import CpuClocks
from epochwatt.board.device.frequencies import resolve
from epochwatt.board.device.kinds import KINDS
from epochwatt.columns import CLOCKS
from epochwatt.errors import ConfigError
from epochwatt.sweeps.config import ALL, Grid
from epochwatt.sweeps.modes import SweepMode
from epochwatt.text import counted


class Steps(NamedTuple):
    """Steps that modes of a machine are made of, ascending; empty where a part cannot be set."""

    title: str  # whose steps they are, for messages
    cores: tuple[int, ...]
    cpu_mhz: tuple[float, ...] = ()
    gpu_mhz: tuple[float, ...] = ()
    emc_mhz: tuple[float, ...] = ()
    # whether a mode names all clocks; a host's names the CPU clock where there are steps
    has_clocks: bool = True

    def settable(self) -> tuple[str, ...]:
        """Return the parts that have steps."""
        return tuple(part for part in CLOCKS if getattr(self, part))


class Every(NamedTuple):
    """Every n-th step, counted from one of the lowest; the highest is always one of them."""

    n: int = 1
    first: int = 0  # 0: the lowest

    def chosen(self, steps: Sequence[float]) -> list[float]:
        """Return the chosen steps, ascending."""
        places = range(self.first, len(steps), self.n)
        return [steps[k] for k in sorted({*places, len(steps) - 1})] if steps else []


class NamedGrid(NamedTuple):
    """A grid that others measured, as a rule over a kind of board."""

    board: str  # kind of board
    size: int  # number of modes that they print
    cores: Every = Every()
    cpu_mhz: Every = Every()
    gpu_mhz: Every = Every()
    emc_mhz: Every = Every()


_EVEN = Every(2, first=1)  # of 1, 2, 3, ... cores
_NOT_THE_LOWEST = Every(1, first=1)

NAMED: Mapping[str, NamedGrid] = {
    # PowerTrain; its YOLOv8n was measured without the two slowest CPU clocks
    "powertrain-orin": NamedGrid("agx_orin", 4368, _EVEN, Every(2, first=2)),
    "powertrain-orin-yolo": NamedGrid("agx_orin", 3744, _EVEN, Every(2, first=6)),
    # Fulcrum and Pagoda
    "fulcrum-orin": NamedGrid(
        "agx_orin", 441, Every(4, first=3), Every(4, first=4), Every(2), _NOT_THE_LOWEST
    ),
    # PowerTrain's validation
    "orin-nano": NamedGrid("orin_nano", 180, _EVEN, Every(2, first=2), Every(2), _NOT_THE_LOWEST),
    "all-orin": NamedGrid("agx_orin", 18096),  # JetPack 5.0
    "all-xavier": NamedGrid("agx_xavier", 29232),
    "all-orin-nano": NamedGrid("orin_nano", 1800),
}


def steps_of_kind(kind: str) -> Steps:
    """Return the steps of a kind of board, as `epochwatt.board.device.kinds` has them."""
    board = KINDS[kind]
    return _board_steps(board.title, board.cores, Tables(board.cpu_khz, board.gpu_hz, board.emc_hz))


def steps_of_board(title: str, root: str) -> Steps:
    """Read the steps of the board whose system files lie below `root`."""
    return _board_steps(title, len(cpus(root)), tables(root))


def _board_steps(title: str, n_cores: int, clocks: Tables) -> Steps:
    """Build the steps of a board, in MHz, from its tables of clocks in kHz and Hz."""
    return Steps(
        title,
        tuple(range(1, n_cores + 1)),
        tuple(khz / 1e3 for khz in clocks.cpu_khz),
        tuple(hz / 1e6 for hz in clocks.gpu_hz),
        tuple(hz / 1e6 for hz in clocks.emc_hz),
    )


def steps_of_host(root: str = "/") -> Steps:
    """Read the steps of the machine at hand, whose system files lie below `root`.

    Threads that train, 1 to its CPUs, and the CPU clocks where cpufreq lets this user set them.
    """
    threads = tuple(range(1, len(os.sched_getaffinity(0)) + 1))
    cpu_mhz = tuple(CpuClocks(root).steps_mhz())
    return Steps("the machine at hand", threads, cpu_mhz, has_clocks=False)


def grid_modes(grid: Grid, board: str, steps: Steps) -> list[SweepMode]:
    """List the distinct modes of a grid on a machine's steps; random ones in the order drawn.

    Else cores vary slowest, the memory clock fastest. A larger draw of the same seed begins with
    the smaller one, so that it can be enlarged later and what is measured counts.

    Raises ConfigError: unknown grid; a clock that is no step to 2 %, or a number of cores that is
    none; more random modes than there are. `board`: its kind; empty for a host.
    """
    if grid.modes:
        listed = ({part: _step(part, v, steps) for part, v in mode.items()} for mode in grid.modes)
        modes = list(dict.fromkeys(SweepMode(**mode) for mode in listed))  # type: ignore[arg-type]
    elif grid.parts:
        chosen = {
            str(part): [_step(part, value, steps) for value in values]
            for part, values in grid.parts.items()
        }
        modes = _product(steps, chosen)
    elif grid.name == ALL:
        modes = _product(steps, {})
    else:
        modes = named_grid(grid.name, board, steps, any_size=grid.any_size)
    if grid.random is None:
        return modes
    if grid.random > len(modes):
        raise ConfigError(
            f"{grid.random:,} random modes are asked for",
            allowed=f"at most {counted(len(modes), 'modes')}",
        )
    random.Random(grid.seed).shuffle(modes)
    return modes[: grid.random]


def named_grid(name: str, board: str, steps: Steps, *, any_size: bool = False) -> list[SweepMode]:
    """List the modes of a grid of `NAMED` on a board's own steps.

    Raises ConfigError: unknown grid; a grid of another kind of board; another number of modes than
    was printed, unless `any_size`.
    """
    if name not in NAMED:
        raise ConfigError(f"unknown grid {name!r}", allowed=[ALL, *NAMED])
    grid = NAMED[name]
    if board != grid.board:
        raise ConfigError(
            f"grid {name} is one of {KINDS[grid.board].title}",
            found=steps.title,
            allowed=[ALL, *(other for other, row in NAMED.items() if row.board == board)],
        )
    rules = {part: getattr(grid, part) for part in CLOCKS}
    modes = _product(steps, {part: rules[part].chosen(getattr(steps, part)) for part in CLOCKS})
    if len(modes) == grid.size or any_size:
        return modes
    usual = steps_of_kind(board)
    counts = {part: (len(getattr(steps, part)), len(getattr(usual, part))) for part in CLOCKS}
    raise ConfigError(
        f"the rule of grid {name} gives {len(modes):,} modes on the clocks of this board, and "
        f"{grid.size:,} were printed",
        found=", ".join(
            f"{n_here} steps of {part}, {n_printed} in the printed grid's tables"
            for part, (n_here, n_printed) in counts.items()
            if n_here != n_printed
        ),
        do="add `any_size: true` to the grid: the same rule on this board's own clocks",
    )


def _product(steps: Steps, chosen: Mapping[str, Sequence[float]]) -> list[SweepMode]:
    """Combine the chosen steps of each part, and all steps of each part that is not chosen.

    A part whose list is empty is left as it is. Raises ConfigError: a clock has no known steps.
    """
    parts = CLOCKS if steps.has_clocks else steps.settable()
    if unknown := [part for part in parts if part not in chosen and not getattr(steps, part)]:
        raise ConfigError(
            f"the steps of {', '.join(unknown)} are not known for {steps.title}",
            do=f"leave them as they are: `parts: {{{', '.join(f'{u}: []' for u in unknown)}}}`",
        )
    axes = [list(dict.fromkeys(chosen.get(part, getattr(steps, part)))) for part in parts]
    return [
        SweepMode(**dict(zip(parts, values, strict=True)))
        for values in product(*(axis or [None] for axis in axes))
    ]


def _step(part: str, value: float, steps: Steps) -> float:
    """Return the step that a nominal value stands for: a clock to 2 %, cores exactly.

    Raises ConfigError: there is no such step.
    """
    allowed: Sequence[float] = getattr(steps, part)
    if not allowed:
        raise ConfigError(
            f"{part} cannot be set on {steps.title}",
            found=f"{value:g}",
            allowed=steps.settable(),
        )
    if part != "cores":
        return resolve(part, value, allowed)
    if value not in allowed:
        raise ConfigError(
            f"{steps.title} cannot be set to {counted(int(value), 'cores')}",
            allowed=f"{allowed[0]} to {allowed[-1]}",
        )
    return int(value)
