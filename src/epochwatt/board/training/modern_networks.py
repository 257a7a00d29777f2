"""Build networks of today's edge training, with random weights (board side: Python 3.6; torch).

SSDLite320 with a MobileNetV3: torchvision's (BSD-3). BERT-base with a head for questions:
transformers' (Apache-2.0), which is imported only when it is built. An LSTM language model: torch
alone. Sizes of the language models: those of PowerTrain's workloads.
"""

import math
from importlib.util import find_spec
from typing import Any, Tuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from epochwatt.board.training.coco import CATEGORIES
from epochwatt.board.training.text import N_WORDS
from epochwatt.board.training.transforms import DETECTION_SIDE
from epochwatt.errors import TrainingError

WIDTH, LAYERS = 256, 2
DROPOUT = 0.2  # ASSUME: that of PyTorch's own example of a word language model


class LanguageModel(nn.Module):
    """Two LSTM layers, their output compared with every word's embedding: 8,614,383 weights."""

    def __init__(self, words: int = N_WORDS, width: int = WIDTH) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.dropout = nn.Dropout(DROPOUT)
        self.lstm = nn.LSTM(width, width, LAYERS, batch_first=True, dropout=DROPOUT)
        self.decoder = nn.Linear(width, words)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.decoder.weight = self.embedding.weight

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Return the scores (B, T, words) of the words that follow words (B, T), int64."""
        hidden, _ = self.lstm(self.dropout(self.embedding(words)))
        return self.decoder(self.dropout(hidden))


def next_word_loss(
    network: nn.Module, words: torch.Tensor, following: torch.Tensor
) -> torch.Tensor:
    """Return the mean cross entropy over words (B, T) and those that follow each, (B, T)."""
    scores = network(words)
    return functional.cross_entropy(scores.flatten(0, 1), following.flatten())


class QuestionAnswering(nn.Module):
    """BERT with a head that marks where in a text an answer begins and ends.

    `changes`: of transformers' `BertConfig`, whose defaults are BERT-base: 108,893,186 weights
    """

    def __init__(self, **changes: Any) -> None:
        super().__init__()
        try:
            from transformers import BertConfig, BertForQuestionAnswering
        except ImportError as error:
            raise TrainingError(
                "BERT needs the package transformers, which this interpreter lacks",
                found=str(error),
                do="install it there: python3 -m pip install transformers",
            ) from error
        self.bert = BertForQuestionAnswering(BertConfig(**changes))
        # newer versions look at the mask itself, and so wait for the GPU, unless it is one to add
        self.adds_mask = find_spec("transformers.masking_utils") is not None

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the scores (B, 2, T) of an answer's beginning and end at each piece.

        `inputs`: int64 (B, 3, T): word pieces, attention mask, segment (1: text, 0: question)
        """
        pieces, mask, segment = inputs.unbind(1)
        if self.adds_mask:
            lowest = torch.finfo(torch.float32).min
            mask = (1.0 - mask[:, None, None].to(torch.float32)) * lowest
        scores = self.bert(input_ids=pieces, attention_mask=mask, token_type_ids=segment)
        return torch.stack([scores.start_logits, scores.end_logits], 1)


def bert_base() -> nn.Module:
    """Return BERT-base with a head for questions, random weights."""
    return QuestionAnswering()


def answer_loss(network: nn.Module, inputs: torch.Tensor, bounds: torch.Tensor) -> torch.Tensor:
    """Return the mean cross entropy of answers' first and last pieces against bounds (B, 2)."""
    return functional.cross_entropy(network(inputs).flatten(0, 1), bounds.flatten())


