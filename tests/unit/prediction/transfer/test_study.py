"""config/powertrain.yaml: what it may say, and the jobs that come of it."""

from pathlib import Path

import pytest
import yaml

from epochwatt.errors import ConfigError
from epochwatt.prediction.transfer.config import Job
from epochwatt.prediction.transfer.study import (
    check_sweeps,
    jobs_of,
    load_study,
    networks_of,
    simulated_sweeps,
)

REPOSITORY = Path(__file__).resolve().parents[4]
GROUP = {"title": "t", "workloads": ["a", "b"], "methods": ["physical"], "n_profiled": [10]}
EXAMPLE = {"workload": "a", "limit_w": 30, "minibatches": 10}


@pytest.fixture
def study(tmp_path):
    """Return a function that reads a study of one group with changed keys."""

    def read(example=None, **keys):
        (tmp_path / "config/sweeps").mkdir(parents=True, exist_ok=True)
        for name in ("a", "b"):
            (tmp_path / f"config/sweeps/{name}.csv.gz").touch()
        content = {"example": {**EXAMPLE, **(example or {})}, "groups": {"g": {**GROUP, **keys}}}
        (tmp_path / "config/powertrain.yaml").write_text(yaml.safe_dump(content), "utf-8")
        return load_study(tmp_path)

    return read


def test_no_file_is_no_study(tmp_path):
    assert load_study(tmp_path) is None
    assert jobs_of(None) == []
    assert simulated_sweeps(None, tmp_path) == []


def test_no_workload_is_its_own_reference(study):
    assert jobs_of(study(references=["a", "b"])) == [Job("g", "a", "b"), Job("g", "b", "a")]
    assert jobs_of(study()) == [Job("g", "none", "a"), Job("g", "none", "b")]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"methods": ["mine"]}, "unknown method 'mine'"),
        ({"n_profiled": []}, "physical learns from profiled modes, and n_profiled is empty"),
        ({"limits_w": [50, 17]}, "the lowest limit first"),
        ({"workloads": ["a", "c"]}, "no sweep 'c'"),
        ({"references": ["c"]}, "no sweep 'c'"),
        ({"example": {"workload": "c"}}, "example.workload is 'c'"),
        ({"drawz": 3}, "drawz"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(study, tmp_path, keys, message):
    with pytest.raises(ConfigError) as refused:
        check_sweeps(study(**keys), tmp_path)
    assert message in str(refused.value)
    assert "config/powertrain.yaml" in str(refused.value)


def test_the_project_s_study_has_seven_simulated_workloads_and_shares_their_networks():
    """The paper's ResNet-18, MobileNetV3, YOLOv8n (here SSDLite), BERT, LSTM and two crosses."""
    ours = load_study(REPOSITORY)
    assert len(simulated_sweeps(ours, REPOSITORY)) == 7
    jobs = jobs_of(ours)
    assert len(set(jobs)) == len(jobs)
    of_reference = networks_of(
        ours, Job("learning-curve", "pt-resnet-imagenet", "pt-mobilenet-gld")
    )
    assert of_reference == [Job("all-modes", "none", "pt-resnet-imagenet")]
    assert networks_of(ours, Job("all-modes", "none", "pt-resnet-imagenet")) == []
