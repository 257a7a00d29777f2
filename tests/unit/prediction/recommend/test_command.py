"""`epochwatt recommend`: what it says, what it writes, what it refuses."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fake_board import make_board

from epochwatt import cli, columns
from epochwatt.board.device.board_files import parse_conf
from epochwatt.prediction.data.modes import as_rows
from epochwatt.prediction.data.required_runs import fitted_runs
from epochwatt.prediction.models.features import POWER, TIME
from epochwatt.prediction.models.linear_model import LinearModel
from epochwatt.project import start_command
from epochwatt.study.expand import load_table
from epochwatt.tables import read_cells

ROOT = Path(__file__).resolve().parents[4]
LABELS = "cegj"
NOMINAL = {  # as config/devices/agx.yaml states them
    "c": (8, 1200, 900, 1333),
    "e": (8, 2100, 900, 1600),
    "g": (8, 2265, 1377, 2133),
    "j": (8, 2265, 1377, 1600),
}
SHIFTS = np.linspace(0.9, 1.1, 21)[:, None]  # of the draws: 90 % of them within 9 %
LAWS = {
    "time_s": (TIME, (200.0, 100.0, 80.0, 100.0, 0.0)),
    "power_w": (POWER, (8.0, 2.0, 0.5, 0.1, 2.0, 4.0)),
}
DEFAULT = ("--backend", "twin", "--device", "agx-d1", "--model", "mobilenet")
ASK = (*DEFAULT, "--method", "physical")
FOLDER = "results/recommend/twin-agx-d1-mobilenet-ssd-w4-bs16/time-power_w-15-physical"


def fitted(labels=LABELS, power=True, **factors):
    """A workload of the models' files, and the same of the power."""
    usual = {f.name: f.default for f in columns.FACTORS if f.name != "power_mode"}
    workload = usual | {
        **{"setup": "sigmetrics2023", "backend": "twin", "device": "agx", "instance": "d1"},
        **{"model": "mobilenet", "dataset": "gld23k", "dataset_source": "official"},
        **{"dataset_scale": 1.0, "storage": "ssd"},
        **factors,
    }
    name = "{backend}-{device}-{instance}-{model}-{storage}-w{num_workers}-bs{batch_size}"
    runs = [f"{name.format(**workload)}-{label}-p1-01234567" for label in labels]
    modes = as_rows([NOMINAL[label] for label in labels])
    stored = []
    for target, (terms, coefficients) in LAWS.items():
        draws = {"draws": coefficients * SHIFTS, "spread": np.zeros(len(SHIFTS))}
        model = LinearModel(target, terms, np.array(coefficients), 5, modes, **draws)
        fit = {"method": "physical", "learned_from": "all", "target": target}
        fits = [fit | {"model": model.to_json()}] if power or target == "time_s" else []
        stored.append({"workload": workload, "runs": runs, "fits": fits})
    return tuple(stored)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A checkout with nothing fitted."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    (tmp_path / "workflow").symlink_to(ROOT / "workflow")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def store(here):
    """Return a function that stores models of workloads, as the workflow does."""

    def call(*workloads, backend="twin"):
        folder = here / "results/models" / backend
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in zip(
            ("epoch_time.json", "epoch_energy.json"), zip(*workloads, strict=True), strict=True
        ):
            (folder / name).write_text(json.dumps({"schema_version": 5, "workloads": rows}))
        return here

    return call


@pytest.fixture
def ask(capsys):
    """Return a function that asks; it gives status, stdout and stderr."""

    def call(*words):
        status = cli.main(["recommend", *words])
        return (status, *capsys.readouterr())

    return call


@pytest.fixture
def refused(ask):
    """Return a function that asks and gives the error."""

    def call(*words):
        status, out, err = ask(*words)
        assert (status, out) == (2 if err.startswith("Usage:") else 1, "")
        return err

    return call


def masked(out):
    """The text without what the intervals' own tests hold."""
    lines = out.split("\n")
    start = lines.index("", lines.index("") + 1) + 1
    for n in range(start, start + 4):
        told = re.sub(r"[0-9.]+ to [0-9.]+", "LOW to HIGH", re.sub(" +", " ", lines[n]).strip())
        lines[n] = re.sub(r"\d+ %$", "RISK", told)
    return "\n".join(lines)


