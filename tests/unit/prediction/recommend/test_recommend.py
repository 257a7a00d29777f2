"""The best mode of a board within budgets."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.models.features import POWER
from epochwatt.prediction.models.physical import fit_physical_time, fit_power
from epochwatt.prediction.predictor import Context, Predictor
from epochwatt.prediction.recommend.recommend import recommend, safe_mode
from epochwatt.prediction.registry import load_method
from tests.unit.prediction.models.test_utilisation import world

STRONGEST = Mode(8, 2265.6, 1377, 2133)


@pytest.fixture(scope="module")
def time(plant):
    return fit_physical_time(plant((0.5, 0.2, 0.2, 0.1, 0)))


@pytest.fixture(scope="module")
def power(plant):
    return fit_power(plant((0.1, 0.3, 0.1, 0.1, 0.1, 0.3), terms=POWER, whole=25))


def reachable(board):
    """Return the modes that are considered: the lowest profiled memory clock is 1065.6 MHz."""
    modes = board.all_modes()
    return modes[modes[:, 3] >= 1065.6 / 2]


@pytest.fixture(scope="module")
def every(agx, time, power):
    """Time, power and energy of every mode, worked out here."""
    epoch_s, power_w = time.mean(reachable(agx)), power.mean(reachable(agx))
    return {"epoch_s": epoch_s, "power_w": power_w, "energy_wh": epoch_s * power_w / 3600}


def only_known(model, rows):
    """Return a model whose profiled modes are these: the plain sum, without what was observed."""
    return replace(model, trained_on=as_rows(rows), observed=np.empty(0))


@pytest.mark.parametrize(("profiled", "cores"), [((8, 7), 8), ((6, 7), 6), ((4, 3), 5)])
def test_among_equal_modes_the_nearest_to_what_was_profiled_is_taken(
    agx, time, power, named, profiled, cores
):
    rows = [named[name]._replace(cores=profiled[name == "a"]) for name in "acij"]
    answer = recommend(agx, only_known(time, rows), only_known(power, rows), "time", {})
    assert answer.mode == STRONGEST._replace(cores=cores)  # five processes: more do nothing
    assert answer.fixed == ()


def test_a_part_that_no_profiled_mode_varies_stays_as_it_is(agx, time, power, named):
    """Nothing is known of other values: fewer cores would draw less, a lower clock likewise."""
    rows = [named[name]._replace(cores=6, emc_mhz=1600.0) for name in "bceg"]
    least = recommend(agx, only_known(time, rows), only_known(power, rows), "energy", {})
    assert least.fixed == ("cores", "emc_mhz")
    assert (least.mode.cores, least.mode.emc_mhz) == (6, 1600)
    assert least.n_modes == 29 * 14
    assert {mode.mode.cores for mode in least.front} == {6}


def test_memory_clocks_far_below_all_profiled_ones_are_left_out(agx, time, power):
    """The least power of all would be there, at a time that nobody knows."""
    answer = recommend(agx, time, power, "time", {"power_w": 12.0}, max_risk=0.5)
    lowest_mhz = time.trained_on[:, 3].min()
    assert answer.mode.emc_mhz >= lowest_mhz / 2
    assert answer.n_out_of_reach == (agx.all_modes()[:, 3] < lowest_mhz / 2).sum() > 0


@pytest.mark.parametrize(
    ("objective", "budgets"),
    [
        *(("time", {}), ("time", {"power_w": 15}), ("energy", {"epoch_s": 400})),
        *(("edp", {"power_w": 15}), ("energy", {"energy_wh": 1.6, "power_w": 20})),
    ],
)
def test_no_other_mode_within_the_budgets_is_better(agx, time, power, every, objective, budgets):
    answer = recommend(agx, time, power, objective, budgets, max_risk=0.5)
    aim = {"time": every["epoch_s"], "energy": every["energy_wh"]}.get(
        objective, every["epoch_s"] * every["energy_wh"]
    )
    within = np.all([every[name] <= most for name, most in budgets.items()], axis=0)
    within = np.broadcast_to(within, aim.shape)
    place = np.flatnonzero((reachable(agx) == answer.mode).all(1))[0]
    assert within[place]
    assert aim[place] <= aim[within].min() * 1.001
    assert answer.n_within == within.sum()
    for estimate in answer.estimates.values():
        assert estimate.low < estimate.value < estimate.high
    assert [mode.epoch_s for mode in answer.front] == sorted(mode.epoch_s for mode in answer.front)
    for mode in answer.front[:: max(1, len(answer.front) // 20)]:
        worse = (every["epoch_s"] >= mode.epoch_s) | (every["energy_wh"] >= mode.energy_wh)
        assert worse.all()
    assert answer.front[-1].energy_wh == pytest.approx(every["energy_wh"].min())


def test_the_risk_is_that_of_a_mode_which_was_chosen_of_many(agx, time, power):
    """The winner's own sample is too hopeful, the less so the more modes are known."""
    answer = recommend(agx, time, power, "time", {"power_w": 18, "energy_wh": 2.0}, max_risk=0.5)
    own = (power.sample([answer.mode]) > 18).mean()
    assert own + 0.05 < answer.risks["power_w"] < 0.9
    assert 0 <= answer.risks["energy_wh"] < 1
    many = replace(power, trained_on=np.repeat(power.trained_on, 10_000, axis=0))
    assert many.hopeful == pytest.approx(power.hopeful / 10)


