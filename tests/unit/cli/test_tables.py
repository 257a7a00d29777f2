"""Commands for tables of modes, and of two networks that share a machine."""

import json
import os
import re
from pathlib import Path

import pytest

from epochwatt import cli
from epochwatt.sweeps.find import find_tables
from epochwatt.sweeps.public.registry import VARIABLE

CONFIG = Path(__file__).parents[3] / "config"
THEIRS = "device,workload,task,gpu_mhz,time_s\ntx2,yolo,infer,1300.5,0.041\n"
ZEUS = (
    "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"
    "cifar100,resnet,64,adam,100,20,95\ncifar100,resnet,64,adam,200,15,170\n"
)
CONVERT = ("convert-sweep", "zeus", "summary_power_a40.csv", "--output")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Return a function that runs a command beside tables of others; status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    Path("theirs.csv").write_text(THEIRS)
    Path("summary_power_a40.csv").write_text(ZEUS)

    def call(*arguments):
        status = cli.main(arguments)
        return (status, *capsys.readouterr())

    return call


@pytest.fixture
def checkout(tmp_path):
    """A folder with this repository's config/."""
    (tmp_path / "config").symlink_to(CONFIG)
    return tmp_path


def test_a_table_becomes_a_package_that_is_valid_and_a_wrong_cell_is_named(run, golden):
    words = ("export", "theirs.csv", "--output", "theirs.zip", "--licence", "MIT")
    for command in (words, ("validate", "theirs.zip")):
        status, out, err = run(*command)
        assert (status, err) == (0, "")
        golden(command[0], " ".join(["epochwatt", *command]), out)
    Path("theirs.csv").write_text(THEIRS.replace("0.041", "41 ms"))
    status, out, err = run("validate", "theirs.csv")
    assert (status, err) == (1, "")
    golden("validate", "epochwatt validate theirs.csv (a wrong cell)", out)
    status, _, err = run("score", "theirs.csv")
    assert status == 1
    assert err.startswith("error: theirs.csv, line 2, column time_s: a cell that is not allowed\n")
    assert "found: 41 ms" in err


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("export", "theirs.csv", "--output", "pack"), 1, "do: add --licence"),
        (("score", "theirs.csv"), 1, "error: no table of modes that a method could learn from"),
        (("score", "x.csv", "--csv", "nowhere/x.csv"), 2, "folder nowhere does not exist; make it"),
        (("score", "x.csv", "--csv", "."), 2, ". is a folder; name a file in it."),
        (("score", "x.csv", "--csv", "theirs.csv"), 2, "theirs.csv exists already"),
        (("compare", "a", "b", "--csv", "theirs.csv"), 2, "theirs.csv exists already"),
        ((*CONVERT, "theirs.csv"), 2, "theirs.csv exists already"),
        ((*CONVERT, "x.txt"), 1, "not the name of a table"),
        (("convert-sweep", "zeuss", "x.csv", "--output", "y.csv"), 1, "allowed: translucence, "),
        (("sweeps", "zeus-v1000"), 1, "zeus-v100,"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_work(words, status, message, run, checkout):
    before = sorted(Path().iterdir())
    ended, out, err = run(*words)
    assert (ended, out) == (status, "")
    assert message in err
    assert sorted(Path().iterdir()) == before
    assert Path("theirs.csv").read_text() == THEIRS


@pytest.mark.parametrize("words", [[], ["opml19-tx2"]])
def test_sweeps_are_listed_with_what_they_are_and_where(words, run, checkout, golden):
    golden("sweeps", " ".join(["epochwatt sweeps", *words]), run("sweeps", *words)[1])


def test_a_converted_sweep_is_found_by_name(run, checkout):
    Path("results/sweeps").mkdir(parents=True)
    with open("summary_power_a40.csv", "a") as handle:
        handle.write("cifar100,resnet,64,adam,250,,180\n")
    status, out, _ = run(*CONVERT, "results/sweeps/a40.csv.gz")
    assert status == 0
    assert "1 workload, 2 rows" in out
    assert "1 line left out:" in out
    assert "line 4: no time" in out
    (table,) = find_tables("a40")
    assert (table.key.sweep, table.key.device, table.key.provenance) == ("a40", "A40", "public")
    (line,) = (x for x in run("sweeps")[1].splitlines() if x.startswith("a40"))
    assert re.sub(" +", " ", line) == "a40 A40 1 2 limit 1 gpu public - results/sweeps"
    assert "15 to 20 s" in run("sweeps", "a40")[1]
    Path("summary_power_a40.csv").write_text(ZEUS.replace("170", "much"))
    status, _, err = run(*CONVERT, "x.csv")
    assert status == 1
    assert "summary_power_a40.csv, line 3: average_power is 'much'" in err
    assert not Path("x.csv").exists()


def test_nothing_in_a_table_controls_the_terminal(run):
    cells = "\x1b]0;title\x07\x1b[2J\u202e\r"
    Path("x.csv").write_text(f'device,workload,task,gpu_mhz,time_s\nb,"{cells}",train,500,1\n')
    Path(f"y{cells.replace('/', '')}.csv").write_text("device\n")
    shown = ""
    for path in [path for path in Path().glob("*.csv") if path.name[0] in "xy"]:
        for command in ("validate", "score"):
            status, out, err = run(command, str(path))
            assert status == 1
            shown += out + err
    assert "column workload" in shown
    assert not set(cells) & set(shown) - set("0;title[2J]")


# -- serve-and-train -------------------------------------------------------------------------------

SERVE = ("serve-and-train", "--train", "lenet", "--infer", "lenet", "--batch", "2")
ONE_SECOND = (*SERVE, "--seconds", "1", "--device", "host")


def test_two_networks_run_and_the_answer_stands_beside_the_formulas(checkout, capfd, monkeypatch):
    monkeypatch.chdir(checkout)
    monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", "")
    assert cli.main((*ONE_SECOND, "--rate", "50", "--n-train", "1")) == 0
    out, err = capfd.readouterr()
    assert "Traceback" not in err
    names = ["latency", "training", "requests", "record"]
    assert [line.split()[0] for line in out.splitlines()] == names
    assert re.search(r"plan: \d+\.\d\d/s", out)  # 25.00, unless the machine is busy
    assert "50 arrived, 50 served, 0 refused, 0 left" in out
    (folder,) = (checkout / "measured/interleaved").iterdir()
    plan = json.loads((folder / "record.json").read_text("utf-8"))["plan"]
    assert (plan["n_train"], plan["torch_threads"], plan["queue"]) == (1, 1, 20)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--rate", "5", "--infer", "perceptron"), "--infer is 'perc"),
        ((), "do: add --rate"),
        (("--rate", "5", "--device", "agx"), "is no Jetson board"),
        (("--arrivals", "none.txt"), "none.txt"),
        (("--rate", "5", "--queue", "1"), "queue is 1"),
    ],
)
def test_what_cannot_be_served_is_explained(words, message, run, checkout):
    status, _, err = run(*ONE_SECOND, *words)
    assert status == 1
    assert message in err
    assert "Traceback" not in err
