"""EpochMonitor on loops that others may write, with planted times, powers and faults."""

import copy
import functools
import gc
import json
import math
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.synthetic import sampler_with
from epochwatt import EpochMonitor, monitor
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.telemetry.client import Sampler
from epochwatt.columns import FLAG_EFFECTS
from epochwatt.counting.kernel_counts import load_kernel_counts
from epochwatt.epochs.collect import collect_run

SIGNAL = [[0.004, 8.0], [0.007, 22.0]]  # s, W, again and again
TRUTH_W = sum(s * w for s, w in SIGNAL) / sum(s for s, _ in SIGNAL)
POWER = {"period_s": 0.01, "rails": 2, "signal": SIGNAL}


@pytest.fixture
def powered(monkeypatch):
    """Let samplers read a made-up power, too."""
    start = functools.partial(Sampler.start, program=sampler_with(POWER))
    monkeypatch.setattr(Sampler, "start", start)


@pytest.fixture
def make(tmp_path, powered):
    """Return a function that makes a monitor whose records go to `tmp_path`."""
    made = []

    def start(name="my-run", **settings):
        made.append(EpochMonitor(name, folder=str(tmp_path), **settings))
        return made[-1]

    yield start
    for each in made:
        each.close()


def minibatches(n=20, wait_s=0.002):
    for number in range(n):
        time.sleep(wait_s)
        yield number


def test_planted_times_are_found(make):
    watch = make()
    n, wait_s, copy_s, step_s, other_s = 30, 0.004, 0.003, 0.006, 0.002
    for _ in watch.epoch(minibatches(n, wait_s)):
        with watch.copy():
            time.sleep(copy_s)
        with watch.step():
            time.sleep(step_s)
        time.sleep(other_s)
    last = watch.last
    assert last.n_minibatches == n
    for found_s, planted_s in (
        (last.wait_s, wait_s),
        (last.copy_s, copy_s),
        (last.compute_s, step_s),
        (last.overhead_s, other_s),
    ):
        assert n * planted_s <= found_s <= 3 * n * planted_s  # a sleep never ends early
    parts_s = last.wait_s + last.copy_s + last.compute_s + last.overhead_s
    assert parts_s == pytest.approx(last.e2e_s, rel=1e-6)


def test_copy_that_is_not_told_apart_is_empty_and_not_zero(make, tmp_path):
    watch = make()
    for _ in watch.epoch(minibatches()):
        time.sleep(0.001)
    assert watch.last.copy_s is None
    out = tmp_path / "epochs.csv"
    collect_run(str(tmp_path), watch.run, 1, FLAG_EFFECTS, str(out), str(tmp_path / "energy.csv"))
    header, row = (line.split(",") for line in out.read_text("utf-8").splitlines())
    cells = dict(zip(header, row, strict=True))
    assert cells["copy_s"] == cells["loss"] == cells["seed"] == ""
    assert (cells["setup"], cells["imported"]) == ("own", "EpochMonitor")
    assert float(cells["compute_s"]) == pytest.approx(watch.last.compute_s)
    assert float(cells["energy_wh"]) == pytest.approx(watch.last.energy_wh)


def test_energy_lies_within_its_bound(make):
    watch = make()
    for _ in range(3):
        for _ in watch.epoch(minibatches(40)):
            time.sleep(random.uniform(0.001, 0.009))
        last = watch.last
        truth_wh = TRUTH_W * last.e2e_s / 3600
        assert abs(last.energy_wh - truth_wh) <= last.energy_error_pct / 100 * last.energy_wh
        assert last.power_scope == "module"
        assert last.power_w == pytest.approx(TRUTH_W, rel=0.3)


@pytest.mark.parametrize("seed", range(2))
def test_windows_may_overlap_epochs_and_one_another(make, seed):
    """Begun and ended at drawn moments; each one's energy lies within its bound."""
    watch, draw = make(), random.Random(seed)
    ended, is_open = [], set()
    for _ in range(2):
        for _ in watch.epoch(minibatches(30)):
            name = f"w{draw.randrange(3)}"
            if name in is_open:
                ended.append(watch.end_window(name))
                is_open.remove(name)
            else:
                watch.begin_window(name)
                is_open.add(name)
            time.sleep(draw.uniform(0.0, 0.02))
        assert watch.last.n_minibatches == 30
        assert watch.last.energy_wh > 0
    ended += [watch.end_window(name) for name in sorted(is_open)]
    bounded = [w for w in ended if w.energy_error is not None]
    assert len(bounded) > len(ended) / 2
    off = [abs(w.total_energy - TRUTH_W * w.time) / w.energy_error for w in bounded]
    assert np.mean(np.array(off) <= 1) > 0.9
    assert all(w.power == pytest.approx(w.total_energy / w.time) for w in bounded)


