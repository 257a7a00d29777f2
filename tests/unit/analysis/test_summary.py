"""One page: what was trained, where the time went."""

import re
from pathlib import Path

import pytest

from epochwatt.analysis.summary import HEADER, aligned, verdict, write_summary

TITLES = {"lenet": "LeNet-5"}


@pytest.fixture
def summary(checkout, write_epochs):
    """Return a function that summarises runs given as lists of epochs; it gives lines and page."""

    def call(*runs, excluded=(), titles=TITLES):
        paths = [
            write_epochs(run.id, run.factors, *epochs)
            for run, epochs in zip(checkout.runs, runs, strict=False)
        ]
        write_summary(paths, excluded, titles, "summary.txt", "summary.html")
        return Path("summary.txt").read_text("utf-8").split("\n"), Path("summary.html").read_text(
            "utf-8"
        )

    return call


def cells(line):
    return re.split(r"  +", line)


def table(lines):
    """Return the cells of the table's rows, its header first."""
    start = lines.index("") + 1
    return [cells(line) for line in lines[start : lines.index("", start)]]


def test_head_says_where_how_many_and_how_long(summary):
    lines, _ = summary([{}, {}], [{}, {}])
    assert lines[0] == "Measured on host/local: 2 runs, 4 epochs, 16 s of training."


def test_row_shows_means_of_later_epochs_and_shares(summary):
    """E2E 4 s: stall 1.5, compute 2.25, overhead 0.25 s; the first epoch does not count."""
    lines, _ = summary([{"e2e_s": 100.0}, {}, {}])
    assert table(lines)[1] == [
        *("LeNet-5", "asis", "0", "16", "2", "4.00", "37.5 %", "56.2 %", "6.2 %", "compute"),
        *("-", "-"),
    ]


def test_table_has_a_row_per_run_below_its_header(summary):
    lines, _ = summary([{}, {}], [{}, {}], [{}, {}])
    header, *rows = table(lines)
    assert header == list(HEADER)
    assert [row[2:4] for row in rows] == [["0", "16"], ["0", "32"], ["2", "16"]]


def test_invalid_epochs_are_told_and_left_out(summary):
    bad = {"e2e_s": 1000.0, "valid": False, "flags": {"fresh_weights", "cold_process"}}
    lines, _ = summary([{}, {}, bad, bad])
    assert lines[1] == "2 epochs are not valid and left out of means: cold_process, fresh_weights."
    assert table(lines)[1][4:6] == ["1", "4.00"]


def test_run_without_a_valid_later_epoch_says_so(summary):
    lines, _ = summary([{}])
    assert table(lines)[1][4:] == [
        *("0", "-", "-", "-", "-", "no valid epoch after the first", "-", "-")
    ]


def test_excluded_rows_are_named_with_their_reason(summary):
    lines, page = summary([{}, {}], excluded=[{"run": "host-x", "reason": "out of memory"}])
    assert "missing: host-x (out of memory)" in lines
    assert "missing: host-x (out of memory)" in page


def test_what_is_simulated_stands_apart(checkout, write_epochs):
    """It is said in a line of its own, and in no mean and no row of what was measured."""
    measured, other = checkout.runs[:2]
    simulated = {**other.factors, "backend": "twin", "device": "agx"}
    paths = [
        write_epochs(measured.id, measured.factors, {}, {}),
        write_epochs("twin-x", simulated, {"e2e_s": 3600.0}, {"valid": False, "e2e_s": 0.5}),
    ]
    write_summary(paths, (), TITLES, "summary.txt", "summary.html")
    lines = Path("summary.txt").read_text("utf-8").split("\n")
    assert lines[0] == "Measured on host/local: 1 runs, 2 epochs, 8 s of training."
    assert (
        "Simulated, not measured: agx: 1 runs, 2 epochs, 3600 s of training, 1 epochs not valid; "
        "rows of backend twin in results/tables/."
    ) in lines
    assert len(table(lines)) == 2


def test_nothing_measured_is_said(summary):
    lines, page = summary()
    assert lines[0] == "No epoch has been measured."
    assert "No epoch has been measured." in page


def test_model_without_a_title_keeps_its_name(summary):
    lines, _ = summary([{}, {}], titles={})
    assert table(lines)[1][0] == "lenet"


def test_page_says_the_same_as_the_text(summary):
    lines, page = summary([{}, {}], [{"wait_s": 3.0}, {"wait_s": 3.0}])
    for row in table(lines)[1:]:
        assert "".join(f"<td>{cell}</td>" for cell in row) in page


def test_page_is_self_contained(summary):
    _, page = summary([{}, {}])
    assert page.startswith("<!DOCTYPE html>")
    assert re.findall(r"(?:src|href)=", page) == []


def test_page_escapes_what_people_wrote(summary):
    _, page = summary([{}, {}], titles={"lenet": "<b>LeNet & co"})
    assert "&lt;b&gt;LeNet &amp; co" in page
    assert "<b>LeNet" not in page


def test_lines_end_without_blanks(summary):
    lines, _ = summary([{}, {}], [{}])
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize(
    ("stall_s", "compute_s", "overhead_s", "bound_by"),
    [(3, 2, 1, "input"), (2, 3, 1, "compute"), (1, 2, 3, "overhead")],
)
def test_longest_part_is_what_an_epoch_is_bound_by(stall_s, compute_s, overhead_s, bound_by):
    parts = {"stall_s": stall_s, "compute_s": compute_s, "overhead_s": overhead_s}
    assert verdict(parts) == bound_by


def test_columns_are_as_wide_as_their_widest_cell():
    assert aligned([("a", "b"), ("long", "c")]) == ["a     b", "long  c"]
