"""Parameters: read, refused, written the same each time."""

import shutil
from pathlib import Path

import pytest

from epochwatt.errors import ConfigError
from epochwatt.twin.inputs.parameters import (
    FILE,
    Parameter,
    Parameters,
    load_parameters,
    write_parameters,
)

FITTED = {"value": 3, "unit": "ms", "source": "fitted", "about": "a", "prior": 2, "factor": 1.5}
ASSUMED = {"value": 0.5, "unit": "", "source": "assumed", "about": "b: c"}


@pytest.fixture
def folder(request):
    return request.config.rootpath / "config/twin"


@pytest.fixture
def known():
    return Parameters(
        {
            "wait_ms": Parameter("cpu", **FITTED, serves=("S1", "S2"), spread=0.25),
            "share": Parameter("power", **ASSUMED),
        }
    )


def test_comments_and_layout_stay_when_values_move(folder, tmp_path):
    """There and back gives the bytes of the committed file; between, only the value's line."""
    path = Path(shutil.copy(folder / FILE, tmp_path))
    committed, parameters = path.read_text("utf-8"), load_parameters(folder)
    write_parameters(tmp_path, parameters.moved({"launch_kcycles": 77}))
    before, after = committed.splitlines(), path.read_text("utf-8").splitlines()
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert [line for _, line in changed] == ["    value: 77"]
    write_parameters(tmp_path, parameters)
    assert path.read_text("utf-8") == committed


def test_a_file_with_these_values_is_left_alone(folder, tmp_path):
    path = Path(shutil.copy(folder / FILE, tmp_path))
    path.write_text(path.read_text("utf-8") + "# a last word\n", "utf-8")
    before = path.stat().st_mtime_ns
    write_parameters(tmp_path, load_parameters(folder))
    assert path.stat().st_mtime_ns == before


def test_what_is_written_is_read_back(known, tmp_path):
    write_parameters(tmp_path, known)
    assert load_parameters(tmp_path).described == known.described
    assert [p.name for p in tmp_path.iterdir()] == [FILE]


def test_parameter_that_lacks_evidence_is_at_its_prior(known):
    told = known.lacking(["wait_ms"])
    assert told.fitted == ()
    assert told.described["wait_ms"] == Parameter(
        "cpu", **{**FITTED, "value": 2, "source": "assumed"}
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cpu: 3\n", "cpu is 3"),
        ("cpu: {a: 3}\n", "a is 3"),
        ("cpu: {a: {value: 1, unit: s, source: guessed, about: x}}\n", "source is 'guessed'"),
        ("cpu: {a: {value: -1, unit: s, source: assumed, about: x}}\n", "value is -1"),
        ("cpu: {a: {value: 1, unit: s, source: fitted, about: x}}\n", "a: fitted"),
        (
            "cpu: {a: {value: 1, unit: s, source: fitted, about: x, prior: 1, factor: 1}}\n",
            "factor above 1",
        ),
        (
            "cpu: {a: &a {value: 1, unit: s, source: assumed, about: x}}\ngpu: {a: *a}\n",
            "a is in cpu and in gpu",
        ),
    ],
)
def test_what_is_no_parameter_is_refused(tmp_path, text, told):
    (tmp_path / FILE).write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=told):
        load_parameters(tmp_path)
