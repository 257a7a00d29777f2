"""Turn a raw sample into the network's input (board side: Python 3.6 grammar; imports torch).

The steps, their order and their random draws are those of torchvision's transforms, which the 2023
scripts use; a test holds that both give the same bits. They are written out because torchvision
takes more than a second to import, and a loader worker would do so inside the measured epoch.
Random numbers come from torch's generator, which the loader seeds in each worker.

Source: the public scripts of SIGMETRICS 2023, facts only: transform of each workload.
"""

import math
from string import ascii_lowercase
from typing import Any, List, NamedTuple, Tuple

import numpy as np
import torch

from epochwatt.board.training import text
from epochwatt.board.training.coco import Annotated
from epochwatt.board.training.text import Asked, Question, Vocabulary, answer_pieces

# SOURCE: transform of each workload (mean and deviation of the training pixels).
MNIST_MEAN, MNIST_STD = 0.1307, 0.3081
CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
LANDMARK_MEAN, LANDMARK_STD = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
DETECTION_MEAN, DETECTION_STD = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)

PICTURE_SIDE = 224  # pixels, of the classifiers' input
SHORT_SIDE = 256  # pixels, to which a picture is resized before its centre is inferred from
DETECTION_SIDE = 320  # pixels
MOST_BOXES = 100  # of a picture; COCO has at most 93
LANDMARK_SIDE = 224  # pixels, of the network's input
CUTOUT_SIDE = 16  # pixels
# SOURCE: torchvision's RandomResizedCrop: share of the area, ratio of the sides, tries.
CROP_AREA, CROP_RATIO, CROP_TRIES = (0.08, 1.0), (3.0 / 4.0, 4.0 / 3.0), 10

LENGTH = 384  # word pieces of BERT's input; shorter ones are padded, longer texts cut
LONGEST_QUESTION = 64  # pieces

BILINEAR, FLIP_LEFT_RIGHT = 2, 0  # as PIL knows them; their names moved from version to version

Box = Tuple[int, int, int, int]  # left, top, right, bottom

# What a transform returns whose target depends on what it does to the input; else the target is the
# label that the data set read.
Sample = NamedTuple("Sample", [("input", Any), ("target", Any)])


def normalise_mnist(raw: np.ndarray) -> torch.Tensor:
    """Return a (28, 28) uint8 image as a normalised (1, 28, 28) float32 tensor."""
    tensor = torch.from_numpy(raw).to(torch.float32).div_(255.0)
    return tensor.sub_(MNIST_MEAN).div_(MNIST_STD).unsqueeze_(0)


def normalise_cifar10(raw: np.ndarray) -> torch.Tensor:
    """Return a (3, 32, 32) uint8 image as a normalised float32 tensor of that shape."""
    tensor = torch.from_numpy(raw).to(torch.float32).div_(255.0)
    return _normalise(tensor, CIFAR_MEAN, CIFAR_STD)


def augment_landmark(image: Any) -> torch.Tensor:
    """Return a decoded photograph (PIL, RGB, any size) as a normalised (3, 224, 224) tensor.

    Random resized crop, random horizontal flip, to tensor, normalise, cutout.
    """
    tensor = _as_tensor(_cropped(image, LANDMARK_SIDE))
    return cut_out(_normalise(tensor, LANDMARK_MEAN, LANDMARK_STD))


def centre_landmark(image: Any) -> torch.Tensor:
    """Return the middle of a photograph as a normalised (3, 224, 224) tensor, to infer from."""
    return _normalise(_as_tensor(_middle(image)), LANDMARK_MEAN, LANDMARK_STD)


def augment_imagenet(image: Any) -> torch.Tensor:
    """Return a decoded photograph (PIL, RGB, any size) as a normalised (3, 224, 224) tensor.

    Random resized crop, random horizontal flip, to tensor, normalise.
    """
    return _normalise(_as_tensor(_cropped(image, PICTURE_SIDE)), IMAGENET_MEAN, IMAGENET_STD)


