"""What a stranger types on the runs of own scripts, in a folder without a checkout."""

import functools
import shutil
import sys
import time
from pathlib import Path

import pytest

from benchmarks.synthetic import sampler_with
from epochwatt import EpochMonitor, project
from epochwatt.analysis import advice
from epochwatt.board.telemetry.client import Sampler
from epochwatt.cli import main
from epochwatt.pages.first_look import read_own_runs
from epochwatt.tables import read_cells

POWER = {"period_s": 0.01, "rails": 2, "signal": [[0.02, 8.0], [0.03, 22.0]]}


def loader(wait_s):
    for number in range(8):
        time.sleep(wait_s)
        yield number


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a folder in which own scripts were run, and the ids of their runs by name."""
    folder = tmp_path_factory.mktemp("stranger")
    ids = {}
    with pytest.MonkeyPatch.context() as patch:
        start = functools.partial(Sampler.start, program=sampler_with(POWER))
        patch.setattr(Sampler, "start", start)
        for name, script, rank, told in (
            ("slow", "train", 0, {"num_workers": 0, "lr": 0.1}),
            ("fast", "train", 0, {"num_workers": 2, "lr": 0.1}),
            ("pinned", "train", 0, {"num_workers": 0, "lr": 0.2}),
            ("slower", "train", 0, {"num_workers": 0, "lr": 0.3}),
            ("first", "ranks", 0, {"batch_size": 8}),
            ("second", "ranks", 1, {"batch_size": 8}),
        ):
            patch.setenv("RANK", str(rank))
            patch.setenv("LOCAL_RANK", str(rank))
            with EpochMonitor(script, folder=str(folder / "measured"), **told) as monitor:
                for _ in range(4):
                    for _ in monitor.epoch(loader(0.02 if "slow" in name else 0.002)):
                        time.sleep(0.006)
            ids[name] = monitor.run
    return folder, ids


@pytest.fixture
def typed(trained, tmp_path, monkeypatch, capsys):
    """Return a function that types a command in a copy of that folder; it returns what is said."""
    monkeypatch.setattr(advice, "TOO_SHORT_S", 0.01)
    shutil.copytree(trained[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)

    def type_(command, status=0):
        assert main(command.format(**trained[1]).split()) == status
        out, err = capsys.readouterr()
        assert "nan" not in (out + err).lower().split()
        return out + err

    return type_


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("summary measured", "2 workers hide"),
        ("summary measured/{fast}", "(2 workers, lr 0.1)"),
        ("summary measured/{first}", "2 processes: times are means"),
        ("page", "page.html"),
        ("page measured/{slow}", "page.html"),
        ("summary", "2 workers hide"),
        ("explain measured/{slow}", "  wait      0.1"),
        ("explain train", "4 runs begin with 'train'"),
        ("explain {fast}", "call `monitor.count(model, minibatch)`"),
        ("explain nothing", "{slow}"),
        ("compare {slow} {fast}", "compared: num_workers (0, 2)"),
        ("compare {slow} {pinned}", "stall"),
        ("compare measured/{slow} {pinned}", "compared: settings (lr 0.1, lr 0.2)"),
        ("compare {slow} nothing", "no run matches 'nothing'"),
        ("export measured --output own --licence MIT", "epochs-measured.csv  24 rows"),
        ("export {slow} ranks* --output own.zip --licence MIT", "epochs-measured.csv  12 rows"),
        ("export nothing --output own --licence MIT", "neither a sweep nor a run"),
        ("validate measured", "{second}: 4 epochs"),
        ("validate measured/{slow}", "valid"),
        ("what-if --run {slow} --device orin", "is not an epochwatt checkout"),
    ],
)
def test_commands_work_on_own_runs_or_say_what_is_wrong(trained, typed, command, said):
    is_wrong = "nothing" in command or "what-if" in command or command == "explain train"
    assert said.format(**trained[1]) in typed(command, int(is_wrong))


@pytest.mark.parametrize("has_workflow", [True, False])
def test_missing_torch_and_folder_are_named_with_what_to_do(typed, monkeypatch, has_workflow):
    monkeypatch.setitem(sys.modules, "torch", None)
    for module in ("memory.fit", "board.training.allocated"):
        monkeypatch.delitem(sys.modules, f"epochwatt.{module}", raising=False)
    if not has_workflow:
        monkeypatch.setattr(project, "SNAKEFILE", "nowhere")
    told = typed("fit --model resnet50 --device nano", 1)
    assert "needs torch" in told
    assert "pip install torch torchvision" in told
    assert ("make dist" in told) != has_workflow
    assert ("make dist" in typed("plan", 1)) != has_workflow


def test_faster_run_says_what_it_would_save_the_slower_one(trained, typed):
    runs = {run.run: run for run in read_own_runs(Path("measured"))}
    (fact,) = (f for f in runs[trained[1]["fast"]].facts if "would save" in f)
    assert fact.startswith(trained[1]["slow"])
    typed("page")
    page = Path("measured/page.html").read_text("utf-8")
    assert "`" not in page
    for n, run in enumerate(runs):
        assert f'<a href="#run-{n}">{run}</a>' in page


def test_ranks_of_one_training_are_one_line_with_one_energy(trained, typed):
    told = typed("summary measured")
    assert trained[1]["second"] not in told
    (ranks,) = (run for run in read_own_runs(trained[0] / "measured") if run.title == "ranks")
    assert len(ranks.rows) == 4
    typed("export measured --output own --licence MIT")
    cells = [c for c in read_cells("own/epochs-measured.csv") if c["run"] == trained[1]["first"]]
    for row, cell in zip(ranks.rows, cells, strict=True):
        assert row["energy"].startswith(f"{1000 * float(cell['energy_wh']):.3g} mWh")
    assert not any(
        "sampler_lost" in cell["flags"] for cell in read_cells("own/epochs-measured.csv")
    )


def test_package_of_own_runs_is_valid_and_a_damaged_record_is_found(trained, typed, tmp_path):
    typed("export measured --output own --licence MIT")
    assert typed("validate own").startswith("own: valid")
    path = tmp_path / "measured" / trained[1]["fast"] / "epoch-1/samples-power.csv"
    path = path if path.exists() else next(path.parent.glob("samples-*.csv"))
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    told = typed("validate measured", 1)
    assert f"1 problem\n{trained[1]['fast']}: " in told


def test_own_setting_that_makes_it_faster_is_advised(trained, typed):
    told = typed("summary measured")
    assert "lr 0.2 hides" in told
    assert "Another lr may also change what is learned." in told
