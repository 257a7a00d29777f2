"""What tests of training share: a board that writes down what is asked of it, data sets."""

from pathlib import Path

import pytest
import torch

from epochwatt.board.device.machine import Machine, outcome
from epochwatt.board.records.dataset_folder import folder_name
from epochwatt.board.training.data import open_dataset
from epochwatt.datasets import recipes
from epochwatt.datasets.make import make_dataset


class RecordingMachine(Machine):
    """A board without files; it writes into one, so that forked processes count too."""

    backend = "fake"

    def __init__(self, log: Path, **fails: Exception) -> None:
        super().__init__({"root": "/no-such-board", "power_source": "sysfs", "settle": None})
        self.log = log
        self.fails = fails
        self.left = False
        self.busy = [2.5]  # at each look, %; the last one stays
        log.touch()

    @property
    def calls(self) -> list[str]:
        """What was asked, in order."""
        return self.log.read_text("utf-8").split()

    def say(self, word: str) -> None:
        """Write a word down; raise what the test wants there."""
        with self.log.open("a", encoding="utf-8") as handle:
            handle.write(f"{word}\n")
        if word in self.fails:
            raise self.fails[word]

    def describe(self):
        return {"machine": {"board": "none"}, "software": {}, "host_state": {}}

    def check(self):
        self.say("check")

    def left_over(self):
        return self.left

    def busy_pct(self, over_s):
        self.say("busy")
        return self.busy.pop(0) if len(self.busy) > 1 else self.busy[0]

    def apply(self, mode, dvfs):
        self.asked = mode, dvfs
        self.say("apply")
        return outcome(mode, dvfs, resolved=dict(mode))

    def restore(self):
        self.left = False
        self.say("restore")

    def events(self):
        self.say("events")
        return {"throttle": len(self.calls)}


@pytest.fixture
def board(tmp_path):
    """A board that says yes to everything."""
    return RecordingMachine(tmp_path / "calls")


@pytest.fixture
def one_thread():
    """Results and times that do not depend on who else uses the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def opened(tmp_path_factory):
    """Return a function that opens a small data set; each is made once."""
    root = tmp_path_factory.mktemp("sets")

    def call(dataset, source, scale):
        recipe = recipes.recipe(dataset, source, scale)
        folder = root / folder_name(dataset, source, scale)
        if not folder.exists():
            make_dataset(folder, recipe)
        named = {"dataset": dataset, "dataset_source": source, "dataset_scale": scale}
        return open_dataset(str(root), {**named, "recipe": recipe})[0]

    return call
