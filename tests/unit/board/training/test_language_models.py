"""The small language model: its network, LoRA and QLoRA, and its tokens in nanoGPT's form."""

import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from epochwatt.board.records.dataset_folder import folder_name
from epochwatt.board.training import language_models, workloads
from epochwatt.board.training.language_models import (
    Adapted,
    Decoder,
    FourBit,
    causal_attention,
    four_bit,
    with_adapters,
)
from epochwatt.board.training.session import Session
from epochwatt.board.training.text import LENGTH, N_TOKENS, TOKENS, TokenFile
from epochwatt.board.training.workloads import WORKLOADS, Trainer
from epochwatt.datasets import recipes
from epochwatt.datasets.make import make_dataset
from epochwatt.errors import DataError, TrainingError

CPU = torch.device("cpu")
SMALL = {"tokens": 64, "width": 32, "layers": 2, "heads": 4, "groups": 2, "inner": 48}

pytestmark = pytest.mark.usefixtures("one_thread")


def small(**adapters):
    network = Decoder(**SMALL)
    return with_adapters(network, 4, **adapters) if adapters else network


def tokens(n=3, length=24):
    return torch.from_numpy(np.random.default_rng(0).integers(0, 64, (n, length)))


def step_twice(network, n_steps=12):
    """Train on a mini-batch again and again; return its losses."""
    build = WORKLOADS["smollm"]._replace(build=lambda: network)
    trainer, words = Trainer(build, CPU, seed=0), tokens()
    minibatch = trainer.copy((words[:, :-1], words[:, 1:]))
    return [trainer.step(minibatch).item() for _ in range(n_steps)]


def test_it_has_the_size_of_smollm():
    with torch.device("meta"):
        network = Decoder()
    assert sum(weight.numel() for weight in network.parameters()) == 134_515_008


def test_it_computes_what_the_llama_of_transformers_does():
    transformers = pytest.importorskip("transformers", reason="compares with transformers")
    ours = small()
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=64,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
    )
    theirs = transformers.LlamaForCausalLM(config).eval()
    names = {"embedding": "model.embed_tokens", "norm": "model.norm"}
    inner = {
        **{"norm": "input_layernorm", "inner_norm": "post_attention_layernorm"},
        **{"attention.query": "self_attn.q_proj", "attention.key": "self_attn.k_proj"},
        **{"attention.value": "self_attn.v_proj", "attention.out": "self_attn.o_proj"},
        **{"gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj"},
    }
    for n in range(2):
        names |= {f"blocks.{n}.{k}": f"model.layers.{n}.{v}" for k, v in inner.items()}
    with torch.no_grad():
        for mine, other in names.items():
            weight = theirs.get_submodule(other).weight
            weight.copy_(torch.randn_like(weight) * 0.3)
            ours.get_submodule(mine).weight.copy_(weight)
        torch.testing.assert_close(ours(tokens()), theirs(tokens()).logits, atol=1e-4, rtol=1e-4)


def test_an_old_torch_has_the_same_attention(monkeypatch):
    heads = [torch.randn(2, 3, 7, 8) for _ in range(3)]
    fused = causal_attention(*heads)
    monkeypatch.delattr(functional, "scaled_dot_product_attention")
    torch.testing.assert_close(causal_attention(*heads), fused)


@pytest.mark.parametrize("names", [None, ("query", "value")])
def test_lora_trains_adapters_alone_and_begins_as_the_network_was(names, monkeypatch):
    monkeypatch.setattr("epochwatt.board.training.optimisers.ADAM_RATE", {"adamw": 0.02})
    torch.manual_seed(0)
    before = small().eval()
    network = with_adapters(Decoder(**SMALL), 4, names=names)
    adapted = [module for module in network.modules() if isinstance(module, Adapted)]
    assert len(adapted) == 2 * (len(names) if names else 7)
    torch.manual_seed(0)
    same = with_adapters(Decoder(**SMALL), 4, names=names).eval()
    assert torch.equal(same(tokens()), before(tokens()))
    frozen = {n: w.clone() for n, w in network.named_parameters() if not w.requires_grad}
    losses = step_twice(network)
    assert losses[-1] < losses[0]
    assert all(torch.equal(w, frozen[n]) for n, w in network.named_parameters() if n in frozen)
    trained = sum(w.numel() for w in network.parameters() if w.requires_grad)
    assert trained == sum(4 * (m.layer.in_features + m.layer.out_features) for m in adapted)


