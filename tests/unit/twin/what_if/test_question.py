"""What-if questions: answers, errors, warnings."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from epochwatt import cli
from epochwatt.errors import EpochwattError
from epochwatt.twin.inputs.parameters import load_parameters, write_parameters
from epochwatt.twin.inputs.power_modes import load_twin_with_modes
from epochwatt.twin.what_if import bottleneck
from epochwatt.twin.what_if.bottleneck import RESOURCES
from epochwatt.twin.what_if.question import mode_of

ROOT = Path(__file__).resolve().parents[4]
NUMBERS = {
    "--flops": "3e9",
    "--bytes": "2e8",
    "--launches": "900",
    "--parameters": "5e6",
    "--sample-bytes": "602112",
    "--file-bytes": "1e5",
    "--pixels": "4e5",
    "--samples": "20000",
}
BY_TOTALS = [word for pair in NUMBERS.items() for word in pair]


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    counting = pytest.importorskip("epochwatt.counting.count_workload")
    path = tmp_path_factory.mktemp("counts") / "lenet.json"
    counting.write_workload({"model": "lenet"}, str(path))
    return path


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Make a checkout without results."""
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def counted(here, counts):
    """Make a checkout with counts of LeNet."""
    folder = here / "results/twin/workloads"
    folder.mkdir(parents=True)
    (folder / "lenet.json").write_bytes(counts.read_bytes())
    return here


@pytest.fixture
def ask(capsys):
    """Return a function that asks; it gives status, stdout and stderr."""

    def call(*words):
        status = cli.main(["what-if", *words])
        return (status, *capsys.readouterr())

    return call


@pytest.fixture
def refused(ask, here):
    """Return a function that asks and gives the error."""

    def call(*words):
        status, out, err = ask(*words)
        assert (status, out) == (2 if err.startswith("Usage:") else 1, "")
        return err

    return call


def table(out):
    """Return name -> (asked, default, change) of the printed table."""
    rows = [
        re.split(r"\s{2,}", line.strip()) for line in out.partition("bottleneck:")[0].splitlines()
    ]
    start = next(i for i, row in enumerate(rows) if row[0] == "epoch s")
    return {row[0]: (float(row[1]), float(row[2]), row[3]) for row in rows[start:] if len(row) == 4}


def settings(out):
    """Return title -> (asked, default) of the settings in the printed table."""
    rows = [re.split(r"\s{2,}", line) for line in out.splitlines()]
    return {row[0]: tuple(row[1:]) for row in rows if len(row) == 3 and row[0]}


def test_the_first_line_says_simulated(ask, here):
    status, out, err = ask("--device", "nx", *BY_TOTALS)
    assert (status, err) == (0, "")
    first = out.splitlines()[0]
    assert first == "SIMULATED, not measured: one epoch of generic on Jetson Xavier NX"


def test_the_parts_add_up(ask, here):
    _, out, _ = ask("--device", "agx", "--storage", "hdd", "--workers", "1", "--cold", *BY_TOTALS)
    rows = table(out)
    parts = ("wait for the loader s", "hand-over s", "copy s", "compute s", "overhead s")
    for column in (0, 1):
        e2e_s, energy_wh, power_w = (
            rows[name][column] for name in ("epoch s", "energy Wh", "mean power W")
        )
        assert sum(rows[name][column] for name in parts) == pytest.approx(e2e_s, rel=2e-3)
        assert energy_wh == pytest.approx(power_w * e2e_s / 3600, rel=2e-3)
        for total, unit in ((energy_wh, "Wh"), (power_w, "W")):
            of_parts = [rows[f"{n} {unit}"][column] for n in ("CPU", "GPU", "memory")]
            rest = rows[f"rest of the module {unit}"][column]
            assert sum(of_parts) + rest == pytest.approx(total, rel=2e-3)


