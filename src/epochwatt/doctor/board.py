"""The self-test of a Jetson board: which it is, its clocks and power modes, the root helper."""

from collections.abc import Iterator
from pathlib import Path

from epochwatt.device import alarms, board_files, clocks
from epochwatt.device.frequencies import resolve
from epochwatt.device.jetson import JetsonBoard
from epochwatt.device.root_helper import VERSION
from epochwatt.doctor.finding import Finding
from epochwatt.doctor.subject import Subject
from epochwatt.errors import BoardError, ConfigError
from epochwatt.text import counted

_STEPS = ("cpu_mhz", "gpu_mhz", "emc_mhz")
_SETUP = "install it once: make setup-jetson (docs/root-helper.md says what it may do)"
_CLOCKS = "clocks"
_MODES = "power modes"
_HELPER = "root helper"


def identity(subject: Subject, board: JetsonBoard) -> Iterator[Finding]:
    """Which board it is, and whether it is the one that the device file speaks of."""
    found, wanted = board.identity, subject.device.board
    if found is None:
        where = Path(board.root, "proc/device-tree")
        yield Finding(
            "problem",
            "board",
            f"no Jetson board is described in {where}, and {subject.file} is of a {wanted}",
            "run it on the board, or name another device: --device NAME",
        )
        return
    release = f"L4T {found.l4t or 'not known'}, JetPack {found.jetpack or 'not known'}"
    yield Finding("ok", "board", f"{found.model} ({found.kind}), {release}")
    if found.kind != wanted:
        yield Finding(
            "problem",
            "board",
            f"{subject.file} is of board {wanted}, this one is of kind {found.kind}",
            "use the device file of this board: docs/add-a-board.md",
        )
    if board.backend == "fake":
        yield Finding("info", "board", "a fake board: its runs are never counted as measured")


def unit(subject: Subject, names: list[str]) -> Iterator[Finding]:
    """Whether this machine, by serial number or host name, is a unit that a row may be bound to."""
    units = subject.device.units
    here = " or ".join(names)
    bound = [instance for instance, name in units.items() if name in names]
    if bound:
        yield Finding("ok", "unit", f"this is {' and '.join(bound)} ({here})")
    elif units:
        yield Finding(
            "warning",
            "unit",
            f"{subject.file} binds {', '.join(units)} to other machines; this one is {here}",
            "add it to `units` there; runs of units that are bound elsewhere are left alone here",
        )
    elif len(subject.device.instances) > 1:
        yield Finding(
            "info",
            "unit",
            f"no unit is bound to a machine; this one is {here}",
            f"with several boards of this kind, name each under `units` in {subject.file}",
        )


def tables(board: JetsonBoard) -> Iterator[Finding]:
    """Which steps the clocks have."""
    for key, steps_mhz in _steps_mhz(board).items():
        name = key.partition("_")[0].upper()
        if steps_mhz:
            n_steps = counted(len(steps_mhz), "steps")
            found = f"{name}: {n_steps}, {steps_mhz[0]:g} to {steps_mhz[-1]:g} MHz"
            yield Finding("ok", _CLOCKS, found)
        else:
            yield Finding(
                "warning",
                _CLOCKS,
                f"{name}: the steps of this clock are not known",
                f"leave {key} out of power modes, or use modes of nvpmodel by name; "
                "`epochwatt bundle` in an issue lets us add them",
            )


def _steps_mhz(board: JetsonBoard) -> dict[str, list[float]]:
    known = board_files.tables(board.root)
    return {
        "cpu_mhz": [khz / 1e3 for khz in known.cpu_khz],
        "gpu_mhz": [hz / 1e6 for hz in known.gpu_hz],
        "emc_mhz": [hz / 1e6 for hz in known.emc_hz],
    }


