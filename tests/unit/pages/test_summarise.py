"""One page: how many claims hold, where time and energy go, which settings none beats."""

import re
from pathlib import Path

import pytest

from epochwatt.claims.claims_table import ClaimRow, write_claims_table
from epochwatt.pages.summarise import FEW_RUNS, MOST_LINES, WIDTH, write_summary

TITLES = {"lenet": "LeNet-5", "host": "this machine", "agx": "AGX Xavier"}
PALETTE = {"stall": "#111111", "compute": "#222222", "overhead": "#333333", "lenet": "#444444"}


@pytest.fixture
def summary(checkout, write_epochs):
    """Return a function that summarises runs given as lists of epochs; it gives lines and page."""

    def call(*runs, findings=(), excluded=(), titles=TITLES, factors=()):
        paths = [
            write_epochs(f"run-{n}", {**run.factors, **differing}, *epochs)
            for n, (run, differing, epochs) in enumerate(
                zip(checkout.runs, [*factors, *[{}] * len(runs)], runs, strict=False)
            )
        ]
        write_claims_table("claims.csv", findings)
        write_summary(paths, "claims.csv", excluded, titles, PALETTE, "s.txt", "s.html")
        return Path("s.txt").read_text("utf-8").split("\n"), Path("s.html").read_text("utf-8")

    return call


def finding(**cells):
    told = dict.fromkeys(ClaimRow._fields, "") | {"claim": "T1", "paper": "sigmetrics2023"}
    told |= {"role": "core", "backend": "twin", "form": "paper", "status": "holds"}
    return ClaimRow(**told | {"status_held_out": "holds", "rests_on": "mechanism"} | cells)


def cells(line):
    return re.split(r"  +", line)


def table(page, first):
    """Return the cells of the page's first table whose header begins with some columns."""
    for text in re.findall("<table>.*?</table>", page, re.S):
        header, *rows = re.findall("<tr.*?</tr>", text, re.S)
        names = re.findall("<th.*?>(.*?)</th>", header)
        if [name for name in names if name != "parts"][: len(first)] == first:
            drawn = names.index("parts") if "parts" in names else None
            found_rows = [re.findall("<td.*?>(.*?)</td>", row, re.S) for row in rows]
            kept = [[c for n, c in enumerate(row) if n != drawn] for row in found_rows]
            return [[name for name in names if name != "parts"], *kept]
    raise AssertionError(f"no table begins with {first}")


PLACES, BEST, RUNS = ["setup", "board", "model", "data", "runs"], ["setup", "board"], ["model"]


def test_head_says_where_how_many_and_how_long(summary):
    lines, _ = summary([{}, {}], [{}, {}])
    assert lines[0] == "Measured on host/local: 2 runs, 4 epochs, 16 s of training."


def test_long_times_are_in_hours(summary):
    lines, _ = summary([{}, {"e2e_s": 72_000.0}])
    assert lines[0].endswith("2 epochs, 20 h of training.")


def test_a_place_shows_the_range_and_the_shares(summary):
    """E2E 4 s: stall 1.5, compute 2.25, overhead 0.25 s; the first epoch does not count."""
    _, page = summary([{"e2e_s": 100.0}, {}, {}], [{}, {"e2e_s": 8.0, "compute_s": 6.25}])
    about = ["own", "this machine", "LeNet-5", "mnist digits x8"]
    assert table(page, PLACES)[1:] == [[*about, "2", "4 to 8", "28.1, 67.2, 4.7"]]


def test_the_best_setting_is_named_by_what_differs(summary):
    _, page = summary([{}, {"e2e_s": 3.0, "compute_s": 1.0}], [{}, {}])
    about = ["own", "this machine", "LeNet-5", "mnist digits x8", "local", "2"]
    assert table(page, [*BEST, "model", "data", "unit"])[1:] == [[*about, "batch 16", "3"]]
    assert "<p>Where there is no energy: the fastest run. Learning is not judged.</p>" in page


def test_a_front_is_named_once(summary):
    seen = {"power_scope": "module", "energy_wh": 0.25}
    _, page = summary([seen, seen], [{}, seen | {"e2e_s": 3.0, "energy_wh": 0.5}])
    _, fast, slow = table(page, [*BEST, "model", "data", "unit"])
    assert fast[-3:] == ["batch 32", "3", "0.5"]
    assert slow == [*[""] * 6, "batch 16", "4", "0.25"]


