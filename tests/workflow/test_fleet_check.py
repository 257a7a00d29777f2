"""`epochwatt fleet-check` on a real Slurm, whose nodes are this machine."""

from full_checkout import block
from slurm_cluster import Node, started_cluster

NODES = (Node("agx1", ("agx", "d1")), Node("agx2", ("agx", "d2")), Node("pc", ("office",)))


def test_each_node_has_a_line_and_what_is_wrong_is_said_of_it(shop, tmp_path):
    """A fake AGX in a checkout that all nodes see; runs of two units, of which one is no node."""
    with started_cluster(tmp_path, NODES) as cluster:
        checkout = shop.board("agx_xavier")
        checkout.environment |= cluster.environment
        checkout.environment["PYTHONPATH"] = f"{checkout.root}/src:{checkout.root}/lib"
        (checkout.root / "lib").mkdir()
        for name in ("torch", "torchvision"):  # that are there at once
            (checkout.root / f"lib/{name}.py").write_text("__version__ = '2.0'\n")
        checkout.set_device(constraint="agx", instances=["d1", "d3"])
        checkout.study([block(instance=["d1", "d3"])])
        cluster.command("scontrol", "update", "nodename=agx2", "state=drain", "reason=no fan")
        outcome = checkout.epochwatt("fleet-check")
    said = " ".join(outcome.text.split())
    assert outcome.status == 1, outcome.text
    assert "ok agx1 agx: JetPack 4.5.1, Python 3." in said
    assert "problem agx no node has the features agx&d3" in said
    assert "problem agx2 Slurm cannot use it: drained (no fan)" in said
    assert "info pc no device file asks for its features: office" in said
    assert said.endswith("ready to measure: 1 of 3 boards")
