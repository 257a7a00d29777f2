"""A torch that cannot be imported: the job says the same as `epochwatt doctor`, in three lines."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from epochwatt.board.device import host
from epochwatt.board.training.exit_status import exit_status
from epochwatt.board.training.job import run_part
from epochwatt.board.training.session import explained
from epochwatt.doctor import examine
from epochwatt.doctor.finding import finding_lines
from epochwatt.doctor.subject import choose, libraries
from epochwatt.errors import TrainingError

ROWS = list(
    csv.DictReader(
        (Path(__file__).parents[3] / "data/failures.csv").read_text("utf-8").splitlines()
    )
)
AT_IMPORT = [row for row in ROWS if not row["message"].startswith(("jtop", "DataLoader"))]


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Put a package of that name first on the path, whose code is this."""

    def be(code, name="torch"):
        folder = tmp_path / "first" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(code)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "first"))
        monkeypatch.syspath_prepend(tmp_path / "first")
        monkeypatch.delitem(sys.modules, name, raising=False)
        for module in ("session", "sweep_session"):
            monkeypatch.delitem(sys.modules, f"epochwatt.board.training.{module}", raising=False)

    return be


def raising(row):
    return f"raise {row['error']}({row['message']!r}.replace('\\\\n', chr(10)))\n"


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=pytest.mark.thorough if n > 2 else [], id=row["message"][:50])
        for n, row in enumerate(AT_IMPORT)
    ],
)
def test_a_job_says_cause_and_remedy_without_a_traceback(
    row, broken, folder, factors, tmp_path, machine, monkeypatch, capsys
):
    free = 8 * 2**30 if "open shared memory" in row["message"] else 65536
    monkeypatch.setattr(host, "shm_bytes", lambda: (8 * 2**30, free))
    monkeypatch.setattr(host, "memory_limits", list)
    broken(raising(row))

    def measure():
        run_part(folder, factors, 0, 0, "/no-such-data", str(tmp_path / "receipt"), machine)

    assert exit_status(folder.run, measure) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    (place,) = [n for n, line in enumerate(lines) if line.startswith("error: ")]
    assert "Traceback" not in "".join(lines)
    problem, found, do = lines[place:]
    assert "cannot import what training needs" in problem
    assert row["cause"] in problem
    assert found.removeprefix("  found: ") in f"{row['error']}: {row['message']}"
    assert row["remedy"] in do
    assert folder.measured() == []


def doctor_lines(checkout):
    subject = choose(checkout.path, None)
    return finding_lines(list(examine.interpreter(subject, libraries(subject))))


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (
            "import os\nos.kill(os.getpid(), 4)\n",
            "it met an instruction that this CPU does not have",
        ),
        ("import os\nos.kill(os.getpid(), 11)\n", "a library crashed"),
        ("import os\nos.kill(os.getpid(), 9)\n", "it was killed"),
        ("import os\nos.kill(os.getpid(), 14)\n", "it took longer than it may"),
    ],
    ids=["SIGILL", "SIGSEGV", "SIGKILL", "SIGALRM"],
)
def test_a_library_that_ends_the_process_is_named_with_what_is_known_of_the_others(
    code, cause, broken, checkout
):
    broken(code)
    text = " ".join(" ".join(doctor_lines(checkout)).split())
    assert f"without torch ({cause}" in text
    assert "not tried: torchvision" in text
    assert "do: " in text


@pytest.mark.parametrize("program", ["", ".sweep", ".ceilings", ".idle", ".interleave", ".inside"])
def test_a_numpy_that_is_broken_is_explained_before_anything_begins(program, broken):
    broken("raise ImportError('libopenblas.so.0: cannot open shared object file')\n", "numpy")
    source = str(Path(host.__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-m", f"epochwatt.board.training{program}"],
        env={**os.environ, "PYTHONPATH": os.environ["PYTHONPATH"] + os.pathsep + source},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 3
    assert "apt-get install libopenblas-dev" in done.stderr


@pytest.mark.parametrize(
    ("error", "sizes", "cause"),
    [
        ("DataLoader worker (pid 7) is killed by signal: Bus error. ", (65536, 4096), "64 KiB"),
        ("DataLoader worker (pid(s) 7) exited unexpectedly", (65536, 4096), "64 KiB, 4 KiB of"),
        ("DataLoader worker (pid(s) 7) exited unexpectedly", None, "there is no /dev/shm"),
        ("DataLoader worker (pid 7) is killed by signal: Killed. ", (2**33, 2**33), "not by the"),
    ],
)
def test_the_death_of_a_worker_names_what_it_lacked(error, sizes, cause, monkeypatch):
    monkeypatch.setattr(host, "shm_bytes", lambda: sizes)
    monkeypatch.setattr(host, "oom_kills", lambda: 3)
    with pytest.raises(TrainingError, match="worker died") as caught, explained("epoch 1"):
        raise RuntimeError(error)
    assert cause in caught.value.problem
    assert "out-of-memory" not in str(caught.value)
    if sizes != (2**33, 2**33):
        assert "--shm-size" in caught.value.do
