"""All of config/ together: what figures draw, what the shipped configuration asks for."""

import os
import re
import sys
from pathlib import Path

import pytest

from epochwatt.errors import ConfigError, LockedError
from epochwatt.study.settings import (
    ALLOW_ROOT,
    lead_the_path,
    load_settings,
    refuse_root,
    working_folder_lock,
)


@pytest.fixture
def two_studies(checkout):
    """The small study, drawn by figure 2, and another one, which is not."""
    checkout.write(
        "studies.yaml",
        {
            name: {
                **{"title": "t", "backend": "host", "device": "host", "epochs": 2},
                "sweep": [{"model": "lenet", "seed": seeds, "batch_size": [16, 32]}],
            }
            for name, seeds in (("small", [0]), ("other", [0, 1]))
        },
    )
    checkout.write("config.yaml", "studies: [other, small]")
    return checkout


def test_shipped_configuration_is_the_main_job(pytestconfig):
    settings = load_settings(root=pytestconfig.rootpath)
    runs = settings.table.of_backend("host")
    rows = {tuple(r.factors[k] for k in ("model", "num_workers", "batch_size")) for r in runs}
    lenet = {row for row in rows if row[0] == "lenet"}
    assert {workers for _, workers, _ in lenet} == {0, 1, 2}
    assert len({batch_size for _, _, batch_size in lenet}) == 2
    assert {row[:2] for row in rows - lenet} == {("mobilenet", 0), ("mobilenet", 2)}
    assert {(run.factors["model"], run.epochs) for run in runs} == {("lenet", 3), ("mobilenet", 2)}


def test_figure_lacks_the_papers_studies_that_are_not_selected(two_studies):
    rows = two_studies.settings()
    assert rows.lacking("fig02", "host") == []
    text = (two_studies.path / "config/studies.yaml").read_text("utf-8")
    two_studies.write("studies.yaml", text.replace("title: t", "title: t\n  setup: sigmetrics2023"))
    two_studies.edit("plotting.yaml", "studies: [small]", "studies: [small, other]")
    two_studies.write("config.yaml", "studies: [other]")
    assert two_studies.settings().lacking("fig02", "host") == ["small"]
    two_studies.write("config.yaml", "studies: [small]")
    assert two_studies.settings().lacking("fig02", "host") == ["other"]
    assert two_studies.settings().lacking("fig02", "jetson") == []


def test_second_workflow_in_the_same_folder_is_refused_with_its_holder(checkout):
    with working_folder_lock(), pytest.raises(LockedError) as told:
        working_folder_lock()
    assert "another workflow runs in this folder" in str(told.value)
    assert re.search(r"pid \d+", str(told.value))
    assert str(checkout.path) in str(told.value)


def test_folder_is_free_again_once_its_holder_is_gone(checkout):
    working_folder_lock().release()
    with working_folder_lock() as lock:  # would raise LockedError
        assert str(checkout.path) in lock.describe()


class TestRoot:
    """The workflow as root: on a board a job could change anything."""

    @pytest.fixture(autouse=True)
    def root(self, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.delenv(ALLOW_ROOT, raising=False)

    @pytest.mark.parametrize("backend", ["fake", "jetson"])
    def test_is_refused_with_the_reason_and_the_way_out(self, backend, agx):
        table = agx.settings().table
        for run in table.runs.values():
            run.factors["backend"] = backend
        with pytest.raises(ConfigError) as told:
            refuse_root(table.runs.values())
        why, what = str(told.value).split("\n")
        assert "does not run as root on a board" in why
        assert "make setup-jetson" in what
        assert what.endswith("EPOCHWATT_ALLOW_ROOT=1")

    def test_is_allowed_where_somebody_says_so(self, agx, monkeypatch):
        monkeypatch.setenv(ALLOW_ROOT, "1")
        refuse_root(agx.settings().table.runs.values())  # would raise ConfigError

    def test_is_no_matter_where_all_runs_were_measured_elsewhere(self, agx, measure):
        (run,) = agx.runs
        for epoch in range(run.epochs):
            measure(run, epoch)
        agx.set_device(units={"d1": "42"})
        assert [run.here for run in agx.runs] == [False]
        refuse_root(agx.settings().table.runs.values())  # would raise ConfigError


@pytest.fixture
def python(tmp_path, monkeypatch):
    def at(folder: str) -> Path:
        path = tmp_path / folder / "bin/python3"
        path.parent.mkdir(parents=True)
        path.symlink_to(sys.executable)
        monkeypatch.setattr(sys, "executable", str(path))
        monkeypatch.setenv("PATH", os.environ["PATH"])
        return path

    return at


def test_one_whose_path_would_fall_apart_goes_by_its_name(python):
    path = python("Förster lab")
    lead_the_path()
    assert os.get_exec_path()[0] == str(path.parent)
    assert sys.executable == "python3"
    lead_the_path()  # a second time, as when another workflow has this one as a module
    assert os.get_exec_path()[0] == str(path.parent)
