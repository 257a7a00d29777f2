"""The parser of the 2023 scripts' logs: what it takes, leaves out and refuses."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripts_2023 import HEADERS, LOSS, ScriptRun, power_w, write_run

from contrib.import_2023.logs import KINDS, NEEDED, number, read_folder, read_sections
from epochwatt.errors import RecordError

FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture
def refusal(tmp_path):
    """Return a function that reads the folder, which is refused; it gives the message."""

    def read():
        with pytest.raises(RecordError) as told:
            read_folder(tmp_path)
        return str(told.value)

    return read


def only(folder):
    """Return the one run of a folder."""
    (logs,) = read_folder(folder)
    return logs


def test_epochs_are_in_seconds_and_end_at_their_line(tmp_path):
    write_run(tmp_path)
    epochs = only(tmp_path).epochs
    assert [epoch.e2e_s for epoch in epochs] == [15.625] * 3
    assert epochs[0].stall_s.tolist() == [1.0] * 5
    assert epochs[0].compute_s.tolist() == [2.0] * 5
    assert (epochs[0].start_s, epochs[0].end_s) == (4.0, 19.625)
    assert epochs[1].logged_s[0] == 4.0 + 15.625 + 1.0 + 3.0


def test_series_have_our_units(tmp_path):
    write_run(tmp_path)
    found = only(tmp_path).series
    assert found["power_total_w"].values[4] == power_w(5.0)
    assert found["power_total_w"].t_s[4] == 5.0
    told = {name: set(series.values) for name, series in found.items() if name != "power_total_w"}
    assert told == {
        "cpu_util_pct": {30.0},  # of the two that are on
        "gpu_util_pct": {75.0},
        "ram_used_mib": {2048.0},
        "read_iops": {20.0},
        "read_mib_s": {1.25},
        "cached_pct": {100.0, 10.0, 50.0, 90.0},
    }


def test_nothing_is_warned_of_where_all_is_well(tmp_path):
    write_run(tmp_path)
    logs = only(tmp_path)
    assert logs.warnings == []
    assert sorted(logs.sha256) == sorted(f"mn_nw4_pf2_{kind}.csv" for kind in HEADERS)


def test_runs_of_a_folder_are_told_apart_by_their_names(tmp_path):
    write_run(tmp_path, workers=0)
    write_run(tmp_path, workers=12, prefetch=4, epochs=1)
    (tmp_path / "notes.csv").write_text("mn_nw1_pf2", "utf-8")
    runs = read_folder(tmp_path)
    assert [(r.num_workers, r.prefetch_factor, len(r.epochs)) for r in runs] == [
        (0, 2, 3),
        (12, 4, 1),
    ]


def test_a_folder_without_logs_is_refused(tmp_path, refusal):
    (tmp_path / "mn_nw4_pf2_other.csv").touch()
    assert "no logs of the 2023 scripts" in refusal()


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(RecordError, match="logs is not a folder"):
        read_folder(tmp_path / "logs")


class TestAppended:
    """Two runs in one file: what logging wrote holds both, what pandas wrote only the later."""

    def test_the_last_of_equal_ones_is_taken(self, tmp_path):
        write_run(tmp_path, fetch_s=1.0)
        write_run(tmp_path, fetch_s=0.5)
        logs = only(tmp_path)
        assert logs.epochs[0].stall_s.tolist() == [0.5] * 5
        assert {"power_total_w", "cached_pct", "read_iops"} < set(logs.series)
        assert len(logs.series["cached_pct"].t_s) == 5
        (warning,) = logs.warnings
        assert "2 runs of 3, 3 finished epochs: number 2 is imported" in warning

    def test_one_that_ended_early_gives_way_to_the_one_before_it(self, tmp_path):
        """Its monitor overwrote the power of the one before, so there is none."""
        write_run(tmp_path, fetch_s=1.0)
        write_run(tmp_path, fetch_s=0.5, epochs=1, unfinished=2)
        logs = only(tmp_path)
        assert [len(logs.epochs), logs.epochs[2].stall_s[0]] == [3, 1.0]
        assert set(logs.series) == {"cached_pct", "read_iops", "read_mib_s"}
        assert sum("was overwritten by a later run" in warning for warning in logs.warnings) == 2

    def test_one_that_began_behind_a_cut_line_is_told_apart(self, tmp_path):
        run = write_run(tmp_path, epochs=2, unfinished=2)
        for kind in ("fetch", "compute"):
            run.path(kind).write_text(run.path(kind).read_text("utf-8")[:-9], "utf-8")
        write_run(tmp_path, fetch_s=0.5)
        logs = only(tmp_path)
        assert [epoch.stall_s.tolist() for epoch in logs.epochs] == [[0.5] * 5] * 3

    def test_a_later_run_with_more_epochs_is_taken(self, tmp_path):
        write_run(tmp_path, epochs=1)
        write_run(tmp_path, epochs=2)
        assert len(only(tmp_path).epochs) == 2

    def test_files_that_do_not_hold_equally_many_are_refused(self, tmp_path, refusal):
        write_run(tmp_path)
        write_run(tmp_path, "fetch")
        assert "holds 2 runs, fetch 1, compute 2" in refusal()


class TestIncomplete:
    """Runs that were killed, lines that were cut, files that are missing."""

    def test_an_unfinished_epoch_is_left_out(self, tmp_path):
        write_run(tmp_path, epochs=2, unfinished=3)
        logs = only(tmp_path)
        assert len(logs.epochs) == 2
        assert logs.warnings == ["epoch 2 was not finished and is left out"]

    def test_a_cut_last_line_is_left_out(self, tmp_path):
        run = write_run(tmp_path, epochs=2, unfinished=3)
        text = run.path("fetch").read_text("utf-8")
        run.path("fetch").write_text(text[:-3], "utf-8")
        logs = only(tmp_path)
        assert len(logs.epochs) == 2
        assert "mn_nw4_pf2_fetch.csv: a line that was cut is left out" in logs.warnings

    def test_a_finished_epoch_without_a_line_is_refused(self, tmp_path, refusal):
        run = write_run(tmp_path)
        line = run.lines["compute"][7] + "\n"
        run.edit("compute", line, "")
        assert "lines of epoch 1 are missing or doubled" in refusal()
        assert "_compute.csv" in refusal()

    def test_no_finished_epoch_is_refused(self, tmp_path, refusal):
        write_run(tmp_path, epochs=0, unfinished=3)
        assert "no finished epoch" in refusal()

    @pytest.mark.parametrize("kind", NEEDED)
    def test_a_needed_file_that_is_missing_is_named(self, kind, tmp_path, refusal):
        write_run(tmp_path, kind)
        assert f"but no {kind}; " in refusal()

    @pytest.mark.parametrize("kind", ["vmtouch_stats", "io_stats", "tegrastats", "ram_stats"])
    def test_another_file_that_is_missing_is_warned_of(self, kind, tmp_path):
        write_run(tmp_path, kind)
        logs = only(tmp_path)
        assert logs.warnings == [f"there is no {kind}"]
        assert len(logs.epochs) == 3

    @pytest.mark.parametrize("kind", ["mem_stats", "swap_stats"])
    def test_what_is_not_read_may_be_missing(self, kind, tmp_path):
        write_run(tmp_path, kind)
        assert only(tmp_path).warnings == []


class TestDamaged:
    """Faults that have a place, and contradictions."""

    @pytest.mark.parametrize("cell", ["nan", "inf", "-1", "", "x"])
    def test_a_duration_that_is_no_number_is_refused_with_its_line(self, cell, tmp_path, refusal):
        run = write_run(tmp_path)
        first = run.lines["compute"][3]
        run.edit("compute", first, first.replace("2000.0", cell))
        assert f"_compute.csv, line 4: computetime_ms is {cell!r}" in refusal()

    def test_a_line_of_other_length_is_refused(self, tmp_path, refusal):
        run = write_run(tmp_path)
        run.edit("fetch", run.lines["fetch"][2], "0,1,null")
        assert "_fetch.csv, line 3: not 5 cells" in refusal()

    def test_epochs_out_of_order_are_refused(self, tmp_path, refusal):
        run = write_run(tmp_path)
        run.edit("epoch_stats", f"\n1,null,{LOSS}", f"\n2,null,{LOSS}")
        assert "the epochs are not 0, 1, 2" in refusal()

    def test_seconds_that_agree_with_milliseconds_are_taken(self, tmp_path):
        run = write_run(tmp_path)
        run.edit("fetch", "null,1000.0", "1.01,1000.0", count=-1)
        assert only(tmp_path).epochs[0].stall_s[0] == 1.0

    @pytest.mark.parametrize("told", ["1000.0", "0.001"])
    def test_seconds_that_contradict_milliseconds_are_refused(self, told, tmp_path, refusal):
        run = write_run(tmp_path)
        run.edit("fetch", "null,1000.0", f"{told},1000.0", count=-1)
        assert "their units contradict each other" in refusal()

    def test_milliseconds_that_are_seconds_are_refused(self, tmp_path, refusal):
        run = write_run(tmp_path)
        run.edit("fetch", "null,1000.0", "null,1.0", count=-1)
        run.edit("compute", "null,2000.0", "null,2.0", count=-1)
        assert "times as fast as the columns in ms" in refusal()

    def test_a_file_without_a_header_is_refused(self, tmp_path, refusal):
        run = write_run(tmp_path)
        run.edit("epoch_stats", HEADERS["epoch_stats"] + "\n", "")
        assert "does not begin with a header" in refusal()

    def test_columns_of_another_iostat_are_left_out(self, tmp_path):
        """In its order of columns the third is rrqm/s, and others follow."""
        run = write_run(tmp_path)
        run.edit("io_stats", "20.0,1.0,1280.0,4.0", "20.0,1280.0,0.0,0.0", count=-1)
        logs = only(tmp_path)
        assert not {"read_iops", "read_mib_s"} & set(logs.series)
        assert "another iostat" in logs.warnings[0]

    def test_a_monitor_whose_clock_was_set_back_is_left_out(self, tmp_path):
        run = write_run(tmp_path)
        run.edit("tegrastats", ",20.0,9000", ",2.0,9000")
        logs = only(tmp_path)
        assert "power_w" not in logs.series
        assert "log_time runs backward" in logs.warnings[0]

    def test_rows_without_a_disk_are_no_readings(self, tmp_path):
        run = write_run(tmp_path)
        run.edit("io_stats", run.lines["io_stats"][2], ",1.25")
        logs = only(tmp_path)
        assert 1.25 not in logs.series["read_iops"].t_s
        assert "1 row of other length" in logs.warnings[0]

    def test_a_power_of_zero_is_no_reading(self, tmp_path):
        run = write_run(tmp_path)
        run.edit("tegrastats", f",{1000 * power_w(0.0)},", ",0,")
        assert np.isnan(only(tmp_path).series["power_total_w"].values[0])

    def test_power_by_another_name_is_not_guessed(self, tmp_path):
        run = write_run(tmp_path)
        run.edit("tegrastats", "power cur", "power tot")
        logs = only(tmp_path)
        assert "power_w" not in logs.series
        assert "no column 'power cur'" in logs.warnings[0]

    def test_memory_in_an_unknown_unit_is_no_reading(self, tmp_path):
        run = write_run(tmp_path)
        run.edit("ram_stats", ",k,", ",pages,", count=-1)
        assert np.isnan(only(tmp_path).series["ram_used_mib"].values).all()


# -- properties -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The text of every file of a run, and its epochs."""
    folder = tmp_path_factory.mktemp("whole")
    run = write_run(folder)
    return {k: run.path(k).read_text("utf-8") for k in HEADERS}, only(folder).epochs


