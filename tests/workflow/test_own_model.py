"""The pages on networks and data of one's own, followed step by step in a fresh checkout."""

import re
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.thorough

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = (
    DOCS / "tutorials/own-network.md",
    DOCS / "tutorials/own-data.md",
    DOCS / "how-to/own-format.md",
)


class Step(NamedTuple):
    """A block of a page."""

    kind: str  # file, append, console, or text that a command printed
    path: str
    text: str


def steps():
    """Return the blocks of the pages, in order."""
    blocks = re.findall(r"^( *)```(\w+)(?: (file|append)=(\S+))?\n(.*?)\n *```$", TEXT, re.M | re.S)
    return [Step(kind or word, path, textwrap.dedent(text)) for _, word, kind, path, text in blocks]


TEXT = "".join(page.read_text("utf-8") for page in PAGES)


def follow(checkout, step):
    """Do what a block says; `make run` is the workflow without Snakemake's report."""
    if step.kind == "file":
        (checkout.root / step.path).write_text(step.text + "\n")
    elif step.kind == "append":
        checkout.append(step.path, "\n" + step.text)
    elif step.kind == "console":
        for line in step.text.split("\n"):
            run_line(checkout, line)


def run_line(checkout, line):
    if line == "make run":
        checkout.make()
    else:
        assert line.startswith(".venv/bin/epochwatt "), line
        outcome = checkout.epochwatt(*line.split()[1:])
        assert outcome.status == 0, outcome.text


@pytest.fixture(scope="module")
def followed(shop):
    """A checkout in which the whole page was followed; its `src/` is on the path here, too."""
    checkout = shop.checkout()
    for step in steps():
        follow(checkout, step)
    source = str(checkout.root / "src")
    sys.path.append(source)
    yield checkout
    sys.path.remove(source)
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


def test_page_has_the_blocks_that_are_followed():
    kinds = [step.kind for step in steps()]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        **{"file": 7, "append": 5, "console": 3, "text": 1}
    }
    assert TEXT.count("```") == 2 * len(kinds)


def test_every_study_of_the_page_was_measured(followed):
    expected = {
        "own": [*2 * [("mlp", "digits", "0")], *2 * [("mlp", "digits", "1")]],
        "own-data": [
            *2 * [("lenet", "own_data.BARS", "1")],
            *2 * [("mlp", "own_data.BARS", "1")],
        ],
        "own-format": 2 * [("listener", "own_waves.SINES", "1")],
    }
    rows = followed.table("results/tables/epochs.csv")
    found = {study: [] for study in expected}
    for row in rows:
        found[row["studies"]].append((row["model"], row["dataset_source"], row["num_workers"]))
        assert row["valid"] == "True"
    assert found == expected
    samples = {row["dataset_source"]: int(row["n_samples"]) for row in rows}
    assert samples == {"digits": 1797, "own_data.BARS": 750, "own_waves.SINES": 800}


def test_what_the_reader_then_sees_has_a_row_and_a_card_of_each_network(followed):
    shown = next(step.text for step in steps() if step.kind == "text").splitlines()
    rows = [re.split(r"\s{2,}", line) for line in followed.read("results/summary.txt").split("\n")]
    heading, *fastest = rows[rows.index(re.split(r"\s{2,}", shown[0])) :]
    networks = {tuple(row[:2]) for row in fastest if len(row) == len(heading)}
    assert networks >= {
        ("MLP 784-128-10", "mnist digits"),
        ("MLP 784-128-10", "mnist own_data.BARS x0.5"),
        ("LeNet-5", "mnist own_data.BARS x0.5"),
        ("Listener", "own_format.Waves own_waves.SINES"),
    }
    assert all(float(row[heading.index("E2E s")]) > 0 for row in fastest if len(row) > 5)
    page = followed.read("results/index.html")
    assert "No epoch counts yet" not in page
    assert {"MLP 784-128-10", "Listener"} <= {*re.findall(r"<h3>(.*?) <span class=.tag", page)}


def test_own_network_learns_from_its_own_data(followed):
    run = followed.run_of("own-format")
    first, second = followed.losses(run)
    assert second < first < 3.0
    assert followed.record(run.id, 1)["warmup_s"] > 0


def test_ids_hold_the_names_of_the_functions_and_no_other_id_changed(followed, shop):
    own = {run.canonical for run in followed.runs() if run.factors["model"] != "lenet"}
    assert all('"network":{"build":"own_' in canonical for canonical in own)
    path = "config/workloads.yaml"
    before = {run.id for run in followed.runs()}
    text = followed.read(path)
    (followed.root / path).write_text(text.replace("own_network.mlp", "own_network.mlp_2"))
    after = {run.id for run in followed.runs()}
    (followed.root / path).write_text(text)
    assert len(before - after) == 3  # those of the mlp
    assert len(before & after) == 2


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("  build: own_network.mlp\n", "", "mlp has like without build\n  do: add build"),
        ("  like: lenet\n", "  like: alexnet\n", "mlp.like is 'alexnet'\n  allowed: lenet, mobile"),
        ("  like: lenet\n", "", "mlp.like is None\n  allowed: lenet, mobilenet, resnet, vgg11"),
        ("build: own_network.mlp", "build: mlp", "mlp.build is 'mlp'\n  allowed: "),
        ("dataset_source: digits", "dataset_source: own_data.X", "'own_data.X' is not there"),
        ("dataset_source: digits", "dataset_source: own_data.idx", "'own_data.idx' is no Maker"),
    ],
)
def test_wrong_row_is_explained(followed, old, new, told):
    path = "config/workloads.yaml"
    text = followed.read(path)
    head, tail = text.split("mlp:\n")
    (followed.root / path).write_text(f"{head}mlp:\n{tail.replace(old, new, 1)}")
    outcome = followed.epochwatt("plan")
    (followed.root / path).write_text(text)
    assert outcome.status == 1
    assert told in outcome.text
    assert "Traceback" not in outcome.text