class Detector(nn.Module):
    """SSDLite320 with a MobileNetV3-Large behind it, as torchvision makes it: 3,440,060 weights.

    Its output is what its heads give; overlapping boxes are not suppressed. So every mini-batch
    does the same work, whatever is on its pictures.
    """

    anchors: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        from torchvision import models

        if not hasattr(models.detection, "ssdlite320_mobilenet_v3_large"):
            raise TrainingError("SSDLite needs torchvision 0.10 or newer, which is not here")
        # else a torchvision before 0.14 would download a backbone
        names = ("weights", "weights_backbone")
        if not hasattr(models, "get_model"):
            names = ("pretrained", "pretrained_backbone")
        ssdlite = models.detection.ssdlite320_mobilenet_v3_large(
            num_classes=CATEGORIES, **dict.fromkeys(names)
        )
        self.backbone, self.head = ssdlite.backbone, ssdlite.head
        # (A, 4): corners, pixels
        self.register_buffer("anchors", torch.from_numpy(default_boxes()), persistent=False)

    def forward(self, images: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """Return offsets (B, A, 4) and scores (B, A, 91) of images (B, 3, 320, 320)."""
        outputs = self.head(list(self.backbone(images).values()))
        return outputs["bbox_regression"], outputs["cls_logits"]


MAPS = (20, 10, 5, 3, 2, 1)  # cells of a side of each map of features
SCALES = (0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.0)  # of the boxes on each map, and one more
RATIOS = (1.0, 2.0, 3.0)  # of their sides


def default_boxes() -> np.ndarray:
    """Return the anchors of SSDLite320: corners in pixels, float32 (3234, 4).

    In each cell of a map with scale s: squares of s and of sqrt(s s'), s' being the next map's
    scale; and for each other ratio r, s sqrt(r) x s / sqrt(r), upright and lying.
    """
    boxes = []
    for cells, scale, next_scale in zip(MAPS, SCALES[:-1], SCALES[1:]):
        mean_scale = math.sqrt(scale * next_scale)
        sizes = [(scale, scale), (mean_scale, mean_scale)]
        for ratio in RATIOS[1:]:
            long, short = scale * math.sqrt(ratio), scale / math.sqrt(ratio)
            sizes += [(long, short), (short, long)]
        half = 0.5 * np.clip(sizes, 0.0, 1.0)[None]  # (1, 6, 2)
        y, x = np.divmod(np.arange(cells * cells), cells)
        centres = (np.stack([x, y], 1)[:, None] + 0.5) / cells  # (cells^2, 1, 2)
        boxes.append(np.concatenate([centres - half, centres + half], 2).reshape(-1, 4))
    return (DETECTION_SIDE * np.concatenate(boxes)).astype(np.float32)


NEGATIVES = 3  # for each anchor that is matched
MATCHED = 0.5  # least overlap of an anchor with a box
OFFSET_WEIGHTS = (10.0, 10.0, 5.0, 5.0)


def detection_loss(network: nn.Module, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return SSD's loss of a mini-batch: smooth L1 of box offsets plus cross entropy of categories.

    Offsets count at matched anchors, categories at these and the `NEGATIVES` worst others for each;
    the sum is divided by the number of matched anchors. Equal to torchvision's (a test compares
    them), but without a loop over pictures, so that its kernels do not depend on their content.

    `network`: a `Detector`, compiled or not
    `images`: (B, 3, 320, 320)
    `targets`: (B, G, 5): corners in pixels and category; rows of category 0 are empty
    """
    offsets, scores = network(images)
    anchors: torch.Tensor = network.anchors
    boxes, labels = targets[..., :4], targets[..., 4].to(torch.int64)
    matches, is_matched = match(anchors, boxes, labels > 0)
    matched_boxes = boxes.gather(1, matches[..., None].expand(-1, -1, 4))
    target_offsets = encode(anchors, matched_boxes)
    target_offsets = torch.where(
        is_matched[..., None], target_offsets, torch.zeros_like(target_offsets)
    )
    box_loss = functional.smooth_l1_loss(offsets.float(), target_offsets, reduction="none").sum(-1)
    classes = torch.where(is_matched, labels.gather(1, matches), torch.zeros_like(matches))
    class_loss = functional.cross_entropy(
        scores.float().flatten(0, 1), classes.flatten(), reduction="none"
    ).view(classes.shape)
    n_matched = is_matched.sum(1, keepdim=True)
    negatives = class_loss.detach().masked_fill(is_matched, float("-inf"))
    rank = negatives.argsort(1, descending=True).argsort(1)
    counts = is_matched | (rank < NEGATIVES * n_matched)
    # masks multiply: indexing would make the kernels' sizes depend on the pictures
    total = (box_loss * is_matched).sum() + (class_loss * counts).sum()
    return total / n_matched.sum().clamp(min=1)


def match(
    anchors: torch.Tensor, boxes: torch.Tensor, is_box: torch.Tensor
) -> Tuple[torch.Tensor, torch.Tensor]:
    """Match anchors (A, 4) to boxes (B, G, 4), all as corners, as SSD does.

    An anchor is matched to the box that it overlaps most, where by `MATCHED` or more; and each
    box's best anchor to that box. Returns the index of each anchor's box (B, A) and whether it is
    matched (B, A). `is_box`: (B, G); other rows are empty
    """
    overlap = overlaps(boxes, anchors)  # (B, G, A)
    overlap = overlap.masked_fill(~is_box[..., None], -1.0)
    largest, matches = overlap.max(1)
    best_anchor = overlap.argmax(2)  # (B, G)
    # empty rows go to a column behind the last anchor, which is cut off
    best_anchor = torch.where(is_box, best_anchor, torch.full_like(best_anchor, len(anchors)))
    indices = torch.arange(boxes.shape[1], device=boxes.device).expand_as(best_anchor)
    forced = torch.full_like(matches[:, :1], -1).repeat(1, len(anchors) + 1)
    forced = forced.scatter(1, best_anchor, indices)[:, :-1]
    return torch.where(forced >= 0, forced, matches), (largest >= MATCHED) | (forced >= 0)


def overlaps(boxes: torch.Tensor, anchors: torch.Tensor) -> torch.Tensor:
    """Return the intersection over the union of boxes (B, G, 4) and anchors (A, 4): (B, G, A)."""
    low = torch.max(boxes[:, :, None, :2], anchors[:, :2])
    high = torch.min(boxes[:, :, None, 2:], anchors[:, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    box_areas = (boxes[..., 2:] - boxes[..., :2]).prod(-1)[..., None]
    anchor_areas = (anchors[:, 2:] - anchors[:, :2]).prod(-1)
    return shared / (box_areas + anchor_areas - shared)


def encode(anchors: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    """Encode boxes (B, A, 4) as SSD's offsets (B, A, 4) from anchors (A, 4), all as corners.

    (x_b - x_a) / w_a, (y_b - y_a) / h_a of the centres, log(w_b / w_a), log(h_b / h_a), weighted.
    """
    anchor_sizes = anchors[:, 2:] - anchors[:, :2]
    anchor_centres = anchors[:, :2] + 0.5 * anchor_sizes
    sizes = boxes[..., 2:] - boxes[..., :2]
    centres = boxes[..., :2] + 0.5 * sizes
    offsets = torch.cat(
        [(centres - anchor_centres) / anchor_sizes, torch.log(sizes / anchor_sizes)], dim=-1
    )
    return offsets * torch.tensor(OFFSET_WEIGHTS, device=boxes.device)