def test_machine_without_a_sensor_is_told_once_what_to_do(tmp_path, monkeypatch, caplog):
    start_it = Sampler.start

    def start(*arguments, **options):
        sampler = start_it(*arguments, **options)
        sampler.sources = dict.fromkeys(sampler.sources)
        return sampler

    monkeypatch.setattr(Sampler, "start", start)
    with EpochMonitor("bare", folder=str(tmp_path)) as watch:
        for _ in range(2):
            for _ in watch.epoch(minibatches(3)):
                pass
    assert watch.last is not None
    assert caplog.text.count("no power sensor can be read, so there will be no energy") == 1


def test_error_of_the_loader_goes_through(make):
    def broken():
        yield from range(4)
        raise OSError("the disk is gone")

    watch = make()
    with pytest.raises(OSError, match="the disk is gone"):  # noqa: PT012
        for _ in watch.epoch(broken()):
            time.sleep(0.001)
    assert watch.last.n_minibatches == 4


def test_loop_in_a_loop_is_a_part_of_it(make):
    watch = make()
    for _ in watch.epoch(minibatches(3, 0.0)):
        seen = list(watch.epoch(minibatches(4, 0.01)))
        assert seen == [0, 1, 2, 3]
    assert (watch.last.epoch, watch.last.n_minibatches) == (0, 3)
    assert watch.last.compute_s >= 3 * 4 * 0.01


def test_blocks_count_once_and_in_the_loops_own_thread_only(make):
    watch = make()

    def elsewhere():
        with watch.step():
            time.sleep(0.01)

    for _ in watch.epoch(minibatches(10)):
        other = threading.Thread(target=elsewhere)
        other.start()
        with watch.step(), watch.step(), watch.copy():
            time.sleep(0.005)
        other.join()
        time.sleep(0.01)
    last = watch.last
    assert (last.copy_s, last.n_minibatches) == (None, 10)
    assert 0.05 <= last.compute_s < last.e2e_s - last.wait_s - 0.09
    assert last.wait_s + last.compute_s + last.overhead_s == pytest.approx(last.e2e_s)


def test_it_may_be_a_part_of_what_is_copied_and_sent(make):
    watch = make()
    assert copy.deepcopy({"monitor": watch})["monitor"] is watch
    sent = pickle.loads(pickle.dumps(watch))
    assert list(sent.epoch([1, 2])) == [1, 2]
    assert sent.last is None


def test_minibatch_is_freed_by_the_loop(make):
    class Minibatch:
        pass

    watch, seen = make(), []
    for minibatch in watch.epoch(Minibatch() for _ in range(3)):
        seen.append(weakref.ref(minibatch))
        del minibatch
        assert seen[-1]() is None
    assert len(seen) == 3


def test_samplers_end_with_their_monitors_and_not_with_a_thread(tmp_path, powered):
    def begun_in_a_thread():
        watch = EpochMonitor("r", folder=str(tmp_path))
        thread = threading.Thread(target=lambda: list(watch.epoch([1, 2])))
        thread.start()
        thread.join()
        time.sleep(0.1)
        assert list(watch.epoch([1, 2])) == [1, 2]
        assert "sampler_lost" not in watch.last.flags
        return watch._observer.sampler.pid

    pid = begun_in_a_thread()
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_processes_of_one_name_have_runs_of_their_own(tmp_path):
    root = Path(__file__).resolve().parents[2]
    code = f"from epochwatt import EpochMonitor; m = EpochMonitor('one', folder={str(tmp_path)!r})"
    words = [sys.executable, "-c", f"{code}; list(m.epoch(range(3)))"]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    for each in [subprocess.Popen(words, env=environment) for _ in range(3)]:
        assert each.wait() == 0
    runs = [path.name for path in tmp_path.iterdir()]
    assert len(runs) == 3
    for run in runs:
        assert RunFolder(str(tmp_path), run).verify(0).meta["n_minibatches"] == 3


def test_empty_loader_is_no_epoch(make, tmp_path):
    watch = make()
    assert list(watch.epoch([])) == []
    assert watch.last is None
    assert list(watch.epoch([1, 2])) == [1, 2]
    assert (watch.last.epoch, len(watch.epoch([1, 2]))) == (0, 2)
    assert list(tmp_path.glob("*/*.unfinished")) == []


