"""`epochwatt fleet-check` on a real Slurm, whose nodes are this machine."""

import pytest
from board_checkout import BoardCheckout
from full_checkout import block
from slurm_cluster import Node, SlurmCluster, started_cluster

NODES = (Node("agx1", ("agx", "d1")), Node("agx2", ("agx", "d2")), Node("pc", ("office",)))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> SlurmCluster:
    """A Slurm of two boards and a PC."""
    with started_cluster(tmp_path_factory.mktemp("fleet"), NODES) as cluster:
        yield cluster


@pytest.fixture
def checkout(shop, cluster) -> BoardCheckout:
    """A fake AGX in a checkout that all nodes see, with a run on each of two units."""
    checkout = shop.board("agx_xavier")
    checkout.environment |= cluster.environment
    checkout.environment["PYTHONPATH"] = f"{checkout.root}/src:{checkout.root}/lib"
    (checkout.root / "lib").mkdir()
    for name in ("torch", "torchvision"):  # that are there at once
        (checkout.root / f"lib/{name}.py").write_text("__version__ = '2.0'\n")
    checkout.set_device(constraint="agx", instances=["d1", "d2"])
    checkout.study([block(instance=["d1", "d2"])])
    return checkout


def words(text: str) -> str:
    """Return a text with single blanks."""
    return " ".join(text.split())


def test_good_boards_have_a_line_each(checkout):
    outcome = checkout.epochwatt("fleet-check")
    said = words(outcome.text)
    assert outcome.status == 0, outcome.text
    assert "ok agx1 agx: JetPack 4.5.1, Python 3." in said
    assert "ok agx2 agx: JetPack 4.5.1, Python 3." in said
    assert "info pc no device file asks for its features: office" in said
    assert said.endswith("problems: 0, warnings: 0 ready to measure: 2 of 3 boards")


def test_what_is_wrong_is_said_of_its_node(checkout, cluster):
    checkout.set_device(instances=["d1", "d3"], units={"d1": "another"})
    checkout.study([block(instance=["d1", "d3"])])
    cluster.command("scontrol", "update", "nodename=agx2", "state=drain", "reason=no fan")
    try:
        outcome = checkout.epochwatt("fleet-check")
    finally:
        cluster.command("scontrol", "update", "nodename=agx2", "state=resume")
    said = words(outcome.text)
    assert outcome.status == 1
    assert "problem agx no node has the features agx&d3" in said
    assert "problem agx1 the row is bound to unit another" in said
    assert "problem agx2 Slurm cannot use it: drained (no fan)" in said
    assert said.endswith("ready to measure: 0 of 3 boards")