def test_what_is_left_out_is_the_default_and_changes_nothing(ask, here):
    _, out, _ = ask("--device", "nano", *BY_TOTALS)
    rows = settings(out)
    assert all(value == default for value, default in rows.values())
    assert rows["loader workers"] == ("4", "4")
    assert [rows[name][1] for name in ("power mode", "CPU cores", "storage")] == ["MAXN", "4", "sd"]
    assert {change for _, _, change in table(out).values()} == {"-"}


def test_a_change_is_told_against_the_default(ask, here):
    _, out, _ = ask("--device", "agx", "--power-mode", "b", *BY_TOTALS)
    value, default, change = table(out)["epoch s"]
    assert value > default
    assert float(change.split()[0]) == pytest.approx(100 * (value / default - 1), abs=0.2)
    assert table(out)["GPU utilisation %"][2].endswith(" points")


def test_each_of_several_changes_is_told_alone_and_left_out(ask, here):
    changes = {
        "storage hdd": ("--storage", "hdd"),
        "loader workers 0": ("--workers", "0"),
        "empty page cache yes": ("--cold",),
    }

    def asked(names):
        words = [word for name in names for word in changes[name]]
        _, out, _ = ask("--device", "agx", *words, *BY_TOTALS)
        return out

    rows = [re.split(r"\s{2,}", line) for line in asked(changes).splitlines()]
    rows = {row[0]: [float(cell) for cell in row[1:]] for row in rows if row[0] in changes}
    assert rows.keys() == changes.keys()
    for name, (alone_s, without_s, alone_wh, without_wh) in rows.items():
        alone, without = (table(asked(names)) for names in ({name}, changes.keys() - {name}))
        assert (alone["epoch s"][0], without["epoch s"][0]) == (alone_s, without_s)
        assert (alone["energy Wh"][0], without["energy Wh"][0]) == (alone_wh, without_wh)
    assert "one by one" not in asked({"loader workers 0"})


def test_a_known_network_is_answered_from_its_counts(ask, counted):
    status, out, err = ask("--device", "agx", "--model", "lenet", "--workers", "3")
    assert (status, err) == (0, "")
    assert "kernel counts: results/twin/workloads/lenet.json; 3750 mini-batches" in out
    assert "bottleneck: bound by compute, its limit is launches" in out
    assert (
        "WARNING: nothing is published anywhere with loader workers 3 (only 0, 1, 2, 4, 8)" in out
    )
    assert "  nothing of lenet on agx with loader workers 3 (only 0, 1, 4)" in out


def test_a_known_network_without_counts_is_counted_here_and_now(ask, here, counts):
    status, out, _ = ask("--device", "agx", "--model", "lenet")
    assert status == 0
    assert (
        "kernels counted just now; to keep the counts: .venv/bin/snakemake results/twin/work" in out
    )
    assert not (here / "results").exists()


def test_without_torch_it_says_how_to_get_the_counts(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "epochwatt.counting.count_workload", raising=False)
    err = refused("--device", "agx", "--model", "lenet")
    assert "lenet.json does not exist, and this Python has no torch to make it" in err
    assert "  do: run .venv/bin/snakemake results/twin/workloads/lenet.json where there" in err


def test_it_says_how_far_the_question_is_from_what_was_published(ask, counted):
    _, out, _ = ask("--device", "orin", "--model", "lenet", "--storage", "emmc", "--scale", "3")
    assert "WARNING: nothing is published anywhere with storage emmc (only hdd, sd, ssd)" in out
    assert "WARNING: nothing is published anywhere with data set scale 3 (only 1)" in out
    assert "WARNING: no number of orin was fitted: data sheet and assumptions only" in out
    assert "nearest: storage ssd, data set scale 1, in 1 published number" in out
    assert "assumed, supported by no published number: orin_soc_w" in out
    assert "held-out errors: no results/twin/validation.csv yet (make validate)" in out


