"""Small modules whose costs can be computed by hand, and the function that traces them in tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from joulemap.bundle.workload import open_zoo
from joulemap.catalog.digest import ZOO
from joulemap.construct.library import build_torchvision
from joulemap.physics.fuse import fuse
from joulemap.physics.record.workload import Access, Operator, Workload, WorkloadKey
from joulemap.physics.workload import WorkloadColumns, columns_of
from joulemap.trace.module import build_on_meta, trace_module

KEY = WorkloadKey(source="test", input_spec="", torch_version="", torchvision_version="", tracer_version="")


def trace(module: nn.Module, *inputs: Tensor, model: str = "small") -> Workload:
    """Return the fused workload of `module(*inputs)`."""
    return fuse(trace_module(module, inputs, key=KEY, model=model, batch=int(inputs[0].shape[0])))


def trace_zoo(name: str, batch: int = 1, size: int = 224) -> Workload:
    """Return the fused workload of a torchvision classification model."""
    return trace(build_torchvision(name, size), image(batch, 3, size), model=name)


@cache
def shipped(name: str, batch: int = 1) -> WorkloadColumns:
    """Return a built-in workload, neither traced nor read from a database."""
    return open_zoo(ZOO).form_columns(name, batch)


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return a tensor without storage."""
    return torch.empty(*shape, device="meta", dtype=dtype)


def image(batch: int, channels: int, size: int) -> Tensor:
    """Return a square image without storage."""
    return torch.empty(batch, channels, size, size, device="meta")


def columns(module: nn.Module, *inputs: Tensor) -> WorkloadColumns:
    """Return the fused workload of `module(*inputs)` as columns."""
    return columns_of(trace(module, *inputs))


def operator(workload: Workload, name: str) -> Operator:
    """Return the operator with a name."""
    (only,) = (one for one in workload.operators if one.name == name)
    return only


def accesses_of(workload: Workload, name: str, role: str) -> list[Access]:
    """Return the accesses of an operator in a role."""
    index = [one.name for one in workload.operators].index(name)
    return [access for access in workload.accesses if access.operator_index == index and access.role == role]


def patterns(workload: Workload) -> list[str]:
    """Return the fusion patterns in order."""
    return [subgraph.pattern for subgraph in workload.subgraphs]


class Mlp(nn.Module):
    """Linear layers 8 -> 16 -> 4 with a relu between."""

    def __init__(self) -> None:
        super().__init__()
        with build_on_meta():
            self.first = nn.Linear(8, 16)
            self.second = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = torch.relu(self.first(x))
        out: Tensor = self.second(hidden)
        return out


class ConvBlock(nn.Module):
    """3x3 convolution 3 -> 8 without bias, batch norm, relu."""

    def __init__(self, *, inplace: bool = False) -> None:
        super().__init__()
        with build_on_meta():
            self.conv = nn.Conv2d(3, 8, 3, padding=1, bias=False)
            self.bn = nn.BatchNorm2d(8)
            self.relu = nn.ReLU(inplace=inplace)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.relu(self.bn(self.conv(x)))
        return out


class BiasedConv(nn.Module):
    """3x3 convolution 3 -> 8 with a bias."""

    def __init__(self) -> None:
        super().__init__()
        with build_on_meta():
            self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv(x)
        return out


class Residual(nn.Module):
    """relu(bn2(conv2(relu(bn1(conv1(x))))) + x), with in-place relu and add."""

    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        with build_on_meta():
            self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu_()))
        out += x
        result: Tensor = out.relu_()
        return result


class Depthwise(nn.Module):
    """Depthwise 3x3, relu6, pointwise 1x1."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        with build_on_meta():
            self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
            self.act = nn.ReLU6()
            self.pointwise = nn.Conv2d(channels, 2 * channels, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.pointwise(self.act(self.depthwise(x)))
        return out


class Shared(nn.Module):
    """One linear layer, called twice."""

    def __init__(self) -> None:
        super().__init__()
        with build_on_meta():
            self.layer = nn.Linear(8, 8, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(torch.relu(self.layer(x)))
        return out


class SliceWrite(nn.Module):
    """Writes a slice of a sum in place, then reads the whole sum."""

    def forward(self, x: Tensor) -> Tensor:
        total = x + 1.0
        total[:, :2].relu_()
        return total * 2.0


class Attention(nn.Module):
    """Scaled dot-product attention over projected heads."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(query, key, value)


class SelfAttention(nn.Module):
    """Torch's multi-head self-attention of width 16 with 4 heads."""

    def __init__(self) -> None:
        super().__init__()
        with build_on_meta():
            self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.attention(x, x, x, need_weights=False)[0]
        return out


class Masked(nn.Module):
    """Adds a bias that is computed from a buffer and a parameter, not from the input."""

    mask: Tensor

    def __init__(self) -> None:
        super().__init__()
        with build_on_meta():
            self.scale = nn.Parameter(torch.empty(8))
            self.register_buffer("mask", torch.empty(8))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mask * self.scale


class Embedded(nn.Module):
    """Embedding of 1000 rows of 8."""

    def __init__(self) -> None:
        super().__init__()
        with build_on_meta():
            self.table = nn.Embedding(1000, 8)

    def forward(self, tokens: Tensor) -> Tensor:
        out: Tensor = self.table(tokens)
        return out


class Expanded(nn.Module):
    """Adds half of a parameter row, expanded over the batch."""

    def __init__(self) -> None:
        super().__init__()
        with build_on_meta():
            self.row = nn.Parameter(torch.empty(1, 16))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.row[:, :8].expand(x.shape[0], 8)


class Views(nn.Module):
    """Relu, then four operators that only return views."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x).view(x.shape[0], -1).transpose(0, 1)[1:].unsqueeze(0)


OWN = torch.library.Library("joulemap_test", "DEF")
OWN.define("transform(Tensor x) -> Tensor")
OWN.impl("transform", lambda x: torch.empty(x.shape, dtype=torch.complex64, device="meta"), "Meta")


class Fourier(nn.Module):
    """Operator for which no formula exists."""

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = torch.ops.joulemap_test.transform(x)
        return out


class Failing(nn.Module):
    """Raises an error in `inner` after one valid operator."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.ReLU(), _Wrong())

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x)
        return out


class _Wrong(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x + 1.0) @ torch.empty(3, 3)


class Chain(nn.Module):
    """Relu, sigmoid and sum in a row, not in place, with a branch from the first to the end."""

    def forward(self, x: Tensor) -> Tensor:
        first = torch.relu(x)
        second = torch.sigmoid(first)
        third = torch.sum(second, dim=1, keepdim=True)
        return first + third


class Gemm(nn.Module):
    """One linear layer without bias."""

    def __init__(self, inputs: int = 1024, outputs: int = 1024) -> None:
        super().__init__()
        with build_on_meta():
            self.linear = nn.Linear(inputs, outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(x)
        return out


class Function(nn.Module):
    """Module that calls a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor:
        out: Tensor = self.function(*inputs)
        return out
