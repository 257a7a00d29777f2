"""What is read out of the log of a job while it runs and after it."""

import os
import time
from pathlib import Path

import pytest

from snakemake_logger_plugin_epochwatt.job_log import TrainingLog, last_lines, warnings_in

PROGRESS = "epoch 2: mini-batch 400 of 900, 100/s, 5 s left\n"
ENDED = "epoch 2: 9.000 s = wait 1.000 + copy 0.000 + compute 8.000 + overhead 0.000; loss 0.1\n"


@pytest.fixture
def job_log(tmp_path, monkeypatch):
    """Return the path of a job's log, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "job.log"


def written(path: Path, text: str, age_s: float) -> Path:
    """Write a log, the last of it some seconds ago."""
    path.write_text(text, "utf-8")
    when_s = time.time() - age_s
    os.utime(path, (when_s, when_s))
    return path


def test_mini_batches_are_reckoned_on_from_the_last_report(job_log):
    epoch = TrainingLog(written(job_log, PROGRESS, age_s=2.0), "run").look()
    assert epoch.epoch == 2
    assert epoch.done == pytest.approx(600, abs=20)
    assert epoch.left_s == pytest.approx(3.0, abs=0.2)
    assert epoch.power_w is None


def test_no_more_mini_batches_are_done_than_there_are(job_log):
    assert TrainingLog(written(job_log, PROGRESS, age_s=60.0), "run").look().done == 900


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the page cache cannot be dropped by this user: only the data set's pages\n",
        "epoch 2: mini-batch 0 of 900\n",
        PROGRESS + ENDED,
    ],
    ids=["empty", "other words", "no rate yet", "ended"],
)
def test_between_epochs_none_is_under_way(text, job_log):
    assert TrainingLog(written(job_log, text, age_s=0.0), "run").look() is None


def test_a_log_that_is_not_there_yet_says_nothing(job_log):
    assert TrainingLog(job_log, "run").look() is None


def test_the_last_report_counts_and_a_warm_up_has_no_number(job_log):
    text = PROGRESS + ENDED + "warm-up: mini-batch 2 of 20, 1/s, 18 s left\n"
    epoch = TrainingLog(written(job_log, text, age_s=0.0), "run").look()
    assert (epoch.epoch, epoch.n, epoch.rate) == (None, 20, 1.0)


def test_the_power_is_the_last_whole_sample_of_the_total(job_log):
    folder = job_log.parent / "measured/run/epoch-2.unfinished"
    folder.mkdir(parents=True)
    (folder / "samples-host.csv").write_text("t_mono_s,cpu_util_pct\n1,50\n", "utf-8")
    (folder / "samples-ina3221.csv").write_text(
        "t_mono_s,rail_gpu_w,power_module_w\n1,3.0,11.0\n2,4.0,12.5\n3,5.", "utf-8"
    )
    epoch = TrainingLog(written(job_log, PROGRESS, age_s=0.0), "run").look()
    assert epoch.power_w == 12.5


def test_a_power_that_is_no_number_is_none(job_log):
    folder = job_log.parent / "measured/run/epoch-2.unfinished"
    folder.mkdir(parents=True)
    (folder / "samples-nvml.csv").write_text("t_mono_s,power_gpu_w\n1,nan\n", "utf-8")
    assert TrainingLog(written(job_log, PROGRESS, age_s=0.0), "run").look().power_w is None


def test_warnings_are_taken_in_full_with_the_lines_that_belong_to_them(job_log):
    text = f"{PROGRESS}warning: a record is damaged\n  it was moved to trash\nwarning: hot\n{ENDED}"
    job_log.write_text(text, "utf-8")
    assert warnings_in(job_log) == ["a record is damaged\n  it was moved to trash", "hot"]


def test_of_a_failed_job_the_error_is_shown_without_progress_and_traceback(job_log):
    text = f"Traceback (most recent call last):\n  x\n{PROGRESS}error: run: no memory\n  do: less\n"
    job_log.write_text(text, "utf-8")
    assert last_lines(job_log) == ["error: run: no memory", "  do: less"]


def test_without_such_an_error_the_end_of_the_log_is_shown(job_log):
    job_log.write_text("".join(f"line {k}\n" for k in range(30)) + PROGRESS, "utf-8")
    assert last_lines(job_log, 3) == ["line 27", "line 28", "line 29"]


def test_of_a_log_that_is_not_there_nothing_is_shown(job_log):
    assert last_lines(job_log) == warnings_in(job_log) == []
