"""Lines and bars: where there is no terminal, in a narrow one, without colour, without UTF-8."""

import io
import re

import pytest

from snakemake_logger_plugin_epochwatt import screen
from snakemake_logger_plugin_epochwatt.screen import Bar, Plain, View, open_screen

VIEW = View(
    0.42, 150.0, 111, 266, "LeNet-5, 2 workers: epoch 0 (1 of 3), mini-batch 4 of 899, 204/s"
)


class Tty(io.TextIOWrapper):
    """A terminal of our own, which keeps what it is sent."""

    def __init__(self, encoding="utf-8"):
        super().__init__(io.BytesIO(), encoding=encoding, errors="strict", write_through=True)

    def isatty(self):
        return True

    def shown(self):
        """Return what was written, as lines without control sequences."""
        text = self.buffer.getvalue().decode(self.encoding)
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n").splitlines()


@pytest.fixture(autouse=True)
def _a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)


def drawn(monkeypatch, columns, out=None, no_colour=False):
    """Return what a bar shows in a terminal of so many columns."""
    monkeypatch.setenv("COLUMNS", str(columns))
    out = out or Tty()
    bar = open_screen(out, no_colour)
    bar.show(VIEW)
    bar.stop()
    return out


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 200])
def test_a_bar_keeps_to_the_width(columns, monkeypatch):
    lines = drawn(monkeypatch, columns).shown()
    assert max(map(len, lines)) <= columns
    assert any("2 min 30 s left" in line for line in lines)


def test_a_wide_terminal_shows_all(monkeypatch):
    text = "\n".join(drawn(monkeypatch, 120).shown())
    assert "42 %  111/266 jobs  2 min 30 s left" in text
    assert VIEW.line in text


def test_a_terminal_without_utf_8_gets_letters_of_its_own(monkeypatch):
    lines = drawn(monkeypatch, 60, Tty("ascii")).shown()
    assert any("2 min 30 s left" in line for line in lines)


@pytest.mark.parametrize("how", ["option", "NO_COLOR"])
def test_no_colour_is_none(how, monkeypatch):
    if how == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    out = drawn(monkeypatch, 100, no_colour=how == "option")
    assert not re.search(rb"\x1b\[[0-9;]*3\dm", out.buffer.getvalue())


@pytest.mark.parametrize("term", ["dumb", "unknown", ""])
def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(term, monkeypatch):
    monkeypatch.setenv("TERM", term)
    assert isinstance(open_screen(Tty(), False), Plain)


def test_a_file_gets_plain_lines_and_so_does_who_asks(monkeypatch):
    assert isinstance(open_screen(io.StringIO(), False), Plain)
    assert isinstance(open_screen(Tty(), False, plain=True), Plain)
    bar = open_screen(Tty(), False)
    assert isinstance(bar, Bar)
    bar.stop()


def test_lines_stand_above_the_bar_as_they_are(monkeypatch):
    out = Tty()
    bar = open_screen(out, False)
    bar.line("[link] 100 % [bold]" + "x" * 300)
    bar.stop()
    assert "[link] 100 % [bold]" + "x" * 300 in "".join(out.shown())


def test_plain_progress_is_a_dozen_lines_however_long_it_takes(monkeypatch):
    for whole_s in (60.0, 360.0, 7200.0, 400_000.0):
        now = [1.0]
        monkeypatch.setattr(screen.time, "monotonic", lambda now=now: now[0])
        out = io.StringIO()
        plain = Plain(out)
        while now[0] < whole_s:
            plain.show(VIEW._replace(share=now[0] / whole_s, left_s=whole_s - now[0]))
            now[0] += plain.period_s
        lines = out.getvalue().splitlines()
        assert len(lines) <= 12
        assert whole_s < 100.0 or len(lines) >= 8
    assert lines[0] == "10 %, 111 of 266 jobs, about 99 h 59 min left"
