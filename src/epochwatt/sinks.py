"""Log measured epochs to TensorBoard, MLflow, W&B, ...: `log_to` of `EpochMonitor` (Python 3.8).

Each library is imported when it is named.
"""

import json
from dataclasses import asdict
from typing import Any, Callable, Dict, Union

Epoch = Any  # epochwatt.Epoch, whose module imports this one
Sink = Callable[[Epoch], Any]

METRICS = (
    "e2e_s",
    "wait_s",
    "copy_s",
    "compute_s",
    "overhead_s",
    "energy_wh",
    "energy_error_pct",
    "power_w",
)


def open_sink(sink: Union[str, Sink], run: str) -> Sink:
    """Open a sink: return a function that logs an epoch to it.

    `sink`: `name` or `name:argument` (a folder, project, port or file), or such a function, which
    is returned; `run`: id of the run. Raises ValueError: no such sink, or no good argument;
    ImportError: its library is not installed.
    """
    if not isinstance(sink, str):
        return sink
    name, _, argument = sink.partition(":")
    if name not in _SINKS:
        raise ValueError(f"no sink {name!r}; there are: {', '.join(_SINKS)}")
    return _SINKS[name](argument, run)


def metrics(epoch: Epoch) -> Dict[str, float]:
    """Return the measured values of an epoch by name, such as `epochwatt/energy_wh`."""
    values = ((name, getattr(epoch, name)) for name in METRICS)
    return {f"epochwatt/{name}": value for name, value in values if value is not None}


def _tensorboard(folder: str, run: str) -> Sink:
    """Write to TensorBoard in `folder`; empty: runs/{run}."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(folder or f"runs/{run}")

    def log_epoch(epoch: Epoch) -> None:
        for name, value in metrics(epoch).items():
            writer.add_scalar(name, value, epoch.epoch)
        writer.add_text("epochwatt/flags", " ".join(epoch.flags) or "none", epoch.epoch)
        writer.flush()

    return log_epoch


def _mlflow(unused: str, run: str) -> Sink:
    import mlflow

    return lambda epoch: mlflow.log_metrics(metrics(epoch), step=epoch.epoch)


def _wandb(project: str, run: str) -> Sink:
    import wandb

    if wandb.run is None:
        wandb.init(project=project or "epochwatt", name=run)
    # without a step of ours: the training counts its own
    return lambda epoch: wandb.log({**metrics(epoch), "epochwatt/epoch": epoch.epoch})


def _prometheus(port: str, run: str) -> Sink:
    """Serve gauges of the latest epoch on `port`; empty: 9105."""
    from prometheus_client import CollectorRegistry, Gauge, start_http_server

    registry = CollectorRegistry()
    gauges = {
        name: Gauge(f"epochwatt_{name}", f"{name} of the latest epoch", ["run"], registry=registry)
        for name in (*METRICS, "epoch")
    }
    start_http_server(int(port or 9105), registry=registry)

    def log_epoch(epoch: Epoch) -> None:
        for name, gauge in gauges.items():
            value = getattr(epoch, name)
            gauge.labels(run=run).set(float("nan") if value is None else value)

    return log_epoch


def _jsonl(path: str, run: str) -> Sink:
    if not path:
        raise ValueError("jsonl needs a file: jsonl:PATH")

    def log_epoch(epoch: Epoch) -> None:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"run": run, **asdict(epoch)}) + "\n")

    return log_epoch


_SINKS: Dict[str, Callable[[str, str], Sink]] = {
    "tensorboard": _tensorboard,
    "mlflow": _mlflow,
    "wandb": _wandb,
    "prometheus": _prometheus,
    "jsonl": _jsonl,
}
