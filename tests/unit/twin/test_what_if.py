"""What-if questions: answers, errors, warnings, bottlenecks, the nearest published numbers."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from epochwatt import cli
from epochwatt.counting.kernel_counts import generic_kernel_counts
from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.twin import network, resources
from epochwatt.twin.boards import Clocks, SampleFacts
from epochwatt.twin.epoch import Setting
from epochwatt.twin.parameters import load_parameters, write_parameters
from epochwatt.twin.what_if import mode_of

ROOT = Path(__file__).resolve().parents[3]
BY_TOTALS = (
    *("--flops", "3e9", "--bytes", "2e8", "--launches", "900", "--parameters", "5e6"),
    *("--sample-bytes", "602112", "--file-bytes", "1e5", "--pixels", "4e5", "--samples", "20000"),
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Make a checkout without results."""
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def counted(here, workloads):
    """Make a checkout with counts of LeNet."""
    folder = here / "results/twin/workloads"
    folder.mkdir(parents=True)
    shutil.copy(workloads[0], folder / "lenet.json")
    return here


@pytest.fixture
def ask(capsys):
    """Return a function that asks; it gives status, stdout and stderr."""

    def call(*words):
        status = cli.main(["what-if", *words])
        return (status, *capsys.readouterr())

    return call


def table(out):
    """Return name -> (asked, default, change) of the printed table."""
    rows = [
        re.split(r"\s{2,}", line.strip()) for line in out.partition("bottleneck:")[0].splitlines()
    ]
    start = next(i for i, row in enumerate(rows) if row[0] == "epoch s")
    return {row[0]: (float(row[1]), float(row[2]), row[3]) for row in rows[start:] if len(row) == 4}


def test_parts_add_up(ask, here):
    words = ("--device", "agx", "--storage", "hdd", "--workers", "1", "--cold")
    status, out, err = ask(*words, *BY_TOTALS)
    assert (status, err) == (0, "")
    assert out.startswith("SIMULATED, not measured: one epoch of generic on Jetson AGX Xavier\n")
    rows = table(out)
    parts = ("wait s", "hand-over s", "copy s", "compute s", "overhead s")
    for column in (0, 1):
        e2e_s, energy_wh, power_w = (
            rows[name][column] for name in ("epoch s", "energy Wh", "mean power W")
        )
        assert sum(rows[name][column] for name in parts) == pytest.approx(e2e_s, rel=2e-3)
        assert energy_wh == pytest.approx(power_w * e2e_s / 3600, rel=2e-3)
        for total, unit in ((energy_wh, "Wh"), (power_w, "W")):
            names = ("CPU", "GPU", "memory", "rest of the module")
            of_parts = [rows[f"{name} {unit}"][column] for name in names]
            assert sum(of_parts) == pytest.approx(total, rel=2e-3)


def test_the_listed_mode_of_least_energy_counts_the_rest_and_idling_until_a_deadline(
    ask, here, twin
):
    words = ("--device", "agx", *BY_TOTALS)
    costs = {}
    for mode in twin.modes["agx"]:
        rows = table(ask(*words, "--power-mode", mode)[1])
        costs[mode] = rows["epoch s"][0], 3600 * rows["energy Wh"][0]
    times_s = sorted(time_s for time_s, _ in costs.values())
    deadline_s = times_s[-2] + 1

    def said(*more):
        lines = ask(*words, *more)[1].splitlines()
        return next(line for line in lines if line.startswith("least energy of"))

    def least(cost):
        return f"modes: {min(costs, key=lambda mode: cost(*costs[mode]))}"

    assert least(lambda time_s, joule: joule) in said()
    assert least(lambda time_s, joule: joule + 90 * time_s) in said("--rest-w", "90")
    assert least(lambda time_s, joule: (time_s > times_s[2], joule)) in said(
        "--max-epoch-s", str(times_s[2] + 1)
    )
    idle = said("--max-epoch-s", str(deadline_s), "--idle-w", "1")
    assert least(lambda time_s, joule: (time_s > deadline_s, joule - time_s)) in idle
    assert "racing to idle: it ends early, and one that just meets the deadline costs" in idle
    assert "none within 1 s" in said("--max-epoch-s", "1")


def test_each_of_several_changes_is_told_alone_and_left_out(ask, here):
    changes = {
        "storage hdd": ("--storage", "hdd"),
        "loader workers 0": ("--workers", "0"),
        "empty page cache yes": ("--cold",),
    }

    def asked(names):
        words = [word for name in names for word in changes[name]]
        return ask("--device", "agx", *words, *BY_TOTALS)[1]

    rows = [re.split(r"\s{2,}", line) for line in asked(changes).splitlines()]
    rows = {row[0]: [float(cell) for cell in row[1:]] for row in rows if row[0] in changes}
    assert rows.keys() == changes.keys()
    for name, (alone_s, without_s, alone_wh, without_wh) in rows.items():
        alone, without = (table(asked(names)) for names in ({name}, changes.keys() - {name}))
        assert (alone["epoch s"][0], without["epoch s"][0]) == (alone_s, without_s)
        assert (alone["energy Wh"][0], without["energy Wh"][0]) == (alone_wh, without_wh)
    assert "one by one" not in asked({"loader workers 0"})


