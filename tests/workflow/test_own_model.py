"""The pages on networks and data of one's own, followed step by step in a fresh checkout."""

import re
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("tutorials/own-network", "tutorials/own-data", "how-to/own-format")
TEXT = "".join((DOCS / f"{page}.md").read_text("utf-8") for page in PAGES)
BLOCK = r"^( *)```(\w+)(?: (file|append)=(\S+))?\n(.*?)\n *```$"
# each a kind (file, append, console, or text that a command printed), a path and what it holds
STEPS = [
    (kind or word, path, textwrap.dedent(text))
    for _, word, kind, path, text in re.findall(BLOCK, TEXT, re.M | re.S)
]


@pytest.fixture(scope="module")
def followed(shop):
    """A checkout in which the whole page was followed; its `src/` is on the path here, too.

    `make run` is the workflow without Snakemake's report.
    """
    checkout = shop.checkout()
    for kind, path, text in STEPS:
        if kind == "file":
            (checkout.root / path).write_text(text + "\n")
        elif kind == "append":
            checkout.append(path, "\n" + text)
        elif kind == "console":
            for line in text.split("\n"):
                if line == "make run":
                    checkout.make()
                else:
                    assert line.startswith(".venv/bin/epochwatt "), line
                    outcome = checkout.epochwatt(*line.split()[1:])
                    assert outcome.status == 0, outcome.text
    source = str(checkout.root / "src")
    sys.path.append(source)
    yield checkout
    sys.path.remove(source)
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


def test_every_study_of_the_page_was_measured(followed):
    assert TEXT.count("```") == 2 * len(STEPS)
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
    run = followed.run_of("own-format")
    first, second = followed.losses(run)
    assert second < first < 3.0
    assert followed.record(run.id, 1)["warmup_s"] > 0


def test_what_the_reader_then_sees_has_a_row_and_a_card_of_each_network(followed):
    shown = next(text for kind, _, text in STEPS if kind == "text").splitlines()
    rows = [re.split(r"\s{2,}", line) for line in followed.read("results/summary.txt").split("\n")]
    heading, *fastest = rows[rows.index(re.split(r"\s{2,}", shown[0])) :]
    networks = {tuple(row[:2]) for row in fastest if len(row) == len(heading)}
    assert networks >= {
        ("MLP 784-128-10", "mnist digits"),
        ("MLP 784-128-10", "mnist own_data.BARS x0.5"),
        ("LeNet-5", "mnist own_data.BARS x0.5"),
        ("Listener", "own_format.Waves own_waves.SINES"),
    }
    assert all(float(row[heading.index("epoch s")]) > 0 for row in fastest if len(row) > 5)
    page = followed.read("results/index.html")
    assert "No epoch counts yet" not in page
    assert {"MLP 784-128-10", "Listener"} <= {*re.findall(r"<h3>(.*?) <span class=.tag", page)}


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