def test_a_note_of_each_kind_stands_above_units_with_and_without_energy(summary):
    seen = {"power_scope": "module", "energy_wh": 0.25}
    jetson = {"backend": "jetson", "device": "agx"}
    _, page = summary(
        *([{}, {}], [{}, {"e2e_s": 3.0}], [seen, seen], [seen, seen | {"e2e_s": 3.0}]),
        factors=[{}, {}, jetson, jetson],
    )
    _, host, board = table(page, [*BEST, "model", "data", "unit"])
    assert (host[-2:], board[-2:]) == (["3", ""], ["3", "0.25"])
    assert (
        "Pareto-optimal: no other run is both faster and takes less energy. "
        "Where there is no energy: the fastest run. Learning is not judged."
    ) in page


def test_rows_of_runs_name_what_differs_of_board_unit_data_and_storage(summary):
    agx = {"backend": "jetson", "device": "agx", "storage": "ssd"}
    factors = [{"instance": "second"}, {}, {"dataset_scale": 2.0}, agx]
    _, page = summary(*[[{}, {}]] * 4, factors=factors)
    header, *rows = table(page, ["board", "model", "data", "unit", "storage", "mode"])
    assert [row[:5] for row in rows] == [
        ["this machine", "LeNet-5", "mnist digits x8", "second", "disk"],
        ["this machine", "LeNet-5", "mnist digits x8", "local", "disk"],
        ["this machine", "LeNet-5", "mnist digits x2", "local", "disk"],
        ["AGX Xavier", "LeNet-5", "mnist digits x8", "local", "ssd"],
    ]
    assert "setup" not in header


def test_each_run_has_a_row_while_they_are_few(summary, checkout):
    _, page = summary([{"e2e_s": 100.0}, {}, {}], [{}, {}], [{}, {}])
    _, *rows = table(page, RUNS)
    assert rows[0] == [
        *("LeNet-5", "asis", "0", "16", "2", "4.00", "37.5 %", "56.2 %", "6.2 %", "compute")
    ]
    assert [row[2:4] for row in rows] == [["0", "16"], ["0", "32"], ["2", "16"]]
    checkout.sweep({"seed": list(range(FEW_RUNS + 1))})
    _, page = summary(*[[{}, {}]] * (FEW_RUNS + 1))
    with pytest.raises(AssertionError, match="no table begins"):
        table(page, RUNS)


def test_without_a_power_sensor_it_is_said_and_no_column_is_empty(summary):
    lines, page = summary([{}, {}], [{}, {}])
    assert "No power sensor was found, so there is no energy." in lines
    for text in ("energy", "power"):
        assert not re.search(f"<th>{text}", page)
        assert not any(line.startswith(("setup", "model")) and text in line for line in lines)


def test_energy_and_power_are_told_where_they_were_measured(summary):
    seen = {"power_scope": "module", "energy_wh": 0.25, "power_mean_w": 9.5}
    lines, page = summary([seen, seen], [seen, seen | {"energy_wh": 0.5}])
    assert table(page, PLACES)[1][-2:] == ["0.25 to 0.5", "9.5"]
    assert table(page, RUNS)[1][-2:] == ["0.25", "9.5"]
    assert "Pareto-optimal: no other run is both faster and takes less energy." in page
    assert not any("No power sensor" in line for line in lines)


def test_energies_that_jtop_leaves_wide_are_said_with_what_helps(summary):
    seen = {"power_scope": "module", "energy_wh": 0.25, "energy_error_pct": 12.0}
    jtop = seen | {"flags": {"power_sampling_regular"}}
    lines, _ = summary([seen, jtop], [jtop, jtop | {"energy_error_pct": 2.0}])
    text = " ".join(lines)
    assert "2 epochs is known to 12 %" in text
    assert "power_source: auto" in text
    lines, _ = summary([seen, seen])
    assert not any("jtop" in line for line in lines)
    lines, _ = summary([seen, jtop], factors=[{"backend": "twin"}])
    assert not any("jtop" in line for line in lines)  # a simulated board has no sysfs to read


def test_invalid_epochs_are_told_and_left_out(summary):
    bad = {"e2e_s": 1000.0, "valid": False, "flags": {"fresh_weights", "cold_process"}}
    lines, page = summary([{}, {}, bad, bad])
    assert "2 epochs not valid and left out of means: cold_process, fresh_weights." in lines
    assert table(page, RUNS)[1][4:6] == ["1", "4.00"]