def test_answer_files_and_block(ask, store, golden):
    here = store(fitted(), fitted(storage="hdd"))
    status, out, err = ask(*ASK, "--max-power-w", "15")
    assert (status, err) == (0, "")
    golden("recommend", f"epochwatt recommend {' '.join(ASK)} --max-power-w 15", masked(out))
    assert not (here / FOLDER / "front.svg").exists()
    before = (here / FOLDER / "front.csv").read_bytes()
    _, out, _ = ask(*ASK, "--max-power-w", "15", "--nvpmodel", "--figure")
    assert (here / FOLDER / "front.csv").read_bytes() == before
    assert (here / FOLDER / "front.svg").exists()
    assert (here / FOLDER / "front.png").exists()
    rows = read_cells(here / FOLDER / "front.csv")
    origin = {(row["backend"], row["origin"]) for row in rows}
    assert origin == {("twin", "SIMULATED, not measured")}
    kinds = [row["what"] for row in rows]
    assert (kinds.count("front"), kinds.count("recommended"), kinds.count("profiled")) == (35, 1, 4)
    (best,) = [row for row in rows if row["what"] == "recommended"]
    assert float(best["power_w_low"]) < float(best["power_w"]) < float(best["power_w_high"])
    assert float(best["power_w"]) <= 15
    text = (here / FOLDER / "nvpmodel.conf").read_text()
    assert text in out
    assert text.startswith("# SIMULATED, not measured")
    (mode,) = parse_conf(text).modes
    settings = {(name, arg): value for name, arg, value in mode.settings}
    assert settings["GPU", "MAX_FREQ"] == "624750000"
    assert sum(v == "1" for (name, _), v in settings.items() if name == "CPU_ONLINE") == 8


def test_several_budgets_hold_together_and_energy_is_least_within_a_time(ask, store):
    here = store(fitted())
    _, out, _ = ask(*ASK, "--max-epoch-s", "300")
    assert "asked     least energy; epoch at most 300 s" in out
    ask(*ASK, "--max-power-w", "25", "--max-energy-wh", "2.1", "--objective", "edp")
    path = next(here.glob("results/recommend/*/edp-*-energy_wh-2.1-physical/front.csv"))
    (best,) = [row for row in read_cells(path) if row["what"] == "recommended"]
    assert float(best["power_w"]) <= 25
    assert float(best["energy_wh"]) <= 2.1


