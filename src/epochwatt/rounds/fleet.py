"""Read a fleet: which boards train in a round, with how much data, and what each mode costs them.

A fleet is a YAML file (docs/how-to/federated-round.md). Its boards have mode tables: measured,
public, simulated, or a few modes of them from which all others are predicted.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from epochwatt.board.device.kinds import KINDS
from epochwatt.columns import MODE_PARTS
from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.open_data.read import find_tables
from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Context
from epochwatt.prediction.registry import RECOMMENDED, load_method
from epochwatt.rounds.law import Measured, learned_client
from epochwatt.rounds.plan import Client, Numbers
from epochwatt.study.devices import Devices
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml
from epochwatt.sweeps.config import Grid, simulated_entry
from epochwatt.sweeps.grids import grid_modes, steps_of_kind
from epochwatt.sweeps.mode_table import ModeTable, tables_of
from epochwatt.sweeps.modes import SweepFacts, mode_rows
from epochwatt.sweeps.table import load_sweep
from epochwatt.tables import read_cells
from epochwatt.twin.boards import Clocks
from epochwatt.twin.network import COUNTS, network_of
from epochwatt.twin.power import idle_w
from epochwatt.twin.power_modes import load_twin_with_modes
from epochwatt.twin.sweep import simulated_rows

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Samples = Annotated[int, Field(le=10**12)]
BATCH_SIZE = 16  # of a simulated board
LEVELS = 9  # of the number of mini-batches, where it may be chosen
IDLE_STATES = {"pinned": "logging_off_dvfs_off", "governed": "logging_off_dvfs_on"}
MHZ_WITHIN = 0.02  # a clock that is named stands for a step this near
LOGGED = ("round", "board", "mode", "flags")  # columns of a log of rounds
LOGGED_NUMBERS = ("planned_fit_s", "fit_s", "end_s", "energy_j")


GridOf = Annotated[
    Grid, BeforeValidator(lambda grid: {"name": grid} if isinstance(grid, str) else grid)
]


class BoardEntry(BaseModel):
    """A board of a fleet, or several that are alike."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    name: str = Field(min_length=1, description="of the board, unlike any other's")
    count: int = Field(1, ge=1, description="how many boards are like this")
    table: str | None = Field(
        None,
        description="a sweep, a package, or a file of modes: time and power of each; without one "
        "the board is simulated: device, workload and grid",
    )
    device: str | None = Field(
        None, description="a file of config/devices/; of a table with several the one to take"
    )
    workload: str | None = Field(None, description="network; of a table with several which")
    batch_size: int | None = Field(
        None, ge=1, description="of a table with several which; of a simulated board, default 16"
    )
    modes: list[Annotated[dict[str, float], Field(min_length=1)]] = Field(
        default_factory=list, description="the only modes it may take, each by some of its parts"
    )
    grid: GridOf | None = Field(
        None,
        description="modes to choose from: a named grid, `all`, or a mapping as in "
        "config/sweeps.yaml; what a table lacks of them is predicted from it",
    )
    samples: Samples | Annotated[list[Samples], Field(min_length=2, max_length=2)] = Field(
        description="it trains on in an epoch; two numbers: from, to"
    )
    samples_per_epoch: int | None = Field(
        None, ge=1, description="of the table, where a row is the time of an epoch"
    )
    bandwidth_mbit_s: Positive | None = Field(None, description="of its network, both ways")
    waiting_w: NotNegative | Literal["pinned", "governed"] = Field(
        description="what it draws while it waits, W; of a simulated board its idle power, with "
        "the clocks of its mode (`pinned`) or the lowest (`governed`)"
    )
    max_power_w: Positive | None = Field(None, description="no mode that trains with more power")
    spread_pct: NotNegative = Field(
        0.0, description="standard deviation of its fits around what is expected"
    )

    @property
    def sizes(self) -> tuple[int, int]:
        """Fewest and most samples of an epoch."""
        if isinstance(self.samples, int):
            return self.samples, self.samples
        return self.samples[0], self.samples[1]


