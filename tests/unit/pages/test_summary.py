"""The summary of all runs: what the page shows, and in short what the terminal shows."""

import re
from pathlib import Path

import pytest

from epochwatt.analysis.collect_study import read_epochs
from epochwatt.claims.claims_table import ClaimRow, write_claims_table
from epochwatt.pages.summary import (
    FRONT,
    LEARNING,
    MOST_LINES,
    NO_POWER,
    NOTHING,
    WIDTH,
    summarise,
    write_summary,
)

TITLES = {"lenet": "LeNet-5", "host": "this machine", "agx": "AGX Xavier"}
WHERE, BEST, RUNS = "Where an epoch goes", "Best settings", "Runs"
METERED = {"power_scope": "module", "energy_wh": 0.25, "power_mean_w": 9.5}
TWIN, JETSON = {"backend": "twin"}, {"backend": "jetson", "device": "agx"}


@pytest.fixture
def summary(checkout, write_epochs):
    """Return a function that summarises runs given as lists of epochs; it gives lines and parts."""

    def call(*runs, findings=(), excluded=(), factors=()):
        paths = [
            write_epochs(f"run-{n}", {**run.factors, **differing}, *epochs)
            for n, (run, differing, epochs) in enumerate(
                zip(checkout.runs, [*factors, *[{}] * len(runs)], runs, strict=False)
            )
        ]
        write_claims_table("claims.csv", findings)
        write_summary(paths, "claims.csv", excluded, TITLES, "s.txt")
        parts = summarise(read_epochs(paths), findings, TITLES)
        lines = Path("s.txt").read_text("utf-8").split("\n")
        assert not [line for line in lines if line != line.rstrip()]
        return lines, parts

    return call


def finding(**cells):
    told = dict.fromkeys(ClaimRow._fields, "") | {"claim": "T1", "paper": "sigmetrics2023"}
    told |= {"role": "core", "backend": "twin", "form": "paper", "status": "holds"}
    return ClaimRow(**told | {"status_held_out": "holds", "rests_on": "mechanism"} | cells)


def rows_of(part, title):
    """Return the rows of a table of a part, without what is drawn; none where it has none."""
    rows = next((rows for name, _, rows in part.tables if name == title), [])
    return [{name: cell for name, cell in row.items() if isinstance(cell, str)} for row in rows]


def cells_of(part, title):
    return [list(row.values()) for row in rows_of(part, title)]


def test_energy_and_power_are_told_where_they_were_measured(summary):
    lines, (part,) = summary([METERED] * 2, [METERED, METERED | {"energy_wh": 0.5}])
    assert cells_of(part, WHERE)[0][-2:] == ["0.25 to 0.5", "9.5"]
    assert cells_of(part, RUNS)[0][-2:] == ["0.25", "9.5"]
    assert part.tables[1][1] == f"{FRONT} {LEARNING}"
    assert NO_POWER not in lines
    _, (part,) = summary([{}, {}], [{}, {}])
    for title in (WHERE, BEST, RUNS):
        assert not any("energy Wh" in row or "power W" in row for row in rows_of(part, title))


def test_what_is_simulated_or_fake_has_a_part_of_its_own(summary):
    """None of its epochs is in a mean, a range or a front of what was measured."""
    findings = [finding(), finding(backend="host", form="general", board="own host local")]
    lines, (measured, simulated) = summary(
        [{}, {}], [{}, {"e2e_s": 2.0}], factors=[{}, TWIN], findings=findings
    )
    assert "Simulated, not measured: this machine: 1 run, 2 epochs, 6 s of training." in lines
    assert [p.title for p in (measured, simulated)] == ["Measured", "Simulated, not measured"]
    assert [cells_of(p, WHERE)[0][4:6] for p in (measured, simulated)] == [["1", "4"], ["1", "2"]]
    assert "1 of 1 take-away holds as simulated" in " ".join(simulated.head)
    assert not re.search("claim|take-away", " ".join(measured.head))  # of one's own none counts
    for runs, factors in (((), ()), (([{}, {}],), [TWIN])):
        lines, _ = summary(*runs, factors=factors)
        assert lines[0] == NOTHING
    lines, (part,) = summary([{}, {}], factors=[{"backend": "fake"}])
    assert lines[0].startswith("Not measured, from a fake board: this machine: 1 run,")
    assert part.title == "Fake boards, not measured"


def test_the_terminal_gets_few_and_short_lines_and_the_page_all(summary, checkout):
    checkout.sweep({"seed": list(range(24))})
    networks = [
        {"model": f"network-{n}", "dataset": "a-data-set-of-a-long-name", "backend": backend}
        for backend in ("host", "twin")
        for n in range(12)
    ]
    flags = {"fresh_weights", "cold_process", "machine_shared", "machine_busy", "cache_changed"}
    bad = {"valid": False, "flags": flags | {"checkpoint_damaged", "clock_jumped"}}
    excluded = [{"run": f"host-{n}", "reason": "out of memory " * 10} for n in range(9)]
    boards = [finding(backend="host", form="general", board=f"own host b{n}") for n in range(15)]
    lines, parts = summary(
        *[[{}, {}, bad]] * 24, factors=networks, findings=boards, excluded=excluded
    )
    assert len(lines) - 1 <= MOST_LINES  # the last ends it
    assert max(map(len, lines)) <= WIDTH
    assert [line for line in lines if line][-1].endswith("results/index.html")
    assert any(row["model"] == "network-11" for row in rows_of(parts[0], WHERE))
