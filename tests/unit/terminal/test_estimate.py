"""The time left: what is expected of jobs, what is learnt from them, how they share the cores."""

import pytest

from snakemake_logger_plugin_epochwatt.estimate import (
    JobTimes,
    Left,
    default_s,
    read_record,
    time_left_s,
    write_record,
)


@pytest.mark.parametrize(("cores", "left_s"), [(1, 12.0), (2, 8.0), (3, 4.0), (8, 4.0)])
def test_jobs_of_a_rule_share_the_cores(cores, left_s):
    assert time_left_s([Left("plot_fig02", [4.0, 4.0, 4.0])], cores) == left_s


def test_measuring_jobs_run_alone_and_first():
    rules = [Left("plot_fig02", [3.0, 3.0]), Left("train_epoch", [10.0, 10.0])]
    assert time_left_s(rules, cores=4) == 23.0


def test_a_rule_waits_for_the_rules_before_it():
    chain = [
        Left("score_predictions", [30.0], after=frozenset({"fit_epoch_time"})),
        Left("fit_epoch_time", [5.0]),
        Left("summarise", [2.0], after=frozenset({"score_predictions"})),
        Left("plot_fig02", [1.0] * 10),
    ]
    assert time_left_s(chain, cores=2) == 37.0


def test_jobs_under_way_need_only_the_rest():
    assert time_left_s([Left("train_epoch", [10.0], running=[4.0])], cores=2) == 14.0


def test_rules_that_wait_for_each_other_count_with_their_work():
    rules = [
        Left("a", [4.0], after=frozenset({"b"})),
        Left("b", [4.0], after=frozenset({"a"})),
    ]
    assert time_left_s(rules, cores=2) == 4.0


def test_thousands_of_jobs_take_as_long_as_their_sum():
    assert time_left_s([Left("simulate_run", [0.5] * 5000)], cores=2) == pytest.approx(1250.0)


def test_nothing_left_takes_no_time():
    assert time_left_s([], cores=2) == 0.0


def test_before_any_job_the_defaults_count_scaled_to_the_machine():
    times = JobTimes(slowness=2.0)
    assert times.expected_s(("simulate_run",), times.prior_s("simulate_run")) == pytest.approx(
        2.0 * default_s("simulate_run")
    )


def test_seconds_of_an_earlier_start_here_replace_the_defaults():
    times = JobTimes(slowness=2.0, recorded_s={"check_claims": 4.0})
    assert times.prior_s("check_claims") == 4.0


def test_what_jobs_of_a_rule_took_soon_outweighs_the_prior():
    times = JobTimes()
    for _ in range(20):
        times.finished(("simulate_run",), 0.5, 1.5)
    assert times.expected_s(("simulate_run",), 0.5) == pytest.approx(1.5, rel=0.05)


def test_a_slow_start_makes_other_rules_slower_too():
    times = JobTimes()
    for _ in range(40):
        times.finished(("simulate_run",), 0.5, 1.0)
    assert 15.0 < times.expected_s(("validate_twin",), 10.0) < 20.0


def test_a_rule_far_off_its_default_says_little_of_others():
    times = JobTimes()
    for _ in range(16):
        times.finished(("train_epoch",), 9.0, 0.3)
    assert times.expected_s(("validate_twin",), 10.0) > 3.0
    assert times.expected_s(("train_epoch",), 9.0) < 0.6


def test_a_run_is_expected_to_go_on_as_it_went_and_others_of_its_network_nearly_so():
    times = JobTimes()
    for _ in range(4):
        times.finished(("train_epoch", "lenet", "run-a"), 10.0, 30.0)
    same = times.expected_s(("train_epoch", "lenet", "run-a"), 10.0)
    alike = times.expected_s(("train_epoch", "lenet", "run-b"), 10.0)
    other = times.expected_s(("train_epoch", "vgg11", "run-c"), 10.0)
    assert 28.0 < same <= 30.0
    assert same > alike >= other > 10.0


def test_the_record_keeps_this_start_and_what_it_did_not_run(tmp_path):
    path = tmp_path / "times.json"
    times = JobTimes(recorded_s={"check_claims": 4.0, "summarise": 2.0})
    times.finished(("summarise",), 2.0, 3.0)
    write_record(times, path)
    assert read_record(path) == {"check_claims": 4.0, "summarise": 3.0}


@pytest.mark.parametrize("text", ["", "[]", '{"a": "b"}', "{"])
def test_a_record_that_cannot_be_read_is_none(text, tmp_path):
    path = tmp_path / "times.json"
    path.write_text(text, "utf-8")
    assert read_record(path) == {}


def test_a_study_of_long_jobs_is_not_promised_in_seconds():
    """`snakemake powertrain`: 1,535 CPU seconds, so some 13 minutes on two cores."""
    jobs = {"count_workload": 9, "simulate_sweep": 7, "judge_transfer": 24}
    rules = [Left(rule, [default_s(rule)] * n) for rule, n in jobs.items()]
    assert time_left_s(rules, cores=2) == pytest.approx(1535 / 2, rel=0.25)


def test_scores_of_sweeps_are_not_promised_in_seconds():
    """`snakemake sweep_scores`: 144 CPU seconds."""
    jobs = {"score_sweep": 9, "score_sweeps": 1, "sweep_scores": 1}
    rules = [Left(rule, [default_s(rule)] * n) for rule, n in jobs.items()]
    assert time_left_s(rules, cores=1) == pytest.approx(144, rel=0.25)