def test_the_error_of_the_nearest_numbers_is_told_where_it_is_known(ask, counted):
    (counted / "results/twin/validation.csv").write_text(
        "published_id,class,device,held_out_error_pct,judged_as\n"
        "S5.5.2-01,share,agx,12.5,points\n"
        "S5.5.1-01,time,agx,2.2,ratio\n"
    )
    _, out, _ = ask("--device", "agx", "--model", "lenet")
    line = next(line for line in out.splitlines() if "S5.5.2-01" in line)
    assert re.search(r"GPU utilisation +about 7 % +[\d.]+ +12\.5 points$", line)
    assert "median held-out error on agx: time 2.2 % (n = 1)" in out


def test_a_network_that_did_not_fit_is_warned_of(ask, here, counts):
    (here / "results/twin/workloads").mkdir(parents=True)
    text = counts.read_text().replace('"lenet"', '"vgg11"')
    (here / "results/twin/workloads/vgg11.json").write_text(text)
    _, out, _ = ask("--device", "nano", "--model", "vgg11")
    lines = out.splitlines()
    assert lines[1] == "WARNING: vgg11 ran out of memory on this board in the papers"
    assert lines[2] == "WARNING: nothing is published of vgg11 on nano (only of lenet)"
    assert out.count("WARNING") == 2


@pytest.fixture
def own_config(here):
    """Give the checkout a `config/twin` of its own, to be changed."""
    (here / "config").unlink()
    shutil.copytree(ROOT / "config", here / "config")
    return here / "config/twin"


def test_the_interval_is_what_the_refits_say(ask, here):
    _, out, _ = ask("--device", "agx", *BY_TOTALS)
    match = re.search(r"epoch ([\d.]+) to ([\d.]+) s, energy ([\d.]+) to ([\d.]+) Wh; ", out)
    lowest_s, highest_s, lowest_wh, highest_wh = map(float, match.groups())
    assert lowest_s < highest_s
    assert lowest_wh < highest_wh
    assert lowest_s <= table(out)["epoch s"][0] <= highest_s


def test_without_refits_there_is_no_interval(ask, own_config):
    (own_config / "cross_validation_fits.csv").unlink()
    _, out, _ = ask("--device", "agx", *BY_TOTALS)
    assert "uncertainty: no interval; config/twin/cross_validation_fits.csv cannot be read" in out


def test_it_says_when_nothing_was_calibrated(ask, own_config):
    p = load_parameters(own_config)
    write_parameters(own_config, p.moved({name: p.described[name].prior for name in p.fitted}))
    _, out, _ = ask("--device", "agx", *BY_TOTALS)
    assert "WARNING: config/twin/parameters.yaml was never calibrated" in out.splitlines()[1]
    assert "uncertainty: no interval without a calibration" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--device", "pi", *BY_TOTALS],
            "error: unknown --device 'pi'\n  allowed: agx, nx, nano, orin",
        ),
        (
            ["--device", "agx-d9", *BY_TOTALS],
            "unknown --device 'agx-d9'\n  allowed: agx, agx-d1, agx-d2",
        ),
        (
            ["--device", "nx", "--batch-size", "20001", *BY_TOTALS],
            "--batch-size 20001 is more than the samples of an epoch\n  allowed: 1 to 20000",
        ),
        (
            ["--device", "agx", "--workers", "1000", *BY_TOTALS],
            "1000 workers and generic with batch size 16 need 35",
        ),
        (["--device", "agx", *BY_TOTALS, "--flops", "3e30"], "one epoch would take "),
        (
            ["--device", "agx", *BY_TOTALS, "--samples", "20000", "--scale", "1e300"],
            "one epoch would",
        ),
        (
            ["--device", "agx", "--power-mode", "8,50,1377,2133", *BY_TOTALS],
            "a simulated Jetson AGX Xavier cannot have cpu_mhz 50\n  allowed: 115.2 to 2265.6",
        ),
        (
            ["--device", "agx", "--model", "x"],
            "unknown --model 'x'\n  allowed: lenet, mobilenet, resnet",
        ),
        (
            ["--device", "agx", "--model", "lenet", "--flops", "3"],
            "give either --model or the totals of a network (--flops), not both",
        ),
        (
            ["--device", "nx", "--storage", "tape", *BY_TOTALS],
            "'tape' is not one of 'ssd', 'hdd', 'sd', 'emmc'",
        ),
        (["--device", "nx", "--workers", "-1", *BY_TOTALS], "-1 is not in the range x>=0"),
        (["--device", "nx", "--batch-size", "0", *BY_TOTALS], "0 is not in the range x>=1"),
        (["--device", "nx", "--scale", "0", *BY_TOTALS], "0.0 is not in the range x>0"),
    ],
)
def test_a_key_that_cannot_be_is_refused(refused, words, message):
    assert message in refused(*words)


