"""From records to rows: what is derived, flagged, valid, and how the CSV looks."""

import json
from pathlib import Path

import pytest

from epochwatt import columns
from epochwatt.board.records import files
from epochwatt.board.records.checksums import write_sums
from epochwatt.epochs.collect import collect_run, mark_cache
from epochwatt.errors import RecordError
from epochwatt.tables import read_cells

EFFECTS = {
    **dict.fromkeys(columns.FLAGS, "informs"),
    **dict.fromkeys(["warmup_skipped", "fresh_weights"], "invalidates"),
    **dict.fromkeys(["machine_changed", "overhead_negative"], "invalidates"),
}

# What the sampler says of a source that measures no power.
SOUND = {
    **{"scope": None, "total": None, "step_mean_s": 0.1},
    **{"n_failed": 0, "n_negative": 0, "rows_dropped": 0, "stuck_s": 0.0},
}


@pytest.fixture
def run(checkout):
    return checkout.runs[0]


@pytest.fixture
def collect(run, tmp_path):
    """Return a function that collects epochs 0..n-1 of the run; it gives the rows of epochs.csv."""

    def call(n_epochs, effects=EFFECTS, folder=tmp_path / "out"):
        outputs = [folder / "epochs.csv", folder / "energy.csv"]
        collect_run("measured", run.id, n_epochs, effects, *map(str, outputs))
        return read_cells(outputs[0])

    return call


def test_a_row_of_each_epoch_asked_for(run, measure, collect):
    for epoch in range(3):
        measure(run, epoch)
    rows = collect(2)
    assert [row["epoch"] for row in rows] == ["0", "1"]
    assert tuple(rows[0]) == columns.names(columns.RUN_EPOCH_COLUMNS)
    # exact: sums of powers of two
    assert (float(rows[0]["stall_s"]), float(rows[0]["overhead_s"])) == (1.5, 0.25)
    absent = ["energy_wh", "gpu_util_pct", "cached_pct", "power_scope", "sampler_period_s"]
    assert [rows[0][name] for name in absent] == [""] * 5


@pytest.mark.parametrize("flag", sorted(EFFECTS)[::9])
@pytest.mark.parametrize(("effect", "valid"), [("invalidates", "False"), ("informs", "True")])
def test_effect_of_a_flag_decides_validity(flag, effect, valid, run, measure, collect):
    measure(run, 0, flags=[flag])
    (row,) = collect(1, {**dict.fromkeys(EFFECTS, "informs"), flag: effect})
    assert (row["flags"], row["valid"]) == (flag, valid)


# Two mini-batches of 4 s in all: wait, copy and compute make up 3.75 s.
@pytest.mark.parametrize(
    ("e2e_s", "flags"),
    [
        (3.75, ""),
        (3.7463, ""),  # 0.0987 % too short: within what the clocks may disagree by
        (3.7462, "overhead_negative"),  # 0.1014 %
        (3.0, "overhead_negative"),
    ],
)
def test_parts_may_exceed_e2e_by_a_thousandth(e2e_s, flags, run, measure, collect):
    measure(run, 0, e2e_s=e2e_s)
    assert collect(1)[0]["flags"] == flags


AS_FIRST = {"power_source": "jtop", "torch_threads_used": 2, "environment": {"A": "2"}}


@pytest.mark.parametrize("is_back", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        {"machine": {"cpu_model": "other"}},
        {"software": {"torch": "2.10"}},
        {"torch_threads_used": 7},
        {"power_source": "sysfs"},
        {"environment": {"MALLOC_TRIM_THRESHOLD_": "1000000000"}},
    ],
)
def test_changed_machine_is_flagged_from_the_change_on(change, is_back, run, measure, collect):
    for epoch in range(3):
        has_changed = epoch == 1 or (epoch == 2 and not is_back)
        measure(run, epoch, **{**AS_FIRST, **(change if has_changed else {})})
    rows = collect(3)
    assert [row["flags"] for row in rows] == ["", "machine_changed", "machine_changed"]
    assert [row["valid"] for row in rows] == ["True", "False", "False"]


def test_damaged_record_leaves_no_table(run, measure, collect, tmp_path):
    folder = measure(run, 0)
    with open(folder.epoch_path(0) + "/record.json", "a", encoding="utf-8") as handle:
        handle.write("}")
    with pytest.raises(RecordError, match=r"record\.json"):
        collect(1)
    assert not (tmp_path / "out" / "epochs.csv").exists()


def test_damaged_samples_are_never_shown_and_the_epoch_lies_in_the_trash(run, measure, collect):
    folder = measure(run, 0)
    path = Path(folder.epoch_path(0))
    rows = "".join(f"{n},{n},5.0\n" for n in range(40))
    (path / "samples-ina.csv").write_text("t_mono_s,t_unix_s,power_w\n" + rows)
    files.write_json(str(path / "telemetry.json"), {"sources": {"ina": {**SOUND, "n_samples": 40}}})
    write_sums(str(path))
    (path / "samples-ina.csv").write_text("t_mono_s,t_unix_s,power_w\n0,0,5.0\n")
    with pytest.raises(
        RecordError, match=r"samples-ina\.csv was altered.*; the epoch was moved to .*/epoch-0\n"
    ):
        collect(1)
    assert not folder.has(0)
    with pytest.raises(RecordError, match="epoch-0"):
        collect(1)


def test_record_of_the_first_release_has_an_empty_cache(run, measure, collect):
    """It has the same schema version and says nothing of the page cache."""
    folder = measure(run, 0)
    path = Path(folder.epoch_path(0), "record.json")
    meta = json.loads(path.read_text("utf-8"))
    kept = {k: v for k, v in meta.items() if k not in ("cache", "checksums")}
    path.write_text(json.dumps(kept), "utf-8")
    Path(folder.epoch_path(0), "SHA256SUMS").unlink()
    assert collect(1)[0]["cached_pct"] == ""


@pytest.mark.parametrize(
    ("left_pct", "found_pct", "flags", "action", "is_changed"),
    [
        (80.0, 74.9, {"resumed"}, None, True),
        (80.0, 85.1, {"resumed"}, None, True),
        (80.0, 75.0, {"resumed"}, None, False),  # 5 points
        (80.0, 20.0, set(), None, False),  # nobody was there in between
        (80.0, 0.0, {"resumed"}, "dropped", False),  # it was dropped for this epoch
        (None, 20.0, {"resumed"}, None, False),  # not known
    ],
)
def test_resumed_epoch_that_finds_another_cache_is_flagged(
    left_pct, found_pct, flags, action, is_changed
):
    rows = [{"flags": set()}, {"flags": set(flags)}]
    cache = {"before_pct": found_pct, "action": action, "in_memory": False}
    mark_cache(rows, [{"cache": {"after_pct": left_pct}}, {"cache": cache}])
    assert ("cache_changed" in rows[1]["flags"]) == is_changed
    assert rows[0]["flags"] == set()