@FIXTURE
@given(data=st.data(), kind=st.sampled_from(sorted(HEADERS)))
def test_a_file_cut_anywhere_gives_epochs_of_the_whole_or_a_refusal(
    data, kind, whole, tmp_path_factory
):
    texts, epochs = whole
    folder = tmp_path_factory.mktemp("cut")
    size = data.draw(st.integers(0, len(texts[kind])))
    for name, text in texts.items():
        path = folder / f"mn_nw4_pf2_{name}.csv"
        path.write_text(text[:size] if name == kind else text, "utf-8")
    try:
        logs = only(folder)
    except RecordError:
        assert kind in NEEDED
        return
    for found, true in zip(logs.epochs, epochs, strict=False):
        assert (found.e2e_s, found.end_s) == (true.e2e_s, true.end_s)
        assert found.stall_s.tolist() == true.stall_s.tolist()
        assert found.compute_s.tolist() == true.compute_s.tolist()
    power = logs.series.get("power_w")
    if power is not None:
        assert power.values.tolist() == [power_w(t_s) for t_s in power.t_s]


@FIXTURE
@given(kind=st.sampled_from(KINDS), noise=st.binary(max_size=300), keep=st.booleans())
def test_noise_is_refused_or_left_out_and_never_crashes(kind, noise, keep, whole, tmp_path_factory):
    folder = tmp_path_factory.mktemp("noise")
    for name, text in whole[0].items():
        (folder / f"mn_nw4_pf2_{name}.csv").write_text(text, "utf-8")
    header = (HEADERS.get(kind, "log_time") + "\n").encode() if keep else b""
    (folder / f"mn_nw4_pf2_{kind}.csv").write_bytes(header + noise)
    try:
        read_folder(folder)
    except RecordError:
        assert kind in NEEDED


