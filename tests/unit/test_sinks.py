"""Sinks of `EpochMonitor`, each with the library itself, read back."""

import json
import re
import socket
import urllib.request

import pytest

from epochwatt import Epoch, EpochMonitor
from epochwatt.sinks import metrics, open_sink

FACTS = dict.fromkeys(Epoch.__dataclass_fields__) | {"flags": ("left_early",), "n_minibatches": 3}
EPOCHS = [
    Epoch(**{**FACTS, "epoch": n, "e2e_s": 2.0 + n, "wait_s": 0.5, "energy_wh": 0.25 * (n + 1)})
    for n in range(2)
]


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Return a function that tells a sink of two epochs."""
    monkeypatch.chdir(tmp_path)

    def tell(sink):
        opened = open_sink(sink, "my-run-1")
        for epoch in EPOCHS:
            opened(epoch)

    return tell


def test_tensorboard(told, tmp_path):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    told(f"tensorboard:{tmp_path / 'tb'}")
    read = events.EventAccumulator(str(tmp_path / "tb"))
    read.Reload()
    found = [(event.step, event.value) for event in read.Scalars("epochwatt/energy_wh")]
    assert found == [(0, 0.25), (1, 0.5)]


def test_mlflow(told, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file:{tmp_path / 'mlruns'}")
    with mlflow.start_run() as run:
        told("mlflow")
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "epochwatt/e2e_s")
    assert [(metric.step, metric.value) for metric in history] == [(0, 2.0), (1, 3.0)]


def test_wandb_offline(told, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    told("wandb:mine")
    wandb.finish()
    wandb.teardown()  # its service has written everything when it has ended
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    kept = path.read_bytes()  # protocol buffers; values are JSON behind their keys
    told_wh = re.findall(rb"epochwatt/energy_wh.{0,8}?(0\.\d+)", kept, re.S)
    assert {b"0.25", b"0.5"} <= set(told_wh)


def test_prometheus_is_scraped(told):
    pytest.importorskip("prometheus_client")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told(f"prometheus:{port}")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    assert 'epochwatt_energy_wh{run="my-run-1"} 0.5' in lines
    assert 'epochwatt_copy_s{run="my-run-1"} NaN' in lines


def test_jsonl(told, tmp_path):
    told(f"jsonl:{tmp_path / 'epochs.jsonl'}")
    rows = [json.loads(line) for line in (tmp_path / "epochs.jsonl").read_text().splitlines()]
    assert [(row["run"], row["energy_wh"], row["copy_s"]) for row in rows] == [
        ("my-run-1", 0.25, None),
        ("my-run-1", 0.5, None),
    ]


def test_what_is_not_measured_is_not_told():
    told = {"epochwatt/e2e_s": 2.0, "epochwatt/wait_s": 0.5, "epochwatt/energy_wh": 0.25}
    assert metrics(EPOCHS[0]) == told


def test_sink_that_fails_is_told_once_and_the_others_go_on(tmp_path, caplog):
    seen = []
    sinks = ["nothing", "jsonl", "prometheus:no-port", lambda epoch: 1 / 0, seen.append]
    with EpochMonitor("r", folder=str(tmp_path), log_to=sinks) as watch:
        for _ in range(2):
            assert list(watch.epoch([1, 2])) == [1, 2]
    assert [epoch.epoch for epoch in seen] == [0, 1]
    assert "there are: tensorboard, mlflow, wandb, prometheus, jsonl" in caplog.text
    assert caplog.text.count("division by zero") == 1


def test_mlflow_that_refuses_folders_is_told_once_and_the_training_goes_on(
    tmp_path, monkeypatch, caplog
):
    mlflow = pytest.importorskip("mlflow", minversion="3.7")
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    mlflow.set_tracking_uri(f"file:{tmp_path / 'mlruns'}")
    with EpochMonitor("r", folder=str(tmp_path), log_to="mlflow") as watch:
        for _ in range(2):
            assert list(watch.epoch([1, 2])) == [1, 2]
    assert watch.last.epoch == 1
    assert caplog.text.count("an epoch is not logged: MlflowException") == 1
