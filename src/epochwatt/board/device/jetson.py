"""Control a Jetson board: power mode, clocks, fan, alarms (board side: Python 3.6 grammar).

The root helper (`root_helper.py`, installed by `make setup-jetson`) does what needs root. Every
setting is read back and compared, because exit codes of nvpmodel prove nothing and clocks that are
in no table are rounded silently (docs/reference/sources.md).
"""

import json
import logging
import os
import re
import subprocess
import time
from typing import Dict, List, Sequence, Tuple

from epochwatt.board.device import alarms, board_files, clocks, identity
from epochwatt.board.device.cpu_clocks import undisturbed
from epochwatt.board.device.frequencies import resolve
from epochwatt.board.device.machine import Machine, outcome
from epochwatt.board.device.root_helper import FOLDER, INSTALLED, REBOOT, REFUSED, STATE
from epochwatt.board.records.files import csv_rows
from epochwatt.board.records.shapes import Document
from epochwatt.errors import BoardError, ConfigError, RebootNeeded

log = logging.getLogger(__name__)

TOOLS = ("usr/sbin/nvpmodel", "usr/bin/jetson_clocks", "usr/bin/tegrastats")
STAND_IN = b"epochwatt stand-in"  # in the first 512 bytes of a tool of a fake board

_ReadBack = Tuple[Document, Dict[str, float], List[str]]


