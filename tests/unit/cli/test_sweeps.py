"""`epochwatt sweeps` and `epochwatt convert-sweep`."""

from dataclasses import replace
from pathlib import Path

import pytest

from epochwatt import cli
from epochwatt.sweeps.find import find_tables
from epochwatt.sweeps.listing import conversion_lines
from epochwatt.sweeps.mode_table import SweepRow, tables_of
from epochwatt.sweeps.public.registry import VARIABLE

ROOT = Path(__file__).parents[3]
ZEUS = "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"


@pytest.fixture(autouse=True)
def _in_a_checkout(tmp_path, monkeypatch):
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)


def printed(capsys, *words):
    assert cli.main(words) == 0
    return capsys.readouterr().out


def zeus_file(path=Path("summary_power_a40.csv")):
    path.write_text(
        ZEUS + "cifar100,resnet,64,adam,100,20,95\ncifar100,resnet,64,adam,200,15,170\n"
    )
    return path


@pytest.mark.parametrize("words", [[], ["opml19-tx2"]])
def test_sweeps_are_listed_with_what_they_are_and_where(words, capsys, golden):
    title = " ".join(["epochwatt sweeps", *words])
    golden("sweeps", title, printed(capsys, "sweeps", *words))


def test_an_unknown_one_is_refused_with_those_there_are(capsys):
    assert cli.main(["sweeps", "zeus-v1000"]) == 1
    assert "zeus-v100," in capsys.readouterr().err


def test_a_converted_sweep_is_found_by_name(capsys):
    path = zeus_file()
    Path("results/sweeps").mkdir(parents=True)
    out = "results/sweeps/a40.csv.gz"
    text = printed(capsys, "convert-sweep", "zeus", str(path), "--output", out)
    assert "1 workload, 2 rows" in text
    (table,) = find_tables("a40")
    assert (table.key.sweep, table.key.device, table.key.provenance) == ("a40", "A40", "public")
    (line,) = (x for x in printed(capsys, "sweeps").splitlines() if x.startswith("a40"))
    assert line.split() == [
        "a40",
        "A40",
        "1",
        "2",
        "limit",
        "1",
        "gpu",
        "public",
        "-",
        "results/sweeps",
    ]
    assert "15 to 20 s" in printed(capsys, "sweeps", "a40")


def test_lines_that_are_left_out_are_named(capsys):
    path = zeus_file()
    path.write_text(path.read_text() + "cifar100,resnet,64,adam,250,,180\n")
    text = printed(capsys, "convert-sweep", "zeus", str(path), "--output", "x.csv")
    assert "1 line left out:" in text
    assert "line 4: no time" in text


def test_a_wrong_cell_or_name_is_an_error_and_nothing_is_written(capsys):
    path = zeus_file()
    path.write_text(path.read_text().replace("170", "much"))
    for words in (("zeus", "x.csv"), ("zeus", "x.txt"), ("zeuss", "x.csv")):
        assert cli.main(["convert-sweep", words[0], str(path), "--output", words[1]]) == 1
        assert not Path(words[1]).exists()
    error = capsys.readouterr().err
    assert f"{path}, line 3: average_power is 'much'" in error
    assert "translucence" in error


def test_a_table_that_is_there_is_not_overwritten(capsys):
    path = zeus_file()
    Path("mine.csv").write_text("mine")
    for words in (
        ("convert-sweep", "zeus", str(path), "--output", "mine.csv"),
        ("score", "x.csv", "--csv", "mine.csv"),
        ("compare", "a", "b", "--csv", "mine.csv"),
    ):
        assert cli.main([*words]) == 2
        assert "mine.csv exists already" in capsys.readouterr().err
        assert Path("mine.csv").read_text() == "mine"


def test_nothing_in_a_table_controls_the_terminal(capsys):
    cells = "\x1b]0;title\x07\x1b[2J\u202e\r"
    Path("x.csv").write_text(f'device,workload,task,gpu_mhz,time_s\nb,"{cells}",train,500,1\n')
    Path(f"y{cells.replace('/', '')}.csv").write_text("device\n")
    for path in Path().glob("*.csv"):
        assert cli.main(["validate", str(path)]) == 1
        assert cli.main(["score", str(path)]) == 1
    shown = "".join(capsys.readouterr())
    assert "column workload" in shown
    assert not set(cells) & set(shown) - set("0;title[2J]")


def test_power_that_was_left_out_has_its_reason_on_the_screen():
    row = SweepRow(
        sweep="s", provenance="public", device="tx2", workload="w", task="infer", gpu_mhz=500,
        time_s=1.0, flags="power_of_some_rails",
    )  # fmt: skip
    lines = conversion_lines(tables_of([row, replace(row, gpu_mhz=600.0)]), [], Path("t.csv"))
    (line,) = [line for line in lines if line.startswith("no power of 2 rows")]
    assert "power_of_some_rails (of a public sweep: too little" in line
