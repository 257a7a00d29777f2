"""The plugin on Snakemake's records: what a person sees of a run, and of what is none."""

import io
import logging
import os
import re
import signal
from pathlib import Path

import pytest
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_records import failed, finished, job, record

from snakemake_logger_plugin_epochwatt import run_screen
from snakemake_logger_plugin_epochwatt.handler import command_typed
from snakemake_logger_plugin_epochwatt.outlook import Outlook
from snakemake_logger_plugin_epochwatt.run_screen import last_lines, run_line

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


def test_warnings_of_snakemake_and_of_jobs_are_shown_in_full(terminal, tmp_path):
    log = tmp_path / "job.log"
    log.write_text("warning: the board is hot\n  it waits\nfine\n", "utf-8")
    screen = terminal()
    screen.start(train_epoch=1)
    screen.send(plan(), record("incomplete files", level=logging.WARNING))
    screen.send(job(1, "train_epoch", [str(log)], run=RUN, first="0", last="0"), finished(1))
    assert screen.lines[2:] == [
        "warning: incomplete files",
        f"warning: train_epoch (run={RUN}, first=0, last=0): the board is hot",
        "  it waits",
    ]


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


@pytest.mark.parametrize(
    "common", [{"dryrun": True, "stdout": True}, {"quiet": ["progress"]}, {"style": "snakemake"}]
)
def test_who_asks_for_snakemakes_lines_gets_them(common, terminal):
    screen = terminal(**common)
    screen.start(plot_fig02=1)
    assert screen.lines[0] == "Assuming unrestricted shared filesystem usage."
    assert screen.lines[-2:] == ["Job stats:", "..."]


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


def test_jobs_write_their_logs_alone_while_their_lines_are_shown_here(terminal):
    screen = terminal()
    screen.start(plot_fig02=1)
    assert run_screen.QUIET_JOBS not in os.environ
    screen.send(plan())
    assert os.environ[run_screen.QUIET_JOBS] == "1"
    screen.handler.close()
    assert run_screen.QUIET_JOBS not in os.environ


def test_an_unknown_style_is_refused(terminal):
    with pytest.raises(ValueError, match="not one of auto, plain, snakemake"):
        terminal(style="loud")


def test_the_command_to_go_on_is_the_one_that_was_typed(monkeypatch):
    monkeypatch.delenv("EPOCHWATT_COMMAND", raising=False)
    for argv, command in (
        (["/x/snakemake", "--profile", "a b"], "/x/snakemake --profile 'a b'"),
        ([".venv/bin/snakemake", "runs"], ".venv/bin/snakemake runs"),
    ):
        monkeypatch.setattr("sys.argv", argv)
        assert command_typed() == command


# -- in a terminal --


class Tty(io.TextIOWrapper):
    """A terminal of our own, which keeps what it is sent."""

    def __init__(self, encoding="utf-8"):
        super().__init__(io.BytesIO(), encoding=encoding, errors="strict", write_through=True)

    def isatty(self):
        return True

    def fileno(self):
        return 99

    def shown(self):
        """Return what was written, without control sequences of lines and colours."""
        text = self.buffer.getvalue().decode(self.encoding)
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@pytest.fixture
def in_terminal(terminal, monkeypatch):
    """Return a function that shows a run under way in a terminal; it gives what was written."""

    def show(columns=100, encoding="utf-8", term="xterm-256color", more=(), **common):
        monkeypatch.setenv("TERM", term)
        monkeypatch.setenv("COLUMNS", str(columns))
        screen = terminal(out=(out := Tty(encoding)), **common)
        screen.start(train_epoch=2, plot_fig02=1)
        screen.send(plan(), job(1, "plot_fig02", backend="host"), finished(1))
        log = Path("job.log")
        log.write_text("epoch 0: mini-batch 4 of 900, 204/s\x1b[2J\n", "utf-8")
        screen.send(job(2, "train_epoch", [str(log)], run=RUN, first="0", last="0"), *more)
        if bar := screen.handler._run._bar:
            bar.refresh()
        screen.handler.close()
        return out

    return show


@pytest.mark.parametrize("columns", [40, 200])
def test_a_bar_keeps_to_the_width(columns, in_terminal):
    lines = in_terminal(columns).shown().replace("\r", "\n").splitlines()
    assert 0 < max(len(line) for line in lines if " left" in line) <= columns


def test_the_bar_has_jobs_time_left_and_the_last_line_of_what_measures(in_terminal):
    text = in_terminal(120).shown()
    assert "1/3 jobs  16 s left" in text
    assert "LeNet-5, 2 workers: epoch 0: mini-batch 4 of 900, 204/s\\x1b[2J" in text
    warning = record("Größe ━", level=logging.WARNING)  # for a terminal without UTF-8
    assert "warning: Gr\\xf6\\xdfe \\u2501" in in_terminal(100, "ascii", more=[warning]).shown()


def test_no_colour_is_none(in_terminal):
    out = in_terminal(nocolor=True)
    assert not re.search(rb"\x1b\[[0-9;]*3\dm", out.buffer.getvalue())


@pytest.mark.parametrize("how", [{"term": "dumb"}, {"style": "plain"}])
def test_without_a_cursor_to_move_or_by_wish_there_are_plain_lines(how, in_terminal):
    assert b"\x1b[" not in in_terminal(**how).buffer.getvalue().replace(b"\\x1b", b"")


# -- what is read of a job --


def test_of_a_failed_job_the_error_is_shown_without_progress_and_traceback(tmp_path):
    log = tmp_path / "job.log"
    progress = "epoch 2: mini-batch 400 of 900, 100/s, 5 s left\n"
    log.write_text(f"Traceback\n  x\n{progress}error: no memory\n  do: less\n", "utf-8")
    assert last_lines(log) == ["error: no memory", "  do: less"]
    log.write_text("".join(f"line {k}\n" for k in range(30)) + progress, "utf-8")
    assert last_lines(log)[-2:] == ["line 28", "line 29"]
    assert last_lines(tmp_path / "none.log") == []


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ("0,True,9,5,\n1,True,2,0.5,\n2,True,4,1.5,\n", "N: 3 epochs, 3 s each, stall 33 %"),
        ("0,True,9,4.5,\n", "N: 1 epoch, 9 s each, stall 50 %"),
        ("0,True,9,4,0.5\n1,True,2,0,0.25\n", "N: 2 epochs, 2 s each, 0.25 Wh each"),
        (
            "0,True,9,4,\n1,False,2,1,\n2,True,4,1,\n",
            "N: 3 epochs, 4 s each, stall 25 %, 1 not valid",
        ),
        ("0,True,damaged,1,\n", "N: collected"),
    ],
)
def test_a_finished_run_in_a_line(rows, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = tmp_path / "results/runs/r/epochs.csv"
    table.parent.mkdir(parents=True)
    table.write_text("epoch,valid,e2e_s,stall_s,energy_wh\n" + rows, "utf-8")
    assert run_line("N", "r") == text
