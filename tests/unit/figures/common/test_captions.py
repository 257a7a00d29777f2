"""The text beside a panel: what was drawn, what marks mean, what does not hold, where from."""

from pathlib import Path

import pytest

from epochwatt.figures.common.bars import of_epochs
from epochwatt.figures.common.captions import COLUMNS, caption_text, why_empty
from epochwatt.figures.common.published import cells
from epochwatt.figures.common.runs import note
from epochwatt.figures.sigmetrics2023.fig02 import draw

PARTS = {
    "figure": "All panels.",
    "simulated": "Put in by hand.",
    "paper": "sigmetrics2023",
    "panels": [{"title": "Stall", "text": "Of an epoch. " * 20}, {"title": "Other", "text": "No."}],
}
ROW = {**cells(None), "quantity": "stall_s", "value": 12.0, "missing": "", "backend": "twin"}
MARKED = {**ROW, "published": 10.0, "published_id": "S1", "published_qualifier": "exact"}
EMPTY = {**ROW, "quantity": "energy_paper_wh", "value": None, "missing": "not measured"}


def told(rows, backend="twin", failing=()):
    return caption_text("fig99a", "Stall", PARTS, backend, rows, "agx/d1; 2 runs", failing)


def flat(text):
    return " ".join(text.split())


def test_has_the_captions_of_panel_and_figure_in_lines_of_one_width():
    text = told([ROW])
    assert text.startswith("fig99a: Stall.\n\nOf an epoch.")
    assert "All panels." in text
    assert "No." not in text
    assert max(map(len, text.splitlines())) <= COLUMNS


def test_says_what_marks_are_where_there_are_any():
    assert "open marks" not in told([ROW]).lower()
    text = flat(told([MARKED]))
    assert "the simulation was fitted to the number" in text
    assert "S1, 10 published, 12 here (+20 %)" in text
    assert "fitted" not in told([MARKED], "jetson")


def test_names_what_does_not_hold():
    text = told([MARKED], failing=["T1 does not hold: 3 here"])
    assert "What does not hold here:\n\n* T1 does not hold: 3 here" in text


@pytest.mark.parametrize(
    ("backend", "start"),
    [("twin", "Simulated, not measured. Put in by hand."), ("host", "Measured on this machine,")],
)
def test_says_where_the_numbers_come_from(backend, start):
    assert start in told([ROW], backend)
    assert ("Put in by hand" in told([ROW], backend)) == (backend == "twin")


def test_reason_of_a_panel_without_a_number():
    assert why_empty([]) == ""
    assert why_empty([ROW, EMPTY]) == ""
    reason = why_empty([EMPTY, EMPTY])
    assert reason.startswith("energy was not measured, as no power could be read. It takes")
    assert reason.endswith("`epochwatt doctor` says which is read")
    others = [{**EMPTY, "missing": f"reason {n}"} for n in range(4)]
    assert why_empty(others) == "reason 0; reason 1; reason 2; and other reasons"
    assert "Not drawn: energy was not measured" in told([EMPTY], "host")


def test_a_panel_that_is_not_drawn_has_no_description():
    mark = {"published": 10.0, "published_id": "S1", "published_qualifier": "exact"}
    said = caption_text(
        "fig99a", "Stall", PARTS, "host", [EMPTY | mark], "host; 2 runs; whiskers: x"
    )
    assert "Of an epoch" not in said
    assert "All panels" not in said
    assert "marks" not in said
    assert flat(said).endswith("none of the paper's boards. host; 2 runs.")


def test_panel_without_a_number_is_a_sentence_and_no_axes(job_of, made_up):
    job = job_of("fig02", made_up({"energy_paper_wh": None}, {"energy_paper_wh": None}))
    draw(job)
    (only,) = job.saved["fig02c"]
    assert flat(only[0].get_text()).startswith("Simulated · ")
    assert "not drawn. Energy was not measured" in flat(only[0].get_text())
    drawn = Path(job.folder, "fig02a.txt").read_text("utf-8")
    empty = Path(job.folder, "fig02c.txt").read_text("utf-8")
    assert "Not drawn" in empty
    assert "Not drawn" not in drawn
    assert note(of_epochs(job.runs, "1+")) in flat(drawn)
