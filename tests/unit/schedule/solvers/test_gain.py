"""Answers of the search by expected gain were profiled and keep the budgets; what it believes."""

import numpy as np
import pytest

from epochwatt.schedule.problem import NONE
from epochwatt.schedule.solvers import exhaustive, gain, gmd
from epochwatt.schedule.solvers.roofline_prior import OWN, roofline_prior
from epochwatt.schedule.space import Problems, Space

SIZES = (1, 4, 16)


@pytest.fixture
def problems():
    rng = np.random.default_rng(5)
    n = 150
    rates, latencies = np.exp(rng.uniform(np.log([[1, 0.01]]), np.log([[300, 1]]), (n, 2))).T
    return Problems(rng.uniform(6, 35, n), rates[:, None], latencies[:, None])


class Watched(Space):
    """A space that notes which choices are profiled."""

    def judge(self, problems, choices):
        self.__dict__.setdefault("looked", []).extend(np.ravel(choices).tolist())
        return super().judge(problems, choices)


@pytest.mark.parametrize("is_monotone", [True, False])
@pytest.mark.parametrize("trains", [True, False])
def test_answers_keep_the_budgets_and_no_more_is_profiled_than_allowed(
    problems, workload, is_monotone, trains
):
    infer = workload(1, SIZES, is_monotone)
    space = Space(workload(2, (16,), is_monotone) if trains else None, (infer,))
    answers = gain.solve(space, problems)
    solved = answers.choice != NONE
    assert 0 < solved.sum() < len(problems)
    judged = space.judge(problems, np.maximum(answers.choice, 0)[:, None])
    assert judged.holds[solved].all()
    assert (answers.n_profiles <= gmd.N_PROFILES * space.profiles_per_choice).all()
    assert (exhaustive.solve(space, problems).choice[solved] != NONE).all()


@pytest.mark.parametrize("most", [1, 4, 15])
def test_the_answer_was_profiled_and_profiles_are_counted(problems, workload, most):
    train, infer = workload(2, (16,)), workload(1, SIZES)
    prior = roofline_prior(Space(train, (infer,)))
    many = gain.solve(Space(train, (infer,)), problems, most, prior=prior)
    for place in range(0, len(problems), 10):
        space = Watched(train, (infer,))
        answers = gain.solve(space, problems.only(np.array([place])), most, prior=prior)
        looked = space.__dict__.get("looked", [])
        assert answers.choice[0] in (NONE, *looked)
        assert len({*looked}) == len(looked) == answers.n_profiles[0] / 2 <= most
        assert answers.board_s[0] == pytest.approx(sum(space.board_s(np.array(looked, int))))
        assert answers.choice[0] == many.choice[place]  # alone as among others


def test_two_streams_and_training_alone_are_nearly_always_answered(problems, workload):
    space = Space(None, (workload(1, SIZES), workload(3, SIZES)))
    both = [np.repeat(one, 2, axis=1) for one in (problems.rates_per_s, problems.max_latencies_s)]
    none = np.zeros((len(problems), 0))
    for one, some in (
        (space, Problems(problems.max_power_w, *both)),
        (Space(workload(2, (16,))), Problems(problems.max_power_w, none, none)),
    ):
        answers, best = gain.solve(one, some), exhaustive.solve(one, some)
        solvable = best.choice != NONE
        assert (answers.choice[solvable] != NONE).mean() > 0.9
        assert (best.choice[answers.choice != NONE] != NONE).all()


def test_the_belief_is_that_of_a_gaussian_process(workload):
    space = Space(workload(2, (16,)), (workload(1, SIZES),))
    prior = roofline_prior(space)
    places = np.array([5, 40, 100, 200])
    mode, size = space.choices[places].T
    runs = [prior.runs(0, mode, 0 * mode), prior.runs(1, mode, size)]
    values = np.log(np.stack([one for pair in space.measured(places) for one in pair]))[
        [0, 2, 1, 3]
    ]
    belief = gain.Belief(prior, 1)
    for i in range(len(places)):
        belief.learn([one[[i]] for one in runs], values[:, [i]].T)
    half = len(prior.mean) // 2
    rows = np.concatenate([*runs, *(one + half for one in runs)])
    covariance = np.concatenate(list(prior.covariance(runs).transpose(2, 0, 1)), 0).T
    among = covariance[rows] + OWN**2 * np.eye(len(rows))
    weights = np.linalg.solve(among, covariance.T).T
    off = values.ravel() - prior.mean[rows]
    assert belief.mean[0] == pytest.approx(prior.mean + weights @ off)
    left = prior.variance - (weights * covariance).sum(1)
    assert belief.variance[0] == pytest.approx(left, abs=1e-9)


def test_a_prior_is_a_covariance_and_knows_no_time_and_no_power(workload):
    one, other = workload(1, SIZES), workload(3, SIZES, is_monotone=False)
    prior, same = roofline_prior(Space(None, (one,))), roofline_prior(Space(None, (other,)))
    assert np.array_equal(prior.mean, same.mean)
    assert np.array_equal(prior.columns, same.columns)
    runs = [np.arange(len(prior.mean) // 2)]
    among = prior.covariance(runs).transpose(2, 0, 1)
    times = among[0]
    assert np.diag(times) == pytest.approx(prior.variance[: len(times)])
    assert times[:, : len(times)] == pytest.approx(times[:, : len(times)].T)
    assert np.linalg.eigvalsh(times[:, : len(times)]).min() > -1e-9
