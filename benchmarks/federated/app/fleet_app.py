"""A Flower app as a user writes it: two lines are ours, the mod and the strategy around FedAvg."""

import json
import os
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg

from benchmarks.federated.quotas import FOLDER
from benchmarks.federated.training import fit, initial_arrays
from epochwatt.integrations.flower import PlannedFit, PlannedRounds

FLEET = Path(os.environ["EPOCHWATT_FLEET"])
client = ClientApp(mods=[PlannedFit(machine="benchmarks.federated.quotas:QuotaMachine")])
server = ServerApp()


@client.train()
def train(message, context):
    """Train a partition, and say so in the board's folder."""
    board, number = context.node_config["board"], message.content["config"]["server-round"]
    now = Path(os.environ[FOLDER]) / "fitting"
    now.write_text(f"{number} {os.getpid()}")
    arrays = [value.numpy() for value in message.content["arrays"].values()]
    arrays, loss, n_samples = fit(board, number, arrays)
    now.unlink()
    metrics = MetricRecord({"num-examples": n_samples, "loss": loss})
    content = RecordDict({"arrays": ArrayRecord(arrays), "metrics": metrics})
    return Message(content, reply_to=message)


@server.main()
def main(grid, context):
    """Run the rounds that the run's configuration names and keep the weights."""
    settings = json.loads((FLEET / "settings.json").read_text())
    n_boards = len(settings["boards"])
    strategy = PlannedRounds(
        FedAvg(fraction_evaluate=0.0, min_train_nodes=n_boards, min_available_nodes=n_boards),
        FLEET / "fleet.yaml",
        FLEET / "rounds.csv",
        patience_s=settings["patience_s"],
    )
    result = strategy.start(grid, ArrayRecord(initial_arrays()), context.run_config["rounds"])
    np.savez(FLEET / "weights.npz", *[value.numpy() for value in result.arrays.values()])
