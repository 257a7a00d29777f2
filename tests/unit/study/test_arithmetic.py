"""Task, precision and compile that a device cannot have are refused when the studies are read."""

import pytest

from epochwatt.board.device.kinds import KINDS
from epochwatt.study.config import Device
from epochwatt.study.expand import refuse_arithmetic

PLAIN = {"backend": "jetson", "task": "train", "precision": "fp32", "compile": "off"}


def device(board):
    """Return a device of some kind; a host has none."""
    return Device.model_validate(
        {
            **{"title": "t", "backends": ["jetson"], "board": board, "instances": ["d1"]},
            **{"storage": {"ssd": {"title": "s", "root": "data"}}, "power_modes": {"m": {}}},
            "dvfs": ["off"],
        }
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", [{}, {"task": "infer"}, {"precision": "fp16"}])
def test_every_board_trains_and_infers_in_fp32_and_fp16(kind, change):
    refuse_arithmetic({**PLAIN, **change}, device(kind), "studies", "x")


@pytest.mark.parametrize("precision", ["bf16", "tf32"])
def test_boards_from_ampere_on_have_the_rest(precision):
    for kind in ("agx_orin", "orin_nx", "orin_nano", "agx_thor"):
        compiled = {"precision": precision, "compile": "on"}
        refuse_arithmetic({**PLAIN, **compiled}, device(kind), "studies", "x")


@pytest.mark.parametrize("precision", ["bf16", "tf32"])
def test_a_board_before_ampere_is_refused_with_the_place(precision, agx, refused):
    agx.sweep({"precision": ["fp16", precision]})
    found, allowed = refused()
    assert found == f"config/studies.yaml: small.sweep[0].precision is '{precision}'"
    assert allowed == "  allowed: fp32, fp16: the Volta GPU of Jetson AGX Xavier has no other"


@pytest.mark.parametrize(("key", "value"), [("precision", "bf16"), ("compile", "on")])
def test_the_twin_has_only_what_it_was_fitted_to(key, value):
    factors = {**PLAIN, "backend": "twin", key: value}
    with pytest.raises(
        Exception, match=f"x.{key} is '{value}'\n  allowed: on the twin: {PLAIN[key]}"
    ):
        refuse_arithmetic(factors, device("agx_xavier"), "studies", "x")
