"""From records to rows: what is derived, flagged, valid, and how the CSV looks."""

import csv
import json
from pathlib import Path

import pytest

from epochwatt import columns
from epochwatt.epochs.collect import collect_run, mark_cache
from epochwatt.errors import RecordError, RecordWriteError
from epochwatt.records import files
from epochwatt.records.checksums import write_sums

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
        with outputs[0].open(newline="", encoding="utf-8") as handle:
            return list(csv.DictReader(handle))

    return call


def test_columns_are_those_of_fields_in_their_order(run, measure, collect):
    measure(run, 0)
    assert tuple(collect(1)[0]) == columns.names(columns.RUN_EPOCH_COLUMNS)


def test_stall_is_wait_and_copy(run, measure, collect):
    measure(run, 0)
    (row,) = collect(1)
    assert float(row["stall_s"]) == 1.5  # exact: sums of powers of two


def test_overhead_is_what_remains_of_e2e(run, measure, collect):
    measure(run, 0)
    assert float(collect(1)[0]["overhead_s"]) == 0.25


def test_factors_stand_in_every_row(run, measure, collect):
    measure(run, 0)
    measure(run, 1)
    for row in collect(2):
        assert row["run"] == run.id
        assert (row["model"], row["batch_size"], row["dvfs"]) == ("lenet", "16", "on")


def test_one_row_per_epoch_in_order(run, measure, collect):
    for epoch in (2, 0, 1):
        measure(run, epoch)
    assert [row["epoch"] for row in collect(3)] == ["0", "1", "2"]


def test_epochs_beyond_those_asked_for_are_left_alone(run, measure, collect):
    for epoch in range(3):
        measure(run, epoch)
    assert len(collect(2)) == 2


def test_what_was_not_measured_is_an_empty_cell(run, measure, collect):
    measure(run, 0)
    (row,) = collect(1)
    absent = ["energy_wh", "gpu_util_pct", "cached_pct", "power_scope", "sampler_period_s"]
    assert [row[name] for name in absent] == [""] * 5


def test_prefetch_factor_is_empty_without_workers(run, measure, collect):
    measure(run, 0)
    (row,) = collect(1)
    assert (row["num_workers"], row["prefetch_factor"]) == ("0", "")


@pytest.mark.parametrize("flag", sorted(EFFECTS))
@pytest.mark.parametrize(("effect", "valid"), [("invalidates", "False"), ("informs", "True")])
def test_effect_of_a_flag_decides_validity(flag, effect, valid, run, measure, collect):
    measure(run, 0, flags=[flag])
    (row,) = collect(1, {**dict.fromkeys(EFFECTS, "informs"), flag: effect})
    assert (row["flags"], row["valid"]) == (flag, valid)


def test_flags_are_sorted_and_stand_once(run, measure, collect):
    measure(run, 0, flags=["resumed", "cold_process", "resumed"])
    assert collect(1)[0]["flags"] == "cold_process resumed"


def test_epoch_without_flags_is_valid(run, measure, collect):
    measure(run, 0)
    (row,) = collect(1)
    assert (row["flags"], row["valid"]) == ("", "True")


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


def test_loss_that_is_no_number_is_flagged_and_empty(run, measure, collect):
    measure(run, 0, loss=None)
    (row,) = collect(1)
    assert (row["flags"], row["loss"]) == ("loss_not_finite", "")


AS_FIRST = {
    "power_source": "jtop",
    "torch_threads_used": 2,
    "environment": {"OMP_NUM_THREADS": "2"},
}


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
def test_changed_machine_is_flagged_from_the_change_on(change, run, measure, collect):
    for epoch in range(3):
        measure(run, epoch, **{**AS_FIRST, **(change if epoch >= 1 else {})})
    rows = collect(3)
    assert [row["flags"] for row in rows] == ["", "machine_changed", "machine_changed"]
    assert [row["valid"] for row in rows] == ["True", "False", "False"]


def test_another_name_of_the_same_release_is_no_change(run, measure, collect):
    """A newer version of epochwatt knows the JetPack of more releases of L4T."""
    for epoch, jetpack in enumerate(("6", "6.2.1")):
        measure(run, epoch, software={"l4t": "36.4.7", "jetpack": jetpack})
    assert [row["flags"] for row in collect(2)] == ["", ""]


def test_machine_that_changes_back_stays_flagged(run, measure, collect):
    for epoch in range(3):
        measure(run, epoch, **({"software": {"torch": "2.10"}} if epoch == 1 else {}))
    rows = collect(3)
    assert [row["flags"] for row in rows] == ["", "machine_changed", "machine_changed"]
    assert [row["valid"] for row in rows] == ["True", "False", "False"]


