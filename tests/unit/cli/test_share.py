"""`epochwatt export` and `epochwatt validate`: what they print, and their exit status."""

from pathlib import Path

import pytest

from epochwatt import cli

THEIRS = "device,workload,task,gpu_mhz,time_s\ntx2,yolo,infer,1300.5,0.041\n"


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Return a function that runs a command beside somebody's table; status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    Path("theirs.csv").write_text(THEIRS)

    def call(*arguments):
        status = cli.main(arguments)
        return (status, *capsys.readouterr())

    return call


def test_a_table_becomes_a_package_that_is_valid(run, golden):
    words = ("export", "theirs.csv", "--output", "theirs.zip", "--licence", "MIT")
    for command in (words, ("validate", "theirs.zip")):
        status, out, err = run(*command)
        assert (status, err) == (0, "")
        golden(command[0], " ".join(["epochwatt", *command]), out)


def test_a_wrong_cell_ends_with_status_1(run, golden):
    Path("theirs.csv").write_text(THEIRS.replace("0.041", "41 ms"))
    status, out, err = run("validate", "theirs.csv")
    assert (status, err) == (1, "")
    golden("validate", "epochwatt validate theirs.csv (a wrong cell)", out)


def test_export_without_a_licence_says_what_to_do(run):
    Path("config").mkdir()
    status, _, err = run("export", "theirs.csv", "--output", "pack")
    assert status == 1
    assert "the licence is missing" in err
    assert "do: add --licence" in err


def test_outside_a_checkout_a_wrong_cell_is_still_named(run):
    Path("theirs.csv").write_text(THEIRS.replace("0.041", "41 ms"))
    status, _, err = run("score", "theirs.csv")
    assert status == 1
    assert err.startswith("error: theirs.csv, line 2, column time_s: a cell that is not allowed\n")
    assert "found: 41 ms" in err


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere/scores.csv", "the folder nowhere does not exist; make it first."),
        (".", ". is a folder; name a file in it."),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(path, message, run):
    status, out, err = run("score", "theirs.csv", "--csv", path)
    assert (status, out) == (2, "")
    assert message in err


def test_outside_a_checkout_too_few_modes_are_the_error(run):
    status, _, err = run("score", "theirs.csv")
    assert status == 1
    assert err.startswith("error: no table of modes that a method could learn from")