class JetsonBoard(Machine):
    """A Jetson board, or a folder and stand-in tools that look like one (see `Machine`)."""

    patience_s = 5.0  # clocks need a moment to follow

    def __init__(self, settings: Document) -> None:
        super().__init__(settings)
        self.identity = identity.identify(self.root)
        self.backend = "fake" if self._why_fake() else "jetson"
        self._n_active = {"throttle": 0, "over_current": 0}  # summed over calls of `events`
        self._fan = ""  # how this process set it; empty: it did not

    def _why_fake(self) -> str:
        """Return why this board is a fake one; empty: it is real."""
        if os.path.realpath(self.root) != "/":
            return f"its files lie in {self.root}"
        for tool in (os.path.join(self.root, name) for name in TOOLS):
            try:
                with open(tool, "rb") as handle:
                    if STAND_IN in handle.read(512):
                        return f"{tool} is a stand-in"
            except OSError:
                pass
        return ""

    def describe(self) -> Document:
        """Return `host.describe` with the board, its software and its tables of clocks."""
        description = super().describe()
        machine, board = description["machine"], self.identity
        machine["n_cpus"] = len(board_files.cpus(self.root))  # also those that are offline
        if board is not None:
            machine.update(board=board.kind, model=board.model, serial=board.serial)
            description["software"].update(l4t=board.l4t, jetpack=board.jetpack)
        for key, steps_mhz in self.steps_mhz().items():
            machine[key.replace("_mhz", "_steps_mhz")] = steps_mhz
        return description

    def steps_mhz(self) -> Dict[str, List[float]]:
        """Return the clocks, MHz, that the board can be set to; empty: its table is not known."""
        tables = board_files.tables(self.root)
        return {
            "cpu_mhz": [khz / 1e3 for khz in tables.cpu_khz],
            "gpu_mhz": [hz / 1e6 for hz in tables.gpu_hz],
            "emc_mhz": [hz / 1e6 for hz in tables.emc_hz],
        }

    def check(self) -> None:
        """Check backend, kind of board, unit and storage medium, as `Machine.check` says."""
        wanted = self.settings["kind"]
        if self.identity is None:
            raise BoardError(
                "no Jetson board is described in {}; nothing was measured".format(
                    os.path.join(self.root, "proc/device-tree")
                ),
                do=f"run it on a board of kind {wanted}, which the row is of",
            )
        if self.backend != self.settings["backend"]:
            raise BoardError(
                "the row is of backend {}, but this board is {} ({}); nothing was measured".format(
                    self.settings["backend"], self.backend, self._why_fake() or "a real one"
                ),
                do="correct `sysroot` in config/devices/",
            )
        if self.identity.kind != wanted:
            is_known = self.identity.kind != "unknown"
            name = self.identity.model if is_known else identity.module(self.root)
            raise BoardError(
                f"the row is of a board of kind {wanted}; nothing was measured",
                found="{} ({})".format(self.identity.kind, name or self.identity.model),
                do="measure it on such a board, or correct `board` in config/devices/",
            )
        super().check()

    def unit_names(self) -> List[str]:
        """Return the names by which a row may be bound to this board: serial number, host name."""
        serial = self.identity.serial if self.identity is not None else ""
        return ([serial] if serial else []) + super().unit_names()

    def apply(self, mode: Document, dvfs: str) -> Document:
        """Set a power mode and the fan to its maximum (see `Machine.apply`).

        Settings left over from an earlier process are put back first. An empty mode changes nothing
        with DVFS on, and pins the clocks of the present mode with DVFS off.
        """
        if self.left_over():
            log.warning("the board still has settings of an earlier process; putting them back")
            self.restore()
        if not mode and dvfs == "on":
            now = clocks.summary(board_files.read_clocks(self.root))
            return outcome(mode, dvfs, read_back=now)
        applied = self.change(mode, dvfs)
        unmet = applied.pop("unmet")
        if unmet:
            raise BoardError(
                "the board did not take the power mode; nothing was measured",
                found=clocks.complaints(unmet, applied["resolved"]),
                do=clocks.HELD_BACK_DO
                if applied["read_back"]["held_back"]
                else "look at `sudo nvpmodel -q --verbose` and `sudo jetson_clocks --show`",
            )
        return applied

    def _set(self, mode: Document, dvfs: str) -> Document:
        """Set a mode by the helper and, with DVFS off, pin its clocks; return its `resolved`.

        Raises BoardError: nvpmodel did not switch to it.
        """
        resolved = self.resolved(mode)
        if "nvpmodel" in mode:
            wanted = resolved["nvpmodel_id"]
            output = self.ask_helper("named-mode", wanted).get("output", "")
            now = self.ask_helper("status")["nvpmodel"]
            _check_output(f"mode {wanted}", output)
            if now["id"] != wanted:
                raise BoardError(
                    f"nvpmodel did not switch to mode {wanted}",
                    found="mode {} ({})".format(now["id"], now["name"])
                    + (output and f"; {output}"),
                    do=f"try it by hand: sudo nvpmodel -m {wanted}",
                )
        elif mode:
            answer = self.ask_helper("custom-mode", *clocks.exact(resolved))
            _check_output("the mode of these clocks", answer.get("output", ""))
        if dvfs == "off":
            self.ask_helper("pin-clocks")
            if not {"cpu_mhz", "gpu_mhz"} <= set(resolved):
                resolved = dict(clocks.pinned(self.ask_helper("read-clocks")), **resolved)
        return resolved

    def check_modes(self, modes: Sequence[Document], dvfs: str) -> None:
        """Check that nvpmodel of this board can set each mode (see `Machine.check_modes`)."""
        tables, conf = board_files.tables(self.root), self._conf()
        for mode in modes:
            try:
                board_files.custom_conf(conf, *clocks.exact(self.resolved(mode)), tables)
            except (ConfigError, ValueError) as error:
                raise ConfigError(
                    f"this board has no mode {mode}: {error}; nothing was measured",
                    do="take it out of the grid in config/sweeps.yaml",
                ) from error

    def change(self, mode: Document, dvfs: str) -> Document:
        """Set a mode of a sweep (see `Machine.change`)."""
        resolved = self._set(mode, dvfs)
        self._fan = self._fan or self._fan_to_maximum()  # it stays so for all modes of a sweep
        readings, unmet, unverified = self._read_back(resolved, dvfs)
        return outcome(
            mode,
            dvfs,
            resolved=resolved,
            read_back=clocks.summary(readings),
            unverified=unverified,
            fan=self._fan,
            unmet=unmet,
        )

    def unmet(self, applied: Document) -> Dict[str, float]:
        """Return what is not as a mode wants it now (see `Machine.unmet`)."""
        return self._compared(applied["resolved"], applied["dvfs"])[1]

    def resolved(self, mode: Document) -> Document:
        """Return the steps that a mode's nominal clocks stand for, or a named mode's limits.

        Raises ConfigError where the board has no such mode, step or number of cores, BoardError
        where its nvpmodel.conf cannot be read.
        """
        if "nvpmodel" in mode:
            named = self._named_mode(mode["nvpmodel"])
            clocks.need_same(mode, named)
            return named
        steps = self.steps_mhz()
        resolved: Document = {
            key: resolve(key, mode[key], steps[key]) for key in steps if key in mode
        }
        if "cores" in mode:
            n_cpus = len(board_files.cpus(self.root))
            if not 1 <= mode["cores"] <= n_cpus:
                raise ConfigError(
                    "cores: the board does not have that many",
                    found=str(mode["cores"]),
                    allowed=f"1 to {n_cpus}",
                )
            resolved["cores"] = mode["cores"]
        return resolved

    def _named_mode(self, name: str) -> Document:
        """Return id and limits of a mode of the board's own nvpmodel.conf."""
        path = os.path.join(self.root, board_files.NVPMODEL_CONF)
        conf = self._conf()
        for mode in conf.modes:
            if mode.name == name:
                limits = clocks.limits(mode, self.steps_mhz())
                kind = self.identity.kind if self.identity is not None else ""
                share = board_files.gpu_share(conf, mode, kind)
                if share != 1:  # None: the number of parts that are gated off is not known
                    limits["gpu_share"] = share
                return dict(limits, nvpmodel=name, nvpmodel_id=mode.id)
        raise ConfigError(
            f"nvpmodel: this board has no power mode {name}",
            where=path,
            allowed=[mode.name for mode in conf.modes],
        )

    def _conf(self) -> board_files.Conf:
        try:
            return board_files.board_conf(self.root)
        except ValueError as error:
            path = os.path.join(self.root, board_files.NVPMODEL_CONF)
            raise BoardError(f"{path}: {error}") from error

    def _fan_to_maximum(self) -> str:
        """Turn the fan to its maximum; return `maximum`, or why not: there are boards without."""
        try:
            self.ask_helper("fan-max")
        except BoardError as error:
            log.warning("the fan is left as it is: %s", error)
            return error.problem
        return "maximum"

    def _read_back(self, wanted: Document, dvfs: str) -> _ReadBack:
        """Return the clocks read back, what is not met after `patience_s`, what cannot be read."""
        deadline_s = time.monotonic() + self.patience_s
        while True:
            readings, unmet, unread = self._compared(wanted, dvfs)
            if not unmet or time.monotonic() >= deadline_s:
                break
            time.sleep(0.5)
        if unread:
            log.warning("%s cannot be read back on this board", ", ".join(unread))
        return readings, unmet, unread

    def _compared(self, wanted: Document, dvfs: str) -> _ReadBack:
        """Read the clocks by the helper; return them, what is not met, what cannot be read."""
        emc_top_mhz = max(self.steps_mhz()["emc_mhz"], default=None)
        readings = self.ask_helper("read-clocks")
        return (readings, *clocks.compare(readings, wanted, dvfs, emc_top_mhz))

    def restore(self) -> None:
        """Put back mode, clocks and fan as the first `apply` found them.

        It may be called again. SIGINT, SIGTERM and SIGHUP do not interrupt it: they arrive when it
        is done. Raises BoardError, RebootNeeded.
        """
        with undisturbed():
            if self.left_over():
                self.ask_helper("restore")
            self._fan = ""

    def left_over(self) -> bool:
        """Return whether the helper has settings that are not put back yet."""
        return os.path.lexists(os.path.join(self.root, FOLDER, STATE))

    def drop_page_cache(self, paths: List[str]) -> str:
        """Empty the page cache through the helper; without it as any machine does."""
        try:
            self.ask_helper("drop-caches")
        except BoardError as error:
            log.warning("%s", error)
            return super().drop_page_cache(paths)
        return "dropped"

    def ask_helper(self, verb: str, *numbers: int) -> Document:
        """Run a verb of the root helper and return its answer.

        It runs in another session, so that Ctrl-C or a lost ssh connection does not interrupt it;
        it limits its run time itself.

        Raises BoardError: it is not installed or not allowed, it refused, or it failed;
        RebootNeeded: the board has to be restarted first.
        """
        helper = os.path.join(self.root, INSTALLED)
        command = [helper, verb] + [str(number) for number in numbers]
        if os.path.realpath(self.root) == "/" and os.geteuid() != 0:
            command = ["sudo", "-n"] + command
        if not os.path.exists(helper):
            raise BoardError(
                f"{helper} is missing, and {verb} needs it",
                do="install it once: make setup-jetson (see docs/explanation/root-helper.md)",
            )
        try:
            with undisturbed():
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    universal_newlines=True,
                    start_new_session=True,
                    check=False,
                )
        except (OSError, UnicodeError) as error:
            raise BoardError("`{}` cannot be run: {}".format(" ".join(command), error)) from error
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            answer = {}  # sudo asked for a password
        answer = answer if isinstance(answer, dict) else {}
        if done.returncode == 0 and answer.get("ok"):
            return answer
        reason = answer.get("error") or done.stderr.strip() or "no reason given"
        if done.returncode == REBOOT:
            raise RebootNeeded(
                f"the board has to be restarted first: {reason}",
                do="then start the same command again; it resumes where it stopped",
            )
        how = "was refused" if done.returncode == REFUSED else "failed"
        raise BoardError(
            "`{}` {}: {}".format(" ".join(command), how, reason),
            # without an answer it was sudo that spoke
            do=None if answer else "allow it to this user once: make setup-jetson, as this user",
        )

    def events(self) -> Dict[str, int]:
        """Return counters (see `Machine.events`).

        Not every alarm has a counter in the kernel, so one that is active counts at each call.
        """
        counters = super().events()
        for key, alarm in (
            ("throttle", alarms.throttling(self.root)),
            ("over_current", alarms.over_current(self.root)),
        ):
            if alarm is not None:
                self._n_active[key] += alarm.active
                counters[key] = alarm.events + self._n_active[key]
        return counters


_NOT_SET = r"failed to (set power mode|parse)|(no request for|bad) power mode|ignoring request"


def _check_output(what: str, output: str) -> None:
    """Check nvpmodel's output; raises BoardError with it: it says that it did not set the mode.

    `what`: the mode, for the message
    """
    if re.search(_NOT_SET, output):
        rows = csv_rows(__file__, "nvpmodel_remedies.csv")
        remedies = (do for pattern, do in rows if re.search(pattern, output))
        raise BoardError(
            f"nvpmodel did not set {what}; nothing was measured",
            found=output,
            do=next(remedies, "try it by hand: sudo nvpmodel -m ID"),
        )
