"""Runs of `EpochMonitor` as a study of the workflow."""

from epochwatt import EpochMonitor
from epochwatt.study.imported import imported_runs


def test_runs_of_own_loops_are_a_study_of_their_own(tmp_path):
    with EpochMonitor("mine", folder=str(tmp_path / "measured"), model="net") as watch:
        for _ in range(2):
            assert list(watch.epoch([1, 2, 3])) == [1, 2, 3]
    (run,) = imported_runs(tmp_path).values()
    assert (run.id, run.epochs, run.studies) == (watch.run, 2, ("own",))
    assert (run.factors["model"], run.factors["imported"], run.parts) == ("net", "EpochMonitor", [])
