"""A figure of one's own: docs/how-to/add-a-figure.md, followed step by step."""

import csv
import re
import textwrap
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/add-a-figure.md"
BLOCK = r"^( *)```\w+ (file|append)=(\S+)\n(.*?)\n *```$"
STEM = "results/figures/host/time_over_batch"


@pytest.fixture
def followed(checkout, write_epochs):
    """The small checkout after both steps, with the epochs of its runs."""
    blocks = re.findall(BLOCK, PAGE.read_text("utf-8"), re.M | re.S)
    for indent, kind, path, text in blocks:
        place = checkout.path / path
        place.parent.mkdir(exist_ok=True)
        before = place.read_text("utf-8") if kind == "append" else ""
        own = "\n".join(line.removeprefix(indent) for line in text.split("\n"))
        place.write_text(before + own.replace("host-pipeline", "small") + "\n", "utf-8")
    assert [kind for _, kind, _, _ in blocks] == ["file", "append"]
    for run in checkout.runs:
        epochs = ({}, {}, {"e2e_s": 4.0 + run.factors["batch_size"]}, {"e2e_s": 5.0})
        write_epochs(run.id, run.factors, *epochs)
    return checkout


def test_recipe_draws_the_medians_of_the_runs(followed, run_rule):
    run_rule("plot_time_over_batch", f"{STEM}.svg")
    with open(f"{STEM}.csv", newline="", encoding="utf-8") as handle:
        rows = [(row["run"], row["value"], row["n_epochs"]) for row in csv.DictReader(handle)]
    assert rows == [(run.id, "5.0", "3") for run in followed.runs]
    assert Path(f"{STEM}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.thorough
def test_a_new_caption_gets_into_the_text_and_a_new_function_draws_again(followed, run_rule):
    run_rule("plot_time_over_batch", f"{STEM}.svg")
    followed.edit("plotting.yaml", "caption: E2E time", "caption: The time")
    run_rule("plot_time_over_batch", f"{STEM}.svg")
    assert "The time" in Path(f"{STEM}.txt").read_text("utf-8")
    function = followed.path / "src/own_figures.py"
    function.write_text(function.read_text("utf-8").replace("(samples)", "(n)"), "utf-8")
    run_rule("plot_time_over_batch", f"{STEM}.svg")
    assert "mini-batch size (n)" in (followed.path / f"{STEM}.svg").read_text("utf-8")


def test_a_module_that_is_not_there_is_named(followed, run_rule):
    (followed.path / "src/own_figures.py").unlink()
    screen = run_rule("plot_time_over_batch", f"{STEM}.svg", status=1)
    assert "figures.time_over_batch.draw" in screen
    assert "src/own_figures.py" in screen
    assert "Traceback" not in screen


def test_a_wrong_parameter_is_named(followed, run_rule):
    followed.edit("plotting.yaml", "statistic: median", "statistics: median")
    screen = run_rule("plot_time_over_batch", f"{STEM}.svg", status=1)
    assert textwrap.dedent(screen).count("figures.time_over_batch: own_figures.time_over_batch")