def modes(subject: Subject, board: JetsonBoard) -> Iterator[Finding]:
    """Which modes nvpmodel knows, and whether the board has those of the device file."""
    path = Path(board.root, board_files.NVPMODEL_CONF)
    try:
        conf = board_files.parse_conf(board_files.text(board.root, board_files.NVPMODEL_CONF))
        named = {mode.name: mode.id for mode in conf.modes}
        listed = ", ".join(f"{name} ({number})" for name, number in named.items())
        yield Finding("ok", _MODES, f"nvpmodel: {listed}")
    except ValueError as error:
        named = {}
        yield Finding(
            "problem",
            _MODES,
            f"{path}: {error}",
            "NVIDIA's package nvidia-l4t-nvpmodel installs it",
        )
    refused = list(_refused(subject, board, named))
    for name, why in refused:
        yield Finding("warning", _MODES, f"{name} of {subject.file}: {why}", "correct it there")
    n_good = len(subject.device.power_modes) - len(refused)
    if n_good:
        found = f"possible on this board: {counted(n_good, 'modes')} of {subject.file}"
        yield Finding("ok", _MODES, found)


def _refused(
    subject: Subject, board: JetsonBoard, named: dict[str, int]
) -> Iterator[tuple[str, str]]:
    """Yield each mode of the device file that this board cannot be in, and why."""
    steps_mhz, n_cpus = _steps_mhz(board), len(board_files.cpus(board.root))
    for name, mode in subject.device.power_modes.items():
        told = mode.model_dump(exclude_none=True)
        try:
            for key in _STEPS:
                if key in told:
                    resolve(key, told[key], steps_mhz[key])
        except ConfigError as error:
            yield name, str(error).replace("\n ", ";")
            continue
        if told.get("cores", 0) > n_cpus:
            yield name, f"cores: {told['cores']} of a board that has {n_cpus}"
        elif mode.nvpmodel and mode.nvpmodel not in named:
            yield name, f"nvpmodel: no power mode {mode.nvpmodel}"


def helper(board: JetsonBoard) -> Iterator[Finding]:
    """Whether the root helper can be called, and what it reads of mode and clocks."""
    try:
        status = board.ask_helper("status")
    except BoardError as error:
        do = _SETUP
        if "password" in str(error):
            do = "let this user call it without one: make setup-jetson, as this user"
        yield Finding("problem", _HELPER, str(error).partition(". Install")[0], do)
        found = clocks.told(board_files.read_clocks(board.root))
        yield from _readable(found, "by this user")
        return
    yield Finding("ok", _HELPER, "it answers without a password: modes, clocks and fan can be set")
    if status["version"] != VERSION:
        yield Finding(
            "warning",
            _HELPER,
            f"version {status['version']} is installed, this checkout has {VERSION}",
            "install it anew: make setup-jetson",
        )
    mode = status["nvpmodel"]
    yield Finding("info", _MODES, f"the board is in mode {mode['name']} ({mode['id']})")
    yield from _readable(clocks.told(board.ask_helper("read-clocks")), "through the helper")


def _readable(found: dict[str, object], how: str) -> Iterator[Finding]:
    keys = ("cores", "cpu_mhz", "gpu_mhz", "emc_mhz")
    now = ", ".join(f"{key} {found[key]:g}" for key in keys if found[key] is not None)
    yield Finding("ok", _CLOCKS, f"read {how}: {now}")
    missing = [key for key in keys if found[key] is None]
    if missing:
        yield Finding(
            "info",
            _CLOCKS,
            f"cannot be read {how}: {', '.join(missing)}",
            "runs that set it are flagged mode_not_verified"
            if "helper" in how
            else "the root helper reads them: see above",
        )


def alarms_now(board: JetsonBoard) -> Iterator[Finding]:
    """Whether the board slows itself down at this moment."""
    for what, alarm, do in (
        ("throttling", alarms.throttling(board.root), "let it cool down; see to fan and heat sink"),
        ("over-current", alarms.over_current(board.root), "use a stronger power supply"),
    ):
        if alarm is None:
            yield Finding("info", what, "this board does not tell: such epochs are not flagged")
            continue
        events = f"{counted(alarm.events, 'events')} since the start"
        if alarm.active:
            yield Finding("warning", what, f"now, and {events}", do)
        else:
            yield Finding("ok", what, f"none now; {events}")


def left_over(board: JetsonBoard) -> Iterator[Finding]:
    """Whether settings of a run that was killed still stand."""
    if board.left_over():
        yield Finding(
            "warning",
            _HELPER,
            "power mode and clocks of a run that goes on or was killed stand",
            "the next run puts them back first; by hand: sudo epochwatt-helper restore",
        )
