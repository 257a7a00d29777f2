"""The shipped palette: what meets in a figure is told apart with any kind of colour vision."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from epochwatt.figures.roofline.rooflines import COLOURS
from epochwatt.study.config import Plotting
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml

APART = 15.0  # at least, in L*a*b*
SHADES_APART = 9.0  # at least, in L*
VISION = {
    "normal": np.eye(3),
    "protanopia": [
        *([0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216]),
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        *([0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413]),
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        *([1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602]),
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array(
    [
        *([0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750]),
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
MODELS = ("lenet", "mobilenet", "resnet", "vgg11")
PARTS = ("stall", "compute", "overhead")
MEDIA = ("ssd", "sd", "hdd", "emmc", "disk")
SPARE = tuple(f"spare {n}" for n in range(5))
MEET = {
    "parts of an epoch": (*PARTS, "white"),
    "first and later epochs": ("epoch_0", "epoch_1_plus", "white"),
    "models": (*MODELS, "white"),
    "Pareto fronts": (*MODELS[:3], "pareto"),
    "media": MEDIA,
    "fronts of recommend": ("clock_class_1", "warning", "missing", "published", "white"),
    "own models": (*MODELS, *SPARE, "pareto", "missing", "white"),
    "own media": (*MEDIA, *SPARE, "white"),
    "base load": ("baseload", "above_baseload", "white"),
    "clocks": tuple(f"clock_class_{n}" for n in range(4)),
    "idle states": tuple(f"state_{n}" for n in ("i", "ii", "iii", "iv")),
    "reads and ends of epochs, SSD": ("ssd", "epoch_bound"),
    "reads and ends of epochs, hard disk": ("hdd", "epoch_bound"),
    **{f"reads and ends of epochs, {name}": (name, "epoch_bound") for name in ("disk", *SPARE)},
}
MARKED = (
    *(*MODELS, *SPARE, "compute", "epoch_1_plus", "ssd", "sd", "hdd", "disk", "above_baseload"),
    "state_iv",
)


@pytest.fixture(scope="module")
def palette(pytestconfig):
    path = pytestconfig.rootpath / "config/plotting.yaml"
    told = validated(Plotting, read_yaml(path), "plotting.yaml")
    spare = dict(zip(SPARE, told.spare, strict=True))
    return {**told.palette, **spare, "white": "#FFFFFF"}


def lab(colour, vision):
    """Return L*a*b* of a colour as it is seen."""
    sent = np.array(to_rgb(colour))
    linear = np.where(sent <= 0.04045, sent / 12.92, ((sent + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(vision) @ linear, 0.0, 1.0)
    t = TO_XYZ @ seen / TO_XYZ.sum(axis=1)
    x, y, z = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one, two, vision):
    return float(np.linalg.norm(lab(one, vision) - lab(two, vision)))


def test_distance_is_that_of_the_colour_space():
    assert lab("#FFFFFF", VISION["normal"]) == pytest.approx([100.0, 0.0, 0.0], abs=1e-6)
    assert lab("#FF0000", VISION["normal"]) == pytest.approx([53.24, 80.09, 67.20], abs=0.05)
    assert distance("#FF0000", "#808000", VISION["deuteranopia"]) < 15  # alike to a dichromat


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("keys", MEET.values(), ids=MEET)
def test_what_meets_is_told_apart(palette, keys, vision):
    near = [
        (one, two, round(distance(palette[one], palette[two], VISION[vision]), 1))
        for one, two in combinations(keys, 2)
        if distance(palette[one], palette[two], VISION[vision]) < APART
    ]
    assert near == []


@pytest.mark.parametrize("vision", VISION)
def test_marks_are_seen_on_what_they_stand_on(palette, vision):
    seen = {key: distance(palette[key], palette["published"], VISION[vision]) for key in MARKED}
    assert {key for key, apart in seen.items() if apart < 2 * APART} == set()


@pytest.mark.parametrize("vision", VISION)
def test_modes_of_rooflines_are_told_apart_in_grey_too(vision):
    pairs = list(combinations((*COLOURS, "#FFFFFF"), 2))
    assert min(distance(*pair, VISION[vision]) for pair in pairs) > APART
    greys = [lab(colour, VISION["normal"])[0] for colour in (*COLOURS, "#FFFFFF")]
    assert min(abs(one - two) for one, two in combinations(greys, 2)) > SHADES_APART


def test_a_models_colour_is_nothing_elses(palette):
    models = {palette[model] for model in MODELS}
    assert len(models) == len(MODELS)
    assert [key for key, colour in palette.items() if colour in models] == list(MODELS)