def test_kind_of_board_under_its_former_name_is_the_same_machine(run, measure, collect):
    for epoch, board in enumerate(["orin_agx", "agx_orin", "agx_xavier"]):
        measure(run, epoch, machine={"cpu_model": "A78", "board": board})
    assert [row["flags"] for row in collect(3)] == ["", "", "machine_changed"]


def test_older_record_that_does_not_name_its_gpu_speaks_against_none(run, measure, collect):
    for epoch, card in enumerate([None, "1a2b", "1a2b"]):  # the first record is an older one
        measure(run, epoch, **({"gpu_uuid": card} if card else {}))
    assert [row["flags"] for row in collect(3)] == ["", "", ""]


def test_epoch_without_power_speaks_against_no_sensor(run, measure, collect):
    for epoch, source in enumerate(["sysfs", None, "sysfs"]):
        measure(run, epoch, power_source=source)
    assert [row["flags"] for row in collect(3)] == ["", "", ""]


def test_variable_that_says_what_the_record_says_already_is_no_change(run, measure, collect):
    for epoch, threads in enumerate("12"):  # torch took as many as the study's setting says
        environment = {"OMP_NUM_THREADS": threads, "CUDA_VISIBLE_DEVICES": threads}
        measure(run, epoch, environment=environment, torch_threads_used=1)
    assert [row["flags"] for row in collect(2)] == ["", ""]


def test_gpu_that_changes_is_flagged(run, measure, collect):
    for epoch, card in enumerate(["1a2b", "1a2b", "77"]):
        measure(run, epoch, gpu_uuid=card)
    assert [row["flags"] for row in collect(3)] == ["", "", "machine_changed"]


def test_changed_machine_that_only_informs_stays_valid(run, measure, collect):
    for epoch in range(3):
        measure(run, epoch, **({"software": {"torch": "2.10"}} if epoch == 1 else {}))
    rows = collect(3, {**EFFECTS, "machine_changed": "informs"})
    assert [row["valid"] for row in rows] == ["True"] * 3


def test_change_after_the_epochs_asked_for_is_no_change(run, measure, collect):
    measure(run, 0)
    measure(run, 1, machine={"cpu_model": "other"})
    assert collect(1)[0]["flags"] == ""


def test_missing_epoch_is_named(run, measure, collect):
    measure(run, 0)
    with pytest.raises(RecordError, match="epoch-1"):
        collect(2)


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


def test_samples_without_a_checksum_that_are_too_few_are_noticed(run, measure, collect):
    folder = measure(run, 0)
    path = Path(folder.epoch_path(0))
    (path / "samples-ina.csv").write_text("t_mono_s,t_unix_s,power_w\n0,0,5.0\n")
    files.write_json(str(path / "telemetry.json"), {"sources": {"ina": {**SOUND, "n_samples": 40}}})
    write_sums(str(path))
    with pytest.raises(RecordError, match=r"samples-ina\.csv has 1 rows; 40 were written"):
        collect(1)


def test_flag_that_this_version_does_not_know_is_a_clear_error(run, measure, collect):
    measure(run, 0, flags=["cold_process", "overheated"])
    with pytest.raises(RecordError, match="overheated"):
        collect(1)


def test_table_that_cannot_be_written_is_a_clear_error(run, measure, collect, tmp_path):
    measure(run, 0)
    (tmp_path / "file").touch()
    with pytest.raises(RecordWriteError, match="the epochs of a run"):
        collect(1, folder=tmp_path / "file")


def test_record_of_the_first_release_has_an_empty_cache(run, measure, collect):
    """It has the same schema version and says nothing of the page cache."""
    folder = measure(run, 0)
    path = Path(folder.epoch_path(0), "record.json")
    meta = json.loads(path.read_text("utf-8"))
    kept = {k: v for k, v in meta.items() if k not in ("cache", "checksums")}
    path.write_text(json.dumps(kept), "utf-8")
    Path(folder.epoch_path(0), "SHA256SUMS").unlink()
    assert collect(1)[0]["cached_pct"] == ""


def test_a_record_that_cannot_be_made_a_row_is_named(run, measure, collect):
    measure(run, 0)
    measure(run, 1, flags=["unheard_of"])
    with pytest.raises(RecordError, match=r"epoch-1: a record has flags .* unheard_of"):
        collect(2)


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


def test_data_that_is_held_in_memory_is_not_read_again():
    rows = [{"flags": set()}, {"flags": {"resumed"}}]
    cache = {"before_pct": 20.0, "action": None, "in_memory": True}
    mark_cache(rows, [{"cache": {"after_pct": 80.0}}, {"cache": cache}])
    assert rows[1]["flags"] == {"resumed"}