def test_second_start_is_another_run_unless_it_goes_on(make, tmp_path):
    """As a cell of a notebook that is run twice."""
    for resume, run, epochs in ((False, "", 0), (False, ".2", 0), (True, "", 1)):
        watch = make(resume=resume, lr=0.1)
        for _ in watch.epoch(minibatches(3)):
            pass
        assert watch.run.startswith(f"my-run{run}-")
        assert watch.last.epoch == epochs
    assert len(RunFolder(str(tmp_path), watch.run).measured()) == 2
    source = json.loads((tmp_path / watch.run / "source.json").read_text("utf-8"))
    assert source["factors"]["settings"] == {"lr": 0.1}


def test_sampler_that_is_killed_costs_the_energy_alone(make, caplog):
    watch = make()
    for number in watch.epoch(minibatches(20)):
        if number == 5:
            os.kill(watch._observer.sampler.pid, signal.SIGKILL)
    assert (watch.last.n_minibatches, watch.last.energy_wh) == (20, None)
    assert "sampler_lost" in watch.last.flags
    watch.begin_window("after")
    assert watch.end_window("after").flags == ("sampler_lost",)
    assert "telemetry is lost" in caplog.text


SCRIPT = """
import json, os, sys, time
sys.path[:0] = {paths!r}
import functools
from benchmarks.synthetic import sampler_with
from epochwatt import EpochMonitor
import torch
from epochwatt.board.telemetry.client import Sampler
Sampler.start = functools.partial(Sampler.start, program=sampler_with({power!r}))
torch.distributed.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
watch = EpochMonitor("ranks", folder={folder!r})
for _ in watch.epoch(range(20)):
    model(torch.ones(8, 4)).sum().backward()
    time.sleep(0.01)
watch.begin_window("w")
window = watch.end_window("w")
last = watch.last
print(json.dumps([watch.run, last.n_minibatches, last.energy_wh, last.flags, window.flags]))
"""


@pytest.mark.slow
def test_ranks_of_one_machine_have_one_energy(tmp_path):
    """As torchrun starts them, two processes here."""
    root = Path(__file__).resolve().parents[2]
    script = tmp_path / "train.py"
    paths = [str(root / "src"), str(root)]
    script.write_text(SCRIPT.format(paths=paths, power=POWER, folder=str(tmp_path / "measured")))
    words = [Path(sys.executable).with_name("torchrun"), "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run([*words, script], capture_output=True, text=True, check=True)
    told = sorted(json.loads(line) for line in done.stdout.splitlines() if line.startswith('["'))
    (run, n, energy_wh, flags, _), (second, n_second, none, flags_second, window) = told
    assert (n, n_second, none, second) == (20, 20, None, f"{run}.rank1")
    assert energy_wh > 0
    assert "power_elsewhere" not in flags
    assert "power_elsewhere" in flags_second
    assert window == ["power_elsewhere"]
    assert RunFolder(str(tmp_path / "measured"), second).read(0).meta["rank"] == 1
    tables = [str(tmp_path / name) for name in ("epochs.csv", "energy.csv")]
    collect_run(str(tmp_path / "measured"), second, 1, FLAG_EFFECTS, *tables)
    (row,) = pd.read_csv(tables[0]).itertuples()
    assert (row.flags.split(), math.isnan(row.energy_wh)) == (flags_second, True)


class Loader(list):
    """Says of itself what a loader does."""

    num_workers, batch_size = 3, 16


def test_odd_use_is_told_and_harms_nothing(make, caplog):
    settings = {"clip": math.inf, "text": "\ud800", "thing": object(), "lr": np.float32(0.5)}
    watch = make("a/b c", model=3, batch_size=np.int64(64), odd={1, 2}, seed=7, **settings)
    assert watch.end_window("never").flags == ("not_begun",)
    watch.begin_window("twice")
    watch.begin_window("twice")
    assert watch.end_window("twice").total_energy is not None
    with watch.copy(), watch.step():  # outside of a loop
        pass
    for _ in watch.epoch(Loader(minibatches(2))):
        pass
    assert watch.run.startswith("a-b-c-")
    told = RunFolder(watch._folder, watch.run).read(0).meta["factors"]
    assert (told["batch_size"], told["seed"], told["num_workers"]) == (64, 7, 3)
    assert told["settings"] == {
        **{"clip": "inf", "text": "\\ud800", "thing": "a object", "lr": 0.5},
        **{"model": 3, "odd": "{1, 2}"},
    }
    assert "begun again" in caplog.text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_examples_of_the_tutorial_and_its_guide_run(powered, tmp_path, monkeypatch, capsys):
    """Each block, with what the reader has: a module, a model, a script."""
    lightning = pytest.importorskip("lightning")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    import torch

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))

        def training_step(self, batch, _):
            return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    sizes = {"hidden_size": 8, "intermediate_size": 8, "vocab_size": 9}
    layers = {"num_hidden_layers": 1, "num_attention_heads": 2}
    bert = transformers.BertForSequenceClassification(transformers.BertConfig(**sizes, **layers))
    arguments = transformers.TrainingArguments("hf", num_train_epochs=1, use_cpu=True, report_to=[])
    row = {"input_ids": torch.ones(4, dtype=torch.long), "labels": torch.tensor(1)}
    monkeypatch.chdir(tmp_path)
    names = {"module": Module(), "arguments": arguments, "train_set": [row] * 16}
    docs, blocks = Path(__file__).parents[2] / "docs", []
    for page in ("tutorials/own-script.md", "how-to/own-loop.md"):
        found = re.findall(r"```python\n(.*?)```", (docs / page).read_text("utf-8"), re.S)
        assert len(found) == 4
        blocks += found
    for block in blocks:
        mine = names.get("model")
        names["model"] = bert if "transformers.Trainer" in block else mine
        exec(block, names)
        names["model"] = names["model"] if mine is None else mine
    names["monitor"].close()
    runs = {path.name.rpartition("-")[0] for path in tmp_path.glob("measured/*")}
    assert runs >= {"my-run", "lightning-run", "huggingface-run", "jetson-run"}
    printed = re.findall("^(epoch 0|epoch 1|evaluation): ", capsys.readouterr().out, re.M)
    assert printed == ["epoch 0", "epoch 1", "evaluation"]
    assert (tmp_path / "epochs.jsonl").stat().st_size > 100
    (counts,) = tmp_path.glob("measured/*/counts.json")
    assert load_kernel_counts(str(counts)).parameters == 7850