@FIXTURE
@given(
    ms=st.lists(st.tuples(*[st.floats(0.01, 1e6, allow_nan=False)] * 2), min_size=1, max_size=12),
    epochs=st.integers(1, 3),
)
def test_what_was_written_is_read(ms, epochs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    run = ScriptRun(folder)
    for number_ in range(epochs):
        begin_s = run.now_s
        for batch, (fetch_ms, compute_ms) in enumerate(ms):
            run.now_s += (fetch_ms + compute_ms) / 1000
            run.log("fetch", number_, batch, "null", fetch_ms)
            run.log("compute", number_, batch, "null", compute_ms)
        e2e_ms = 1000 * (run.now_s - begin_s)
        run.log("epoch_stats", number_, "null", LOSS, "null", e2e_ms)
    run.write(*(set(HEADERS) - set(NEEDED)))
    found = only(folder).epochs
    assert len(found) == epochs
    for epoch in found:
        assert epoch.stall_s.tolist() == [fetch_ms / 1000 for fetch_ms, _ in ms]
        assert epoch.compute_s.tolist() == [compute_ms / 1000 for _, compute_ms in ms]
        assert epoch.stall_s.sum() + epoch.compute_s.sum() <= epoch.e2e_s * (1 + 1e-9)


@given(st.text(max_size=12))
def test_a_cell_is_its_number_or_none(cell):
    value = number(cell)
    try:
        assert value == float(cell) or np.isnan(float(cell))
    except ValueError:
        assert np.isnan(value)


def test_windows_line_ends_are_read(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,log_time\r\n1,2\r\na,log_time\r\n3,4\r\n")
    assert [section.rows for section in read_sections(path)] == [[["1", "2"]], [["3", "4"]]]
