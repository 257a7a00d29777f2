"""`epochwatt fit`: what fits, what does not, and what the kernel says of it."""

import functools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from click.testing import CliRunner

from benchmarks import memory
from epochwatt.cli import epochwatt
from epochwatt.counting.kernel_counts import kernel_counts_of
from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.memory import networks, simulated
from epochwatt.memory.fit import Request, answer
from epochwatt.memory.fit_lines import as_json, fit_lines
from epochwatt.memory.networks import Tuning
from epochwatt.memory.simulated import simulator
from epochwatt.study.config import PowerMode
from epochwatt.study.devices import Devices
from epochwatt.twin.power_modes import load_twin_with_modes

REPOSITORY = Path(__file__).resolve().parents[3]
LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 512,
}


def own_network():
    """Return a network of somebody's, and a mini-batch of one sample."""
    return torch.nn.Sequential(torch.nn.Linear(32, 4096), torch.nn.Linear(4096, 8)), (
        torch.zeros(1, 32),
    )


def asked(model="lenet", **settings):
    return answer(Request(model, **settings), REPOSITORY)


def test_a_board_that_is_simulated_has_memory_time_and_energy():
    found = asked(device="orin", batch_size=64, memory_gib=4.0)
    assert found.verdict(found.now.need) == "fits"
    assert found.now.epoch.e2e_s > 0
    assert 64 < found.now.largest < found.killed
    text = "\n".join(fit_lines(found))
    assert "FORECAST, not measured: training lenet on Jetson AGX Orin" in text
    assert f"largest batch size that fits: {found.now.largest}; {found.killed} would" in text
    document = json.loads(json.dumps(as_json(found)))
    assert document["parts_bytes"]["weights"] == found.now.tensors.weights
    assert len(text.splitlines()) <= 40


def test_a_small_memory_refuses_and_a_smaller_mini_batch_helps():
    found = asked("lenet", device="host", batch_size=16384, num_workers=0, memory_gib=1.0)
    assert found.verdict(found.now.need) == "no"
    assert 0 < found.now.largest < found.killed <= 16384
    by_change = {way.change: way.need.total for way in found.changes}
    assert min(by_change.values()) < found.now.need.total
    assert by_change["MALLOC_MMAP_THRESHOLD_=131072"] < found.now.need.total
    assert "checkpointing of blocks" in by_change


@pytest.mark.thorough
def test_functions_and_configurations_are_networks_too(tmp_path):
    found = asked(f"{__name__}:own_network", device="agx", memory_gib=2.0)
    assert found.now.tensors.weights == 4 * (32 * 4096 + 4096 + 4096 * 8 + 8)
    assert asked("torchvision.models:alexnet", like="resnet50", device="nano").now.need.total
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    full = asked(str(tmp_path), device="orin.nano", batch_size=4, length=64)
    lora = asked(str(tmp_path), device="orin.nano", batch_size=4, length=64, lora=4)
    assert lora.now.tensors.optimiser < full.now.tensors.optimiser
    assert any(way.change.startswith("LoRA") for way in full.changes)
    qlora = asked(str(tmp_path), device="thor", batch_size=4, length=64, lora=4, weights="nf4")
    assert qlora.now.tensors.weights < 0.6 * lora.now.tensors.weights
    by_change = {way.change: way for way in full.changes}
    assert (
        by_change["LoRA of rank 16 on weights of four bits (QLoRA)"].need.total
        < full.now.need.total
    )
    text = "\n".join(fit_lines(qlora))
    assert "weights in nf4" in text
    assert "Wh at most" in text  # no power of Thor is known but its modes' limits
    assert qlora.now.epoch.energy_wh == pytest.approx(120 * qlora.now.epoch.e2e_s / 3600)


def test_time_of_fine_tuning_follows_what_is_trained(tmp_path):
    """On a simulated board: adapters alone are faster, checkpointing slower, 16 bits faster."""
    config = {**LLAMA, "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 1}
    (tmp_path / "config.json").write_text(json.dumps(config))
    find = functools.cache(
        lambda tuning: networks.find(str(tmp_path), None, 256, tuning, REPOSITORY)
    )
    tell = simulator("orin", find(Tuning()).samples, find, REPOSITORY).epoch
    full = Request("", batch_size=8)

    def epoch_s(**settings):
        return tell(replace(full, **settings)).e2e_s

    assert epoch_s(lora=4) < epoch_s()
    assert epoch_s(checkpointing=True) > epoch_s()
    assert epoch_s(precision="bf16") < 0.7 * epoch_s()
    assert epoch_s(accumulate=8) < epoch_s()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"model": "nope"}, "has no row 'nope'"),
        ({"model": "no.such:function"}, "cannot be imported"),
        ({"model": "torchvision.models:alexnet"}, "add --like"),
        ({"device": "orim"}, "is 'orim'"),
        ({"lora": 4}, "asked of networks of transformers"),
        ({"weights": "nf4"}, "asked of networks of transformers"),
        ({"model": "no/config.json"}, "cannot be read"),
    ],
)
def test_a_question_that_cannot_be_answered_says_why(settings, problem):
    with pytest.raises(ConfigError, match=problem):
        asked(**settings)


def test_the_command_says_by_its_status_whether_it_fits(tmp_path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    words = ["fit", "--model", "lenet", "--device", "host", "--workers", "0", "--memory-gib"]
    written = tmp_path / "answer.json"
    done = CliRunner().invoke(epochwatt, [*words, "4", "--json", str(written)])
    assert (done.exit_code, json.loads(written.read_text())["verdict"]) == (0, "fits")
    done = CliRunner().invoke(epochwatt, [*words, "0.1"], standalone_mode=False)
    assert done.return_value == 1
    assert "does not fit" in done.output


@pytest.mark.slow
@pytest.mark.thorough  # what others use of the machine's memory moves it
@pytest.mark.alone
def test_within_a_control_group_the_named_mini_batch_trains_and_a_larger_one_is_killed():
    case = {"network": "squeezenet1_1", "optimiser": "sgd"}
    try:
        with memory.limited(2**30):
            pass
    except EpochwattError as error:
        pytest.skip(str(error))
    row = memory.within_limit(case, 1200.0)
    assert row["trains"]
    assert not row["lives"]


@pytest.mark.parametrize(
    ("modes", "limit_w"), [(["MAXN", "120W"], None), (["70W", "MAXN"], 70), (["own"], "no epoch")]
)
def test_energy_of_a_data_sheet_is_bounded_by_the_limit_that_the_mode_states(modes, limit_w):
    thor = Devices(REPOSITORY).get("thor", "--device")
    stock = {**thor.power_modes, "own": PowerMode(cores=4, cpu_mhz=972, gpu_mhz=540, emc_mhz=4266)}
    file = thor.model_copy(update={"power_modes": {name: stock[name] for name in modes}})
    twin = load_twin_with_modes((), REPOSITORY)
    network = networks.find("lenet", root=REPOSITORY)
    counts = kernel_counts_of(network.count_kernels("train", "fp32"), network.name)
    found = simulated._of_data_sheet(file, twin, lambda request: counts)
    epoch = found.epoch(SimpleNamespace(batch_size=16, samples=160))
    if limit_w == "no epoch":
        assert epoch is None
    else:
        assert epoch.e2e_s > 0
        expected = limit_w and pytest.approx(limit_w * epoch.e2e_s / 3600)
        assert epoch.energy_wh == expected
