"""What a measuring program says at its end, and the threads that it takes at its beginning."""

import errno
import multiprocessing
import os
import subprocess
import sys
import traceback

import pytest
from torch.utils.data import DataLoader

from epochwatt.board.training.exit_status import SET_BY_SNAKEMAKE, exit_status, take_the_board


class Failing:
    """A data set whose samples cannot be read."""

    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 1

    def __getitem__(self, index):
        raise self.error


def reading(error, num_workers):
    """Return what reads a sample that raises `error`, in a worker or in this process."""
    loader = DataLoader(
        Failing(error),
        num_workers=num_workers,
        multiprocessing_context="fork" if num_workers else None,
    )

    def read():
        try:
            list(loader)
        except Exception as failure:  # whose frames hold the loader, and so its worker
            traceback.clear_frames(failure.__traceback__)
            assert not multiprocessing.active_children()
            raise

    return read


@pytest.mark.parametrize(
    ("number", "num_workers"), [(errno.EMFILE, 0), (errno.ENOMEM, 0), (errno.EIO, 1)]
)
def test_what_the_machine_refuses_is_a_message(number, num_workers, capsys):
    error = OSError(number, os.strerror(number), "/pictures/1.jpg")
    assert exit_status("run", reading(error, num_workers)) == 1
    said = capsys.readouterr().err
    assert "the machine does not give what a measurement needs" in said
    assert os.strerror(number) in said


@pytest.mark.parametrize("num_workers", [pytest.param(0, marks=pytest.mark.thorough), 1])
@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file or directory", "/pictures/1.jpg"),
        OSError("cannot identify image file"),  # as PIL says of a picture that is none
        RuntimeError("stack expects each tensor to be equal size"),
    ],
    ids=["path", "picture", "shape"],
)
def test_a_mistake_in_code_of_our_own_keeps_its_traceback(error, num_workers):
    """Memory, disk and limits, which the message above names, have no part in it."""
    with pytest.raises(type(error), match=r"1\.jpg|image|equal size"):
        exit_status("run", reading(error, num_workers))


def test_what_snakemake_allows_is_forgotten(monkeypatch):
    environment = {"OMP_DYNAMIC": "false", **dict.fromkeys(SET_BY_SNAKEMAKE, "1")}
    monkeypatch.setattr(os, "environ", environment)
    take_the_board()
    assert environment == {"OMP_DYNAMIC": "false"}


LEAVING = """
import atexit
from epochwatt.board.training.exit_status import leave

class Module:
    def __del__(self):
        print("taken apart")

module = Module()
atexit.register(print, "tidied up")
print("measured")
leave(4)
"""


def test_a_program_leaves_without_being_taken_apart():
    """Loader workers' folders are tidied up by `atexit`, and what was printed is not lost."""
    done = subprocess.run([sys.executable, "-c", LEAVING], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 4
    assert done.stdout.split("\n") == ["measured", "tidied up", ""]
