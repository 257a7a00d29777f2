"""What-if questions: what is asked, what is refused, what is said."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from epochwatt import cli
from epochwatt.errors import EpochwattError
from epochwatt.twin.calibration.power_modes import load_modes
from epochwatt.twin.inputs.boards import load_boards
from epochwatt.twin.inputs.parameters import load_parameters, write_parameters
from epochwatt.twin.what_if import bottleneck
from epochwatt.twin.what_if.bottleneck import RESOURCES
from epochwatt.twin.what_if.question import TOTALS, mode_of

ROOT = Path(__file__).resolve().parents[4]
NUMBERS = {
    **{"--flops": "3e9", "--bytes": "2e8", "--launches": "900", "--parameters": "5e6"},
    **{"--sample-bytes": "602112", "--file-bytes": "1e5", "--pixels": "4e5", "--samples": "20000"},
}
TOLD = [word for pair in NUMBERS.items() for word in pair]


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    counting = pytest.importorskip("epochwatt.twin.counting.count_workload")
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
    rows = [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()]
    return {row[0]: (float(row[1]), float(row[2]), row[3]) for row in rows[6:] if len(row) == 4}


def test_the_first_line_says_simulated(ask, here):
    status, out, err = ask("--device", "nx", *TOLD)
    assert (status, err) == (0, "")
    first = out.splitlines()[0]
    assert first == "SIMULATED, not measured: one epoch of generic on Jetson Xavier NX"


def test_the_parts_add_up(ask, here):
    _, out, _ = ask("--device", "agx", "--storage", "hdd", "--workers", "1", "--cold", *TOLD)
    told = table(out)
    parts = ("wait for the loader s", "hand-over s", "copy s", "compute s", "overhead s")
    for column in (0, 1):
        e2e_s, energy_wh, power_w = (
            told[name][column] for name in ("epoch s", "energy Wh", "mean power W")
        )
        assert sum(told[name][column] for name in parts) == pytest.approx(e2e_s, rel=2e-3)
        assert energy_wh == pytest.approx(power_w * e2e_s / 3600, rel=2e-3)
        for total, unit in ((energy_wh, "Wh"), (power_w, "W")):
            of_parts = [told[f"{n} {unit}"][column] for n in ("CPU", "GPU", "memory")]
            rest = told[f"rest of the module {unit}"][column]
            assert sum(of_parts) + rest == pytest.approx(total, rel=2e-3)


def test_what_is_left_out_is_the_default_and_changes_nothing(ask, here):
    _, out, _ = ask("--device", "nano", *TOLD)
    lines = out.splitlines()
    assert lines[2].removeprefix("asked    ") == lines[3].removeprefix("default  ")
    assert lines[3].startswith("default  sd, 4 workers, batch 16, mode MAXN (4 cores, CPU 1479")
    assert {change for _, _, change in table(out).values()} == {"-"}


def test_a_change_is_told_against_the_default(ask, here):
    _, out, _ = ask("--device", "agx", "--power-mode", "b", *TOLD)
    asked, default, change = table(out)["epoch s"]
    assert asked > default
    assert float(change.split()[0]) == pytest.approx(100 * (asked / default - 1), abs=0.2)
    assert table(out)["GPU utilisation %"][2].endswith(" points")


def test_a_known_network_is_answered_from_its_counts(ask, counted):
    status, out, err = ask("--device", "agx", "--model", "lenet", "--workers", "3")
    assert (status, err) == (0, "")
    assert "counts: results/twin/workloads/lenet.json; 3750 mini-batches" in out
    assert "bottleneck: launch-bound" in out
    assert "WARNING: nowhere published: --workers 3; there are 0, 1, 4" in out
    assert "  none with --workers 3, but with 0, 1, 4" in out


def test_a_known_network_without_counts_is_counted_here_and_now(ask, here, counts):
    status, out, _ = ask("--device", "agx", "--model", "lenet")
    assert status == 0
    assert "counted just now; to keep the counts: .venv/bin/snakemake results/twin/work" in out
    assert not (here / "results").exists()


def test_without_torch_it_says_how_to_get_the_counts(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "epochwatt.twin.counting.count_workload", raising=False)
    assert refused("--device", "agx", "--model", "lenet") == (
        "error: results/twin/workloads/lenet.json is not there, and this Python has no torch to "
        "count lenet\n  do: where torch is, .venv/bin/snakemake results/twin/workloads/lenet.json, "
        "and copy the file\n"
    )


def test_it_says_how_far_the_question_is_from_what_was_published(ask, counted):
    _, out, _ = ask("--device", "orin", "--model", "lenet", "--storage", "emmc", "--scale", "3")
    assert "WARNING: nowhere published: --storage emmc; there are ssd" in out
    assert "WARNING: nowhere published: --scale 3; there are 1" in out
    assert "WARNING: no number of orin was fitted: its data sheet and assumptions" in out
    assert "nearest: lenet, ssd, 4 workers" in out
    assert "differs in storage, scale; numbers: " in out
    assert "assumed, no published number speaks for it: orin_soc_w" in out
    assert "held-out errors: results/twin/validation.csv is not there (make validate)" in out


def test_the_error_of_the_nearest_numbers_is_told_where_it_is_known(ask, counted):
    (counted / "results/twin/validation.csv").write_text(
        "published_id,class,device,held_out_error_pct,judged_as\n"
        "S5.5.2-01,share,agx,12.5,points\n"
        "S5.5.1-01,time,agx,2.2,ratio\n"
    )
    _, out, _ = ask("--device", "agx", "--model", "lenet")
    line = next(line for line in out.splitlines() if "S5.5.2-01" in line)
    assert re.search(
        r"GPU utilisation: about 7 %, simulated [\d.]+; held out.* 12\.5 points$", line
    )
    assert "median held-out error on agx: time 2.2 % (n = 1)" in out


def test_a_network_that_did_not_fit_is_warned_of(ask, here, counts):
    (here / "results/twin/workloads").mkdir(parents=True)
    told = counts.read_text().replace('"lenet"', '"vgg11"')
    (here / "results/twin/workloads/vgg11.json").write_text(told)
    _, out, _ = ask("--device", "nano", "--model", "vgg11")
    told = out.splitlines()
    assert told[1].startswith("WARNING: vgg11 ran out of memory on this board in the papers")
    assert told[2] == "WARNING: nothing published of vgg11 on nano; of nano there are: lenet"
    assert out.count("WARNING") == 2


def test_governors_clocks_are_told(ask, here):
    _, out, _ = ask("--device", "agx", "--dvfs", "on", *TOLD)
    assert re.search(r"clocks that the governors choose: CPU \d+, GPU \d+, memory \d+ MHz", out)


@pytest.fixture
def own_config(here):
    """Give the checkout a `config/twin` of its own, to be changed."""
    (here / "config").unlink()
    shutil.copytree(ROOT / "config", here / "config")
    return here / "config/twin"


def test_the_interval_is_what_the_refits_say(ask, here):
    _, out, _ = ask("--device", "agx", *TOLD)
    found = re.search(r"epoch ([\d.]+) to ([\d.]+) s, energy ([\d.]+) to ([\d.]+) Wh; what", out)
    lowest_s, highest_s, lowest_wh, highest_wh = map(float, found.groups())
    assert lowest_s < highest_s
    assert lowest_wh < highest_wh
    assert lowest_s <= table(out)["epoch s"][0] <= highest_s


def test_without_refits_there_is_no_interval(ask, own_config):
    (own_config / "refits.csv").unlink()
    _, out, _ = ask("--device", "agx", *TOLD)
    assert "uncertainty: no interval; config/twin/refits.csv cannot be read" in out


def test_it_says_when_nothing_was_calibrated(ask, own_config):
    p = load_parameters(own_config)
    write_parameters(own_config, p.moved({name: p.described[name].prior for name in p.fitted}))
    _, out, _ = ask("--device", "agx", *TOLD)
    assert "WARNING: config/twin/parameters.yaml was never calibrated" in out.splitlines()[1]
    assert "uncertainty: no interval without a calibration" in out


def test_totals_that_are_missing_are_named(refused):
    assert refused("--device", "agx", "--flops", "1e9", "--samples", "100") == (
        "error: a network without --model needs all its totals; missing: --bytes, --launches, "
        "--parameters, --sample-bytes, --file-bytes, --pixels\n"
    )


def test_a_question_without_a_network_names_those_there_are(refused):
    assert refused("--device", "agx") == (
        "error: neither a model nor totals are told\n  needed: --model with lenet, mobilenet, "
        f"resnet, vgg11; or {' '.join(TOTALS.values())}\n"
    )


@pytest.mark.parametrize("option", TOTALS.values())
def test_totals_that_cannot_be_are_refused(refused, option):
    words = [word for pair in {**NUMBERS, option: "-1"}.items() for word in pair]
    assert f"Invalid value for '{option}': -1.0 is not in the range" in refused(
        "--device", "agx", *words
    )


def test_a_network_without_files_is_read_from_memory(ask, here):
    words = [w for pair in {**NUMBERS, "--file-bytes": "0"}.items() for w in pair]
    _, out, _ = ask("--device", "agx", "--cold", *words)
    assert table(out)["samples read from the medium %"][0] == 0.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--device", "pi", *TOLD], "error: --device is pi\n  allowed: agx, nx, nano, orin"),
        (["--device", "agx-d9", *TOLD], "--device is agx-d9\n  allowed: agx, agx-d1, agx-d2"),
        (
            ["--device", "nx", "--batch-size", "20001", *TOLD],
            "--batch-size is 20001\n  allowed: 1 to 20000",
        ),
        (
            ["--device", "agx", "--workers", "1000", *TOLD],
            "1000 workers and generic with batch 16 would need 35",
        ),
        (["--device", "agx", *TOLD, "--flops", "3e30"], "one epoch would take "),
        (["--device", "agx", "--model", "x"], "--model is x\n  allowed: lenet, mobilenet, resnet"),
        (
            ["--device", "agx", "--model", "lenet", "--flops", "3"],
            "--model lenet stands beside --flops\n  allowed: either a model",
        ),
        (
            ["--device", "nx", "--storage", "tape", *TOLD],
            "'tape' is not one of 'ssd', 'hdd', 'sd', 'emmc'",
        ),
        (["--device", "nx", "--workers", "-1", *TOLD], "-1 is not in the range x>=0"),
        (["--device", "nx", "--batch-size", "0", *TOLD], "0 is not in the range x>=1"),
        (["--device", "nx", "--scale", "0", *TOLD], "0.0 is not in the range x>0"),
    ],
)
def test_a_key_that_cannot_be_is_refused(refused, words, message):
    assert message in refused(*words)


def test_a_unit_of_a_board_is_answered_as_the_board(ask, here):
    assert ask("--device", "agx-d1", *TOLD) == ask("--device", "agx", *TOLD)


def test_a_mode_without_a_label_is_called_a_mode_and_nothing_has_no_sign(ask, here):
    _, out, _ = ask("--device", "agx", "--power-mode", "8,2265.6,1377,2133", *TOLD)
    assert ", mode (8 cores, CPU 2265.6, GPU 1377, memory 2133 MHz), " in out
    assert table(out)["epoch s"][2] == "0.0 %"
    assert not re.search(r"[-+]0\.0 ", out)


def test_a_cache_that_holds_little_is_not_called_warm(ask, here):
    _, out, _ = ask("--device", "nx", "--storage", "hdd", *TOLD)
    assert table(out)["data set that the page cache holds %"][0] == 0.0
    assert "page cache as earlier epochs leave it" in out
    assert "warm" not in out


def test_resources_of_which_none_helps_alone_are_not_ranked(ask, here, monkeypatch):
    monkeypatch.setattr(bottleneck, "shorter_pct", lambda *_: dict.fromkeys(RESOURCES, 0.01))
    _, out, _ = ask("--device", "nx", *TOLD)
    assert "bottleneck: several at once; none alone" in out
    assert "shorter by:" not in out


@pytest.fixture
def agx():
    """Return the board and its modes."""
    return load_boards(ROOT / "config/twin")["agx"], dict(load_modes(["agx"], ROOT)["agx"])


def test_a_mode_is_told_by_its_label_or_by_its_numbers(agx):
    board, modes = agx
    labels = set(modes)
    assert mode_of("e", board, modes) == "e"
    assert mode_of("8,2265,1377,2133", board, modes) == "g"
    assert set(modes) == labels
    assert mode_of("8,2000,1000,2133", board, modes) == "8,2000,1000,2133"
    assert modes["8,2000,1000,2133"] == (8, 2000, 1000, 2133)


@pytest.mark.parametrize(
    ("told", "allowed"),
    [
        ("9,2265,1377,2133", "cores 1 to 8 on Jetson AGX Xavier; the nearest is 8,2265,1377,2133"),
        ("8,50,1377,2133", "CPU MHz 115.2 to 2265.6 on .*; the nearest is 8,115.2,1377,2133"),
        ("8,2000,1500,2200", "GPU MHz 114.75 to 1377; memory .*; the nearest is 8,2000,1377,2133"),
        ("3.2,2000,900,2133", "a whole number of cores on .*; the nearest is 3,2000,900,2133"),
        ("nan,2000,900,2133", "cores 1 to 8 on .*; the nearest is 1,2000,900,2133"),
        ("8,inf,900,2133", "CPU MHz .*; the nearest is 8,2265.6,900,2133"),
        ("8,2000,900", "g, a, b, .*or numbers: cores,cpu_mhz,gpu_mhz,emc_mhz, such as 8,2265"),
        ("turbo", "g, a, b, .*such as 8,2265,1377,2133"),
    ],
)
def test_a_mode_that_the_board_cannot_take_is_refused_with_the_nearest(agx, told, allowed):
    with pytest.raises(EpochwattError, match=f"(?s)--power-mode is '?{told}'?\n.*{allowed}"):
        mode_of(told, *agx)


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