def centre_imagenet(image: Any) -> torch.Tensor:
    """Return the middle of a photograph as a normalised (3, 224, 224) tensor, to infer from."""
    return _normalise(_as_tensor(_middle(image)), IMAGENET_MEAN, IMAGENET_STD)


def augment_coco(raw: Annotated) -> Sample:
    """Turn a picture with boxes into an input (3, 320, 320) and a target (100, 5).

    Random horizontal flip, resize, to tensor, normalise. A row of the target is left, top, right,
    bottom in pixels of the input, and the category; rows of category 0 are empty.
    """
    return _detection(raw, flip=torch.rand(1).item() < 0.5)


def resize_coco(raw: Annotated) -> Sample:
    """Return the same without a flip, to infer from."""
    return _detection(raw, flip=False)


def _detection(raw: Annotated, flip: bool) -> Sample:
    """Resize, flip and normalise a picture and its boxes, in the form of `augment_coco`."""
    width, height = raw.image.size
    image = raw.image.resize((DETECTION_SIDE, DETECTION_SIDE), BILINEAR)
    scale = DETECTION_SIDE / np.array([width, height, width, height], np.float32)
    boxes = torch.from_numpy(raw.boxes[:MOST_BOXES] * scale)
    if flip:
        image = image.transpose(FLIP_LEFT_RIGHT)
        left, right = DETECTION_SIDE - boxes[:, 2], DETECTION_SIDE - boxes[:, 0]
        boxes = torch.stack([left, boxes[:, 1], right, boxes[:, 3]], 1)
    target = torch.zeros(MOST_BOXES, 5)
    target[: len(boxes), :4] = boxes
    target[: len(boxes), 4] = torch.from_numpy(raw.labels[:MOST_BOXES])
    return Sample(_normalise(_as_tensor(image), DETECTION_MEAN, DETECTION_STD), target)


def _cropped(image: Any, side: int) -> Any:
    """Return a random part of a picture, resized to a square, flipped every other time."""
    image = image.crop(random_box(*image.size)).resize((side, side), BILINEAR)
    return image.transpose(FLIP_LEFT_RIGHT) if torch.rand(1).item() < 0.5 else image


def _middle(image: Any) -> Any:
    """Resize a picture's short side to 256 and return the central 224x224, as PIL."""
    width, height = image.size
    if width <= height:
        size = SHORT_SIDE, int(SHORT_SIDE * height / width)
    else:
        size = int(SHORT_SIDE * width / height), SHORT_SIDE
    left, top = (round((length - PICTURE_SIDE) / 2.0) for length in size)
    centre = left, top, left + PICTURE_SIDE, top + PICTURE_SIDE
    return image.resize(size, BILINEAR).crop(centre)


def _as_tensor(image: Any) -> torch.Tensor:
    """Return a picture's pixels as a (3, H, W) tensor from 0 to 1."""
    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()
    return pixels.to(torch.float32).div_(255.0)


def random_box(width: int, height: int) -> Box:
    """Draw torchvision's random resized crop in a picture: share of the area, log-uniform ratio.

    After `CROP_TRIES` boxes that do not fit, it is the largest central one of allowed ratio.
    """
    low, high = (math.log(ratio) for ratio in CROP_RATIO)
    for _ in range(CROP_TRIES):
        area = width * height * torch.empty(1).uniform_(*CROP_AREA).item()
        ratio = torch.exp(torch.empty(1).uniform_(low, high)).item()
        box_width = round(math.sqrt(area * ratio))
        box_height = round(math.sqrt(area / ratio))
        if 0 < box_width <= width and 0 < box_height <= height:
            top = int(torch.randint(0, height - box_height + 1, size=(1,)).item())
            left = int(torch.randint(0, width - box_width + 1, size=(1,)).item())
            return left, top, left + box_width, top + box_height
    box_width = min(width, round(height * CROP_RATIO[1]))
    box_height = min(height, round(width / CROP_RATIO[0]))
    left, top = (width - box_width) // 2, (height - box_height) // 2
    return left, top, left + box_width, top + box_height


