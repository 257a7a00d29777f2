"""Containers and pairs of a study: what the configuration may say, in which order runs come."""

import pytest

from epochwatt.study.runs import pairs_of


def pairs(factor="container", values=("none", "box"), margin_pct=3):
    return {"factor": factor, "values": list(values), "margin_pct": margin_pct}


def values_of(checkout, name):
    return [run.factors[name] for run in checkout.runs]


def test_a_container_is_part_of_the_id_with_all_it_is(checkout):
    checkout.sweep({"container": ["none", "box"]})
    plain, inside = checkout.runs
    assert "container" not in plain.canonical
    assert inside.factors["container_settings"] == {
        "engine": "podman",
        "image": "",
        "rootfs": "/",
        "runtime": "",
    }
    before = inside.id
    checkout.edit("devices/host.yaml", "rootfs: /}", "rootfs: /srv/root}")
    assert checkout.runs[1].id != before
    assert checkout.runs[0].id == plain.id


@pytest.mark.parametrize(
    "entry",
    [
        *("{engine: podman}", "{engine: docker, image: a, rootfs: /}", "{engine: none, image: a}"),
        *("{engine: lxc, image: a}", "{engine: docker, image: --privileged}"),
        *("{engine: docker, image: a, runtime: '-v/:/machine'}", "{engine: podman, rootfs: --x}"),
    ],
)
def test_a_container_is_one_image_or_one_root(entry, checkout, refused):
    checkout.edit("devices/host.yaml", "{engine: podman, rootfs: /}", entry)
    refused()


def test_sides_of_a_pair_follow_each_other_and_their_order_alternates(checkout):
    checkout.sweep({"seed": [0, 1, 2]}, pairs=pairs())
    assert values_of(checkout, "seed") == [0, 0, 1, 1, 2, 2]
    assert values_of(checkout, "container") == ["none", "box", "box", "none", "none", "box"]


@pytest.mark.parametrize(
    "wrong",
    [
        pairs(values=("box", "box")),
        pairs(values=("box",)),
        pairs(factor="power_mode"),
        pairs(margin_pct=0),
    ],
)
def test_pairs_that_cannot_be_are_refused(wrong, checkout, refused):
    checkout.sweep({"seed": [0]}, pairs=wrong)
    refused()


SIDES = {"factor": "container", "values": ["none", "box"], "margin_pct": 3}


def test_sides_differ_in_what_is_compared_alone(checkout):
    checkout.sweep({"seed": [0, 1], "batch_size": [16, 32]}, pairs=SIDES)
    pairs = pairs_of(checkout.runs, "small", SIDES)
    assert len(pairs) == 4
    for a, b in pairs:
        assert (a.factors["container"], b.factors["container"]) == ("none", "box")
        assert a.factors["seed"] == b.factors["seed"]
        assert a.factors["batch_size"] == b.factors["batch_size"]
