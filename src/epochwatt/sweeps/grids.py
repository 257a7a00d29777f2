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
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from epochwatt.board.device.board_files import Tables, cpus, tables
from epochwatt.board.device.cpu_clocks import CpuClocks
from epochwatt.board.device.frequencies import resolve
from epochwatt.board.device.kinds import KINDS
from epochwatt.columns import CLOCKS
from epochwatt.errors import ConfigError
from epochwatt.sweeps.modes import SweepMode
from epochwatt.text import counted

ALL = "all"


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
    title: str  # whose it is
    cores: Every = Every()
    cpu_mhz: Every = Every()
    gpu_mhz: Every = Every()
    emc_mhz: Every = Every()

    def rules(self) -> dict[str, Every]:
        """Return the rule of each part."""
        return {part: getattr(self, part) for part in CLOCKS}


_EVEN = Every(2, first=1)  # of 1, 2, 3, ... cores
_NOT_THE_LOWEST = Every(1, first=1)

NAMED: Mapping[str, NamedGrid] = {
    "powertrain-orin": NamedGrid(
        "agx_orin", 4368, "PowerTrain on AGX Orin", cores=_EVEN, cpu_mhz=Every(2, first=2)
    ),
    "powertrain-orin-yolo": NamedGrid(
        "agx_orin",
        3744,
        "PowerTrain's YOLOv8n on AGX Orin: without the two slowest CPU clocks",
        cores=_EVEN,
        cpu_mhz=Every(2, first=6),
    ),
    "fulcrum-orin": NamedGrid(
        "agx_orin",
        441,
        "Fulcrum and Pagoda on AGX Orin",
        cores=Every(4, first=3),
        cpu_mhz=Every(4, first=4),
        gpu_mhz=Every(2),
        emc_mhz=_NOT_THE_LOWEST,
    ),
    "orin-nano": NamedGrid(
        "orin_nano",
        180,
        "PowerTrain's validation on Orin Nano",
        cores=_EVEN,
        cpu_mhz=Every(2, first=2),
        gpu_mhz=Every(2),
        emc_mhz=_NOT_THE_LOWEST,
    ),
    "all-orin": NamedGrid("agx_orin", 18096, "all modes of AGX Orin, JetPack 5.0"),
    "all-xavier": NamedGrid("agx_xavier", 29232, "all modes of AGX Xavier"),
    "all-orin-nano": NamedGrid("orin_nano", 1800, "all modes of Orin Nano"),
}


def steps_of_kind(kind: str) -> Steps:
    """Return the steps of a kind of board, as `epochwatt.board.device.kinds` has them."""
    row = KINDS[kind]
    return _board_steps(row.title, row.cores, Tables(row.cpu_khz, row.gpu_hz, row.emc_hz))


def steps_of_board(title: str, root: str) -> Steps:
    """Return the steps of the board whose files lie in `root`: its own tables, which count."""
    return _board_steps(title, len(cpus(root)), tables(root))


def _board_steps(title: str, n_cores: int, clocks: Tables) -> Steps:
    return Steps(
        title,
        tuple(range(1, n_cores + 1)),
        tuple(khz / 1e3 for khz in clocks.cpu_khz),
        tuple(hz / 1e6 for hz in clocks.gpu_hz),
        tuple(hz / 1e6 for hz in clocks.emc_hz),
    )


def steps_of_host(root: str = "/") -> Steps:
    """Return what can be set on the machine at hand, whose files lie in `root`.

    These are the threads that train, 1 to its CPUs, and the CPU clocks where cpufreq lets this user
    set them.
    """
    threads = tuple(range(1, len(os.sched_getaffinity(0)) + 1))
    cpu_mhz = tuple(CpuClocks(root).steps_mhz())
    return Steps("the machine at hand", threads, cpu_mhz, has_clocks=False)


def all_modes(steps: Steps) -> list[SweepMode]:
    """Return every combination of a machine's steps, cores slowest, memory clock fastest.

    Raises ConfigError: a board's clock has no known steps.
    """
    return _product(steps, {})


def named_grid(name: str, board: str, steps: Steps, *, any_size: bool = False) -> list[SweepMode]:
    """Return the modes of a named grid on a board's own steps, in the order of `all_modes`.

    Raises ConfigError: no such grid; a grid of another kind of board; other steps than those of the
    printed grid.

    Parameters
    ----------
    name : one of `NAMED`
    board : kind of the board that the steps are of
    any_size : the rule counts, whatever number of modes it gives
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
    modes = _product(
        steps, {part: rule.chosen(getattr(steps, part)) for part, rule in grid.rules().items()}
    )
    if len(modes) != grid.size and not any_size:
        raise ConfigError(
            f"the rule of grid {name} gives {len(modes):,} modes on the clocks of this board, and "
            f"{grid.size:,} were printed",
            found=_compared(steps, steps_of_kind(board)),
            do="add `any_size: true` to the grid: the same rule on this board's own clocks",
        )
    return modes


def _compared(steps: Steps, usual: Steps) -> str:
    """Return how many steps differ, in words."""
    return ", ".join(
        f"{len(getattr(steps, part))} steps of {part}, {len(getattr(usual, part))} in the "
        "printed grid's tables"
        for part in CLOCKS
        if len(getattr(steps, part)) != len(getattr(usual, part))
    )


def parts_grid(parts: Mapping[str, Sequence[float]], steps: Steps) -> list[SweepMode]:
    """Return the product of lists of values, none twice.

    A part without a list has all of its steps; one with an empty list is left as it is.

    Raises ConfigError: a value that is no step (to 2 %), a part that cannot be set.
    """
    return _product(
        steps, {part: [_step(part, v, steps) for v in values] for part, values in parts.items()}
    )


def listed_modes(modes: Iterable[Mapping[str, float]], steps: Steps) -> list[SweepMode]:
    """Return modes that are listed one by one, on the machine's own steps, none twice.

    Raises ConfigError: a value that is no step (to 2 %), a part that cannot be set.
    """
    resolved = (
        SweepMode(**{part: _step(part, value, steps) for part, value in mode.items()})  # type: ignore[arg-type]
        for mode in modes
    )
    return list(dict.fromkeys(resolved))


def sample(modes: Sequence[SweepMode], n: int, seed: int) -> list[SweepMode]:
    """Return `n` modes drawn without replacement, in the order drawn.

    The first modes of a larger sample of the same seed are those of a smaller one, so a sample can
    be enlarged later, and what is measured of it counts on.

    Raises ConfigError: fewer modes than that.
    """
    if n > len(modes):
        raise ConfigError(
            f"{n:,} random modes are asked for", allowed=f"at most {counted(len(modes), 'modes')}"
        )
    order = list(modes)
    random.Random(seed).shuffle(order)
    return order[:n]


def _product(steps: Steps, chosen: Mapping[str, Sequence[float]]) -> list[SweepMode]:
    """Return all combinations of the chosen steps, and of all steps of each part not chosen."""
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
    """Return the step that a nominal value stands for."""
    allowed: Sequence[float] = getattr(steps, part)
    if part not in steps.settable():
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
