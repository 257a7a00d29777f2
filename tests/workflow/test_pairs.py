"""End to end: training in a real container beside the machine itself, in pairs, with a verdict."""

import shutil

import pytest
from full_checkout import block

pytestmark = [
    *(pytest.mark.workflow, pytest.mark.slow, pytest.mark.thorough),
    pytest.mark.skipif(shutil.which("podman") is None, reason="no podman on this machine"),
]

PAIRS = {"factor": "container", "values": ["none", "podman"], "margin_pct": 3}
STEP = "        loss = step(moved)\n"
AGAIN = '        if os.path.exists("/run/.containerenv"):\n            step(moved), step(moved)\n'


@pytest.fixture
def study(shop):
    """A checkout with five pairs of two epochs."""
    checkout = shop.checkout()
    sweep = [block(seed=[0, 1, 2, 3, 4], dataset_scale=1, epochs_per_job=2)]
    checkout.configure((), pairs={"epochs": 2, "pairs": PAIRS, "sweep": sweep})
    shop.provide_data(checkout)
    return checkout


def test_a_container_changes_no_loss_and_each_record_says_where_it_ran(study):
    study.make("pairs")
    outside, inside = (
        {run.factors["seed"]: run for run in study.runs() if run.factors["container"] == side}
        for side in PAIRS["values"]
    )
    assert sorted(outside) == sorted(inside) == [0, 1, 2, 3, 4]
    for seed, run in outside.items():
        assert study.losses(run) == study.losses(inside[seed])
        assert study.record(run.id, 1).get("inside") is None
        assert study.record(inside[seed].id, 1)["inside"]["engine"] == "podman"
    assert not any(row["differs"] for row in study.table("results/pairs/pairs.csv"))


def test_what_takes_three_times_as_long_in_a_container_is_caught(study):
    loop = study.root / "src/epochwatt/board/training/loop.py"
    text = loop.read_text().replace(STEP, STEP + AGAIN)
    loop.write_text(text.replace("import time", "import os\nimport time"))
    study.make("pairs")
    verdicts = {row["metric"]: row for row in study.table("results/pairs/verdicts.csv")}
    row = verdicts["minibatch"]
    assert (row["verdict"], row["n_pairs"]) == ("different", "5")
    assert float(row["low_pct"]) > 50
