"""The plugin on Snakemake's records: what a person sees of a run, and of what is none."""

import logging
import os
import signal

import pytest
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_records import failed, finished, job, record

from snakemake_logger_plugin_epochwatt import run_screen
from snakemake_logger_plugin_epochwatt.outlook import Outlook

RUN, SWEEP = "host-local-lenet-disk-w2", "host-local-lenet"


def plan():
    """Return the record in which the workflow says what it plans."""
    text = "1 run, 2 epochs, 0 of them measured; the rest takes about 16 s"
    told = Outlook(
        titles={RUN: "LeNet-5, 2 workers", f"{SWEEP}/a1": "threads"},
        jobs_s={(RUN, "0", "0"): 8.0, (RUN, "1", "1"): 8.0},
        epochs=[f"measured/{RUN}/epoch-{k}" for k in range(2)],
    )
    return record(text, epochwatt_outlook=told)


def test_a_run_is_a_few_lines(terminal, tmp_path, golden):
    table = tmp_path / "results/runs" / RUN / "epochs.csv"
    table.parent.mkdir(parents=True)
    table.write_text("epoch,valid,e2e_s,stall_s\n0,True,3,1\n1,True,2.9,0.812\n", "utf-8")
    screen = terminal()
    screen.start(train_epoch=2, collect_run=1, plot_fig02=2, all=1)
    screen.send(plan())
    for part in (0, 1):
        screen.send(job(part, "train_epoch", run=RUN, first=str(part), last=str(part)))
        screen.send(finished(part), record("1 of 6 steps", LogEvent.PROGRESS, done=1, total=6))
    screen.send(job(2, "collect_run", run=RUN), finished(2))
    for figure in (3, 4):
        screen.send(job(figure, "plot_fig02", backend="host"), finished(figure))
    screen.send(job(5, "all"), finished(5), record("Complete log(s): x"), record("Elapsed time: 1"))
    screen.handler.close()
    golden("run", "a run", "\n".join(screen.lines))


def test_a_failed_job_is_shown_with_the_end_of_its_log_and_what_to_do(terminal, tmp_path, golden):
    log = tmp_path / "job.log"
    log.write_text("Traceback\n  code\nerror: no room\n  do: make room\n", "utf-8")
    screen = terminal()
    screen.start(plot_fig02=1, plot_fig03=1, summarise=1)
    screen.send(plan(), job(1, "plot_fig02", log=[str(log)], backend="host"))
    screen.send(
        record("RuleException:\nCalledProcessError in file x", LogEvent.ERROR, logging.ERROR),
        failed(1, "plot_fig02", [str(log)]),
        job(2, "plot_fig03", backend="host"),
        finished(2),
        record("Exiting because a job execution failed. Look below", level=logging.ERROR),
        record(
            "WorkflowError:\nAt least one job did not complete successfully.", LogEvent.ERROR, 40
        ),
    )
    screen.handler.close()
    golden("run", "a run with a failed job", "\n".join(screen.lines))


NOTHING = "Nothing to be done (all requested files are present and up to date)."


# what is no run is shown as before, also if it ends early
@pytest.mark.parametrize(
    ("records", "lines"),
    [
        (
            [record("Workflow has started!", LogEvent.WORKFLOW_STARTED), record(NOTHING)],
            ["nothing to do: all that is asked for is there (0 s)"],
        ),
        ([record("WorkflowError:\nno", LogEvent.ERROR, logging.ERROR)], ["WorkflowError:", "no"]),
        ([record("Building DAG"), record("Creating report")], ["Building DAG", "Creating report"]),
    ],
)
def test_a_start_without_jobs_is_shown(records, lines, terminal):
    screen = terminal()
    screen.send(*records)
    screen.handler.close()
    assert screen.lines == lines


@pytest.fixture
def interrupt():
    """Return a function that presses Ctrl-C; the handler of before is put back."""
    before = signal.getsignal(signal.SIGINT)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_says_what_is_kept_and_what_to_type(terminal, tmp_path, interrupt):
    screen = terminal()
    screen.start(train_epoch=2, plot_fig02=1)
    (tmp_path / "measured" / RUN / "epoch-0").mkdir(parents=True)
    screen.send(plan(), job(1, "train_epoch", run=RUN, first="0", last="0"), finished(1))
    screen.send(job(2, "train_epoch", run=RUN, first="1", last="1"))
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    screen.send(
        record("Terminating processes on user request, this might take some time."),
        failed(2, "train_epoch"),
        record("WorkflowError:\nAt least one job did not", LogEvent.ERROR, logging.ERROR),
    )
    screen.handler.close()
    assert screen.lines[2:] == [
        "stopped after 0 s; 1 of 2 epochs kept, 1 of 3 jobs done",
        "continue with: make run",
    ]


def test_ctrl_c_before_the_first_job_ends_without_a_traceback(terminal, interrupt):
    screen = terminal()
    screen.send(record("Workflow has started!", LogEvent.WORKFLOW_STARTED))
    with pytest.raises(SystemExit) as ended:
        interrupt()
    screen.handler.close()
    assert ended.value.code == 130
    assert screen.lines == ["stopped before a job was started; continue with: make run"]


def test_an_error_of_the_display_is_said_once_and_snakemakes_lines_go_on(terminal, monkeypatch):
    screen = terminal()
    screen.start(plot_fig02=2)
    monkeypatch.setattr(run_screen, "Job", lambda *_: 1 / 0)
    screen.send(job(1), job(2), record("1 of 2 steps (50%) done"))
    complaints = [line for line in screen.lines if "display failed" in line]
    assert complaints == [
        "the display failed (ZeroDivisionError: division by zero); plain logging goes on"
    ]
    assert screen.lines[-1] == "1 of 2 steps (50%) done"
    assert run_screen.QUIET_JOBS not in os.environ


# -- what is read of a job --