def test_budgets_that_no_mode_keeps_together_are_refused(agx, time, power, every):
    budgets = {name: 1.01 * every[name].min() for name in ("epoch_s", "power_w")}
    quick, frugal = (every[name] <= most for name, most in budgets.items())
    least_s, least_w = every["epoch_s"][frugal].min(), every["power_w"][quick].min()
    with pytest.raises(PredictionError, match=r"--max-epoch-s .* and --max-power-w") as caught:
        recommend(agx, time, power, "energy", budgets)
    assert caught.value.do == (
        f"raise --max-epoch-s to {least_s:.4g} or more, or raise --max-power-w to {least_w:.4g} "
        "or more"
    )


# -- a mode that is as safe as was asked -----------------------------------------------------------

MODES = as_rows([(4, 1000, gpu, 1600) for gpu in range(100, 1100, 100)])
BOUND = 1.6448536


@dataclass(frozen=True, eq=False)
class Law(Predictor):
    """A power of the GPU's clock, known to a standard deviation."""

    target: str
    trained_on: Numbers
    exponent: float
    sd: float | None  # None: it states no interval

    def predict(self, modes):
        return as_rows(modes)[:, 2] ** self.exponent

    def interval(self, modes, level=0.9):
        if self.sd is None:
            return None
        far = np.exp(BOUND * self.sd)
        return self.predict(modes) / far, self.predict(modes) * far


TIME, WATTS = Law("time_s", MODES, -1.0, 0.01), Law("power_w", MODES, 1.0, 0.1)
FOUR = as_rows(list(product((2, 4), (500, 1000), (100, 1000), (800, 1600))))


def test_the_fastest_mode_that_is_safe_enough_is_chosen():
    """600 x exp(1.645 x 0.1) is 707; the mean alone would take 700."""
    choice = safe_mode(TIME, WATTS, MODES, 710, 0.05)
    assert choice[:2] == (5, 6)
    assert choice.risks["power_w"] == pytest.approx(0.046, abs=0.002)
    assert safe_mode(TIME, WATTS, MODES, 701, 0.5).place == 6
    assert safe_mode(TIME, WATTS, MODES, 710, 0.001).place < 5
    assert safe_mode(TIME, WATTS, MODES, 700, 0.05, over_w=10).place == 5
    # of modes of four parts, of which sixteen are known, the chosen one is 0.40 deviations higher
    chosen_of_many = replace(WATTS, trained_on=FOUR)
    assert chosen_of_many.risk(MODES[5:6], 710, 0.01) == pytest.approx([0.099], abs=0.002)
    assert safe_mode(TIME, chosen_of_many, MODES, 710, 0.05).place < 5


