"""Today's networks: their sizes, their losses, and that each learns from its data in its format."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from epochwatt.board.training import workloads
from epochwatt.board.training.loaders import TimedMinibatches
from epochwatt.board.training.modern_networks import (
    Detector,
    LanguageModel,
    QuestionAnswering,
    detection_loss,
)
from epochwatt.board.training.workloads import WORKLOADS, Trainer
from epochwatt.counting.count_workload import count_workload

CPU, META = torch.device("cpu"), torch.device("meta")
SMALL_BERT = {
    **{"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2},
    "intermediate_size": 64,
}

pytestmark = pytest.mark.usefixtures("one_thread")
DATA = {"resnet18": "imagenet", "lstm": "wikitext", "bert": "squad", "ssdlite": "coco"}


def slow(*values):
    """Return what takes seconds to show for a large network what a small one shows."""
    return pytest.param(*values, marks=pytest.mark.thorough)


SCALES = {"imagenet": 8e-5, "wikitext": 2e-4, "squad": 4e-4, "coco": 8e-4}


@pytest.fixture
def small(monkeypatch):
    """BERT and language model with few weights; the rest of them as they are."""
    pytest.importorskip("transformers", reason="BERT needs transformers")
    bert = WORKLOADS["bert"]._replace(build=lambda: QuestionAnswering(**SMALL_BERT))
    lstm = WORKLOADS["lstm"]._replace(build=lambda: LanguageModel(width=16))
    monkeypatch.setattr(workloads, "WORKLOADS", {**WORKLOADS, "bert": bert, "lstm": lstm})
    monkeypatch.setattr(
        "epochwatt.board.training.optimisers.ADAM_RATE", {"adam": 0.01, "adamw": 0.002}
    )


@pytest.mark.parametrize(
    ("model", "parameters", "forward_gflop"),
    [
        ("resnet18", 11_689_512, 3.628),  # torchvision prints 11.69 M and 1.81 G multiply-adds
        slow("resnet50", 25_557_032, 8.178),  # 25.56 M, 4.09 G
        ("lstm", 8_614_383, 0.1373),  # 120.5 M of it for the scores of 29,423 words
        slow("bert", 108_893_186, 70.7),
        slow("ssdlite", 3_440_060, 1.166),  # 3.44 M, 0.583 G
    ],
)
def test_sizes_are_the_published_ones(model, parameters, forward_gflop):
    if model == "bert":
        pytest.importorskip("transformers", reason="BERT needs transformers")
    workload = WORKLOADS[model]
    with META:
        network = workload.build().to(META).eval()
    made = workload.transform(workload.made_up())
    one = getattr(made, "input", made)
    with FlopCounterMode(display=False) as counter:
        network(torch.empty(1, *one.shape, dtype=one.dtype, device=META))
    assert sum(weight.numel() for weight in network.parameters()) == parameters
    assert counter.get_total_flops() == pytest.approx(1e9 * forward_gflop, rel=2e-3)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("model", ["lstm", slow("bert"), slow("resnet18"), slow("ssdlite")])
def test_kernels_are_linear_in_the_minibatch_and_the_optimiser_touches_every_weight(model):
    counts = count_workload({"model": model})
    kernels = counts["kernels"]
    phases = dict.fromkeys(kernels["phase"])
    assert list(phases) == ["zero_grad", "forward", "loss", "backward", "optimiser"]
    per_weight = {"sgd": 3, "adam": 8, "adamw": 9}[WORKLOADS[model].optimiser]
    n_updates = kernels["phase"].count("optimiser")
    assert n_updates == per_weight * kernels["phase"].count("zero_grad")
    elements = np.array(kernels["elements_fixed"])[np.array(kernels["phase"]) == "optimiser"]
    assert elements.sum() == per_weight * counts["parameters"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("model", "n_steps"), [("lstm", 12), slow("bert", 12), slow("resnet18", 4)]
)
def test_loss_falls_on_a_minibatch_of_its_data_that_is_shown_again(opened, model, n_steps):
    trainer = Trainer(workloads.WORKLOADS[model], CPU, seed=0)
    source = opened(DATA[model], "synthetic", SCALES[DATA[model]])
    minibatches = TimedMinibatches(source, WORKLOADS[model].transform, 0)
    minibatch = trainer.copy(minibatches[[0, 1, 2, 3]])
    losses = [trainer.step(minibatch).item() for _ in range(n_steps)]
    assert losses[-1] < 0.9 * losses[0]


@pytest.fixture(scope="module")
def torchvisions():
    from torchvision.models.detection import ssdlite320_mobilenet_v3_large

    return ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=91)


@pytest.mark.thorough
@pytest.mark.parametrize("n_objects", [(0, 3), (1, 9), (0, 0)])
def test_loss_is_torchvisions(torchvisions, n_objects):
    torch.manual_seed(1)
    network, images = Detector().eval(), torch.randn(2, 3, 320, 320)
    targets = torch.zeros(2, 12, 5)
    for row, n in enumerate(n_objects):
        corners, sizes = 200 * torch.rand(n, 2), 10 + 100 * torch.rand(n, 2)
        targets[row, :n, :2], targets[row, :n, 2:4] = corners, corners + sizes
        targets[row, :n, 4] = torch.randint(1, 91, (n,))
    with torch.no_grad():
        offsets, scores = network(images)
        ours = detection_loss(network, images, targets)
    named = [{"boxes": t[t[:, 4] > 0, :4], "labels": t[t[:, 4] > 0, 4].long()} for t in targets]
    outputs = {"bbox_regression": offsets, "cls_logits": scores}
    with torch.no_grad():
        matched = []
        from torchvision.ops import box_iou

        for target in named:
            if target["boxes"].numel() == 0:
                matched.append(torch.full((len(network.anchors),), -1, dtype=torch.int64))
            else:
                overlap = box_iou(target["boxes"], network.anchors)
                matched.append(torchvisions.proposal_matcher(overlap))
        losses = torchvisions.compute_loss(named, outputs, [network.anchors] * 2, matched)
    assert ours.item() == pytest.approx(sum(losses.values()).item(), rel=1e-4, abs=1e-6)
