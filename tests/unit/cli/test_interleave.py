"""`epochwatt serve-and-train`: from the words to what is printed."""

import json
import os
import re
from pathlib import Path

import pytest

from epochwatt import cli
from epochwatt.schedule import interleaved

REPOSITORY = Path(__file__).resolve().parents[3]
WORDS = ("serve-and-train", "--train", "lenet", "--infer", "lenet", "--batch", "2")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder with this repository's config/; it is the current one."""
    (tmp_path / "config").symlink_to(REPOSITORY / "config")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", "")
    return tmp_path


def test_two_networks_run_and_the_answer_stands_beside_the_formulas(checkout, capfd):
    words = (*WORDS, "--rate", "50", "--seconds", "1", "--n-train", "1", "--device", "host")
    assert cli.main(words) == 0
    out, err = capfd.readouterr()
    assert "Traceback" not in err
    assert [line.split()[0] for line in out.splitlines()] == [
        *("latency", "training", "requests", "record")
    ]
    assert re.search(r"plan: \d+\.\d\d/s", out)  # 25.00, unless the machine is busy
    assert "50 arrived, 50 served, 0 refused, 0 left" in out
    (folder,) = (checkout / "measured/interleaved").iterdir()
    plan = json.loads((folder / "record.json").read_text("utf-8"))["plan"]
    assert (plan["n_train"], plan["torch_threads"], plan["queue"]) == (1, 1, 20)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*WORDS, "--rate", "5", "--seconds", "1", "--infer", "perceptron"), "--infer is 'perc"),
        ((*WORDS, "--seconds", "1"), "do: add --rate"),
        ((*WORDS, "--rate", "5", "--seconds", "1", "--device", "agx"), "is no Jetson board"),
        ((*WORDS, "--seconds", "1", "--arrivals", "none.txt"), "none.txt"),
        ((*WORDS, "--rate", "5", "--seconds", "1", "--queue", "1"), "queue is 1"),
    ],
)
def test_what_cannot_be_is_explained(words, message, checkout, capfd):
    assert cli.main(words) == 1
    err = capfd.readouterr().err
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize("status", [1, 130])
def test_without_a_record_the_status_is_passed_on(status, checkout, capfd, monkeypatch):
    monkeypatch.setattr(interleaved, "_run", lambda subject, words: status)
    assert cli.main((*WORDS, "--rate", "5", "--seconds", "1", "--device", "host")) == status
    assert capfd.readouterr() == ("", "")
