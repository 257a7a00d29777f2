"""Run the fleet: `python -m benchmarks.federated.fleet FOLDER`, in namespaces of its own.

`benchmarks.flower` starts it. FOLDER has `settings.json` and `digits.npz`; it gets `rounds.csv`,
`weights.npz`, `found.json` and the logs of Flower's processes.
"""

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.federated import quotas, training
from benchmarks.federated.quotas import Group, power_w
from benchmarks.synthetic import make_counter

APP = Path(__file__).parent / "app"
BIN = Path(sys.executable).parent
UNDER = 'mount --bind "$0" /sys/class && exec "$@"'  # $0: a folder
ADDRESS = "127.0.0.1:8000"
METER_S = 0.01
TABLE = ("device", "workload", "task", "batch_size", "cpu_mhz", "time_s", "power_w", "power_scope")


class Board:
    """A SuperNode with its control groups, its folder and its energy counter."""

    def __init__(self, fleet: Path, groups: Path, name: str, port: int, speed: float) -> None:
        self.name, self.port, self.folder = name, port, fleet / name
        group, self.mode, self.rest = (
            Group(groups / name), Group(groups / name / "mode"), Group(groups / name / "rest")
        )  # fmt: skip
        for each in (group, self.mode, self.rest):
            each.make()
        for folder in ("tmp", "flwr", "class"):
            (self.folder / folder).mkdir(parents=True)
        (self.folder / "group").write_text(str(group.path))
        (self.folder / "throttled").write_text("0")
        (self.folder / "speed").write_text(str(speed))
        energy_uj = make_counter(self.folder / "class")
        self._counter = energy_uj.open("r+b", buffering=0)
        self.energy_j = 0.0

    def count(self, seconds: float) -> None:
        """Add the energy of the last moment to the counter."""
        self.energy_j += seconds * power_w(self.mode.share)
        text = b"%012d\n" % (1e11 + 1e6 * self.energy_j)
        os.pwrite(self._counter.fileno(), text, 0)

    def start(self, environment: dict[str, str]) -> None:
        """Start its SuperNode."""
        words = [BIN / "flower-supernode", "--insecure", "--superlink", ADDRESS]
        words += ["--port", str(self.port), "--node-config", f"board='{self.name}'"]
        words = ["unshare", "--mount", "sh", "-c", UNDER, self.folder / "class", *words]
        own = {
            quotas.FOLDER: str(self.folder),
            "TMPDIR": str(self.folder / "tmp"),
            "FLWR_HOME": str(self.folder / "flwr"),
        }
        log = (self.folder / "log").open("wb")
        subprocess.Popen(
            words,
            env=environment | own,
            stdout=log,
            stderr=log,
            preexec_fn=lambda: self.rest.add(os.getpid()),
        )

    def fitting(self) -> tuple[int, int]:
        """Return round and process of the fit under way; 0, 0: there is none."""
        try:
            number, pid = (self.folder / "fitting").read_text().split()
            return int(number), int(pid)
        except (OSError, ValueError):
            return 0, 0

    def slow(self, speed: float) -> None:
        """Slow the hardware, from this moment on."""
        before = float((self.folder / "speed").read_text())
        (self.folder / "speed").write_text(str(speed))
        if (share := self.mode.share) is not None:
            self.mode.share = share * speed / before


def act(boards: dict[str, Board], events: list[dict[str, Any]], found: dict[str, Any]) -> None:
    """Do what the settings want to happen in the middle of fits."""
    waiting = list(events)
    while waiting:
        time.sleep(0.05)
        for event in list(waiting):
            board = boards[event["board"]]
            number, pid = board.fitting()
            if number != event["round"] or board.mode.share is None:
                continue
            time.sleep(event.get("after_s", 0.5))
            waiting.remove(event)
            if event["what"] == "slow":
                board.slow(event["speed"])
            elif event["what"] == "throttle":
                board.slow(event["speed"])
                (board.folder / "throttled").write_text("1")
            else:
                os.kill(pid, signal.SIGKILL)
                start_s = time.monotonic()
                while board.mode.share is not None and time.monotonic() - start_s < 30:
                    time.sleep(0.01)
                found["restored_s"] = time.monotonic() - start_s


def meter(boards: dict[str, Board], ended: threading.Event) -> None:
    """Drive the energy counters."""
    before_s = time.monotonic()
    while not ended.wait(METER_S):
        now_s = time.monotonic()
        for board in boards.values():
            board.count(now_s - before_s)
        before_s = now_s