class Fleet(BaseModel):
    """Boards that train a network together."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    boards: list[BoardEntry] = Field(min_length=1, description="each, or several that are alike")
    model_mb: NotNegative = Field(0.0, description="weights, sent to every board and back, 10^6 B")
    local_epochs: int = Field(1, ge=1, description="of every board in a round")
    engine_s: NotNegative = Field(
        0.0, description="the engine's own time in a round, without fits and transfers, s"
    )
    rounds: str | None = Field(
        None,
        description="log of measured rounds, as `PlannedRounds` writes it: it corrects the tables",
    )


@dataclass(frozen=True, eq=False)
class Member:
    """Boards of a fleet that are alike, and the modes they may take."""

    client: Client
    modes: tuple[Mode, ...]  # of each choice
    parts: tuple[str, ...]  # of a mode that are known
    power_w: Numbers  # while it trains, of each choice
    minibatches: tuple[int, ...]  # that it trains in an epoch, of each choice
    provenance: str  # of its table
    n_profiled: int | None = None  # modes that all others are predicted from
    n_fits: int = 0  # measured ones that correct its table
    slower: float = 1.0  # times that they took as long as the table says


def load_fleet(path: Path) -> Fleet:
    """Read a fleet from a YAML file.

    Raises ConfigError: no such file; a wrong key or value; a board without samples or a table; two
    boards of one name.
    """
    fleet = validated(Fleet, read_yaml(path), str(path))
    names = [board.name for board in fleet.boards]
    for board in fleet.boards:
        where = f"{path}: board {board.name}"
        if names.count(board.name) > 1:
            raise ConfigError(
                f"{names.count(board.name)} boards have this name",
                where=where,
                do="give each its own; boards that are alike are one entry with `count`",
            )
        if board.sizes[0] < 1 or board.sizes[0] > board.sizes[1]:
            raise ConfigError(
                f"samples is {board.samples}",
                where=where,
                allowed="1 or more; two numbers are the fewest and the most, as [200, 2000]",
                do="leave out a board that has nothing to train on",
            )
        lacking = [key for key in ("device", "workload", "grid") if getattr(board, key) is None]
        if board.table is None and lacking:
            raise ConfigError(
                f"it has no table, and to simulate it there is no {', '.join(lacking)}",
                where=where,
                do="add `table`: its modes with time and power; or device, workload and grid",
            )
    return fleet


def members_of(fleet: Fleet, root: Path = Path()) -> list[Member]:
    """Return the boards of a fleet with their choices, a row for each mode and amount of training.

    Raises ConfigError: a board without a table, or with several; a mode that it lacks; power that
    is not known; no mode within its limit of power; a log of other rounds.
    """
    members = [_member(entry, fleet, root) for entry in fleet.boards]
    return members if fleet.rounds is None else _corrected(members, fleet.rounds)


def _corrected(members: list[Member], path: str) -> list[Member]:
    """Return boards as the fits of a log of rounds correct their tables (`law.learned_client`)."""
    fits = _read_fits(path)
    of_board = {str(name): part for name, part in fits.groupby("board")}
    if not of_board.keys() & {member.client.name for member in members}:
        raise ConfigError(
            "no fit of a board of this fleet, in a mode that was planned",
            where=path,
            found=f"{len(fits)} fits of {', '.join(of_board) or 'no board'}",
            do="leave `rounds` out until there are some",
        )
    return [
        _learned(member, of_board[member.client.name], path)
        if member.client.name in of_board
        else member
        for member in members
    ]


def _read_fits(path: str) -> pd.DataFrame:
    """Return the fits of a log of rounds that were in the mode that was planned for them."""
    log = pd.DataFrame(read_cells(path), dtype=object)
    if len(log) and (lacking := {*LOGGED, *LOGGED_NUMBERS} - {*log.columns}):
        raise ConfigError(
            f"it is no log of rounds: it has no column {', '.join(sorted(lacking))}",
            where=path,
            do="name the file that PlannedRounds has written",
        )
    # published logs do not name the nodes, and older ones do not count samples
    log = log.reindex(columns=[*LOGGED, "node", *LOGGED_NUMBERS, "samples"], fill_value="")
    numbers = [*LOGGED_NUMBERS, "samples"]
    try:
        log[numbers] = log[numbers].replace("", np.nan).astype(float)
    except ValueError as error:
        raise ConfigError(f"a number of a fit is wrong: {error}", where=path) from None
    is_fit = log["fit_s"].gt(0) & log["planned_fit_s"].gt(0)
    return log[is_fit & ~log["flags"].astype(str).str.contains("mode_not_met")]


def _learned(member: Member, fits: pd.DataFrame, path: str) -> Member:
    """Return a board as its fits correct it; of boards that are alike the one in the middle.

    How far fits were from what was planned is at least their spread.
    """
    client, choices = member.client, dict[str, list[int]]()
    for k, mode in enumerate(member.modes):
        choices.setdefault(mode.of_parts(member.parts), []).append(k)
    measured: dict[str, list[Measured]] = {}  # of each node
    rows: list[Any] = [*fits.itertuples()]
    for row in rows:
        if row.mode not in choices:
            raise ConfigError(
                f"board {client.name} has no mode {row.mode}",
                where=f"{path}: round {row.round}",
                found=f"{len(choices)} modes, such as {next(iter(choices))}",
                do="give it the table, grid and modes that those rounds were planned with",
            )
        of_mode = choices[row.mode]
        k = of_mode[int(np.abs(client.n_samples[of_mode] - row.samples).argmin())]
        end_s = row.fit_s + client.around_s if np.isnan(row.end_s) else row.end_s
        fit_j = row.energy_j if row.energy_j > 0 else None
        n = row.samples if row.samples > 0 else None
        measured.setdefault(row.node, []).append(Measured(k, row.fit_s, end_s, fit_j, n_samples=n))
    nodes = sorted((learned_client(client, m) for m in measured.values()), key=_first_fit_s)
    learned = nodes[len(nodes) // 2]
    off = np.sqrt(np.mean(np.log(fits["fit_s"] / fits["planned_fit_s"]) ** 2))
    return replace(
        member,
        client=replace(learned, spread=np.maximum(client.spread, off)),
        power_w=learned.fit_j / learned.fit_s,
        n_fits=len(fits),
        slower=_first_fit_s(learned) / _first_fit_s(client),
    )


def _first_fit_s(client: Client) -> float:
    return float(client.fit_s[0])


def _member(entry: BoardEntry, fleet: Fleet, root: Path) -> Member:
    """Return a board with its choices: each mode with each number of mini-batches."""
    where = f"board {entry.name}"
    try:
        table = _find_table(entry, where) if entry.table else _simulate_table(entry, root)
    except EpochwattError as error:
        if where not in str(error.where):
            error.where = f"{where}: {error.where}" if entry.table and error.where else where
        raise
    rows = observations_of(table)
    modes, time_s, power_w = rows.modes, rows.time_s, rows.power_w
    if np.isnan(power_w).any():
        raise ConfigError("power is not known of every mode", where=f"{where}: {entry.table}")
    spread: Numbers = np.full(len(modes), math.log1p(entry.spread_pct / 100))
    parts, n_profiled = table.parts, None
    if entry.table and entry.grid:
        n_profiled = len(modes)
        modes, time_s, power_w, predicted = _predict_grid(entry.grid, table, where)
        spread = np.hypot(predicted, spread[0])  # of the prediction, and of fits around it
        parts = MODE_PARTS[:4]
    if entry.modes:
        is_chosen = _match_modes(entry, modes, where)
        modes, time_s, power_w, spread = (v[is_chosen] for v in (modes, time_s, power_w, spread))
    per_sample_s = time_s / _samples_per_work(entry, table, where)
    is_kept = power_w <= (entry.max_power_w or math.inf)
    if not is_kept.any():
        raise ConfigError(
            f"no mode trains with at most {entry.max_power_w:g} W",
            where=where,
            allowed=f"{power_w.min():.4g} W or more",
        )
    modes, per_sample_s = modes[is_kept], per_sample_s[is_kept]
    power_w, spread = power_w[is_kept], spread[is_kept]
    batch = table.key.batch_size or 1
    low, high = (math.ceil(samples / batch) for samples in entry.sizes)
    sizes = np.unique(np.linspace(low, high, LEVELS).round().astype(int))
    repeated = np.repeat(np.arange(len(modes)), len(sizes))
    minibatches = np.tile(sizes, len(modes))
    n_samples = np.minimum(minibatches * batch, max(entry.sizes)).astype(float)
    n_samples = n_samples * fleet.local_epochs
    fit_s = per_sample_s[repeated] * minibatches * batch * fleet.local_epochs
    transfer_s = 0.0
    if entry.bandwidth_mbit_s is not None:
        transfer_s = 2 * 8 * fleet.model_mb / entry.bandwidth_mbit_s
    waiting_w = _waiting_w(entry, table, modes, root)[repeated]
    client = Client(
        name=entry.name,
        fit_s=fit_s,
        fit_j=fit_s * power_w[repeated],
        waiting_w=waiting_w,
        n_samples=n_samples,
        around_s=fleet.engine_s + transfer_s,
        spread=spread[repeated],
        count=entry.count,
    )
    all_modes = [Mode(*row) for row in modes.tolist()]
    return Member(
        client=client,
        modes=tuple(all_modes[k] for k in repeated),
        parts=parts,
        power_w=power_w[repeated],
        minibatches=tuple(minibatches.tolist()),
        provenance=table.key.provenance,
        n_profiled=n_profiled,
    )


def _find_table(entry: BoardEntry, where: str) -> ModeTable:
    """Return the table of training of an entry; ConfigError: none or several match its keys."""
    tables = [table for table in find_tables(str(entry.table)) if table.key.task == "train"]
    keys = ("workload", "device", "batch_size")
    asked = {key: value for key in keys if (value := getattr(entry, key)) is not None}
    matching = [t for t in tables if all(getattr(t.key, k) == v for k, v in asked.items())]
    if len(matching) == 1:
        return matching[0]
    candidates = matching or tables
    raise ConfigError(
        f"{len(matching) or 'no'} such tables of training",
        where=f"{where}: {entry.table}",
        allowed="; ".join(
            f"{key}: {', '.join(sorted({str(getattr(t.key, key)) for t in candidates}))}"
            for key in keys
        )
        if tables
        else None,
        do=f"choose one by {', '.join(keys)}" if tables else "name a table of training",
    )


def _simulate_table(entry: BoardEntry, root: Path) -> ModeTable:
    """Simulate a board's modes, as for a sweep of config/sweeps.yaml, by the kernel counts."""
    twin = load_twin_with_modes(map(str, sorted((root / COUNTS).glob("*.json"))), root)
    if entry.device not in twin.boards:
        raise ConfigError(
            f"the simulator has no {entry.device}",
            allowed=twin.boards,
            do="give it a table of its modes",
        )
    batch_size = entry.batch_size or BATCH_SIZE

    def facts_of(grid: Grid | None) -> SweepFacts:
        sweep = simulated_entry(entry.device, entry.workload, "train", batch_size, grid)
        return SweepFacts(**load_sweep("rounds", sweep, root)[0].facts)

    modes = _with_strongest(entry.grid, lambda grid: facts_of(grid).modes)
    facts = replace(facts_of(entry.grid), modes=modes)
    work = network_of(entry.workload, {}, twin, root).work
    return tables_of(simulated_rows(facts, twin.knowing(work)))[0]


