"""What a person sees of a start: with a terminal and without, stopped, failed, complete."""

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import time

import pytest
from full_checkout import PATIENCE_S, Outcome, configure_long_runs

pytestmark = pytest.mark.workflow

MOST_LINES = 60  # of a start without a terminal
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def shown(checkout):
    """Let a checkout show its starts as a person sees them."""
    checkout.style = "auto"
    return checkout


def in_terminal(checkout, *targets, stop_when=None, **environment):
    """Run the workflow in a terminal, with Ctrl-C typed once `stop_when()`."""
    control, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    with subprocess.Popen(
        ["setsid", "--ctty", "--wait", *checkout._snakemake(), *targets],
        cwd=checkout.root,
        env=checkout._environment() | {"TERM": "xterm-256color"} | environment,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        os.set_blocking(control, False)
        sent, typed, deadline_s = b"", False, time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            try:
                if not (piece := os.read(control, 65536)):
                    break
                sent += piece
            except BlockingIOError:
                if stop_when and not typed and stop_when():
                    typed = True
                    os.write(control, b"\x03")
                time.sleep(0.02)
            except OSError:  # nobody holds the other end any more
                break
        os.close(control)
        return Outcome(process.wait(PATIENCE_S), sent.decode("utf-8"))


def stays(outcome):
    """Return the lines that stay on the screen, without the bar."""
    text = re.sub(r"(\x1b\[1A)?\r?\x1b\[2K", "\n", outcome.text)
    lines = [line.strip() for line in CONTROL.sub("", text).replace("\r", "\n").splitlines()]
    return [line for line in lines if line and not re.search("jobs  .* left$|^[━╸╺ -]+", line)]


def assert_plain(outcome):
    assert len(outcome.text.splitlines()) <= MOST_LINES
    assert "\x1b" not in outcome.text
    assert "\r" not in outcome.text
    assert "Traceback" not in outcome.text


@pytest.mark.slow
def test_without_a_terminal_a_start_is_a_few_plain_lines(shop, finished):
    """One that fails, one that makes everything, one that has nothing to do."""
    checkout = shown(shop.copy_of(finished.checkout))
    (checkout.root / f"results/runs/{finished.drawn}/epochs.csv").unlink()
    record = checkout.root / f"measured/{finished.drawn}/epoch-0/record.json"
    record.write_text(record.read_text("utf-8")[:100], "utf-8")
    outcome = checkout.snakemake("runs", "figures")
    assert outcome.status == 1
    assert_plain(outcome)
    lines = outcome.text.splitlines()
    place = lines.index(f"failed: collect_run (run={finished.drawn})")
    assert lines[place + 1].startswith("  | error: ")
    assert f"  log: results/logs/collect_run/{finished.drawn}.log" in lines[place:]
    assert lines[-1].startswith("mend what the log says, then continue with: ")
    assert re.search(r"^2 of 3 epochs kept, 0 of \d+ jobs done; \d+ more wait", lines[-2])

    shutil.rmtree(checkout.root / "results")  # the damaged epoch lies in the trash by now
    shutil.rmtree(checkout.root / "measured" / finished.beside)
    outcome = checkout.make("runs", "figures")
    assert_plain(outcome)
    assert re.search(r"^\d+ jobs, \d+ jobs? of training, 1 figure$", outcome.text, re.M)
    assert re.search(r"^LeNet-5, batch 128: 1 epoch, .* s each", outcome.text, re.M)
    assert re.search(r"^LeNet-5, batch 64: 2 epochs, .* s each", outcome.text, re.M)
    lines = outcome.text.splitlines()
    assert re.search(r"^done: \d+ jobs in .* s$", lines[-1])
    (log,) = re.findall(r"^details  (\S+)$", outcome.text, re.M)
    details = checkout.read(log)
    assert "rule train_epoch:" in details
    assert "steps (100%) done" in details
    assert lines[2] in details  # what is planned

    lines = checkout.make("runs", "figures").text.splitlines()
    assert len(lines) <= 2
    assert re.search(r"^nothing to do: all that is asked for is there \(\d+ s\)$", lines[-1])


@pytest.mark.thorough
@pytest.mark.slow
def test_in_a_terminal_a_bar_has_the_time_left_and_goes_away(shop, finished):
    checkout = shown(shop.copy_of(finished.checkout))
    shutil.rmtree(checkout.root / "results/runs")
    outcome = in_terminal(checkout, "runs")
    assert outcome.status == 0, outcome.text
    assert re.search(r"\d+/\d+ jobs  .*\d+ s left", CONTROL.sub("", outcome.text))
    assert stays(outcome)[-1].startswith("done: ")
    assert outcome.text.rindex("\x1b[?25h") < outcome.text.rindex("done: ")  # the cursor is back


@pytest.mark.slow
def test_ctrl_c_says_what_is_kept_and_what_to_type(fresh, shop):
    configure_long_runs(fresh, 3)
    shop.provide_data(fresh)
    (run,) = fresh.runs()
    before = in_terminal(
        shown(fresh),
        stop_when=lambda: fresh.is_measuring(run.id, 1),
        EPOCHWATT_COMMAND="make run",
    )
    assert before.status != 0
    assert "Traceback" not in before.text
    assert "Error" not in before.text
    *_, stopped, again = stays(before)
    assert re.search(r"^stopped after .* s; 1 of 3 epochs kept, 0 of \d+ jobs done$", stopped)
    assert again == "continue with: make run"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--dag", "digraph snakemake_dag {"),
        ("--dry-run --forceall", "was a dry-run"),
        ("--summary", "output_file\tdate"),
        ("--list-rules", "train_epoch"),
    ],
)
def test_what_is_no_run_goes_to_standard_output_as_before(words, expected, shop, finished):
    checkout = shown(shop.copy_of(finished.checkout))
    done = subprocess.run(
        [*checkout._snakemake(), *words.split()],
        cwd=checkout.root,
        env=checkout._environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert expected in done.stdout
    assert "nothing to do" not in done.stdout + done.stderr
