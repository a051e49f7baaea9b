"""Detectors and their backbones that published measurements of vision boards use, by name.

    yolov5n … yolov5x     CSP backbone with C3 stages, release 6.0 and later       640 x 640 pixels
    yolov8n … yolov8x     C2f stages, head without anchors                         640 x 640
    yolo11n … yolo11x     C3k2 stages, attention on the smallest map               640 x 640
    yolov8n_seg, _pose …  the same with masks of objects, or key points of persons
    yolov8n_boxes, …      YOLOv8 and YOLO11 with the decoding of boxes, as Ultralytics exports them
    yolov5n_320, …        n and s of these at 320 and 512 pixels
    yolox_s … yolox_x     head that separates classes from boxes                   640 x 640
    ssd_mobilenet_v1, v2  six maps, boxes of 90 classes and the background         300 x 300
    ssdlite_mobilenet_v2  the same with separable heads                            300 x 300
    mobilenet_v1          the backbone, as a classifier                            224 x 224

A size has a depth factor for the repeats of a stage, a width factor for channels, and a maximum of channels. The
outputs are the maps of the head, because the compilers of most NPUs leave the decoding of boxes to the host, as all do
non-maximum suppression.

Source: Ultralytics, model descriptions yolov5.yaml, yolov8.yaml and yolo11.yaml; Megvii, YOLOX, exps/default and
yolox/models; Howard et al., MobileNets, 2017; TensorFlow Object Detection API, ssd_mobilenet_v1_coco,
ssd_mobilenet_v2_coco and ssdlite_mobilenet_v2_coco, whose sizes Open Model Zoo states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import torch
from torch import nn

from joulemap.system import UsageError
from joulemap.trace.module import build_on_meta

CLASSES: Final = 80
"""Number of object classes in COCO."""

BINS: Final = 16
"""Candidate positions of each side of a box; YOLOv8 and later predict a distribution over them."""

MASKS: Final = 32
"""Mask prototypes of a segmentation model, and their weights per object."""

POINTS: Final = 51
"""Outputs for key points per person: two coordinates and a visibility for each of 17 points."""

SEGMENT: Final = "seg"
POSE: Final = "pose"
BOXES: Final = "boxes"

DIVISOR: Final = 8
"""Multiple to which numbers of channels are rounded up."""

YOLOX: Final = "yolox_"

CSP: Final = ("yolov5", YOLOX)
"""Families whose stages are C3 stages."""

Size = tuple[float, float, int]
"""Depth factor, width factor, and maximum channels before the width factor is applied."""

SIZES: Final[Mapping[str, Mapping[str, Size]]] = {
    "yolov5": {
        "n": (0.33, 0.25, 1024), "s": (0.33, 0.5, 1024), "m": (0.67, 0.75, 1024), "l": (1.0, 1.0, 1024),
        "x": (1.33, 1.25, 1024),
    },
    "yolov8": {
        "n": (0.33, 0.25, 1024), "s": (0.33, 0.5, 1024), "m": (0.67, 0.75, 768), "l": (1.0, 1.0, 512),
        "x": (1.0, 1.25, 512),
    },
    "yolo11": {
        "n": (0.5, 0.25, 1024), "s": (0.5, 0.5, 1024), "m": (0.5, 1.0, 512), "l": (1.0, 1.0, 512), "x": (1.0, 1.5, 512),
    },
    YOLOX: {
        "s": (0.33, 0.5, 1024), "m": (0.67, 0.75, 1024), "l": (1.0, 1.0, 1024), "x": (1.33, 1.25, 1024),
    },
}  # fmt: skip
"""Family -> name of a size -> its depth factor, width factor and maximum channels."""


class Convolution(nn.Sequential):
    """Convolution, batch normalization and SiLU."""

    def __init__(
        self,
        channels: int,
        width: int,
        kernel: int = 1,
        stride: int = 1,
        groups: int = 1,
        activation: nn.Module | None = None,
        padding: int | None = None,
    ) -> None:
        side = kernel // 2 if padding is None else padding
        super().__init__(
            nn.Conv2d(channels, width, kernel, stride, side, groups=groups, bias=False),
            nn.BatchNorm2d(width),
            nn.SiLU() if activation is None else activation,
        )


class Bottleneck(nn.Module):
    """Two convolutions, with a residual connection if requested."""

    def __init__(self, channels: int, inner: int, kernels: tuple[int, int], shortcut: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(Convolution(channels, inner, kernels[0]), Convolution(inner, channels, kernels[1]))
        self.shortcut = shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the shape of `x`."""
        result: torch.Tensor = self.body(x)
        return x + result if self.shortcut else result


