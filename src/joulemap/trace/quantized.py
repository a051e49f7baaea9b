"""Conversion of modules with packed int8 weights back to the float modules from which torch made them.

Packed weights have no shapes on meta. `torch.ao.quantization.quantize_dynamic` and `convert` create such modules.

Source: torch/ao/nn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch
from torch import nn

NOTE: Final = "modules of int8 weights are counted as the float modules that they were made of"

_PACKAGE: Final = re.compile(r"torch\.ao\.nn\.(intrinsic\.)?quantized\.(dynamic\.)?modules(\..*)?")
_SAME: Final = [
    "BatchNorm2d",
    "BatchNorm3d",
    "Dropout",
    "ELU",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LeakyReLU",
    "ReLU6",
    "Sigmoid",
    "Softmax",
]
_SIZES: Final = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups")


def find_quantized(module: nn.Module) -> Iterator[tuple[nn.Module, nn.Module]]:
    """Yield (submodule with packed weights, float module without storage) for the submodules of a module."""
    for part in module.modules():
        if _PACKAGE.fullmatch(type(part).__module__):
            made = _unpack(part)
            if made is not None:
                yield part, made.eval()


def _unpack(part: Any) -> nn.Module | None:
    name = type(part).__name__
    if name in _SAME:
        kind = getattr(nn, name)
        made: nn.Module = kind.__new__(kind)
        made.__dict__ = dict(part.__dict__)
        return made
    make = _MAKERS.get(re.sub(r"ReLU|\dd$", "", name))
    if make is None:
        return None
    with torch.device("meta"):
        made = make(part)
    return nn.Sequential(made, nn.ReLU()) if "ReLU" in name else made


def _linear(part: Any) -> nn.Module:
    return nn.Linear(part.in_features, part.out_features, bias=part.bias() is not None)


def _convolution(part: Any) -> nn.Module:
    dimensions = len(part.kernel_size)
    options = {name: getattr(part, name) for name in _SIZES}
    kind = f"Conv{dimensions}d"
    if part.transposed:
        kind, options["output_padding"] = f"ConvTranspose{dimensions}d", part.output_padding
    made: nn.Module = getattr(nn, kind)(**options, bias=part.bias() is not None, padding_mode=part.padding_mode)
    return made


def _recurrent(kind: type[nn.Module]) -> Callable[[Any], nn.Module]:
    names = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional")
    return lambda part: kind(**{name: getattr(part, name) for name in names})


def _cell(kind: type[nn.Module]) -> Callable[[Any], nn.Module]:
    return lambda part: kind(part.input_size, part.hidden_size, bias=part.bias)


def _embedding(part: Any) -> nn.Module:
    return nn.Embedding(part.num_embeddings, part.embedding_dim)


def _functional(_part: Any) -> nn.Module:
    from torch.ao.nn.quantized import FloatFunctional

    made: nn.Module = FloatFunctional()
    return made


_MAKERS: Final[dict[str, Callable[[Any], nn.Module]]] = {
    "Linear": _linear,
    "Conv": _convolution,
    "ConvTranspose": _convolution,
    "LSTM": _recurrent(nn.LSTM),
    "GRU": _recurrent(nn.GRU),
    "LSTMCell": _cell(nn.LSTMCell),
    "GRUCell": _cell(nn.GRUCell),
    "RNNCell": _cell(nn.RNNCell),
    "Embedding": _embedding,
    "Quantize": lambda _: nn.Identity(),
    "DeQuantize": lambda _: nn.Identity(),
    "QFunctional": _functional,
}
"""Class name, without dimensions and fused activations -> function that makes the float module."""