def cut_out(tensor: torch.Tensor) -> torch.Tensor:
    """Zero a square around a random pixel, clipped at the border, in place; return `tensor`."""
    height, width = tensor.shape[-2:]
    half = CUTOUT_SIDE // 2
    y = int(torch.randint(0, height, size=(1,)).item())
    x = int(torch.randint(0, width, size=(1,)).item())
    tensor[..., max(0, y - half) : y + half, max(0, x - half) : x + half] = 0.0
    return tensor


def _normalise(
    tensor: torch.Tensor, mean: Tuple[float, ...], std: Tuple[float, ...]
) -> torch.Tensor:
    return tensor.sub_(torch.tensor(mean).view(-1, 1, 1)).div_(torch.tensor(std).view(-1, 1, 1))


def noise(*shape: int) -> np.ndarray:
    """Return random pixels, uint8, in the form of a raw sample, for the warm-up."""
    return np.random.RandomState(0).randint(0, 256, size=shape).astype(np.uint8)


def made_up_photograph(height: int, width: int) -> Any:
    """Return random pixels in the form of a decoded photograph, for the warm-up."""
    from PIL import Image

    return Image.fromarray(noise(height, width, 3))


def made_up_coco() -> Annotated:
    """Return random pixels with two boxes, for the warm-up."""
    boxes = np.array([[40.0, 40.0, 300.0, 200.0], [320.0, 100.0, 600.0, 460.0]], np.float32)
    return Annotated(made_up_photograph(480, 640), boxes, np.array([1, 90]))


def next_words(words: np.ndarray) -> Sample:
    """Return words (T + 1,) as an input (T,) and what follows each of them, (T,), both int64."""
    tensor = torch.from_numpy(words)
    return Sample(tensor[:-1], tensor[1:])


def question_pieces(raw: Asked) -> Sample:
    """Turn a question and its text into BERT's input and the answer's bounds.

    Input int64 (3, 384): word pieces, attention mask, segment (1: text, 0: question or padding).
    Target (2,): first and last piece of the answer; both 0 where the text was cut before its end.
    """
    row, numbers = raw.question, raw.vocabulary.numbers
    question: List[int] = []
    for word, _, _ in text.words_of(row.question):
        question += raw.vocabulary.pieces_of(word)
    head = [numbers[text.CLS]] + question[:LONGEST_QUESTION] + [numbers[text.SEP]]
    end = row.start + len(row.answer)
    context, answer = answer_pieces(row.context, row.start, end, raw.vocabulary)
    context = context[: LENGTH - len(head) - 1] + [numbers[text.SEP]]
    n_pieces = len(head) + len(context)
    inputs = torch.zeros(3, LENGTH, dtype=torch.int64)
    inputs[0, :n_pieces] = torch.tensor(head + context)
    inputs[1, :n_pieces] = 1
    inputs[2, len(head) : n_pieces] = 1
    first, last = (len(head) + index for index in answer)
    if last >= n_pieces - 1:  # where the closing SEP stands
        first, last = 0, 0
    return Sample(inputs, torch.tensor([first, last]))


def made_up_words() -> np.ndarray:
    """Return a sequence of words, for the warm-up."""
    return np.arange(1, text.SEQUENCE + 2, dtype=np.int64)


def made_up_tokens() -> np.ndarray:
    """Return a sample of tokens and the one that follows it, for the warm-up."""
    return np.arange(text.LENGTH + 1, dtype=np.int64)


def made_up_question() -> Asked:
    """Return a question about a text of usual length, with a small vocabulary, for the warm-up."""
    pieces = ["[unused%d]" % n for n in range(max(text.SPECIAL.values()) + 1)]
    for piece, index in text.SPECIAL.items():
        pieces[index] = piece
    pieces += list(ascii_lowercase) + [text.MARK + letter for letter in ascii_lowercase]
    context = "abcd efgh " * 60
    return Asked(Question(context, "where is efgh", "efgh", 5), Vocabulary(pieces))