def test_runs_without_a_valid_later_epoch_are_counted(summary):
    lines, page = summary([{}])
    told = "Not in this table: 1 run without a valid epoch after the first one"
    assert any(line.startswith(told) for line in lines)
    assert lines[0] == "Measured on host/local: 1 run, 1 epoch, 4 s of training."
    assert told in page


def test_excluded_rows_are_named_with_their_reason(summary):
    lines, page = summary([{}, {}], excluded=[{"run": "host-x", "reason": "out of memory"}])
    assert "missing: host-x (out of memory)" in lines
    assert "missing: host-x (out of memory)" in page


def test_what_is_simulated_has_a_section_of_its_own(summary):
    """None of its epochs is in a mean, a range or a front of what was measured."""
    factors = [{}, {"backend": "twin"}]
    findings = [finding(), finding(backend="host", form="general", board="own host local")]
    lines, page = summary(
        [{}, {}], [{}, {"e2e_s": 2.0}], factors=factors, findings=findings, titles=TITLES
    )
    start = lines.index("Simulated, not measured: host/local: 1 run, 2 epochs, 6 s of training.")
    measured, simulated = lines[:start], lines[start:]
    assert table(page.split("<h2>")[1], PLACES)[1][4:6] == ["1", "4"]
    assert table(page.split("<h2>")[2], PLACES)[1][4:6] == ["1", "2"]
    assert "1 of 1 take-away holds as simulated" in " ".join(simulated)
    assert "mechanism" not in " ".join(measured)
    assert not re.search("claim|take-away", "\n".join(measured))  # of one's own none is counted
    assert re.findall("<h2>(.*?)</h2>", page) == ["Measured", "Simulated, not measured"]


def test_nothing_measured_is_said(summary):
    lines, page = summary()
    assert lines[0] == "No epoch has been measured."
    assert "No epoch has been measured." in page
    lines, _ = summary([{}, {}], factors=[{"backend": "twin"}])
    assert lines[0] == "No epoch has been measured."


def test_a_fake_board_is_never_called_measured(summary):
    lines, page = summary([{}, {}], factors=[{"backend": "fake"}])
    assert lines[0].startswith("Not measured, from a fake board: host/local: 1 run,")
    assert "<h2>Measured" not in page


def test_page_draws_the_parts_in_their_colours_and_loads_nothing(summary):
    _, page = summary([{}, {}], [{}, {}])
    assert "stall 37.5 %, compute 56.2 %, overhead 6.2 %" in page
    assert set(re.findall('fill="(.*?)"', page)) == {"#111111", "#222222", "#333333"}
    assert re.findall(r"(?:src|href)=", page) == []
    for cell in table(page, PLACES)[1]:
        assert f">{cell}</td>" in page


def test_page_escapes_what_people_wrote(summary):
    _, page = summary([{}, {}], titles={"lenet": "<b>LeNet & co"})
    assert "&lt;b&gt;LeNet &amp; co" in page
    assert "<b>LeNet" not in page


def test_lines_end_without_blanks(summary):
    lines, _ = summary([{}, {}], [{}])
    assert [line for line in lines if line != line.rstrip()] == []


def test_the_terminal_shows_the_fastest_run_of_each_network(summary):
    seen = {"power_scope": "module", "energy_wh": 0.25, "power_mean_w": 9.5}
    faster = seen | {"e2e_s": 3.0, "compute_s": 1.0}
    lines, _ = summary([seen, seen], [seen, faster])
    start = lines.index("") + 1
    assert [re.split("  +", line) for line in lines[start : lines.index("", start)]] == [
        [
            "network",
            "data",
            "runs",
            "fastest",
            "E2E s",
            "energy Wh",
            "power W",
            "stall",
            "bound by",
        ],
        [
            *("LeNet-5", "mnist digits x8", "2", "0 workers, batch 32, disk"),
            *("3.00", "0.25", "9.5", "50 %", "loader"),
        ],
    ]


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
    lines, page = summary(
        *[[{}, {}, bad]] * 24, factors=networks, findings=boards, excluded=excluded
    )
    assert len(lines) - 1 <= MOST_LINES  # the last ends it
    assert max(map(len, lines)) <= WIDTH
    assert [line for line in lines if line][-1].endswith("results/summary.html")
    assert page.count("network-11") > 0
    assert page.count("out of memory") == 90
