"""The tables of counts in the documentation: made by this code, and what they claim holds."""

import pytest
import torch
import yaml

from benchmarks import counts
from epochwatt.tables import read_cells


def stored(name):
    """Return the rows of a committed table."""
    return read_cells(counts.FOLDER / name)


def as_text(rows):
    """Return rows as a CSV file holds them."""
    return [{key: str(value) for key, value in row.items()} for row in rows]


def test_every_network_is_counted_as_torch_counts_it():
    rows = stored("flop-counter.csv")
    assert {row["left_flop"] for row in rows} == {"0"}
    ours = yaml.safe_load((counts.REPOSITORY / "config/workloads.yaml").read_text("utf-8"))
    assert {row["network"] for row in rows} == ours.keys() & counts.WORKLOADS.keys()


@pytest.mark.parametrize(
    "models",
    [
        ["lenet", "resnet"],
        pytest.param(["vgg11", "mobilenet", "ssdlite", "bert", "lstm"], marks=pytest.mark.thorough),
    ],
)
def test_the_committed_table_is_that_of_this_code(models):
    rows = [row for row in stored("flop-counter.csv") if row["network"] in models]
    made = sorted(
        as_text(counts.rows(models)), key=lambda row: list(counts.WORKLOADS).index(row["network"])
    )
    assert made == rows


def test_groups_that_torch_forgets_are_found():
    network = torch.nn.Conv2d(6, 6, 3, groups=3, bias=False)
    with counts._Grouped() as grouped, counts.FlopCounterMode(display=False) as counter:
        network(torch.zeros(2, 6, 5, 5)).sum().backward()
    one = 2 * 2 * 6 * 9 * 2 * 9  # of each of forward and weight gradient; the input needs none
    assert counter.get_total_flops() - grouped.flops == 2 * one
    assert grouped.flops == 2 * one
