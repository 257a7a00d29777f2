import pickle

import pytest

from epochwatt.errors import BoardError, ConfigError, EpochwattError, RebootNeeded


def test_a_problem_alone_is_the_whole_message():
    assert str(EpochwattError("no epoch measured")) == "no epoch measured"


def test_fields_follow_the_problem_one_to_a_line():
    error = ConfigError(
        "must be a number >= 1",
        where="config/studies.yaml: lenet: batch_size",
        found="0",
        allowed="a number >= 1",
        do="run `make run` again",
    )
    assert str(error).splitlines() == [
        "config/studies.yaml: lenet: batch_size: must be a number >= 1",
        "  found: 0",
        "  allowed: a number >= 1",
        "  do: run `make run` again",
    ]
    assert (error.where, error.found) == ("config/studies.yaml: lenet: batch_size", "0")


def test_choices_are_listed():
    assert str(ConfigError("unknown medium 'usb'", allowed=["ssd", "hdd"])).endswith(
        "  allowed: ssd, hdd"
    )


@pytest.mark.parametrize("kind", [BoardError, RebootNeeded])
def test_fields_survive_the_way_between_processes(kind):
    """A loader worker's error reaches the training process as a pickle."""
    error = pickle.loads(pickle.dumps(kind("the mode was not met", where="agx", do="reboot")))
    assert type(error) is kind
    assert (error.problem, error.where, error.do) == ("the mode was not met", "agx", "reboot")
    assert str(error) == "agx: the mode was not met\n  do: reboot"