def _samples_per_work(entry: BoardEntry, table: ModeTable, where: str) -> int:
    """Return the samples in the work whose time a row is; ConfigError: they are not known."""
    if table.key.work == "mini-batch" and table.key.batch_size:
        return table.key.batch_size
    if entry.samples_per_epoch is None:
        raise ConfigError(
            f"a row of its table is the time of one {table.key.work}",
            where=f"{where}: {entry.table}",
            do="add samples_per_epoch: how many samples that is",
        )
    return entry.samples_per_epoch


def _match_modes(entry: BoardEntry, modes: Numbers, where: str) -> NDArray[np.bool_]:
    """Return whether each mode is one of the entry's `modes`; ConfigError: one that it lacks."""
    is_chosen = np.zeros(len(modes), bool)
    for named in entry.modes:
        if unknown := named.keys() - {*MODE_PARTS}:
            raise ConfigError(
                f"modes: unknown part {min(unknown)!r}", where=where, allowed=MODE_PARTS
            )
        is_match = np.ones(len(modes), bool)
        for part, value in named.items():
            is_match &= np.isclose(modes[:, MODE_PARTS.index(part)], value, rtol=MHZ_WITHIN)
        if not is_match.any():
            steps = {p: np.unique(modes[:, MODE_PARTS.index(p)]) for p in named}
            raise ConfigError(
                "its table has no mode "
                + ", ".join(f"{part} {value:g}" for part, value in named.items()),
                where=where,
                allowed="; ".join(
                    f"{part}: {', '.join(f'{step:g}' for step in steps[part])}" for part in named
                ),
            )
        is_chosen |= is_match
    return is_chosen


