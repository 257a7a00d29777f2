"""One job: it measures what is missing, keeps what is finished, and says so."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from epochwatt.board.device import notes
from epochwatt.board.device.locks import machine_lock
from epochwatt.board.records.checksums import write_sums
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.training import __main__ as command
from epochwatt.board.training import job
from epochwatt.board.training.job import run_part

ALL_MEASURED = """
import json, sys
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.device.machine import open_machine
from epochwatt.board.training.job import run_part
root, run, receipt, machine = sys.argv[1:]
machine = open_machine(json.loads(machine))
run_part(RunFolder(root, run), {}, 0, 1, "/no-such-data", receipt, machine)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.fixture
def receipt(tmp_path):
    return tmp_path / "results" / "part.json"


def told(machine):
    return json.dumps(machine.settings)


def epochs_of(receipt):
    return [entry["epoch"] for entry in json.loads(receipt.read_text("utf-8"))["epochs"]]


def test_measured_part_imports_no_torch_and_writes_its_receipt_again(
    folder, add_epoch, receipt, python, machine
):
    add_epoch(folder, 0)
    add_epoch(folder, 1)
    imported = json.loads(python(ALL_MEASURED, folder.root, folder.run, receipt, told(machine)))
    assert "epochwatt" in imported
    assert not {"torch", "torchvision", "pandas"} & set(imported)
    written = receipt.read_bytes()
    receipt.unlink()
    python(ALL_MEASURED, folder.root, folder.run, receipt, told(machine))
    assert receipt.read_bytes() == written


@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.parametrize("name", ["record.json", "samples-x.csv"])
def test_damaged_epoch_lies_in_the_trash_and_is_measured_again(
    folder, add_epoch, factors, data_root, receipt, machine, caplog, name
):
    add_epoch(folder, 0)
    path = Path(folder.epoch_path(0), name)
    if not path.exists():
        path.write_text("t_mono_s,t_unix_s,a\n1,2,3\n")
        write_sums(folder.epoch_path(0))
    content = path.read_bytes()
    path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    run_part(folder, factors, 0, 0, data_root, str(receipt), machine)
    assert "was altered" in caplog.text
    (moved,) = Path(folder.root, ".trash").glob(f"*/{folder.run}/epoch-0")
    assert (moved / name).exists()
    assert folder.verify(0).meta["n_samples"] > 3
    assert epochs_of(receipt) == [0]


@pytest.mark.usefixtures("on_the_cpu")
def test_job_waits_for_the_machine_and_names_its_holder(
    folder, factors, data_root, receipt, monkeypatch, caplog, machine
):
    other = machine_lock().acquire({"run": "run-b", "epoch": 4})
    say = job.log_waiting

    def say_and_end_the_other(holder):
        say(holder)
        assert folder.measured() == []
        other.release()

    monkeypatch.setattr(job, "log_waiting", say_and_end_the_other)
    run_part(folder, factors, 0, 0, data_root, str(receipt), machine)
    assert "run run-b" in caplog.text
    assert "epoch 4" in caplog.text
    assert folder.measured() == [0]


@pytest.mark.usefixtures("on_the_cpu")
def test_job_that_dies_keeps_its_finished_epochs_and_the_next_one_completes_the_run(
    folder, factors, data_root, receipt, tmp_path, in_child, machine, monkeypatch
):
    remember = notes.remember

    def remember_or_die(measurement_id, run, epoch):
        remember(measurement_id, run, epoch)
        if epoch == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(notes, "remember", remember_or_die)
        with pytest.raises(EOFError):  # it sends no answer
            in_child(run_part, folder, factors, 0, 2, data_root, str(receipt), machine)
    assert folder.measured() == [0, 1]
    assert not receipt.exists()
    kept = [folder.read(epoch).meta for epoch in range(2)]
    run_part(folder, factors, 0, 2, data_root, str(receipt), machine)
    assert [folder.read(epoch).meta for epoch in range(2)] == kept
    assert epochs_of(receipt) == [0, 1, 2]
    assert folder.read(2).meta["flags"] == ["cold_process", "resumed"]
    undisturbed = RunFolder(str(tmp_path / "undisturbed"), folder.run)
    run_part(undisturbed, factors, 0, 2, data_root, str(tmp_path / "other.json"), machine)
    losses = [[each.read(k).meta["loss"] for k in range(3)] for each in (folder, undisturbed)]
    assert losses[0] == losses[1]


def arguments(folder, factors, data_root, receipt, machine, last):
    return [
        *("--run", folder.run, "--factors", json.dumps(factors)),
        *("--first", "0", "--last", str(last), "--measured", folder.root),
        *("--data-root", data_root, "--receipt", str(receipt), "--machine", told(machine)),
    ]


@pytest.mark.usefixtures("on_the_cpu")
def test_command_explains_a_truncated_data_file_and_keeps_nothing(
    folder, factors, data_root, receipt, tmp_path, capsys, machine
):
    root = tmp_path / "data"
    shutil.copytree(data_root, root)
    (images,) = Path(root).glob("*/train-images-idx3-ubyte")
    os.truncate(images, 1000)
    assert command.main(arguments(folder, factors, str(root), receipt, machine, last=0)) == 1
    told = capsys.readouterr().err
    assert f"error: {folder.run}: {images}: its size is not that in manifest.json" in told
    assert "found: 1000 bytes" in told
    assert "Traceback" not in told
    assert folder.measured() == []
    assert not receipt.exists()
