"""The parser of the 2023 scripts' logs: what it takes, leaves out and refuses."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripts_2023 import HEADERS, LOSS, ScriptRun, power_w, write_run

from contrib.import_2023.logs import KINDS, NEEDED, read_folder
from epochwatt.errors import RecordError

FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def only(folder):
    """Return the one run of a folder."""
    (logs,) = read_folder(folder)
    return logs


def assert_refused(folder, problem):
    with pytest.raises(RecordError) as told:
        read_folder(folder)
    assert problem in str(told.value)


def test_epochs_are_in_seconds_and_series_have_our_units(tmp_path):
    write_run(tmp_path)
    logs = only(tmp_path)
    assert logs.warnings == []
    assert sorted(logs.sha256) == sorted(f"mn_nw4_pf2_{kind}.csv" for kind in HEADERS)
    first, second, _ = logs.epochs
    assert [epoch.e2e_s for epoch in logs.epochs] == [15.625] * 3
    assert first.stall_s.tolist() == [1.0] * 5
    assert first.compute_s.tolist() == [2.0] * 5
    assert (first.start_s, first.end_s) == (4.0, 19.625)
    assert second.logged_s[0] == 4.0 + 15.625 + 1.0 + 3.0
    power = logs.series["power_total_w"]
    assert (power.t_s[4], power.values[4]) == (5.0, power_w(5.0))
    told = {n: set(series.values) for n, series in logs.series.items() if n != "power_total_w"}
    assert told == {
        "cpu_util_pct": {30.0},  # of the two that are on
        "gpu_util_pct": {75.0},
        "ram_used_mib": {2048.0},
        "read_iops": {20.0},
        "read_mib_s": {1.25},
        "cached_pct": {100.0, 10.0, 50.0, 90.0},
    }


def test_runs_of_a_folder_are_told_apart_by_their_names(tmp_path):
    (tmp_path / "mn_nw4_pf2_other.csv").touch()
    assert_refused(tmp_path, "no logs of the 2023 scripts")
    assert_refused(tmp_path / "logs", "logs is not a folder")
    write_run(tmp_path, workers=0)
    write_run(tmp_path, workers=12, prefetch=4, epochs=1)
    runs = [(r.num_workers, r.prefetch_factor, len(r.epochs)) for r in read_folder(tmp_path)]
    assert runs == [(0, 2, 3), (12, 4, 1)]


# -- runs that were killed, lines that were cut, files that are missing ---


def test_an_unfinished_epoch_and_a_cut_last_line_are_left_out(tmp_path):
    run = write_run(tmp_path, epochs=2, unfinished=3)
    run.path("fetch").write_text(run.path("fetch").read_text("utf-8")[:-3], "utf-8")
    logs = only(tmp_path)
    assert len(logs.epochs) == 2
    assert "epoch 2 was not finished and is left out" in logs.warnings
    assert "mn_nw4_pf2_fetch.csv: a line that was cut is left out" in logs.warnings


def test_no_finished_epoch_is_refused(tmp_path):
    write_run(tmp_path, epochs=0, unfinished=3)
    assert_refused(tmp_path, "no finished epoch")


@pytest.mark.parametrize("kind", HEADERS)
def test_a_file_that_is_missing_is_named_where_it_is_read(kind, tmp_path):
    write_run(tmp_path, kind)
    if kind in NEEDED:
        assert_refused(tmp_path, f"but no {kind}; ")
    else:
        unread = ("mem_stats", "swap_stats")
        assert only(tmp_path).warnings == ([] if kind in unread else [f"there is no {kind}"])


# -- faults that have a place, and contradictions ---


@pytest.mark.parametrize(
    ("kind", "old", "new", "problem"),
    [
        ("compute", "2000.0", "nan", "_compute.csv, line 2: computetime_ms is 'nan'"),
        ("compute", "2000.0", "-1", "_compute.csv, line 2: computetime_ms is '-1'"),
        ("compute", "2000.0", "", "_compute.csv, line 2: computetime_ms is ''"),
        ("compute", "\n1,1,null", "\n1,2,null", "lines of epoch 1 are missing or doubled"),
        ("fetch", "\n0,1,null,1000.0", "\n0,1,null", "_fetch.csv, line 3: not 5 cells"),
        ("epoch_stats", f"\n1,null,{LOSS}", f"\n2,null,{LOSS}", "the epochs are not 0, 1, 2"),
        ("epoch_stats", f"{HEADERS['epoch_stats']}\n", "", "does not begin with a header"),
    ],
)
def test_a_fault_is_refused_with_its_place(kind, old, new, problem, tmp_path):
    write_run(tmp_path).edit(kind, old, new)
    assert_refused(tmp_path, problem)


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ("1.01,1000.0", ""),  # seconds that agree with the milliseconds
        ("1000.0,1000.0", "their units contradict each other"),
        ("null,1.0", "times as fast as the columns in ms"),
    ],
)
def test_units_that_contradict_each_other_are_refused(told, problem, tmp_path):
    run = write_run(tmp_path)
    run.edit("fetch", "null,1000.0", told, count=-1)
    if told == "null,1.0":
        run.edit("compute", "null,2000.0", "null,2.0", count=-1)
    if problem:
        assert_refused(tmp_path, problem)
    else:
        assert only(tmp_path).epochs[0].stall_s[0] == 1.0


@pytest.mark.parametrize(
    ("kind", "old", "new", "lost", "warning"),
    [
        # in the order of columns of another iostat the third is rrqm/s, and others follow
        ("io_stats", "20.0,1.0,1280.0,4.0", "20.0,1280.0,0.0,0.0", "read_iops", "another iostat"),
        ("tegrastats", ",20.0,9000", ",2.0,9000", "power_total_w", "log_time runs backward"),
        ("tegrastats", "power cur", "power tot", "power_total_w", "no column 'power cur'"),
    ],
)
def test_a_series_that_cannot_be_trusted_is_left_out(kind, old, new, lost, warning, tmp_path):
    write_run(tmp_path).edit(kind, old, new, count=-1)
    logs = only(tmp_path)
    assert lost not in logs.series
    assert warning in logs.warnings[0]


# -- properties ---


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
    power = logs.series.get("power_total_w")
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
    for epoch in range(epochs):
        begin_s = run.now_s
        for batch, (fetch_ms, compute_ms) in enumerate(ms):
            run.now_s += (fetch_ms + compute_ms) / 1000
            run.log("fetch", epoch, batch, "null", fetch_ms)
            run.log("compute", epoch, batch, "null", compute_ms)
        run.log("epoch_stats", epoch, "null", LOSS, "null", 1000 * (run.now_s - begin_s))
    run.write(*(set(HEADERS) - set(NEEDED)))
    found = only(folder).epochs
    assert len(found) == epochs
    for epoch in found:
        assert epoch.stall_s.tolist() == [fetch_ms / 1000 for fetch_ms, _ in ms]
        assert epoch.compute_s.tolist() == [compute_ms / 1000 for _, compute_ms in ms]
        assert epoch.stall_s.sum() + epoch.compute_s.sum() <= epoch.e2e_s * (1 + 1e-9)