def write_fleet(folder: Path, settings: dict[str, Any]) -> None:
    """Write fleet and tables, as calibrated here, and each board's number of mini-batches."""
    cpu_s = training.minibatch_cpu_s(next(iter(settings["fit_cpu_s"])))
    boards = []
    for name, fit_cpu_s in settings["fit_cpu_s"].items():
        settings["boards"][name] = max(1, round(fit_cpu_s / cpu_s))
        with (folder / f"{name}.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(TABLE)
            for mhz in quotas.SHARES_MHZ:
                share = mhz / 1000 * settings["speeds"].get(name, 1.0)
                row = ("group", "digits", "train", training.BATCH, mhz, cpu_s / share)
                table.writerow((*row, power_w(share), "cpu_package"))
        boards.append(
            {
                "name": name,
                "table": str(folder / f"{name}.csv"),
                "samples": settings["boards"][name] * training.BATCH,
                "waiting_w": power_w(None),
            }
        )
    (folder / "fleet.yaml").write_text(yaml.safe_dump({"boards": boards}))
    (folder / "settings.json").write_text(json.dumps(settings))


def plain_fedavg(folder: Path, n_rounds: int) -> list[np.ndarray]:
    """Return the weights of plain FedAvg, trained here in one process, replies by node."""
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.serverapp.strategy import FedAvg
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # else no message is made
    with (folder / "rounds.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["end_s"]]
    arrays = training.initial_arrays()
    for number in range(1, n_rounds + 1):
        replies = []
        for row in sorted(
            (row for row in rows if int(row["round"]) == number), key=lambda row: int(row["node"])
        ):
            trained, loss, n_samples = training.fit(row["board"], number, arrays)
            metrics = MetricRecord({"num-examples": n_samples, "loss": loss})
            content = RecordDict({"arrays": ArrayRecord(trained), "metrics": metrics})
            replies.append(Message(content, dst_node_id=1, message_type="train"))
        averaged, _ = FedAvg(fraction_evaluate=0.0).aggregate_train(number, replies)
        arrays = [value.numpy() for value in averaged.values()]
    return arrays


def main(folder: Path) -> int:
    """Run all of it; return the exit status of `flwr run`."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    settings = json.loads((folder / "settings.json").read_text())
    os.environ["EPOCHWATT_FLEET"] = str(folder)
    settings["boards"] = dict.fromkeys(settings["fit_cpu_s"], 1)
    (folder / "settings.json").write_text(json.dumps(settings))
    write_fleet(folder, settings)
    groups = quotas.root() / settings["group"]
    Group(groups).make()
    boards = {
        name: Board(folder, groups, name, 9100 + n, settings["speeds"].get(name, 1.0))
        for n, name in enumerate(settings["fit_cpu_s"])
    }
    home = folder / "flwr"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{ADDRESS}"\ninsecure = true\n'
    )
    environment = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.05",
        "OMP_NUM_THREADS": "1",
    }
    found: dict[str, Any] = {}
    ended = threading.Event()
    threading.Thread(target=meter, args=(boards, ended), daemon=True).start()
    threading.Thread(target=act, args=(boards, settings["events"], found), daemon=True).start()
    with (folder / "superlink.log").open("wb") as log:
        subprocess.Popen(
            [BIN / "flower-superlink", "--insecure", "--disable-runtime-dependency-installation"],
            env=environment,
            stdout=log,
            stderr=log,
        )
        for board in boards.values():
            board.start(environment)
    start_s = time.monotonic()
    while True:
        run = [BIN / "flwr", "run", APP, "here", "--stream"]
        run += ["--run-config", f"rounds={settings['rounds']}"]
        with (folder / "run.log").open("ab") as log:
            done = subprocess.run(run, env=environment, stdout=log, stderr=log, check=False)
        if (folder / "rounds.csv").exists() or time.monotonic() - start_s > 60:
            break
        time.sleep(0.5)  # the SuperLink is not there yet
    found["shares_after"] = {name: board.mode.share for name, board in boards.items()}
    found["planted_j"] = {name: board.energy_j for name, board in boards.items()}
    ended.set()
    if settings["is_compared"] and (folder / "weights.npz").exists():
        ours = np.load(folder / "weights.npz")
        found["equal"] = all(
            mine.tobytes() == theirs.tobytes()
            for mine, theirs in zip(
                (ours[name] for name in ours.files),
                plain_fedavg(folder, settings["rounds"]),
                strict=True,
            )
        )
    (folder / "found.json").write_text(json.dumps(found))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
