"""The log of a script rule: what goes into the file, what on the screen."""

import logging

import pytest

from epochwatt.adapters import job_log
from epochwatt.errors import DataError


@pytest.fixture(autouse=True)
def _root_logger():
    """Give the root logger back its handlers, which `job_log` replaces."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    root.handlers = []
    yield
    root.handlers = handlers
    root.setLevel(level)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "job.log"


def test_known_error_is_a_line_on_the_screen_and_has_its_traceback_in_the_file(path, capsys):
    with pytest.raises(SystemExit) as ended, job_log(str(path)):
        raise DataError("no data set at data/x")
    assert ended.value.code == 1
    assert capsys.readouterr().err == "error: no data set at data/x\n"
    text = path.read_text("utf-8")
    assert text.startswith("Traceback")
    assert text.endswith("error: no data set at data/x\n")


def test_full_disk_hides_no_error_behind_those_of_the_log(capsys):
    with pytest.raises(SystemExit) as ended, job_log("/dev/full"):
        raise DataError("no room for a table")
    assert ended.value.code == 1
    assert ended.value.__context__.__class__ is DataError
    assert capsys.readouterr().err == "error: no room for a table\n"


@pytest.mark.parametrize("error", [KeyError("lost"), KeyboardInterrupt()])
def test_unexpected_error_is_raised_and_kept_in_the_file(path, error):
    with pytest.raises(type(error)), job_log(str(path)):
        raise error
    assert type(error).__name__ in path.read_text("utf-8")


def test_messages_reach_file_and_screen(path, capsys):
    with job_log(str(path)):
        pass
    assert path.read_text("utf-8") == ""
    with job_log(str(path)):
        logging.getLogger("epochwatt.somewhere").info("drew %d bars", 3)
    assert path.read_text("utf-8") == "drew 3 bars\n"
    assert capsys.readouterr().err == "drew 3 bars\n"
