"""A fake board for tests: keep it running, break it, read its settings and its energy."""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from contextlib import contextmanager

from epochwatt.board.device.jetson import JetsonBoard
from epochwatt.board.device.kinds import EMC_CAPS
from epochwatt.errors import BoardError, ConfigError
from tests.fakeboard import board
from tests.fakeboard.model import FAULTS
from tests.fakeboard.tools.board_files import CPU, NVFANCONTROL
from tests.fakeboard.tree import PATHS, RUN

# Settings that a mode, locked clocks or the fan at full speed can change, as patterns.
_SETTINGS = (
    CPU + "cpu[0-9]*/online",
    CPU + "cpu[0-9]*/cpuidle/state*/disable",
    "var/lib/nvpmodel/status",
    *EMC_CAPS,
    NVFANCONTROL,
)


@functools.cache
def delivered(kind):
    """Start a board of a kind once, in a folder that goes with the tests; others are copies."""
    folder = tempfile.TemporaryDirectory(prefix=kind)
    board.make_board(folder.name, kind)
    return folder


def make_board(folder, kind):
    """Make a board in a new or empty folder, started in its default mode."""
    shutil.copytree(delivered(kind).name, folder, symlinks=True, dirs_exist_ok=True)
    made = FakeBoard(folder)
    made.files.write("proc/sys/kernel/random/boot_id", uuid.uuid4())
    return made


def settings_of(root, kind="agx_xavier", **changes):
    """Return the settings of the machine whose files lie in a folder."""
    medium = {"root": str(root), "mount": "", "block_device": ""}
    return {
        **{"backend": "fake", "root": str(root), "kind": kind, "unit": ""},
        **{"storage": medium, "power_source": "sysfs", "settle": None},
        **changes,
    }


def open_board(fake):
    """Return a fake board as a job opens it; clocks that are not met are not waited for."""
    opened = JetsonBoard(settings_of(fake.root, fake.kind.board.name, unit=fake.kind.serial))
    opened.patience_s = 0.0
    return opened


class FakeBoard(board.FakeBoard):
    """A board that was made before."""

    def set_fault(self, name, value=True):
        """Switch a fault of `model.FAULTS` on, or off with None, also while the board runs."""
        if name not in FAULTS:
            raise ConfigError(f"unknown fault {name!r}", allowed=FAULTS)
        path = self.root / RUN / "faults.json"
        faults = {**json.loads(path.read_text("utf-8")), name: value}
        kept = {key: setting for key, setting in faults.items() if setting is not None}
        new = path.with_suffix(".new")
        new.write_text(json.dumps(kept), "utf-8")
        new.replace(path)

    @contextmanager
    def live(self, load_of=None):
        """Run the board: it follows the load of a process tree (None: the caller's)."""
        words = [sys.executable, "-m", "tests.fakeboard", self.kind.name, str(self.root)]
        words += ["--load-of", str(load_of or os.getpid()), "--parent", str(os.getpid())]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}
        with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, text=True) as process:
            try:
                if process.stdout is None or not process.stdout.readline():
                    raise BoardError(f"the fake board in {self.root} does not start")
                yield self
            finally:
                process.terminate()

    def energy_j(self, begin_s, end_s):
        """Return the energy that the rails showed between two moments of the monotonic clock, J."""
        lines = (self.root / RUN / "power.csv").read_text("ascii").splitlines()[1:]
        steps = [tuple(map(float, line.split(","))) for line in lines]
        ends_s = [step[0] for step in steps[1:]] + [float("inf")]
        return sum(
            power_w * max(0.0, min(until_s, end_s) - max(from_s, begin_s))
            for (from_s, power_w), until_s in zip(steps, ends_s, strict=True)
        )

    def snapshot(self):
        """Return every setting that a restore has to put back: file -> content."""
        facts = self.files.facts
        names = [path for pattern in _SETTINGS for path in self._paths(pattern)]
        online = self.files.online()
        for folder, cpus in self.files.clusters():
            if set(cpus) & set(online):  # the clocks of a cluster that is off mean nothing
                names += self._paths(folder + "scaling_m??_freq")
                names += [folder + "scaling_governor", folder + "scaling_setspeed"]
        names += self._paths(facts["gpu"] + "/m??_freq")
        names += [
            facts["gpu"] + "/governor",
            *facts["caps"],
            self.files.emc.get("locked", self.files.emc["wanted"]),
        ]
        device = facts["gpu_device"]
        names += [device + "/railgate_enable", device + "/power/control"]
        names += self._paths(device + "/*_pg_mask")
        control = facts["fan"]["control"] or NVFANCONTROL
        if self.files.text(control) != "1":  # else the fan follows the temperature
            names.append(facts["fan"]["pwm"])
        return {name: self.files.text(name) for name in [*names, control]}

    def _paths(self, pattern):
        return sorted(str(path.relative_to(self.root)) for path in self.root.glob(pattern))


def board_of_environment():
    """Return the board whose folder `FAKE_BOARD` names, for a process of its own."""
    opened = JetsonBoard(settings_of(os.environ["FAKE_BOARD"]))
    opened.patience_s = 0.0
    return opened
