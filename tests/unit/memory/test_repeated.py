"""Networks of many equal blocks from one and two of them: the same as the whole network."""

from collections import Counter

import pytest

from benchmarks.memory_steps import CONFIGS
from epochwatt.board.training.allocated import Manner, forecast
from epochwatt.memory.networks import Tuning, counted, stack_of_config
from epochwatt.memory.repeated import kernels_of, memory_of, repeated, rows_by_phase
from epochwatt.twin.boards import SampleFacts

pytest.importorskip("transformers", reason="takes networks of transformers")

LLAMA = {
    **{"model_type": "llama", "hidden_size": 64, "intermediate_size": 160, "vocab_size": 512},
    **{"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2},
}
QWEN = {  # layers of linear attention take turns with ones of full attention
    **{"model_type": "qwen3_5_text", "hidden_size": 64, "intermediate_size": 96},
    **{"vocab_size": 512, "num_hidden_layers": 6, "full_attention_interval": 2},
    **{"num_attention_heads": 2},
    **{"num_key_value_heads": 1, "head_dim": 32, "linear_num_key_heads": 2},
    **{"linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16},
}
LORA, QLORA = Tuning(8), Tuning(8, "nf4")


@pytest.mark.parametrize(
    ("head", "block", "tail"), [("ab", "cde", "fg"), ("", "cc", "cd"), ("a", "", "b")]
)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_what_the_second_block_adds_is_repeated(head, block, tail, n):
    one, two = head + block + tail, head + 2 * block + tail
    assert "".join(repeated(one, two, n)) == head + n * block + tail


def test_sequences_that_do_not_repeat_are_told():
    assert repeated("abc", "xabcb", 3) is None
    assert repeated("abc", "ab", 3) is None


def asked(config, tuning, length=80):
    stack = stack_of_config(config, length, tuning)
    facts = SampleFacts(10, 0.0, length, 0.0, "")
    return counted("x", stack.subject(stack.n), "adamw", facts, stack)


@pytest.mark.parametrize(
    ("config", "tuning", "manner"),
    [
        (LLAMA, Tuning(), Manner("fp32", "adamw", on_gpu=True)),
        (LLAMA, Tuning(0, "bf16"), Manner("bf16", "adamw", accumulate=3, on_gpu=True)),
        (QWEN, QLORA, Manner("bf16", "adamw", checkpointing=True, on_gpu=True)),
    ],
)
def test_memory_of_a_stack_is_that_of_the_whole_network(config, tuning, manner):
    of = asked(config, tuning)
    assert of.stack.n > 2
    law = memory_of(of.subject, of.stack, manner)
    whole, ours = forecast(of.subject, 5, manner), law(5)
    assert not ours.first  # made of small ones
    assert ours[:5] == whole[:5]
    assert ours.blas_threads == whole.blas_threads == 2
    assert law(1).peak == pytest.approx(forecast(of.subject, 1, manner).peak, rel=0.01)


@pytest.mark.parametrize(("config", "tuning"), [(LLAMA, QLORA), (QWEN, LORA)])
def test_counts_of_a_stack_are_those_of_the_whole_network(config, tuning):
    of = asked(config, tuning)
    whole = counted("x", of.subject, "adamw", of.samples).count_kernels("train", "bf16")
    ours = of.count_kernels("train", "bf16")
    assert {**ours, "kernels": 0} == {**whole, "kernels": 0}
    for phase, kernels in rows_by_phase(whole["kernels"]).items():
        made = rows_by_phase(ours["kernels"])[phase]
        # AdamW decays all weights, then updates one by one: of blocks it is done in turns
        assert Counter(made) == Counter(kernels) if phase == "optimiser" else made == kernels


def test_a_network_whose_blocks_differ_is_taken_whole(monkeypatch):
    of = asked(CONFIGS["llama"], Tuning(), 16)
    monkeypatch.setattr("epochwatt.memory.repeated.repeated", lambda *_: None)
    manner = Manner(on_gpu=True)
    assert memory_of(of.subject, of.stack, manner)(2) == forecast(of.subject, 2, manner)
    made = {"kernels": {"phase": ["forward"], "name": ["a"]}, "parameters": 1}
    assert kernels_of(lambda n: made, 3) is None