@pytest.mark.parametrize("is_counted_first", [True, False])
def test_network_is_counted_and_kept_with_the_run(make, caplog, is_counted_first):
    import torch

    watch, network = make(batch_size=4), torch.nn.Linear(8, 2)
    if is_counted_first:
        watch.count(network, torch.rand(4, 8), optimiser="adam")
    for _ in watch.epoch(minibatches(3)):
        pass
    if not is_counted_first:
        watch.count(network, (torch.rand(4, 8), torch.rand(4, 2)))
    counts = load_kernel_counts(f"{watch._folder}/{watch.run}/{monitor.COUNTS}")
    assert (counts.model, counts.parameters) == ("my-run", 18)
    watch.count(network, "a text")
    assert "the network is not counted: ConfigError: a mini-batch without a tensor" in caplog.text


@pytest.fixture
def bare(tmp_path):
    """Return a function that runs code where there is nothing but numpy and the package."""
    site = tmp_path / "site"
    site.mkdir()
    for part in Path(np.__file__).parents[1].glob("numpy*"):
        (site / part.name).symlink_to(part)
    paths = [str(Path(monitor.__file__).parents[1]), str(site)]

    def run(code):
        return subprocess.run(
            [sys.executable, "-S", "-c", f"import sys; sys.path += {paths!r}\n{code}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_numpy_is_all_that_it_needs(bare, tmp_path):
    code = """
from epochwatt import EpochMonitor
watch = EpochMonitor("r")
for _ in watch.epoch(range(3)): sum(range(10**6))
watch.begin_window("w")
print(watch.last.n_minibatches, watch.last.folder is not None, watch.end_window("w").time > 0)
"""
    done = bare(code)
    assert done.stdout.split() == ["3", "True", "True"], done.stderr
    assert "measured" in os.listdir(tmp_path)


def test_command_line_says_what_it_lacks(bare):
    done = bare("from epochwatt.__main__ import main; sys.exit(main())")
    assert done.returncode == 1
    assert 'pip install "epochwatt[workflow]"' in done.stderr


def test_it_is_imported_without_what_a_loop_does_not_need():
    code = "import epochwatt.monitor, sys; print(*sys.modules)"
    paths = [str(Path(monitor.__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) & {"torch", "numpy", "pandas", "yaml"} == set()
    assert EpochMonitor is monitor.EpochMonitor
