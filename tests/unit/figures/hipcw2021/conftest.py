"""Runs of HiPCW 2021 on Xavier NX."""

import pytest

NX = {
    "setup": "hipcw2021",
    "device": "nx",
    "model": "mobilenet",
    "dataset": "gld23k",
    "power_mode": "15W",
}


@pytest.fixture
def nx(made_up):
    """Return a function that writes a run on NX."""
    return lambda *epochs, **factors: made_up(*epochs, **{**NX, **factors})


@pytest.fixture
def nx_gone(gone):
    """Return a function that gives a run on NX that cannot be had."""
    return lambda **factors: gone(**{**NX, **factors})
