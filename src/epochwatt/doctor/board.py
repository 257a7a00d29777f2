"""Check a Jetson board: identity, clocks, power modes, root helper, alarms."""

from collections.abc import Iterator
from pathlib import Path

from epochwatt.board.device import alarms, board_files, clocks
from epochwatt.board.device.identity import module
from epochwatt.board.device.jetson import JetsonBoard
from epochwatt.board.device.root_helper import VERSION
from epochwatt.columns import CLOCKS
from epochwatt.doctor.finding import Finding, info, ok, problem, warning
from epochwatt.doctor.subject import Subject
from epochwatt.errors import BoardError, ConfigError
from epochwatt.text import counted

_SETUP = "install it once: make setup-jetson (docs/explanation/root-helper.md lists what it may do)"
_CLOCKS = "clocks"
_MODES = "power modes"
_HELPER = "root helper"


def identity(subject: Subject, board: JetsonBoard) -> Iterator[Finding]:
    """Check that the board is of the kind that the device file describes."""
    identity, wanted = board.identity, subject.device.board
    if identity is None:
        where = Path(board.root, "proc/device-tree")
        yield problem(
            "board",
            f"no Jetson board is described in {where}; {subject.file} expects {wanted}",
            "run it on the board, or choose another device: --device NAME",
        )
        return
    release = f"L4T {identity.l4t or 'unknown'}, JetPack {identity.jetpack or 'unknown'}"
    kind = identity.kind
    if kind == "unknown" and module(board.root):
        kind += f": {module(board.root)}"
    yield ok("board", f"{identity.model} ({kind}), {release}")
    if identity.kind != wanted:
        yield problem(
            "board",
            f"{subject.file} expects {wanted}; this board is {identity.kind}",
            "use the device file of this board: docs/how-to/add-a-board.md",
        )
    if board.backend == "fake":
        yield info("board", "a fake board: its runs are never counted as measured")


def unit(subject: Subject, names: list[str]) -> Iterator[Finding]:
    """Check whether this machine, by one of its `names`, is a unit that the device file names."""
    units = subject.device.units
    here = " or ".join(names)
    bound = [instance for instance, name in units.items() if name in names]
    if bound:
        yield ok("unit", f"this is {' and '.join(bound)} ({here})")
    elif units:
        yield warning(
            "unit",
            f"{subject.file} has other machines as units {', '.join(units)}; this one is {here}",
            "add it to `units` there; runs of units elsewhere are skipped here",
        )
    elif len(subject.device.instances) > 1:
        yield info(
            "unit",
            f"`units` is empty; this machine is {here}",
            f"with several boards of this kind, name them in `units` of {subject.file}",
        )


def tables(board: JetsonBoard) -> Iterator[Finding]:
    """List the steps of each clock."""
    for key, steps_mhz in board.steps_mhz().items():
        name = key.partition("_")[0].upper()
        if steps_mhz:
            n_steps = counted(len(steps_mhz), "steps")
            yield ok(_CLOCKS, f"{name}: {n_steps}, {steps_mhz[0]:g} to {steps_mhz[-1]:g} MHz")
        else:
            yield warning(
                _CLOCKS,
                f"{name}: the steps of this clock are unknown",
                f"leave {key} out of power modes, or use nvpmodel modes by name; attach "
                "`epochwatt bug-report` to an issue and we add them",
            )


def modes(subject: Subject, board: JetsonBoard) -> Iterator[Finding]:
    """List the modes of nvpmodel, and check that the board has those of the device file."""
    path = Path(board.root, board_files.NVPMODEL_CONF)
    try:
        conf = board_files.board_conf(board.root)
        listed = ", ".join(f"{mode.name} ({mode.id})" for mode in conf.modes)
        yield ok(_MODES, f"nvpmodel: {listed}")
    except ValueError as error:
        do = "install NVIDIA's package nvidia-l4t-nvpmodel"
        if path.exists():
            do = "correct it; if it is NVIDIA's own, open an issue with that line"
        yield problem(_MODES, f"{path}: {error}", do)
    impossible = list(_impossible_modes(subject, board))
    for name, why in impossible:
        yield warning(_MODES, f"{name} of {subject.file}: {why}", "correct it there")
    n_possible = len(subject.device.power_modes) - len(impossible)
    if n_possible:
        modes_here = counted(n_possible, "modes")
        yield ok(_MODES, f"possible on this board: {modes_here} of {subject.file}")


def _impossible_modes(subject: Subject, board: JetsonBoard) -> Iterator[tuple[str, str]]:
    """Yield each mode of the device file that this board does not have, and why."""
    for name, mode in subject.device.power_modes.items():
        try:
            board.resolved(mode.model_dump(exclude_none=True))
        except (ConfigError, BoardError) as error:
            yield name, str(error).replace("\n ", ";")


def helper(board: JetsonBoard) -> Iterator[Finding]:
    """Check that the root helper answers, and report the mode and clocks that it reads."""
    try:
        status = board.ask_helper("status")
    except BoardError as error:
        yield problem(_HELPER, error.problem, str(error.do or _SETUP))
        yield from _read_clocks(
            clocks.summary(board_files.read_clocks(board.root)), by_helper=False
        )
        return
    yield ok(_HELPER, "it answers without a password: modes, clocks and fan can be set")
    if status["version"] != VERSION:
        yield warning(
            _HELPER,
            f"version {status['version']} is installed; this checkout has {VERSION}",
            "update it: make setup-jetson",
        )
    mode = status["nvpmodel"]
    yield info(_MODES, f"the board is in mode {mode['name']} ({mode['id']})")
    yield from _read_clocks(clocks.summary(board.ask_helper("read-clocks")), by_helper=True)


def _read_clocks(values: dict[str, object], by_helper: bool) -> Iterator[Finding]:
    """List the clocks that can be read, and those that the root helper or this user cannot."""
    how = "through the helper" if by_helper else "by this user"
    now = ", ".join(f"{key} {values[key]:g}" for key in CLOCKS if values[key] is not None)
    yield ok(_CLOCKS, f"read {how}: {now}")
    if values["held_back"]:
        mhz, shown_mhz = values["cpu_mhz"], values["cpu_shown_mhz"]
        message = f"the CPUs run at {mhz:g} MHz; cpufreq shows {shown_mhz:g}"
        yield warning("throttling", message, clocks.HELD_BACK_DO)
    missing = [key for key in CLOCKS if values[key] is None]
    if missing:
        yield info(
            _CLOCKS,
            f"cannot be read {how}: {', '.join(missing)}",
            "runs that set them are flagged mode_not_verified"
            if by_helper
            else "the root helper can read them: see above",
        )


def alarms_now(board: JetsonBoard) -> Iterator[Finding]:
    """Check that the board does not slow itself down at this moment."""
    for what, alarm, do in (
        ("throttling", alarms.throttling(board.root), "let it cool down; check fan and heat sink"),
        ("over-current", alarms.over_current(board.root), "use a stronger power supply"),
    ):
        if alarm is None:
            yield info(what, "not reported by this board: such epochs are not flagged")
            continue
        events = f"{counted(alarm.events, 'events')} since boot"
        if alarm.active:
            yield warning(what, f"now, and {events}", do)
        else:
            yield ok(what, f"none now; {events}")


def left_over(board: JetsonBoard) -> Iterator[Finding]:
    """Check that no settings of a killed run are left."""
    if board.left_over():
        yield warning(
            _HELPER,
            "power mode and clocks are those of a run that is active or was killed",
            "the next run restores them first; by hand: sudo epochwatt-helper restore",
        )