def _predict_grid(
    grid: Grid, table: ModeTable, where: str
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return modes of a grid and what `predict_modes` expects; ConfigError: an unknown device."""
    kind = table.key.device
    if kind not in KINDS:
        raise ConfigError(
            f"the modes of {kind} are not known, so none can be predicted",
            where=where,
            allowed=KINDS,
            do="leave `grid` out: it chooses among the modes of its table",
        )
    clocks = mode_rows(
        _with_strongest(grid, lambda grid: grid_modes(grid, kind, steps_of_kind(kind)))
    )
    modes = np.column_stack([clocks, np.zeros(len(clocks))])
    return modes, *predict_modes(observations_of(table), modes)


def _with_strongest(grid: Grid | None, modes_of: Callable[[Any], Sequence[Any]]) -> list[Any]:
    """Return the modes of a grid; a draw also has the strongest of those that it was drawn from."""
    modes = [*modes_of(grid)]
    if grid is None or grid.random is None:
        return modes
    whole = modes_of(grid.model_copy(update={"random": None}))
    values = np.nan_to_num(np.array([[*mode] for mode in whole], np.float64))
    strongest = whole[(values / values.max(0).clip(1e-9)).sum(1).argmax()]
    return modes if strongest in modes else [*modes, strongest]


def predict_modes(rows: Observations, modes: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return expected times, s, and powers, W, of modes (n, 6), and the SD of the log times.

    The method that is recommended is fitted to what was observed in other modes.
    """
    method = load_method(RECOMMENDED)
    time, power = (method.fit(rows, Context(target)) for target in (TIME, POWER))
    return time.mean(modes), power.mean(modes), time.log_normal(modes)[1]


def _waiting_w(entry: BoardEntry, table: ModeTable, modes: Numbers, root: Path) -> Numbers:
    """Return the power while a board waits in each mode, W: given, or that of a simulated board.

    Raises ConfigError: `waiting_w` is no number, and the table is not of a simulated board.
    """
    where = f"board {entry.name}"
    if not isinstance(entry.waiting_w, str):
        return np.full(len(modes), entry.waiting_w)
    boards: dict[str, Any] = {}
    if table.key.provenance == "simulated":
        twin, devices = load_twin_with_modes([], root), Devices(root)
        boards = {devices.get(name, where).board: board for name, board in twin.boards.items()}
    if table.key.device not in boards:
        raise ConfigError(
            f"waiting_w is {entry.waiting_w}, and its table is not that of a simulated board",
            where=where,
            allowed="a number in watts",
        )
    state = IDLE_STATES[entry.waiting_w]
    board, clocks = boards[table.key.device], Clocks(*modes[:, :4].T)
    idle = idle_w(board, state, clocks, "module", twin.parameters)
    return np.broadcast_to(idle, len(modes)).astype(float)