def test_known_network_is_answered_from_its_counts_without_torch_or_pandas(counted):
    code = (
        "import sys\nfrom epochwatt import cli\n"
        "assert cli.main(sys.argv[1:]) == 0\n"
        "print(sorted({'torch', 'pandas'} & set(sys.modules)))"
    )
    words = ["what-if", "--device", "agx", "--model", "lenet", "--workers", "3"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=counted,
    )
    out = done.stdout
    assert out.splitlines()[-1] == "[]"
    assert "kernel counts: results/twin/workloads/lenet.json; 3750 mini-batches" in out
    assert "bottleneck: bound by compute, its limit is launches" in out


def test_known_network_without_counts_is_counted_here_and_now(ask, here, monkeypatch):
    def keeps_none(*_):
        raise ConfigError("counting needs torch")

    with monkeypatch.context() as patch:
        patch.setattr(network, "write_kept_counts", keeps_none)
        status, out, _ = ask("--device", "agx", "--model", "lenet")
        assert status == 0
        said = "kernels counted just now; to keep the counts: .venv/bin/snakemake results/twin/"
        assert said in out
        assert not (here / "results").exists()
        assert len(list((here / ".cache/kernel-counts").iterdir())) == 1
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "epochwatt.counting.count_workload", raising=False)
    status, kept, _ = ask("--device", "agx", "--model", "lenet")
    assert status == 0
    assert "kernel counts that come with epochwatt" in kept
    assert table(kept) == table(out)
    status, _, err = ask("--device", "agx", "--model", "resnet50")
    assert status == 1
    assert "counting resnet50 (train, fp32) needs torch, which this Python has not" in err


def test_a_network_of_ones_own_is_counted_also_under_a_name_of_the_papers(ask, here, monkeypatch):
    (here / "config").unlink()
    shutil.copytree(ROOT / "config", here / "config")
    rows = here / "config/workloads.yaml"
    own = "title: LeNet-5\n  build: own_what_if.flat\n  like: lenet\n"
    rows.write_text(rows.read_text("utf-8").replace("title: LeNet-5\n", own), "utf-8")
    (here / "own_what_if.py").write_text(
        "from torch import nn\ndef flat():\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))\n"
    )
    monkeypatch.syspath_prepend(here)
    status, out, _ = ask("--device", "agx", "--model", "lenet")
    assert status == 0
    assert "kernels counted just now" in out


def test_it_says_how_far_the_question_is_from_what_was_published(ask, counted, golden):
    words = ("--device", "orin", "--model", "lenet", "--storage", "emmc", "--scale", "3")
    text = re.sub(r"-?\d+(\.\d+)?", "N", ask(*words)[1])
    said = re.findall("^ *(?:WARNING|nothing|nearest|assumed|held-out).*", text, re.M)
    golden("what-if", f"epochwatt what-if {' '.join(words)} (what it is far from)", "\n".join(said))