@pytest.mark.parametrize(
    ("sd", "limit_w", "risk", "problem"),
    [
        (0.1, 50, 0.05, "no mode keeps 50 W"),
        (0.1, 500, 0, "a risk of"),
        (0.1, 500, 0.6, "a risk of"),
        (None, 500, 0.05, "does not know how sure"),
    ],
)
def test_what_cannot_be_safe_is_refused(sd, limit_w, risk, problem):
    with pytest.raises(PredictionError, match=problem):
        safe_mode(TIME, Law("power_w", MODES, 1.0, sd), MODES, limit_w, risk)


def test_choices_in_planted_worlds_break_as_few_limits_as_allowed(agx):
    """From 25 modes, nine limits in each of four worlds; what is expected breaks far more."""
    method, broken, by_mean = load_method("utilisation"), [], []
    for seed in range(4):
        whole = world(agx, seed, noise=0.01)
        seen = whole.rows(np.arange(len(whole.modes)) < 25)
        time, power = (method.fit(seen, Context(target)) for target in ("time_s", "power_w"))
        expected_s, expected_w = time.predict(whole.modes), power.predict(whole.modes)
        for limit_w in np.quantile(whole.power_w, np.linspace(0.1, 0.9, 9)):
            place = safe_mode(time, power, whole.modes, limit_w, 0.05).place
            broken.append(whole.power_w[place] > limit_w)
            hoped = np.where(expected_w <= limit_w, expected_s, np.inf).argmin()
            by_mean.append(whole.power_w[hoped] > limit_w)
    assert np.mean(broken) <= 0.06
    assert np.mean(by_mean) > 0.2


def test_a_limit_of_power_is_kept_with_a_risk_where_none_is_asked_for(agx, plant):
    """The safest mode is the answer where none is as safe; asked for a risk, there is none."""
    time = fit_physical_time(plant((0.5, 0.2, 0.2, 0.1, 0)))
    power = fit_power(plant((0.1, 0.3, 0.1, 0.1, 0.1, 0.3), terms=POWER, whole=25))
    hoped = recommend(agx, time, power, "time", {"power_w": 18.0}, max_risk=0.5)
    for objective in ("time", "energy"):
        safe = recommend(agx, time, power, objective, {"power_w": 18.0})
        assert safe.is_safe
        assert safe.risks["power_w"] <= 0.1
    assert hoped.risks["power_w"] > 0.1
    cost, risk = recommend(agx, time, power, "time", {"power_w": 18.0}).costs
    assert cost > 0
    assert risk > 0.1
    least_w = float(power.mean(reachable(agx)).min())
    answer = recommend(agx, time, power, "time", {"power_w": 1.005 * least_w})
    assert not answer.is_safe
    assert answer.risks["power_w"] > 0.1
    with pytest.raises(PredictionError, match="no mode keeps"):
        recommend(agx, time, power, "time", {"power_w": 1.005 * least_w}, max_risk=0.1)


def test_idle_power_counts_until_a_deadline_and_racing_to_idle_is_said(agx, every, time, power):
    least = recommend(agx, time, power, "energy", {})
    assert least.estimates["energy_wh"].value == pytest.approx(every["energy_wh"].min(), rel=2e-3)
    assert least.least.energy_part < 1 < least.least.time_part
    assert least.racing_saves is None
    deadline_s = 2 * least.estimates["epoch_s"].value
    idle = recommend(agx, time, power, "energy", {"epoch_s": deadline_s}, idle_w=4.0)
    total = every["epoch_s"] * every["power_w"] + (deadline_s - every["epoch_s"]) * 4.0
    total = np.where(every["epoch_s"] <= deadline_s, total, np.inf)
    (place,) = np.flatnonzero((reachable(agx) == idle.mode).all(1))
    assert total[place] == pytest.approx(total.min(), rel=2e-3)
    paced = total[every["epoch_s"] > 0.95 * deadline_s].min()
    assert idle.racing_saves == pytest.approx(paced / total.min() - 1)
    # without a deadline a slow mode keeps the rest of the board on for longer
    rest = recommend(agx, time, power, "energy", {}, rest_w=20.0)
    assert rest.estimates["epoch_s"].value < least.estimates["epoch_s"].value
