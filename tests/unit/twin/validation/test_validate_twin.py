"""`epochwatt calibrate-twin`: what it writes, and that a second time it writes the same."""

import re
import shutil
from pathlib import Path

import pytest
from made_up import assumed

from epochwatt import cli
from epochwatt.twin.inputs.parameters import load_parameters, write_parameters
from epochwatt.twin.validation.cross_validation_fits import (
    ALL,
    CLAIMS,
    load_prior_parameters,
    load_refits,
)
from epochwatt.twin.validation.validate_twin import write_validation

FITTED = ("sample_kcycles", "gpu_mw_per_ghz_v2")


@pytest.fixture
def checkout(tmp_path, monkeypatch, request):
    """The configuration, of which two parameters are fitted and the others assumed."""
    for folder in ("published", "twin", "devices"):
        shutil.copytree(request.config.rootpath / "config" / folder, tmp_path / "config" / folder)
    shutil.copy(request.config.rootpath / "config/claims.yaml", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    twin = Path("config/twin")
    known = load_parameters(twin)
    write_parameters(twin, assumed(known, [n for n in known.fitted if n not in FITTED]))
    return twin


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.thorough
def test_fit_refits_and_writes_the_same_again(checkout, workloads, capsys):
    before = contents(checkout)
    command = ["calibrate-twin", "--workloads", str(Path(workloads[0]).parent)]
    assert cli.main([*command, "--folds"]) == 0
    told = capsys.readouterr().out
    after = contents(checkout)
    assert {n for n in after if after[n] != before[n]} == {
        # of other fitted parameters
        *("parameters.yaml", "cross_validation_fits.csv", "setups.csv")
    }
    known = load_parameters(checkout)
    assert known.fitted == ("sample_kcycles", "gpu_mw_per_ghz_v2")
    assert all(
        each.spread > 0 and each.serves for n, each in known.described.items() if n in FITTED
    )
    assert load_refits(checkout, known).keys() > {ALL, "5.1.1", "5.6.7"}
    assert load_refits(checkout, known, (CLAIMS,)).keys() > {ALL, "5.6.1", "A.0.4"}
    assert dict(known) != load_prior_parameters(checkout, known)
    for line in ("2 parameters, ", "sample_kcycles ", "time: median held-out error "):
        assert line in told
    done = re.findall(r"\((\d+) of (\d+)\)", told)
    assert [int(n) for n, _ in done] == list(range(1, len(done) + 1))
    assert {int(n) for _, n in done} == {len(done)}

    assert cli.main(command) == 0
    assert contents(checkout) == after

    write_validation(workloads, "validation.csv", "groupings.csv", "validation.txt")
    assert Path("validation.txt").read_text("utf-8").strip() in told
    assert Path("validation.csv").read_text("utf-8").count("\n") > 150


def test_counts_that_are_not_there(checkout, capsys):
    assert cli.main(["calibrate-twin"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("error: results/twin/workloads/lenet.json is not there")
    assert "do: .venv/bin/snakemake workloads" in told