def test_interval_is_what_the_refits_say(ask, here):
    (here / "config").unlink()
    shutil.copytree(ROOT / "config", here / "config")
    _, out, _ = ask("--device", "agx", *BY_TOTALS)
    match = re.search(r"epoch ([\d.]+) to ([\d.]+) s, energy ([\d.]+) to ([\d.]+) Wh; ", out)
    lowest_s, highest_s, lowest_wh, highest_wh = map(float, match.groups())
    assert lowest_s <= table(out)["epoch s"][0] <= highest_s
    assert lowest_wh < highest_wh
    folder = here / "config/twin"
    (folder / "cross_validation_fits.csv").unlink()
    _, out, _ = ask("--device", "agx", *BY_TOTALS)
    assert "uncertainty: no interval; config/twin/cross_validation_fits.csv cannot be read" in out
    p = load_parameters(folder)
    write_parameters(folder, p.moved({name: p.described[name].prior for name in p.fitted}))
    _, out, _ = ask("--device", "agx", *BY_TOTALS)
    assert "WARNING: config/twin/parameters.yaml was never calibrated" in out.splitlines()[1]
    assert "uncertainty: no interval without a calibration" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--device", "pi"], "error: unknown --device 'pi'\n  allowed: agx, nx, nano, orin"),
        (["--device", "agx-d9"], "unknown --device 'agx-d9'\n  allowed: agx, agx-d1, agx-d2"),
        (
            ["--device", "nx", "--batch-size", "20001"],
            "than the samples of an epoch\n  allowed: 1 ",
        ),
        (["--device", "agx", "--workers", "1000"], "1000 workers and generic with batch size 16"),
        (["--device", "agx", "--scale", "1e300"], "one epoch would take "),
        (
            ["--device", "agx", "--power-mode", "8,50,1377,2133"],
            "a simulated Jetson AGX Xavier cannot have cpu_mhz 50\n  allowed: 115.2 to 2265.6",
        ),
        (["--device", "agx", "--model", "lenet"], "either --model or the totals of a network"),
        (["--device", "nx", "--workers", "-1"], "-1 is not in the range x>=0"),
    ],
)
def test_option_that_cannot_be_is_refused(ask, here, words, message):
    status, out, err = ask(*words, *BY_TOTALS)
    assert (status, out) == (2 if err.startswith("Usage:") else 1, "")
    assert message in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "x"], "unknown --model 'x'\n  allowed: lenet, mobilenet, resnet"),
        ([], "no network given\n  do: add --model, one of lenet, mobilenet"),
        (["--flops", "3"], "needs all its totals; missing: --bytes, --launches"),
    ],
)
def test_network_that_cannot_be_is_refused(ask, here, words, message):
    status, out, err = ask("--device", "agx", *words)
    assert (status, out) == (1, "")
    assert message in err


# -- power modes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "problem", "possible"),
    [
        ("9,2265,1377,2133", "cannot have cores 9", "8,2265,1377,2133"),
        ("8,2000,1500,2200", "cannot have gpu_mhz 1500", "8,2000,1377,2133"),
        ("8,nan,900,2133", "cannot have cpu_mhz nan", "8,115.2,900,2133"),
    ],
)
def test_power_mode_beyond_the_limits_is_refused_with_the_nearest(twin, mode, problem, possible):
    with pytest.raises(EpochwattError, match=problem) as caught:
        mode_of(mode, twin, "agx")
    assert caught.value.do == f"try the nearest: {possible}"


# -- resources -------------------------------------------------------------------------------------

SMALL = 1e-4
NO_FILES = SampleFacts(20000, 0, 1000, 0, "test")
PHOTOGRAPHS = SampleFacts(20000, 100_000, 400_000, 2000, "test")


@pytest.fixture
def on_agx(twin):
    """Return a function that makes a setting on an AGX Xavier."""

    def make(samples=NO_FILES, medium="ssd", workers=4, cold=False, dvfs=False, **totals):
        balanced = {"flops": 3e9, "moved_bytes": 2e8, "launches": 700}
        totals = {**balanced, "parameters": 10**6, "sample_bytes": 3072, **totals}
        clocks = Clocks(8.0, 2265.0, 1377.0, 2133.0)
        work = generic_kernel_counts(**totals)
        return Setting(twin.boards["agx"], work, samples, medium, 16, clocks, workers, cold, dvfs)

    return make


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("medium", "cold", "flops"), [("ssd", False, 1e11), ("hdd", True, 1e7), ("sd", True, 3e9)]
)
def test_shares_of_all_resources_add_up_to_one(on_agx, twin, workers, medium, cold, flops):
    setting = on_agx(PHOTOGRAPHS, medium, workers, cold, flops=flops)
    shorter = resources.shorter_pct(setting, twin.parameters, 1.0 + SMALL)
    shares = {name: gain / (100.0 * SMALL) for name, gain in shorter.items()}
    assert sum(shares.values()) == pytest.approx(1.0, abs=2e-3)
    assert min(shares.values()) >= -1e-9


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"flops": 1e12}, "bound by compute, its limit is arithmetic"),
        ({"moved_bytes": 1e11}, "bound by compute, its limit is memory"),
        (
            {"launches": 5000, "flops": 1e5, "moved_bytes": 1e6},
            "bound by compute, its limit is launches",
        ),
        (
            {"samples": PHOTOGRAPHS, "medium": "hdd", "cold": True, "workers": 2, "flops": 1e7},
            "bound by the loader (storage medium)",
        ),
        (
            {"samples": replace(PHOTOGRAPHS, pixels=1e8)},
            "bound by the loader (decoding and transforming)",
        ),
        ({"sample_bytes": 10**9, "launches": 10}, "bound by copying to the GPU"),
    ],
)
def test_extreme_network_is_bound_by_what_it_has_too_much_of(on_agx, twin, changes, words):
    shorter = resources.shorter_pct(on_agx(**changes), twin.parameters)
    assert resources.bottleneck_words(shorter).split(";")[0] == words


# -- the nearest published numbers -----------------------------------------------------------------