def test_a_unit_of_a_board_is_answered_as_the_board(ask, here):
    assert ask("--device", "agx-d1", *BY_TOTALS) == ask("--device", "agx", *BY_TOTALS)


def test_a_mode_without_a_label_is_called_a_mode_and_nothing_has_no_sign(ask, here):
    _, out, _ = ask("--device", "agx", "--power-mode", "8,2265.6,1377,2133", *BY_TOTALS)
    assert settings(out)["power mode"] == ("-", "g")
    assert settings(out)["CPU MHz"] == ("2265.6", "2265")
    assert table(out)["epoch s"][2] == "0.0 %"
    assert not re.search(r"[-+]0\.0 ", out)


def test_resources_of_which_none_helps_alone_are_not_ranked(ask, here, monkeypatch):
    monkeypatch.setattr(bottleneck, "shorter_pct", lambda *_: dict.fromkeys(RESOURCES, 0.01))
    _, out, _ = ask("--device", "nx", *BY_TOTALS)
    assert "bottleneck: several together; no single resource" in out
    assert "shorter by:" not in out


@pytest.fixture
def agx():
    """Return the simulated boards, and the name of AGX Xavier."""
    return load_twin_with_modes([], ROOT), "agx"


def test_a_power_mode_is_given_by_its_label_or_by_numbers(agx):
    twin, _ = agx
    assert mode_of("e", *agx) == ("e", twin.modes["agx"]["e"])
    assert mode_of("8,2265,1377,2133", *agx) == ("g", twin.modes["agx"]["g"])
    assert mode_of("8,2000,1000,2133", *agx) == ("8,2000,1000,2133", (8, 2000, 1000, 2133))


@pytest.mark.parametrize("mode", ["turbo", "8,2000,900", "3.2,2000,900,2133", "nan,2000,900,2133"])
def test_an_unknown_power_mode_is_an_error_with_those_there_are(agx, mode):
    with pytest.raises(EpochwattError, match="unknown --power-mode") as caught:
        mode_of(mode, *agx)
    assert caught.value.allowed[:2] == ["g", "a"]
    assert caught.value.allowed[-1].endswith("such as 8,2265,1377,2133")


@pytest.mark.parametrize(
    ("mode", "problem", "nearest"),
    [
        ("9,2265,1377,2133", "cannot have cores 9", "8,2265,1377,2133"),
        ("8,50,1377,2133", "cannot have cpu_mhz 50", "8,115.2,1377,2133"),
        ("8,2000,1500,2200", "cannot have gpu_mhz 1500", "8,2000,1377,2133"),
        ("8,nan,900,2133", "cannot have cpu_mhz nan", "8,115.2,900,2133"),
        ("8,inf,900,2133", "cannot have cpu_mhz inf", "8,2265.6,900,2133"),
    ],
)
def test_a_power_mode_beyond_the_limits_is_an_error_with_the_nearest(agx, mode, problem, nearest):
    with pytest.raises(EpochwattError, match=problem) as caught:
        mode_of(mode, *agx)
    assert caught.value.do == f"try the nearest: {nearest}"


def test_an_answer_from_counts_needs_neither_torch_nor_pandas(counted):
    code = (
        "import sys\nfrom epochwatt import cli\n"
        "assert cli.main(['what-if', '--device', 'agx', '--model', 'lenet']) == 0\n"
        "print(sorted({'torch', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=counted
    )
    assert done.stdout.splitlines()[-1] == "[]"