def test_time_needs_no_energy_and_whatever_needs_it_is_refused(ask, store):
    here = store(fitted(power=False))
    status, out, err = ask(*ASK, "--objective", "time", "--max-epoch-s", "400")
    assert (status, err) == (0, "")
    assert "no Pareto front: energy was not measured" in out
    assert "power W" not in out
    assert [path.name for path in here.glob("results/recommend/*/*/*")] == ["nvpmodel.conf"]
    for words in (("--max-power-w", "20"), ("--max-energy-wh", "2"), ("--objective", "edp")):
        needing = "the objective edp" if words[0] == "--objective" else words[0]
        assert f"epoch of this workload, and {needing} needs it\n" in ask(*ASK, *words)[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--device", "agx-d9"), r"agx has no instance 'd9'\n  allowed: d1, d2, d3, d4, d5"),
        (("--model", "alexnet"), r"--model is 'alexnet'\n  allowed: lenet, mobilenet"),
        (("--device", "host"), r"'host', which is no Jetson board: it has no power modes"),
        (("--max-power-w", "1"), r"no mode keeps --max-power-w 1\n  allowed: [\d.]+ W or more"),
        (
            ("--max-power-w", "9", "--max-epoch-s", "230"),
            r"no mode keeps --max-power-w 9 and --max-epoch-s 230 together",
        ),
        (("--model", "vgg11"), r"(?s)(\n  c[0-9.a-z]+: {cores: [^\n]*){4}\n\n"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(words, message, refused, store):
    store(fitted())
    assert re.search(message, refused(*ASK, *words))


def paste(here, text):
    """Add to the configuration what an answer says; return the runs of its study."""
    study, name = re.search(r"(?sm)^((?:verify|profile)-[^\n:]+?):\n.*?(?=\n\n)", text).group(0, 1)
    entries = re.findall(r"^  c[0-9.a-z]+: .*$", text, re.M)
    device = here / "config/devices/agx.yaml"
    before, line, after = re.split(r"(?m)(^power_modes:.*\n)", device.read_text())
    device.write_text("".join([before, line, *(f"{entry}\n" for entry in entries), after]))
    with (here / "config/studies.yaml").open("a") as handle:
        handle.write(f"\n{study}\n")
    return list(load_table({"studies": name}, here).runs.values())


def test_too_few_runs_name_those_to_make(refused, store):
    here = store(fitted("ce"), fitted("ce", num_workers=0))
    err = refused(*ASK, "--workers", "4")
    assert "ssd, 4 workers, batch 16, were run\n  found: 2 modes\n  allowed: 4 or more\n" in err
    assert "  do: simulate 2 runs of 3 epochs\n" in err
    runs = paste(here, err)
    workload = fitted()[0]["workload"]
    assert [{name: run.factors[name] for name in workload} for run in runs] == [workload] * 2
    study = "profile-twin-agx-d1-mobilenet-ssd-w4-bs16"
    assert f"\nstudies: [auto, {study}]\n" in err
    assert "snakemake --profile profiles/host results/models/twin/scores.html" in err


def test_runs_of_what_was_not_fitted_are_those_of_the_network_but_for_what_is_asked(refused, store):
    here = store(fitted(num_workers=0, prefetch_factor=None), fitted("cgj", storage="hdd"))
    err = refused(*ASK, "--storage", "sd", "--workers", "8")
    assert "found: ssd, 0 workers, batch 16; hdd, 4 workers, batch 16 (3 modes; 4 needed)\n" in err
    runs = paste(here, err)
    wanted = fitted(storage="sd", num_workers=8)[0]["workload"]
    assert [{name: run.factors[name] for name in wanted} for run in runs] == [wanted] * 4
    assert len(fitted_runs(load_table({"studies": runs[0].studies[0]}, here), "twin").runs) == 4


@pytest.mark.parametrize("backend", ["jetson", "fake"])
def test_without_any_run_or_model_the_way_to_make_some_is_named(backend, refused, here):
    assert f"nothing was fitted yet\n  do: `{start_command()}` or `" in refused(*ASK)
    words = ("--backend", backend, "--device", "agx", "--model", "mobilenet")
    err = refused(*words)
    assert f"measured/ has no run of backend {backend}: there is nothing to fit models to\n" in err
    assert "(docs/tutorials/jetson.md), run .venv/bin/snakemake --profile profiles/jetson" in err
    run = here / "measured" / f"{backend}-agx-d1-mobilenet-ssd-w4-bs16-g-p1-01234567"
    run.mkdir(parents=True)
    assert f"results/models/{backend}/epoch_time.json is missing" in refused(*words)


# -- measured boards -------------------------------------------------------------------------------
ON_FAKE = (*ASK, "--backend", "fake", "--device", "agx")


def test_board_at_hand_is_read_live(ask, store, tmp_path):
    here = store(fitted(backend="fake"), backend="fake")
    board = make_board(tmp_path / "board", "agx_xavier")
    device = here / "config/devices/agx.yaml"
    device.write_text(device.read_text().replace("sysroot: /", f"sysroot: {board.root}"))
    gpu = board.root / board.kind.gpu / "available_frequencies"
    steps = gpu.read_text().split()
    gpu.write_text(" ".join(step for step in steps if step != "675750000"))
    status, out, err = ask(*ON_FAKE, "--max-power-w", "15")
    assert (status, err) == (0, "")
    assert out.startswith("NOT MEASURED, from a fake board: a power mode")
    assert "27,144: 8 cores x 29 CPU x 13 GPU x 9 memory clocks, of the board at hand" in out
    assert "GPU 675.75" not in out  # a step that this board lacks


def record_tables(here, run, gpu_mhz):
    machine = {
        **{"n_cpus": 8, "cpu_steps_mhz": [1190.4, 2112.0, 2265.6], "gpu_steps_mhz": gpu_mhz},
        "emc_steps_mhz": [1331.2, 1600.0, 2133.0],
    }
    folder = here / "measured" / run / "epoch-0"
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(json.dumps({"machine": machine}))


ON_BOARD = (*ASK, "--backend", "jetson", "--device", "agx")


def test_board_elsewhere_has_the_tables_that_it_recorded(ask, store):
    workload = fitted(backend="jetson")
    here = store(workload, backend="jetson")
    assert "has no record of its runs to tell its clocks" in ask(*ON_BOARD)[2]
    for run in workload[0]["runs"][:2]:
        record_tables(here, run, [420.75, 905.25, 1377.0])
    status, out, err = ask(*ON_BOARD, "--max-power-w", "15", "--nvpmodel")
    assert (status, err) == (0, "")
    assert out.startswith("from measurements: a power mode for mobilenet")
    assert "216: 8 cores x 3 CPU x 3 GPU x 3 memory clocks, of the records of its runs" in out
    assert "no nvpmodel block: it is made of the board's own nvpmodel.conf" in out
    assert "SIMULATED" not in out
    assert "sudo epochwatt-helper custom-mode " in out
    record_tables(here, workload[0]["runs"][2], [420.75, 906.25, 1377.0])
    assert "recorded different tables of clocks" in ask(*ON_BOARD)[2]


# -- the run that would confirm it -----------------------------------------------------------------
LABEL = "c8cpu729.6gpu624.75emc1065.6"


def test_verify_plans_a_run_that_the_configuration_takes(ask, store):
    here = store(fitted())
    _, out, _ = ask(*ASK, "--max-power-w", "15", "--verify")
    (run,) = paste(here, out)
    assert run.id.startswith(f"twin-agx-d1-mobilenet-ssd-w4-bs16-{LABEL}-p1-")
    workload = fitted()[0]["workload"]
    assert {name: run.factors[name] for name in workload} == workload
    assert run.factors["power_mode_settings"] == {
        **{"cores": 8, "cpu_mhz": 729.6, "gpu_mhz": 624.75, "emc_mhz": 1065.6}
    }
    name = f"verify-twin-agx-d1-mobilenet-ssd-w4-bs16-{LABEL}"
    assert f"--config studies={name} -- runs\n" in out


def write_run(write_epochs, here, hash_, epoch_s, energy_wh, **factors):
    """Write a run of the recommended mode, that of `fitted()` but for some factors."""
    about = fitted(**factors)[0]["workload"] | {"power_mode": LABEL, "dataset_scale": 1}
    told = {"e2e_s": epoch_s, "energy_paper_wh": 0.9 * energy_wh, "energy_wh": energy_wh}
    told |= {"power_scope": "module"}
    first, invalid = told | {"e2e_s": 9 * epoch_s}, told | {"e2e_s": 1.0, "valid": False}
    name = f"twin-agx-d1-mobilenet-ssd-w4-bs16-{LABEL}-p1-{hash_}"
    write_epochs(name, about, first, told, told, invalid, root=here)


@pytest.mark.parametrize("other", [{"dvfs": "on"}, {"dataset_source": "look_alike"}, {"seed": 1}])
def test_verify_compares_with_the_one_run_of_the_same_factors(ask, store, write_epochs, other):
    here = store(fitted())
    write_run(write_epochs, here, "76543210", 100.0, 0.5, **other)
    assert "verify: 1 run of 3 epochs\n" in ask(*ASK, "--max-power-w", "15", "--verify")[1]
    write_run(write_epochs, here, "01234567", 940.6, 1.983)
    verified = ask(*ASK, "--max-power-w", "15", "--verify")[1].split("verify: ")[1]
    assert f"twin-agx-d1-mobilenet-ssd-w4-bs16-{LABEL}-p1-01234567, 2 epochs" in verified
    rows = {line.split()[0]: line for line in verified.splitlines() if line}
    assert re.search(r"523\.6 .* 940\.6 +\+79\.6 % +no$", rows["epoch"])
    assert re.search(r"1\.983 .* 1\.983 +[+-]0\.0 % +yes$", rows["energy"])
    assert "13.64" in rows["power"]
    write_run(write_epochs, here, "aaaaaaaa", 940.6, 1.983)
    status, _, err = ask(*ASK, "--max-power-w", "15", "--verify")
    assert status == 1
    assert re.search("several runs of the recommended mode\n  found: .*-01234567, .*-aaaaaaaa", err)


def test_asking_loads_no_library_for_fitting(store):
    here = store(fitted())
    code = (
        "import sys\n"
        "from epochwatt import cli\n"
        f"assert cli.main({['recommend', *ASK]!r}) == 0\n"
        "slow = {'sklearn', 'scipy', 'pandas', 'torch', 'snakemake', 'matplotlib'}\n"
        "print(slow & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=here
    )
    assert done.stdout.splitlines()[-1] == "set()"
