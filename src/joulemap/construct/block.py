"""Built-in building blocks: models small enough that a person can read every operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import torch
from torch import nn

from joulemap.construct.source import quote
from joulemap.system.errors import UsageError
from joulemap.trace.guest import first_line
from joulemap.trace.module import build_on_meta


class Mlp(nn.Module):
    """Two linear layers with a GELU between them."""

    def __init__(self, width: int = 768, hidden: int = 3072, tokens: int = 196) -> None:
        super().__init__()
        self.expand = nn.Linear(width, hidden)
        self.activation = nn.GELU()
        self.reduce = nn.Linear(hidden, width)
        self.example_inputs = torch.empty(1, tokens, width, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the shape of `x`: batch, tokens, width."""
        result: torch.Tensor = self.reduce(self.activation(self.expand(x)))
        return result


class ConvBlock(nn.Module):
    """Convolution, batch normalization, ReLU."""

    def __init__(self, channels: int = 64, width: int = 64, size: int = 56, kernel: int = 3, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.activation = nn.ReLU()
        self.example_inputs = torch.empty(1, channels, size, size, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape (batch, width, size / stride, size / stride)."""
        result: torch.Tensor = self.activation(self.norm(self.conv(x)))
        return result


class ResnetBlock(nn.Module):
    """Two 3x3 convolutions with a residual connection."""

    def __init__(self, channels: int = 64, size: int = 56) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.activation = nn.ReLU()
        self.example_inputs = torch.empty(1, channels, size, size, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the shape of `x`."""
        y = self.activation(self.norm1(self.conv1(x)))
        result: torch.Tensor = self.activation(self.norm2(self.conv2(y)) + x)
        return result


class DepthwiseBlock(nn.Module):
    """A depthwise and a pointwise convolution, each with batch normalization and ReLU6."""

    def __init__(self, channels: int = 128, width: int = 128, size: int = 56) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, 1, 1, groups=channels, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.pointwise = nn.Conv2d(channels, width, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.activation = nn.ReLU6()
        self.example_inputs = torch.empty(1, channels, size, size, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape (batch, width, size, size)."""
        y = self.activation(self.norm1(self.depthwise(x)))
        result: torch.Tensor = self.activation(self.norm2(self.pointwise(y)))
        return result


class AttentionHead(nn.Module):
    """One head of self-attention: three projections, scores, softmax, weighted sum."""

    def __init__(self, width: int = 768, head: int = 64, tokens: int = 196) -> None:
        super().__init__()
        self.query = nn.Linear(width, head)
        self.key = nn.Linear(width, head)
        self.value = nn.Linear(width, head)
        self.example_inputs = torch.empty(1, tokens, width, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape (batch, tokens, head)."""
        return nn.functional.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x))


class EncoderLayer(nn.Module):
    """A pre-norm transformer encoder layer: self-attention and an MLP, each with a residual connection."""

    def __init__(self, width: int = 768, heads: int = 12, hidden: int = 3072, tokens: int = 128) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.projection = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = Mlp(width, hidden, tokens)
        self.example_inputs = torch.empty(1, tokens, width, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the shape of `x`: batch, tokens, width."""
        batch, tokens, width = x.shape
        packed = self.projection(self.norm1(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = packed.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, tokens, width))
        result: torch.Tensor = x + self.mlp(self.norm2(x))
        return result


class DecoderLayer(nn.Module):
    """A pre-norm transformer decoder layer that generates one token against a KV cache."""

    def __init__(self, width: int = 768, heads: int = 12, hidden: int = 3072, cached: int = 1024) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.projection = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = Mlp(width, hidden, 1)
        cache = (1, heads, cached, width // heads)
        self.example_inputs = (
            torch.empty(1, 1, width, device="meta"),
            torch.empty(cache, device="meta"),
            torch.empty(cache, device="meta"),
        )

    def forward(
        self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return (state of the new token, keys, values); the new token is appended to keys and values."""
        batch, tokens, width = x.shape
        packed = self.projection(self.norm1(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = packed.permute(2, 0, 3, 1, 4).unbind(0)
        keys = torch.cat((keys, key), dim=2)
        values = torch.cat((values, value), dim=2)
        mixed = nn.functional.scaled_dot_product_attention(query, keys, values)
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.mlp(self.norm2(x)), keys, values


class PostNormLayer(nn.Module):
    """A post-norm transformer encoder layer with a projection each for query, key and value."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.norm1 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, hidden)
        self.activation = nn.GELU()
        self.reduce = nn.Linear(hidden, width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the shape of `x`: batch, tokens, width."""
        batch, tokens, width = x.shape
        query, key, value = (
            project(x).view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        x = self.norm1(x + self.output(mixed.transpose(1, 2).reshape(batch, tokens, width)))
        result: torch.Tensor = self.norm2(x + self.reduce(self.activation(self.expand(x))))
        return result


class BertEncoder(nn.Module):
    """The layers of BERT-base, without embedding and head."""

    def __init__(
        self, layers: int = 12, width: int = 768, heads: int = 12, hidden: int = 3072, tokens: int = 128
    ) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(PostNormLayer(width, heads, hidden) for _ in range(layers)))
        self.example_inputs = torch.empty(1, tokens, width, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the shape of `x`: batch, tokens, width."""
        result: torch.Tensor = self.layers(x)
        return result


class MatrixProduct(nn.Module):
    """One multiplication of square matrices, which can reach a chip's peak arithmetic rate."""

    def __init__(self, size: int = 4096) -> None:
        super().__init__()
        self.product = nn.Linear(size, size, bias=False)
        self.example_inputs = torch.empty(1, size, size, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the shape of `x`: batch, size, size."""
        result: torch.Tensor = self.product(x)
        return result


class StreamCopy(nn.Module):
    """Copy of an array, which can reach a chip's memory bandwidth."""

    def __init__(self, elements: int = 2**26) -> None:
        super().__init__()
        self.example_inputs = torch.empty(1, elements, device="meta")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the negative of `x`. Negation keeps the copy on the compute units; a copy engine may perform a pure
        copy.
        """
        return torch.neg(x)


BLOCKS: Final[dict[str, Callable[..., nn.Module]]] = {
    "mlp": Mlp,
    "conv_block": ConvBlock,
    "resnet_block": ResnetBlock,
    "depthwise_separable_block": DepthwiseBlock,
    "attention_head": AttentionHead,
    "transformer_encoder_layer": EncoderLayer,
    "transformer_decoder_layer": DecoderLayer,
    "bert_encoder_128": BertEncoder,
    "bert_encoder_384": partial(BertEncoder, tokens=384),
    "matrix_product": MatrixProduct,
    "stream_copy": StreamCopy,
}
"""Name -> function that makes the block; its arguments are positive integers."""


def find_family(name: str) -> str:
    """Return the model family under which a block's errors are reported: `bert` or `block`."""
    return "bert" if name.startswith("bert_") else "block"


def build(name: str, arguments: Mapping[str, Any]) -> tuple[nn.Module, Any]:
    """Return (module, example inputs) of a block. Raise UsageError for an unknown argument."""
    make = BLOCKS[name]
    known = inspect.signature(make).parameters
    for argument, value in arguments.items():
        if argument not in known:
            raise UsageError(f"{name} takes no argument {argument}; it takes: {', '.join(known)}")
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UsageError(f"{name}: {argument} is {quote(value)}, expected a positive whole number")
    try:
        with build_on_meta():
            module = make(**arguments)
    except Exception as error:
        raise UsageError(f"{name} could not be built: {first_line(error)}") from error
    return module, module.example_inputs