class CspStage(nn.Module):
    """Stage of YOLOv5 and YOLOX (C3): half of the channels pass through bottlenecks, the other half through one
    convolution.
    """

    def __init__(self, channels: int, width: int, repeats: int, shortcut: bool = True, kernel: int = 1) -> None:
        super().__init__()
        inner = width // 2
        self.first = Convolution(channels, inner)
        self.beside = Convolution(channels, inner)
        self.body = nn.Sequential(*(Bottleneck(inner, inner, (kernel, 3), shortcut) for _ in range(repeats)))
        self.last = Convolution(2 * inner, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape (batch, `width` channels, height of `x`, width of `x`)."""
        result: torch.Tensor = self.last(torch.cat((self.body(self.first(x)), self.beside(x)), 1))
        return result


class SplitStage(nn.Module):
    """Stage of YOLOv8 and YOLO11: the outputs of all its blocks are joined (C2f, C3k2)."""

    def __init__(self, channels: int, width: int, inner: int, blocks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.first = Convolution(channels, 2 * inner)
        self.blocks = nn.ModuleList(blocks)
        self.last = Convolution((2 + len(blocks)) * inner, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape (batch, `width` channels, height of `x`, width of `x`)."""
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        result: torch.Tensor = self.last(torch.cat(parts, 1))
        return result


class PyramidPool(nn.Module):
    """Maximum pooling of one map over growing windows, concatenated: pools in sequence (SPPF) or in parallel (SPP)."""

    def __init__(self, channels: int, width: int, kernels: Sequence[int] = (5, 5, 5), is_chain: bool = True) -> None:
        super().__init__()
        self.first = Convolution(channels, channels // 2)
        self.pools = nn.ModuleList(nn.MaxPool2d(kernel, 1, kernel // 2) for kernel in kernels)
        self.last = Convolution(channels // 2 * (len(kernels) + 1), width)
        self.is_chain = is_chain

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape (batch, `width` channels, height of `x`, width of `x`)."""
        parts = [self.first(x)]
        for pool in self.pools:
            parts.append(pool(parts[-1 if self.is_chain else 0]))
        result: torch.Tensor = self.last(torch.cat(parts, 1))
        return result


class PositionAttention(nn.Module):
    """Attention over the positions of a map, followed by a feed-forward network of convolutions (PSABlock)."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads, self.head = heads, channels // heads
        self.key = self.head // 2
        none = nn.Identity()
        self.qkv = Convolution(channels, channels + 2 * self.key * heads, activation=none)
        self.project = Convolution(channels, channels, activation=none)
        self.position = Convolution(channels, channels, 3, groups=channels, activation=none)
        self.feed = nn.Sequential(
            Convolution(channels, 2 * channels), Convolution(2 * channels, channels, activation=none)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the shape of `x`."""
        batch, channels, height, width = x.shape
        packed = self.qkv(x).view(batch, self.heads, 2 * self.key + self.head, height * width)
        query, key, value = packed.split((self.key, self.key, self.head), 2)
        scores = (query.transpose(-2, -1) @ key * self.key**-0.5).softmax(-1)
        mixed = (value @ scores.transpose(-2, -1)).view(batch, channels, height, width)
        x = x + self.project(mixed + self.position(value.reshape(batch, channels, height, width)))
        result: torch.Tensor = x + self.feed(x)
        return result


class AttentionStage(nn.Module):
    """Stage in which half of the channels pass through attention over positions (C2PSA)."""

    def __init__(self, channels: int, repeats: int) -> None:
        super().__init__()
        inner = channels // 2
        self.first = Convolution(channels, 2 * inner)
        self.body = nn.Sequential(*(PositionAttention(inner, inner // 64) for _ in range(repeats)))
        self.last = Convolution(2 * inner, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the shape of `x`."""
        kept, mixed = self.first(x).chunk(2, 1)
        result: torch.Tensor = self.last(torch.cat((kept, self.body(mixed)), 1))
        return result


class Focus(nn.Module):
    """Layer that moves 2 x 2 pixels into four times the channels, followed by a convolution."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.convolution = Convolution(12, width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape (batch, `width` channels, height of `x` / 2, width of `x` / 2)."""
        corners = [x[..., row::2, column::2] for column in (0, 1) for row in (0, 1)]
        result: torch.Tensor = self.convolution(torch.cat(corners, 1))
        return result


class MaskPrototypes(nn.Module):
    """Mask prototypes made from the finest map; an object's mask is a weighted sum of them."""

    def __init__(self, channels: int, inner: int, is_learned: bool) -> None:
        super().__init__()
        upsample = nn.ConvTranspose2d(inner, inner, 2, 2) if is_learned else nn.Upsample(scale_factor=2)
        self.body = nn.Sequential(
            Convolution(channels, inner, 3), upsample, Convolution(inner, inner, 3), Convolution(inner, MASKS)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape (batch, masks, 2 height, 2 width)."""
        result: torch.Tensor = self.body(x)
        return result


class AnchorHead(nn.Module):
    """Head of YOLOv5: one convolution per map, for three anchors at each position."""

    def __init__(self, widths: Sequence[int], task: str, inner: int) -> None:
        super().__init__()
        mask = MASKS if task == SEGMENT else 0
        self.maps = nn.ModuleList(nn.Conv2d(width, 3 * (CLASSES + 5 + mask), 1) for width in widths)
        self.masks = MaskPrototypes(widths[0], inner, is_learned=False) if mask else None

    def forward(self, maps: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return one output tensor per map, followed by the mask prototypes if the model segments."""
        found = [convolve(x) for convolve, x in zip(self.maps, maps, strict=True)]
        return found if self.masks is None else [*found, self.masks(maps[0])]


class BoxDecoder(nn.Module):
    """Decoding of YOLOv8 and YOLO11: the mean position of each side, boxes in pixels, and a sigmoid for each class.

    Source: ultralytics, nn/modules/head.py, class Detect, and nn/modules/block.py, class DFL.
    """

    def __init__(self, positions: int) -> None:
        super().__init__()
        self.mean = nn.Conv2d(BINS, 1, 1, bias=False)
        self.anchors, self.strides = (nn.Buffer(torch.empty(count, positions, device="meta")) for count in (2, 1))

    def forward(self, maps: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return a tensor of shape (batch, 4 + classes, positions) from maps of sides and classes."""
        sides, kinds = torch.cat([x.flatten(2) for x in maps], 2).split((4 * BINS, CLASSES), 1)
        near, far = self.mean(sides.unflatten(1, (4, BINS)).transpose(2, 1).softmax(1)).squeeze(1).chunk(2, 1)
        low, high = self.anchors - near, self.anchors + far
        boxes = torch.cat(((low + high) / 2, high - low), 1)
        return torch.cat((boxes * self.strides, kinds.sigmoid()), 1)


class SplitHead(nn.Module):
    """Head of YOLOv8 and YOLO11: a branch for boxes and a branch for classes, which is depthwise in YOLO11."""

    def __init__(self, widths: Sequence[int], is_depthwise: bool, task: str, inner: int, positions: int) -> None:
        super().__init__()
        self.decoder = BoxDecoder(positions) if task == BOXES else None
        classes = 1 if task == POSE else CLASSES
        box, kind = max(16, widths[0] // 4, 4 * BINS), max(widths[0], min(classes, 100))
        self.boxes = nn.ModuleList(
            nn.Sequential(Convolution(width, box, 3), Convolution(box, box, 3), nn.Conv2d(box, 4 * BINS, 1))
            for width in widths
        )
        self.kinds = nn.ModuleList(
            nn.Sequential(
                *self._convolve(width, kind, is_depthwise),
                *self._convolve(kind, kind, is_depthwise),
                nn.Conv2d(kind, classes, 1),
            )
            for width in widths
        )
        more = {SEGMENT: MASKS, POSE: POINTS}.get(task, 0)
        side = max(widths[0] // 4, more)
        self.more = nn.ModuleList(
            nn.Sequential(Convolution(width, side, 3), Convolution(side, side, 3), nn.Conv2d(side, more, 1))
            for width in (widths if more else ())
        )
        self.masks = MaskPrototypes(widths[0], inner, is_learned=True) if task == SEGMENT else None

    @staticmethod
    def _convolve(channels: int, width: int, is_depthwise: bool) -> list[nn.Module]:
        if is_depthwise:
            return [Convolution(channels, channels, 3, groups=channels), Convolution(channels, width)]
        return [Convolution(channels, width, 3)]

    def forward(self, maps: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return boxes, classes and task outputs of each map, followed by the mask prototypes if the model segments; or
        one tensor of decoded boxes and classes.
        """
        branches = (self.boxes, self.kinds, *([self.more] if self.more else []))
        found = [layer(x) for layers in branches for layer, x in zip(layers, maps, strict=True)]
        if self.decoder is not None:
            return [self.decoder([torch.cat(pair, 1) for pair in zip(found[:3], found[3:], strict=True)])]
        return found if self.masks is None else [*found, self.masks(maps[0])]


class SeparateHead(nn.Module):
    """Head of YOLOX: a stem, two convolutions for classes and two for boxes, with equal width for all maps."""

    def __init__(self, widths: Sequence[int], inner: int) -> None:
        super().__init__()
        self.stems = nn.ModuleList(Convolution(width, inner) for width in widths)
        self.branches = nn.ModuleList(
            nn.Sequential(Convolution(inner, inner, 3), Convolution(inner, inner, 3)) for _ in range(2 * len(widths))
        )
        self.kinds = nn.ModuleList(nn.Conv2d(inner, CLASSES, 1) for _ in widths)
        self.boxes = nn.ModuleList(nn.Conv2d(inner, 4, 1) for _ in widths)
        self.objects = nn.ModuleList(nn.Conv2d(inner, 1, 1) for _ in widths)

    def forward(self, maps: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return one tensor per map that concatenates boxes, objectness and classes."""
        found = []
        for place, x in enumerate(maps):
            stem = self.stems[place](x)
            kind, box = self.branches[2 * place](stem), self.branches[2 * place + 1](stem)
            joined = (self.boxes[place](box), self.objects[place](box), self.kinds[place](kind))
            found.append(torch.cat(joined, 1))
        return found


class Yolo(nn.Module):
    """YOLO detector: a backbone that halves the image five times, a feature pyramid over three maps, and a head."""

    def __init__(self, family: str, size: str, pixels: int = 640, task: str = "") -> None:
        super().__init__()
        self.family, self.size = family, size
        self.depth, self.width, self.most = SIZES[family][size]
        w64, w128, w256, w512, w1024 = (self._widen(channels) for channels in (64, 128, 256, 512, 1024))
        is_11, is_x, is_csp = family == "yolo11", family == YOLOX, family in CSP
        second, third = (w256, w512) if is_11 else (w128, w256)
        fourth = 6 if family == "yolov8" else 9
        edge = (6, 2) if family == "yolov5" else (3, 1)
        self.stem = Focus(w64) if is_x else Convolution(3, w64, edge[0], 2, padding=edge[1])
        self.low = nn.Sequential(
            Convolution(w64, w128, 3, 2),
            self._stage(w128, second, 3, inner=0.25),
            Convolution(second, w256, 3, 2),
            self._stage(w256, third, 9 if is_x else 6, inner=0.25),
        )
        self.mid = nn.Sequential(Convolution(third, w512, 3, 2), self._stage(w512, w512, fourth, is_deep=True))
        last = [self._stage(w1024, w1024, 3, is_deep=True), PyramidPool(w1024, w1024)]
        if is_x:
            pool = PyramidPool(w1024, w1024, (5, 9, 13), is_chain=False)
            last = [pool, self._stage(w1024, w1024, 3, shortcut=False)]
        if is_11:
            last.append(AttentionStage(w1024, self._repeat(2)))
        self.high = nn.Sequential(Convolution(w512, w1024, 3, 2), *last)
        self.upsample = nn.Upsample(scale_factor=2)
        self.narrow = nn.ModuleList(
            (Convolution(w1024, w512), Convolution(w512, w256)) if is_csp else (nn.Identity(), nn.Identity())
        )
        large, medium = (w512, w256) if is_csp else (w1024, w512)
        self.up = nn.ModuleList(
            (
                self._stage(large + w512, w512, 3, shortcut=False),
                self._stage(medium + third, w256, 3, shortcut=False),
            )
        )
        self.halve = nn.ModuleList((Convolution(w256, w256, 3, 2), Convolution(w512, w512, 3, 2)))
        self.down = nn.ModuleList(
            (
                self._stage(w256 + medium, w512, 3, shortcut=False),
                self._stage(w512 + large, w1024, 3, shortcut=False, is_deep=True),
            )
        )
        widths = (w256, w512, w1024)
        positions = 21 * pixels**2 // 1024  # at 1/8, 1/16 and 1/32 of the image size
        self.head: nn.Module = (
            AnchorHead(widths, task, w256)
            if family == "yolov5"
            else SeparateHead(widths, w256)
            if is_x
            else SplitHead(widths, is_11, task, w256, positions)
        )
        self.example_inputs = torch.empty(1, 3, pixels, pixels, device="meta")

    def _widen(self, channels: int) -> int:
        return math.ceil(min(channels, self.most) * self.width / DIVISOR) * DIVISOR

    def _repeat(self, count: int) -> int:
        return max(round(count * self.depth), 1)

    def _stage(
        self, channels: int, width: int, count: int, shortcut: bool = True, is_deep: bool = False, inner: float = 0.5
    ) -> nn.Module:
        """Return a stage of the family; YOLO11 nests stages if `is_deep`, and always in sizes m and larger."""
        if self.family in CSP:
            return CspStage(channels, width, self._repeat(count), shortcut)
        if self.family == "yolov8":
            half = width // 2
            split = [Bottleneck(half, half, (3, 3), shortcut) for _ in range(self._repeat(count))]
            return SplitStage(channels, width, half, split)
        half = int(width * inner)
        nested = [
            CspStage(half, half, 2, kernel=3)
            if is_deep or self.size in "mlx"
            else Bottleneck(half, half // 2, (3, 3), shortcut=True)
            for _ in range(self._repeat(2))
        ]
        return SplitStage(channels, width, half, nested)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Return the output maps of the head, at 1/8, 1/16 and 1/32 of the image size."""
        low = self.low(self.stem(x))
        mid = self.mid(low)
        high = self.narrow[0](self.high(mid))
        upper = self.narrow[1](self.up[0](torch.cat((self.upsample(high), mid), 1)))
        fine = self.up[1](torch.cat((self.upsample(upper), low), 1))
        medium = self.down[0](torch.cat((self.halve[0](fine), upper), 1))
        coarse = self.down[1](torch.cat((self.halve[1](medium), high), 1))
        result: list[torch.Tensor] = self.head((fine, medium, coarse))
        return result


MOBILENET_V1: Final = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1),
)  # fmt: skip
"""(output channels, stride) of each depthwise-separable pair of MobileNet V1."""

MOBILENET_V2: Final = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip
"""(expansion factor, output channels, blocks, stride of the first block) of each stage of MobileNet V2."""

LAST_HALVING_V1: Final = 12
"""Layer of MobileNet V1 that halves the image for the last time; its input is the first map of an SSD."""

LAST_HALVING_V2: Final = 14
"""Layer of MobileNet V2 that halves the image for the last time; its expanded channels are the first map of an SSD."""

SSD_EXTRA: Final = ((256, 512), (128, 256), (128, 256), (64, 128))
"""(channels of the 1x1 convolution, channels of the 3x3 convolution of stride 2) before each extra map of the SSD."""

SSD_ANCHORS: Final = (3, 6, 6, 6, 6, 6)
"""Boxes predicted at each position, for each of the six maps."""

SSD_CLASSES: Final = 91
"""Outputs per box of an SSD: COCO's class numbers up to 90, and the background."""


def _separate(channels: int, width: int, stride: int) -> nn.Sequential:
    """Return a depthwise and a pointwise convolution, each with batch normalization and ReLU6."""
    return nn.Sequential(
        Convolution(channels, channels, 3, stride, channels, nn.ReLU6()),
        Convolution(channels, width, activation=nn.ReLU6()),
    )


def _build_mobilenet_v1() -> list[nn.Module]:
    """Return the layers of the backbone: a convolution and thirteen depthwise-separable pairs."""
    layers: list[nn.Module] = [Convolution(3, 32, 3, 2, activation=nn.ReLU6())]
    channels = 32
    for width, stride in MOBILENET_V1:
        layers.append(_separate(channels, width, stride))
        channels = width
    return layers


class InvertedBottleneck(nn.Module):
    """Expansion, depthwise convolution and projection of MobileNet V2."""

    def __init__(self, channels: int, width: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = channels * expansion
        self.expand = Convolution(channels, inner, activation=nn.ReLU6()) if expansion > 1 else nn.Identity()
        self.rest = nn.Sequential(
            Convolution(inner, inner, 3, stride, inner, nn.ReLU6()),
            Convolution(inner, width, activation=nn.Identity()),
        )
        self.shortcut = stride == 1 and channels == width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape (batch, `width` channels, height / stride, width / stride)."""
        result: torch.Tensor = self.rest(self.expand(x))
        return x + result if self.shortcut else result


class MobileNetV1(nn.Module):
    """Classifier made of depthwise-separable pairs of convolutions."""

    def __init__(self, pixels: int = 224) -> None:
        super().__init__()
        self.features = nn.Sequential(*_build_mobilenet_v1())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(1024, 1000)
        self.example_inputs = torch.empty(1, 3, pixels, pixels, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape (batch, 1000)."""
        result: torch.Tensor = self.classifier(self.pool(self.features(x)).flatten(1))
        return result


def _build_mobilenet_v2() -> list[nn.Module]:
    """Return the layers of the backbone: a convolution, seventeen inverted bottlenecks and a convolution."""
    layers: list[nn.Module] = [Convolution(3, 32, 3, 2, activation=nn.ReLU6())]
    channels = 32
    for expansion, width, count, stride in MOBILENET_V2:
        for number in range(count):
            layers.append(InvertedBottleneck(channels, width, stride if number == 0 else 1, expansion))
            channels = width
    return [*layers, Convolution(channels, 1280, activation=nn.ReLU6())]


class Ssd(nn.Module):
    """Single-shot detector on MobileNet V1 or V2: boxes and classes from six maps.

    Heads are convolutions of 1 x 1 on V1 and of 3 x 3 on V2, separable with `is_lite`; extra maps of V2 are separable.
    """

    def __init__(self, version: int, pixels: int = 300, *, is_lite: bool = False) -> None:
        super().__init__()
        layers = _build_mobilenet_v1() if version == 1 else _build_mobilenet_v2()
        if version == 1:
            self.first, self.second = nn.Sequential(*layers[:LAST_HALVING_V1]), nn.Sequential(*layers[LAST_HALVING_V1:])
            widths = [512, 1024]
        else:
            halving = layers[LAST_HALVING_V2]
            assert isinstance(halving, InvertedBottleneck)
            self.first = nn.Sequential(*layers[:LAST_HALVING_V2], halving.expand)
            self.second = nn.Sequential(halving.rest, *layers[LAST_HALVING_V2 + 1 :])
            widths = [576, 1280]
        self.extra = nn.ModuleList()
        for inner, width in SSD_EXTRA:
            narrow = Convolution(widths[-1], inner, activation=nn.ReLU6())
            halve = (
                _separate(inner, width, 2) if version == 2 else Convolution(inner, width, 3, 2, activation=nn.ReLU6())
            )
            self.extra.append(nn.Sequential(narrow, halve))
            widths.append(width)

        def predict(numbers: int) -> nn.ModuleList:
            kernel = 1 if version == 1 or is_lite else 3
            heads = []
            for width, count in zip(widths, SSD_ANCHORS, strict=True):
                head: nn.Module = nn.Conv2d(width, numbers * count, kernel, padding=kernel // 2)
                if is_lite:
                    head = nn.Sequential(Convolution(width, width, 3, 1, width, nn.ReLU6()), head)
                heads.append(head)
            return nn.ModuleList(heads)

        self.boxes, self.kinds = predict(4), predict(SSD_CLASSES)
        self.example_inputs = torch.empty(1, 3, pixels, pixels, device="meta")

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Return two tensors, boxes and classes, for each of the six maps."""
        maps = [self.first(x)]
        for layers in (self.second, *self.extra):
            maps.append(layers(maps[-1]))
        return [layer(x) for layers in (self.boxes, self.kinds) for layer, x in zip(layers, maps, strict=True)]


SMALLER: Final = (320, 512)
"""Further sides of images, in pixels, for which sizes n and s of each YOLO have names of their own."""

SPLIT: Final = (SEGMENT, POSE, BOXES)
TASKS: Final[Mapping[str, Sequence[str]]] = {"yolov5": (SEGMENT,), "yolov8": SPLIT, "yolo11": SPLIT}
"""Family -> tasks other than detection of maps for which it has networks."""

NETWORKS: Final[Mapping[str, Callable[..., nn.Module]]] = {
    **{f"{family}{size}": partial(Yolo, family, size) for family, sizes in SIZES.items() for size in sizes},
    **{
        f"{family}{size}_{pixels}": partial(Yolo, family, size, pixels)
        for family in ("yolov5", "yolov8", "yolo11")
        for size in "ns"
        for pixels in SMALLER
    },
    **{
        f"{family}{size}_{task}": partial(Yolo, family, size, task=task)
        for family, tasks in TASKS.items()
        for task in tasks
        for size in SIZES[family]
    },
    "ssd_mobilenet_v1": partial(Ssd, 1),
    "ssd_mobilenet_v2": partial(Ssd, 2),
    "ssdlite_mobilenet_v2": partial(Ssd, 2, is_lite=True),
    "mobilenet_v1": MobileNetV1,
}
"""Name -> constructor of the network; its only argument is the side of the image in pixels."""


def find_family(name: str) -> str:
    """Return the model family under which a network's errors are reported: `yolo`, `ssd` or `mobilenet`."""
    return "mobilenet" if name == "mobilenet_v1" else "ssd" if name.startswith("ssd_") else "yolo"


def build_detector(name: str, arguments: Mapping[str, Any]) -> tuple[nn.Module, Any]:
    """Return (module, example inputs) of a network. Raise UsageError for an invalid `pixels` or any other argument."""
    for argument, value in arguments.items():
        if argument != "pixels":
            raise UsageError(f"{name} takes no argument {argument}; it takes: pixels")
        if not isinstance(value, int) or isinstance(value, bool) or value < 1 or value % 32:
            raise UsageError(f"{name}: pixels is {value!r}, expected a positive multiple of 32")
    with build_on_meta():
        module = NETWORKS[name](**arguments)
    return module, module.example_inputs