def test_qlora_without_bitsandbytes_is_refused_and_can_be_counted_all_the_same(monkeypatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(TrainingError, match="needs the package bitsandbytes") as caught:
        four_bit(nn.Linear(64, 64))
    assert "--weights nf4" in caught.value.do
    with torch.device("meta"):
        network = language_models.smollm_qlora()
    kept = [module for module in network.modules() if isinstance(module, FourBit)]
    assert len(kept) == 30 * 7
    n_weights = sum(layer.in_features * layer.out_features for layer in kept)
    n_bytes = sum(buffer.numel() for layer in kept for buffer in layer.buffers())
    assert n_bytes == n_weights // 2 + n_weights // 64


@pytest.mark.filterwarnings("ignore")
def test_qlora_with_bitsandbytes_learns_and_goes_on_from_a_checkpoint():
    pytest.importorskip("bitsandbytes", reason="trains with bitsandbytes")
    workload = WORKLOADS["smollm"]._replace(build=lambda: small(frozen=four_bit))
    words = tokens()
    one, other = (Trainer(workload, CPU, seed=3) for _ in range(2))
    minibatch = one.copy((words[:, :-1], words[:, 1:]))
    losses = [one.step(minibatch).item() for _ in range(12)]
    assert losses[-1] < losses[0]
    kept = one.network.blocks[0].gate.layer.weight
    assert kept.dtype == torch.uint8
    assert kept.numel() == 32 * 48 // 2
    other.load_state_dict(one.state_dict())
    assert other.step(minibatch).item() == one.step(minibatch).item()


def test_an_epoch_of_lora_is_measured(folder, factors, machine, tmp_path, monkeypatch):
    scale, sizes = 2e-4, {**SMALL, "tokens": N_TOKENS}
    recipe = recipes.recipe("tokens", "synthetic", scale)
    make_dataset(tmp_path / folder_name("tokens", "synthetic", scale), recipe)
    lora = WORKLOADS["smollm"]._replace(build=lambda: with_adapters(Decoder(**sizes)))
    monkeypatch.setitem(workloads.WORKLOADS, "smollm", lora)
    named = {"dataset": "tokens", "dataset_source": "synthetic", "dataset_scale": scale}
    changes = {"model": "smollm", **named, "recipe": recipe, "batch_size": 2, "num_workers": 1}
    with Session(folder, {**factors, **changes}, str(tmp_path), machine, {}) as session:
        session.measure(0)
    meta = folder.read(0).meta
    assert (meta["n_samples"], meta["n_minibatches"]) == (4, 2)
    assert meta["compute_s"] > 0
    assert meta["fetch_s"] > 0
    assert not meta["cache"]["in_memory"]  # tokens are read from the disk
    assert meta["loss"] == pytest.approx(np.log(N_TOKENS), rel=0.05)


# -- tokens ---------------------------------------------------------------------------------------


def token_file(folder, values):
    np.asarray(values, dtype=np.uint16).tofile(folder / TOKENS)
    size = (folder / TOKENS).stat().st_size
    return TokenFile(str(folder), {"files": {TOKENS: {"bytes": size}}})


def test_a_file_as_nanogpt_writes_it_is_cut_into_samples(tmp_path):
    source = token_file(tmp_path, np.arange(3 * LENGTH + 5) % 50_257 % N_TOKENS)
    assert len(source) == 3
    first, second = source.read(0)[0], source.read(1)[0]
    assert (len(first), first.dtype) == (LENGTH + 1, np.int64)
    assert first[-1] == second[0] == LENGTH  # the token that follows is the next one's first
    inputs, targets = workloads.WORKLOADS["smollm"].transform(second)
    assert torch.equal(inputs[1:], targets[:-1])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.zeros(LENGTH), "not even one sample"),
        ([], "cannot be read"),
        (np.full(LENGTH + 1, 50_256), "does not know"),  # of GPT-2's vocabulary
    ],
)
def test_other_files_of_tokens_are_refused(tmp_path, values, said):
    with pytest.raises(DataError, match=said):
        token_file(tmp_path, values).read(0)
