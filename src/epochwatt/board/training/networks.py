"""Build the papers' networks, and those of torchvision (board side: Python 3.6; imports torch).

Source: SIGMETRICS 2023, Table 2, and the public scripts behind it (branch sigmetrics-2023 of
edge-train-bench), facts only. torchvision takes more than a second to import, so only networks
that come from it do so, and not before they are built.
"""

import torch
from torch import nn
from torch.nn import functional

LANDMARK_CLASSES = 203


def lenet5() -> nn.Module:
    """Return LeNet-5 for 1x28x28 inputs and 10 classes: 61,706 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 6, kernel_size=5, padding=2),  # (B, 6, 28, 28)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 6, 14, 14)
        nn.Conv2d(6, 16, kernel_size=5),  # (B, 16, 10, 10)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 16, 5, 5)
        nn.Flatten(),  # (B, 400)
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def _norm(channels: int) -> nn.Module:
    """Return group norm with as many groups as channels: instance norm with an affine map."""
    return nn.GroupNorm(channels, channels)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut, which is a 1x1 convolution where the shape changes."""

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1, bias=False)
        self.norm1 = _norm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = _norm(channels)
        self.shortcut = nn.Sequential()  # the identity
        if stride != 1 or in_channels != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride=stride, bias=False), _norm(channels)
            )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return features (B, channels, H / stride, W / stride) of (B, in_channels, H, W)."""
        outputs = functional.relu(self.norm1(self.conv1(inputs)))
        outputs = self.norm2(self.conv2(outputs))
        return functional.relu(outputs + self.shortcut(inputs))


class CifarResNet18(nn.Module):
    """ResNet-18 for 3x32x32 inputs and 10 classes: 11,173,962 parameters.

    Not torchvision's: its 7x7 stem of stride 2 and its max-pool leave a sixteenth of the positions,
    a far cheaper network at this input. Table 2 mixes the two: its memory, 53.89 MB, is that of
    this one; its parameters and FLOPs are those of the other at 224x224.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        self.norm = _norm(64)
        blocks = []
        in_channels = 64
        for channels, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [BasicBlock(in_channels, channels, stride), BasicBlock(channels, channels, 1)]
            in_channels = channels
        self.stages = nn.Sequential(*blocks)
        self.dense = nn.Linear(512, 10)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the scores (B, 10) of inputs (B, 3, 32, 32)."""
        outputs = functional.relu(self.norm(self.stem(inputs)))  # (B, 64, 32, 32)
        outputs = functional.avg_pool2d(self.stages(outputs), 4)  # (B, 512, 1, 1)
        return self.dense(outputs.flatten(1))


def mobilenet_v3() -> nn.Module:
    """Return MobileNetV3-Large for 3x224x224 inputs and 203 classes: 4,462,075 parameters."""
    from torchvision.models import mobilenet_v3_large

    network = mobilenet_v3_large(num_classes=LANDMARK_CLASSES)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.xavier_uniform_(module.weight)  # ASSUME: uniform; the facts say Xavier
    return network


def of_torchvision(name: str) -> nn.Module:
    """Return one of torchvision's networks (BSD-3) with 1,000 outputs, for 3x224x224 inputs.

    `resnet18` has 11,689,512 parameters, `resnet50` 25,557,032, `vgg11` 132,863,336. Of VGG-11's
    outputs CIFAR-10 uses 10; all are in the paper's 132.86 M parameters and 509.78 MB (Table 2).
    """
    from torchvision import models

    network: nn.Module = getattr(models, name)()
    return network
