"""When a mode has been trained enough, by readings of power that a test makes up."""

import pytest

from epochwatt.board.telemetry.client import Power
from epochwatt.board.training.mode_loop import ModeWatch
from epochwatt.board.training.procedure import DEFAULTS, procedure_of
from epochwatt.errors import ConfigError

START_S = 100.0


class Machine:
    """A clock that each mini-batch moves on, and a sensor of ten readings a second."""

    def __init__(self, minibatch_s=0.05, follows_s=0.3, before_w=5.0, after_w=15.0):
        self.now_s = START_S
        self.minibatch_s = minibatch_s
        self.load_s = START_S
        self.follows_s = follows_s
        self.before_w, self.after_w = before_w, after_w
        self.dies_s = float("inf")
        self.looks = 0
        self._read_until = int(10 * (START_S - DEFAULTS.idle_s))

    def clock(self):
        return self.now_s

    def power(self):
        """Return the readings that have come since the last time, as the sampler does."""
        self.looks += 1
        if self.now_s >= self.dies_s:
            return Power("module", 0.1, [], [])
        ticks = range(self._read_until, int(10 * self.now_s))
        self._read_until = int(10 * self.now_s)
        t_s = [(tick + 0.5) / 10 for tick in ticks]
        followed = [t > self.load_s + self.follows_s for t in t_s]
        return Power("module", 0.1, t_s, [[self.before_w, self.after_w][f] for f in followed])

    def watched(self, procedure=DEFAULTS, power=None):
        """Train until the watch has enough; return it and the number of mini-batches."""
        watch = ModeWatch(power or self.power, procedure, self.clock)
        watch.begin()
        self.now_s += self.minibatch_s
        n = 1
        while watch():
            self.now_s += self.minibatch_s
            n += 1
        return watch, n


def begin_s(machine, n):
    """Return when mini-batch `n` began."""
    return START_S + n * machine.minibatch_s


def test_clean_mini_batches_begin_after_power_has_followed_and_one_is_dropped():
    machine = Machine(minibatch_s=0.047)
    watch, n = machine.watched()
    followed_s = watch.transition.followed_s
    assert followed_s == pytest.approx(START_S + 0.3, abs=0.11)
    first = watch.first()
    assert begin_s(machine, first - 2) < followed_s <= begin_s(machine, first - 1)
    assert n - first >= DEFAULTS.minibatches
    assert watch.n_power >= DEFAULTS.power_readings
    assert watch.mean_power_w() == pytest.approx(15.0)


def test_a_power_that_never_follows_is_given_up():
    machine = Machine(after_w=5.0)
    watch, _ = machine.watched()
    assert watch.transition is None
    assert begin_s(machine, watch.first() - 1) >= START_S + DEFAULTS.patience_s
    assert watch.n_power >= DEFAULTS.power_readings


def test_a_sensor_that_stops_is_waited_for_and_no_longer():
    machine = Machine()
    machine.dies_s = START_S + 3.0
    procedure = DEFAULTS._replace(power_readings=100, power_patience_s=5.0)
    watch, _ = machine.watched(procedure)
    assert watch.transition is not None
    assert 0 < watch.n_power < 100
    assert 5.0 <= machine.now_s - begin_s(machine, watch.first()) < 5.5


@pytest.mark.parametrize(
    "factors",
    [{"minibatches": 1}, {"procedure": {"idle_s": -1}}, {"procedure": {"idle": 1}}],
)
def test_what_cannot_be_is_refused(factors):
    with pytest.raises(ConfigError):
        procedure_of(factors)
