"""Reference networks of MLPerf Tiny, the benchmark of microcontrollers, by name.

    mlperf_tiny_vww    visual wake words     MobileNetV1 x 0.25 on 96 x 96 pixels     7.49 M MACs
    mlperf_tiny_ic     image classification  ResNet-8 on 32 x 32 pixels (CIFAR-10)   12.50 M MACs
    mlperf_tiny_kws    keyword spotting      DS-CNN on 49 x 10 MFCC features          2.66 M MACs
    mlperf_tiny_ad     anomaly detection     dense autoencoder on 640 features        0.26 M MACs

Layers and sizes follow the training scripts of the benchmark. Softmax, dropout and the audio front end are omitted,
because their share is negligible or the benchmark does not time them.

Source: https://github.com/mlcommons/tiny, benchmark/training; Banbury et al., MLPerf Tiny Benchmark, NeurIPS 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import nn

from joulemap.system import UsageError
from joulemap.trace.module import build_on_meta

FAMILY: Final = "mlperf_tiny"
"""Family of these networks in the catalogue."""

VWW_STAGES: Final = (
    (16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (128, 1), (128, 1), (128, 1), (128, 1), (256, 2),
    (256, 1),
)  # fmt: skip
"""(output channels, stride) of each depthwise-separable pair of MobileNetV1 at a width of 0.25."""


def _convolve(channels: int, width: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """Return a convolution and its batch normalization."""
    convolution = nn.Conv2d(channels, width, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [convolution, nn.BatchNorm2d(width)]


def _separate(channels: int, width: int, stride: int) -> nn.Sequential:
    """Return a depthwise and a pointwise convolution, each with batch normalization and ReLU."""
    depthwise = _convolve(channels, channels, 3, stride, channels)
    return nn.Sequential(*depthwise, nn.ReLU(), *_convolve(channels, width, 1), nn.ReLU())


class VisualWakeWords(nn.Module):
    """MobileNetV1 with a width of 0.25, which detects whether a person is in an image."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [*_convolve(3, 8, 3, 2), nn.ReLU()]
        channels = 8
        for width, stride in VWW_STAGES:
            layers.append(_separate(channels, width, stride))
            channels = width
        self.features = nn.Sequential(*layers)
        self.pool = nn.AvgPool2d(3)
        self.classifier = nn.Linear(channels, 2)
        self.example_inputs = torch.empty(1, 3, 96, 96, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape (batch, 2)."""
        result: torch.Tensor = self.classifier(self.pool(self.features(x)).flatten(1))
        return result


class ResidualStack(nn.Module):
    """Two 3x3 convolutions with a residual connection, which has a 1x1 convolution where the shape changes."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        stride = width // channels
        self.body = nn.Sequential(*_convolve(channels, width, 3, stride), nn.ReLU(), *_convolve(width, width, 3))
        self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(channels, width, 1, stride)
        self.activation = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape (batch, width channels, height / stride, width / stride)."""
        result: torch.Tensor = self.activation(self.body(x) + self.shortcut(x))
        return result


class ImageClassification(nn.Module):
    """ResNet of three stacks that classifies small images into ten classes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*_convolve(3, 16, 3), nn.ReLU())
        self.stacks = nn.Sequential(ResidualStack(16, 16), ResidualStack(16, 32), ResidualStack(32, 64))
        self.pool = nn.AvgPool2d(8)
        self.classifier = nn.Linear(64, 10)
        self.example_inputs = torch.empty(1, 3, 32, 32, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape (batch, 10)."""
        result: torch.Tensor = self.classifier(self.pool(self.stacks(self.stem(x))).flatten(1))
        return result


class KeywordSpotting(nn.Module):
    """Depthwise-separable network that classifies one second of speech into twelve classes."""

    def __init__(self) -> None:
        super().__init__()
        stem = nn.Conv2d(1, 64, (10, 4), 2, (5, 1), bias=False)
        pairs = (_separate(64, 64, 1) for _ in range(4))
        self.features = nn.Sequential(stem, nn.BatchNorm2d(64), nn.ReLU(), *pairs)
        self.pool = nn.AvgPool2d((25, 5))
        self.classifier = nn.Linear(64, 12)
        self.example_inputs = torch.empty(1, 1, 49, 10, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape (batch, 12)."""
        result: torch.Tensor = self.classifier(self.pool(self.features(x)).flatten(1))
        return result


class AnomalyDetection(nn.Module):
    """Dense autoencoder that reconstructs five frames of 128 mel bands."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 640
        for width in (128, 128, 128, 128, 8, 128, 128, 128, 128):
            layers += [nn.Linear(channels, width), nn.BatchNorm1d(width), nn.ReLU()]
            channels = width
        self.layers = nn.Sequential(*layers, nn.Linear(channels, 640))
        self.example_inputs = torch.empty(1, 640, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the shape of `x`: batch, 640."""
        result: torch.Tensor = self.layers(x)
        return result


NETWORKS: Final[Mapping[str, Callable[[], nn.Module]]] = {
    "mlperf_tiny_ad": AnomalyDetection,
    "mlperf_tiny_ic": ImageClassification,
    "mlperf_tiny_kws": KeywordSpotting,
    "mlperf_tiny_vww": VisualWakeWords,
}
"""Name -> constructor of the network."""


def build_tiny(name: str, arguments: Mapping[str, Any]) -> tuple[nn.Module, Any]:
    """Return (module, example inputs) of a network. Raise UsageError for any argument, because the sizes are fixed."""
    if arguments:
        raise UsageError(f"{name} takes no --model-arg: its sizes are those of the benchmark")
    with build_on_meta():
        module = NETWORKS[name]()
    return module, module.example_inputs
