import pickle

import pytest

from epochwatt.errors import BoardError, ConfigError, EpochwattError, RebootNeeded


def test_fields_follow_the_problem_one_to_a_line():
    assert str(EpochwattError("no epoch measured")) == "no epoch measured"
    error = ConfigError("unknown", where="a.yaml", found="0", allowed=["b", "c"], do="run it again")
    assert str(error) == "a.yaml: unknown\n  found: 0\n  allowed: b, c\n  do: run it again"
    assert (error.where, error.found) == ("a.yaml", "0")


@pytest.mark.parametrize("kind", [BoardError, RebootNeeded])
def test_fields_survive_the_way_between_processes(kind):
    """A loader worker's error reaches the training process as a pickle."""
    error = pickle.loads(pickle.dumps(kind("the mode was not met", where="agx", do="reboot")))
    assert type(error) is kind
    assert (error.problem, error.where, error.do) == ("the mode was not met", "agx", "reboot")
    assert str(error) == "agx: the mode was not met\n  do: reboot"
