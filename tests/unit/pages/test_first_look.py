"""The page of a folder of own runs, from records that EpochMonitor made of planted times."""

import functools
import time

import pytest

from benchmarks.synthetic import sampler_with
from epochwatt import EpochMonitor
from epochwatt.analysis import advice
from epochwatt.analysis.collect_study import export_tables, read_epochs
from epochwatt.board.telemetry.client import Sampler
from epochwatt.cli import main
from epochwatt.columns import FLAG_EFFECTS
from epochwatt.epochs.collect import collect_run
from epochwatt.pages.machine import Machine
from epochwatt.pages.summary import summarise
from epochwatt.study.imported import imported_runs
from epochwatt.tables import read_cells

POWER = {"period_s": 0.01, "rails": 2, "signal": [[0.02, 8.0], [0.03, 22.0]]}


def train(folder, name="my-run", wait_s=0.002, n_epochs=1, **settings):
    with EpochMonitor(name, folder=str(folder), **settings) as monitor:
        for _ in range(n_epochs):
            for _ in monitor.epoch(loader(8, wait_s)):
                time.sleep(0.006)
    return monitor.run


def loader(n, wait_s):
    for number in range(n):
        time.sleep(wait_s)
        yield number


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with two runs that differ in their workers, and one that tells nothing."""
    folder = tmp_path_factory.mktemp("own") / "kept-here"
    start = functools.partial(Sampler.start, program=sampler_with(POWER))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sampler, "start", start)
        for name, told in (
            ("<my> run", {"num_workers": 0, "batch_size": 32, "lr": 0.1}),
            ("<my> run", {"num_workers": 2, "batch_size": 32, "lr": 0.1}),
            ("<my> run", {"num_workers": 4, "batch_size": 32, "lr": 0.2}),
            ("bare", {}),
        ):
            wait_s = 0.02 if told.get("num_workers") == 0 else 0.002
            train(folder, name, wait_s, 4, **told)
    return folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Judge short epochs, too, in a folder that is no checkout."""
    monkeypatch.setattr(advice, "TOO_SHORT_S", 0.01)
    monkeypatch.chdir(tmp_path)


def test_page_and_text_say_the_same(made, capsys):
    assert main(["page", str(made)]) == 0
    told = capsys.readouterr().out
    page = (made / "page.html").read_text("utf-8")
    assert told.endswith(f"page  {made / 'page.html'}\n")
    assert "nan" not in told.lower()
    assert "<my>" not in page
    for words in (
        "(0 workers, batch 32, lr 0.1)",
        "2 workers hide ",  # those with 4 differ in the learning rate, too
        "no run that differs in one setting was measured",
        "cold_process: first epoch measured by its process",
        " mWh \u00b1 ",
    ):
        assert words in told
    for part in (
        "Bound by the loader: 2 workers hide",
        "mWh \u00b1",
        "Power over epoch 3",
        "part copy",
    ):
        assert part in page
    assert page.count("<polyline") == 4 * 4  # total and a rail, each with its name
    assert main(["summary", str(made)]) == 0
    assert capsys.readouterr().out.splitlines() == told.splitlines()[:-2]


def test_tables_and_summary_take_runs_that_do_not_tell_their_workers(made, tmp_path):
    tables = []
    for run in imported_runs(made.parent, made.name).values():
        paths = [str(tmp_path / f"{run.id}{kind}.csv") for kind in ("", "-energy")]
        collect_run(str(made), run.id, run.epochs, FLAG_EFFECTS, *paths)
        tables.append(paths[0])
    runs = str(tmp_path / "runs.csv")
    export_tables(tables, {}, str(tmp_path / "epochs.csv"), runs)
    assert {row["num_workers"] for row in read_cells(runs)} == {"", "0", "2", "4"}
    (part,) = summarise(read_epochs(tables), [], {})
    assert "<NA>" not in str(part)
    cards = Machine({"runs": runs}, {}).shown()["places"][0]["cards"]
    bare, named = sorted((card.setting.rpartition(": ")[2] for card in cards), reverse=True)
    assert bare == "own"
    assert named.endswith(" workers, batch 32, own")


@pytest.mark.parametrize(
    ("damage", "found", "do"),
    [
        (lambda folder: None, "nothing", "name the folder"),
        (lambda folder: folder.mkdir(), "nothing", "name the folder that holds"),
        (lambda folder: (folder / "epoch-0").mkdir(parents=True), "1 folder", "runs' folders"),
        (lambda folder: folder.write_text("x"), "a file", "name the folder"),
    ],
)
def test_folder_without_runs_says_what_is_there(tmp_path, capsys, damage, found, do):
    damage(tmp_path / "measured")
    assert main(["page", "measured"]) == 1
    told = capsys.readouterr().err
    assert f"found: {found}" in told
    assert do in told
    assert "checkout: it has no folder" not in told


@pytest.mark.parametrize("name", ["epoch-0/minibatches.npy", "epoch-0/record.json", "source.json"])
def test_damaged_record_is_named_and_stays(tmp_path, capsys, name):
    run = train(tmp_path / "own")
    path = next(tmp_path.glob(f"own/{run}/{name}"))
    path.write_bytes(path.read_bytes()[:-20])
    before = sorted(tmp_path.rglob("*"))
    assert main(["page", "own"]) == 1
    told = capsys.readouterr().err
    assert run in told
    assert "do: " in told
    assert sorted(tmp_path.rglob("*")) == before
