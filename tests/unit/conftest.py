"""What unit tests share: a machine folder of their own, a tiny data set, a run, its records."""

import gc
import importlib.util
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import epochwatt
from epochwatt import columns
from epochwatt.board.device import host
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.counting.kernel_counts import write_kept_counts
from epochwatt.errors import ConfigError

# Networks this small gain nothing from threads, which only wait for each other on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# By default Python looks so often at all that torch, pandas and matplotlib hold that it takes a
# tenth of the time.
gc.set_threshold(10_000, 10, 10)

RUN = "host-local-lenet-ssd-w0-b16-native-p1-0123abcd"
SCALE = 0.02  # 36 of the 1,797 digits
NOBODY = 65534


@pytest.fixture(autouse=True)
def machine_tmp(tmp_path_factory, monkeypatch):
    """A folder for temporary files of its own: the machine's lock of a test is never the real one.

    The name is short because loader workers put sockets there.
    """
    path = tmp_path_factory.mktemp("t")
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    monkeypatch.setenv("TMPDIR", str(path))
    return path


@pytest.fixture(scope="session")
def recipe():
    """The recipe of the tiny data set."""
    from epochwatt.datasets import recipes

    return recipes.recipe("mnist", "digits", SCALE)


@pytest.fixture(scope="session")
def data_root(tmp_path_factory, recipe):
    """A storage medium that holds the tiny data set; copy it before changing anything."""
    from epochwatt.board.records.dataset_folder import folder_name
    from epochwatt.datasets.make import make_dataset

    root = tmp_path_factory.mktemp("data")
    make_dataset(root / folder_name("mnist", "digits", SCALE), recipe)
    return str(root)


@pytest.fixture
def machine(data_root):
    """The machine at hand, as a row of the run table describes it."""
    from epochwatt.board.device.machine import open_machine

    return open_machine(
        {
            "backend": "host",
            "root": "/",
            "kind": "",
            "unit": "",
            "storage": {"root": data_root, "mount": "", "block_device": ""},
            "power_source": "none",
            "settle": None,
        }
    )


@pytest.fixture
def factors(recipe):
    """All factors of a run on the tiny data set: LeNet, batch size 16, no workers, one thread."""
    canonical = {
        "backend": "host",
        "device": "host",
        "instance": "local",
        "model": "lenet",
        "dataset": "mnist",
        "dataset_source": "digits",
        "dataset_scale": SCALE,
        "storage": "ssd",
        "num_workers": 0,
        "power_mode": "native",
        "dvfs": "on",
        "torch_threads": 1,
        "recipe": recipe,
    }
    return columns.with_defaults(canonical)


@pytest.fixture
def folder(tmp_path):
    """The folder of a run that has no epoch yet."""
    return RunFolder(str(tmp_path / "measured"), RUN)


@pytest.fixture
def make_meta(factors):
    """Return a function that makes a record's meta fitting an (n, 3) array of seconds."""

    def make(epoch, minibatch_s, run=RUN, **changes):
        wait_s, copy_s, compute_s = np.float32(minibatch_s).sum(axis=0, dtype=np.float64).tolist()
        e2e_s = wait_s + copy_s + compute_s + 0.25
        meta = {
            "schema_version": columns.SCHEMA_VERSION,
            "protocol": columns.PROTOCOL,
            "run": run,
            "epoch": epoch,
            "factors": factors,
            "n_minibatches": len(minibatch_s),
            "n_samples": factors["batch_size"] * len(minibatch_s),
            "t_start_mono_s": 1000.0 + epoch,
            "t_end_mono_s": 1000.0 + epoch + e2e_s,
            "t_start_unix_s": 1.7e9 + epoch,
            "t_end_unix_s": 1.7e9 + epoch + e2e_s,
            "e2e_s": e2e_s,
            "wait_s": wait_s,
            "copy_s": copy_s,
            "compute_s": compute_s,
            "fetch_s": 0.5,
            "preprocess_s": 0.125,
            "loss": 2.25,
            "timing_method": "host_clock",
            "power_scope": None,
            "energy_method": None,
            "sampler_period_s": None,
            "cold_process": True,
            "flags": ["cold_process"],
            "machine": {"architecture": "aarch64", "cpu_model": "Carmel", "n_cpus": 8},
            "software": {"python": "3.6.9", "torch": "1.10.0"},
            "measurement_id": f"{run}/{epoch}",
            "boot_id": host.boot_id(),
        }
        return {**meta, **changes}

    return make


@pytest.fixture
def add_epoch(make_meta):
    """Return a function that puts a finished epoch into a run's folder, checkpoint included."""

    def add(folder, epoch, minibatch_s=((0.5, 0.25, 1.0), (0.125, 0.25, 1.5)), **changes):
        folder.begin(epoch)
        Path(folder.attempt_path(epoch), "checkpoint.npz").write_bytes(b"weights %d" % epoch)
        array = np.array(minibatch_s, dtype=np.float32)
        folder.finish(epoch, make_meta(epoch, array, run=folder.run, **changes), array)

    return add


@pytest.fixture
def in_child():
    """Return a function that calls another in a forked process; its result or exception is ours."""

    def call(function, *arguments):
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)

        def report():
            try:
                sender.send((function(*arguments), None))
            except Exception as error:  # noqa: BLE001  any: it is raised again on our side
                sender.send((None, error))

        process = context.Process(target=report)
        process.start()
        sender.close()  # else a child that dies without an answer is waited for
        result, error = receiver.recv()
        process.join()
        if error is not None:
            raise error
        return result

    return call


@pytest.fixture
def as_stranger(in_child):
    """Return a function that calls another inside a folder, as a user who owns nothing there."""

    def call(where, function, *arguments):
        def change_user_and_call():
            os.chdir(where)
            tempfile.tempdir = "."
            if os.getuid() == 0:
                os.setuid(NOBODY)
            return function(*arguments)

        return in_child(change_user_and_call)

    return call


@pytest.fixture
def on_the_cpu(monkeypatch):
    """Training without a GPU, and without emptying the page cache of the machine."""
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    if importlib.util.find_spec("epochwatt.board.device.page_cache"):
        monkeypatch.setattr("epochwatt.board.device.page_cache.drop", lambda paths: "dropped")


@pytest.fixture
def python():
    """Return a function that runs code in a new interpreter, without a GPU; it gives stdout."""

    def run(code, *arguments, status=0):
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={
                **os.environ,
                "PYTHONPATH": str(Path(epochwatt.__file__).parents[1]),
                "CUDA_VISIBLE_DEVICES": "",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done.stdout

    return run


@pytest.fixture
def edit_json():
    """Return a function that changes a JSON file with a function of its value."""

    def edit(path, change):
        path = Path(path)
        value = json.loads(path.read_text(encoding="utf-8"))
        change(value)
        path.write_text(json.dumps(value), encoding="utf-8")

    return edit


@pytest.fixture(scope="session")
def network_counts(tmp_path_factory):
    """Return a function that gives the path of the counts of a network, made by one worker.

    Those of training come with the package; test_kernel_counts.py compares them with torch's.
    """
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def path_of(model, task="train"):
        path = base / f"counts-{task}" / f"{model}.json"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            made = path.with_suffix(f".{os.getpid()}")
            try:
                write_kept_counts({"model": model}, str(made), task, "fp32")
            except ConfigError:
                from epochwatt.counting.count_workload import write_workload  # which loads torch

                write_workload({"model": model}, str(made), task=task)
            made.replace(path)
        return str(path)

    return path_of


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 128 KiB (a tmpfs; skipped where it cannot be mounted)."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(path)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    yield path
    subprocess.run(["umount", str(path)], check=True)
