"""Single operators as torch modules, to measure them and to test the workloads of `single` against traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from joulemap.domain.operator.name import SingleOperator
from joulemap.system.errors import ModelError
from joulemap.trace.module import build_on_meta
from joulemap.trace.single import SCALAR

Built = tuple[nn.Module, tuple[Tensor, ...]]

FUNCTIONS: Final[dict[str, Callable[..., Tensor]]] = {
    "relu": torch.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "sqrt": torch.sqrt,
    "neg": torch.neg,
    "copy": torch.clone,
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "pow": torch.pow,
}
"""Kind of `elementwise` -> function that computes it."""


class FunctionModule(nn.Module):
    """Module that applies a function of tensors."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the result of the function."""
        return self.function(*inputs)


def build_operator(operator: SingleOperator, batch: int) -> Built:
    """Return (module of an operator, inputs without storage at a batch size).

    Raises ModelError for a kernel that torch does not have.
    """
    if operator.kind not in _BUILDERS:
        raise ModelError(f"{operator} has no torch module: it is one kernel of inference engines")
    with build_on_meta():
        return _BUILDERS[operator.kind](operator, batch)


def _meta(*shape: int) -> Tensor:
    return torch.empty(*shape, device="meta")


def _image(operator: SingleOperator, batch: int, channels: str = "channels") -> Tensor:
    return _meta(batch * operator.size("batch"), operator.size(channels), *(operator.size("size"),) * 2)


def _rows(operator: SingleOperator, batch: int) -> Tensor:
    return _meta(batch * operator.size("rows"), operator.size("columns"))


def _gemm(operator: SingleOperator, batch: int) -> Built:
    layer = nn.Linear(operator.size("k"), operator.size("n"), bias=bool(operator.arguments["bias"]))
    return layer, (_meta(batch * operator.size("m"), operator.size("k")),)


def _bmm(operator: SingleOperator, batch: int) -> Built:
    b, k = batch * operator.size("b"), operator.size("k")
    return FunctionModule(torch.bmm), (_meta(b, operator.size("m"), k), _meta(b, k, operator.size("n")))


def _conv2d(operator: SingleOperator, batch: int) -> Built:
    layer = nn.Conv2d(
        operator.size("channels_in"),
        operator.size("channels_out"),
        operator.size("kernel"),
        operator.size("stride"),
        operator.size("padding"),
        groups=operator.size("groups"),
        bias=bool(operator.arguments["bias"]),
    )
    return layer, (_image(operator, batch, "channels_in"),)


def _attention(operator: SingleOperator, batch: int) -> Built:
    """Return (module, inputs) of attention from the last tokens of a sequence to the whole sequence.

    Raises ModelError for causal attention with cached tokens, because torch aligns its mask to the first key. Also
    raises it for keys that contain their values or are stored in fewer bits.
    """
    if operator.arguments["latent"] or operator.arguments["cache"]:
        raise ModelError(f"{operator} has no torch module: attention in torch needs separate values, as wide as keys")
    images, width, rows = batch * operator.size("batch"), operator.size("head_dim"), operator.size("queries")
    held = (images, operator.size("kv_heads"), operator.size("cached") + rows)
    is_causal = bool(operator.arguments["causal"])
    if is_causal and operator.size("cached"):
        raise ModelError(f"{operator} has no torch module: causal attention in torch cannot see cached tokens")
    has_groups = operator.size("heads") != operator.size("kv_heads")

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal, enable_gqa=has_groups)

    return FunctionModule(attend), (
        _meta(images, operator.size("heads"), rows, width),
        _meta(*held, width),
        _meta(*held, operator.size("value_dim")),
    )


def _embedding(operator: SingleOperator, batch: int) -> Built:
    indices = torch.empty(batch * operator.size("rows"), device="meta", dtype=torch.int64)
    return nn.Embedding(operator.size("table"), operator.size("columns")), (indices,)


def _elementwise(operator: SingleOperator, batch: int) -> Built:
    function = FUNCTIONS[str(operator.arguments["kind"])]
    elements, operand = operator.size("elements"), operator.size("operand")
    count = batch * elements
    if operand == 0:
        return FunctionModule(function), (_meta(count),)
    if operand == 1:
        return FunctionModule(lambda x: function(x, SCALAR)), (_meta(count),)
    if operand == elements:
        return FunctionModule(function), (_meta(count), _meta(count))
    return FunctionModule(function), (_meta(count // operand, operand), _meta(operand))


_BUILDERS: Final[dict[str, Callable[[SingleOperator, int], Built]]] = {
    "gemm": _gemm,
    "bmm": _bmm,
    "conv2d": _conv2d,
    "attention": _attention,
    "softmax": lambda operator, batch: (nn.Softmax(-1), (_rows(operator, batch),)),
    "layer_norm": lambda operator, batch: (nn.LayerNorm(operator.size("columns")), (_rows(operator, batch),)),
    "rms_norm": lambda operator, batch: (nn.RMSNorm(operator.size("columns")), (_rows(operator, batch),)),
    "embedding": _embedding,
    "elementwise": _elementwise,
    "batch_norm": lambda operator, batch: (nn.BatchNorm2d(operator.size("channels")), (_image(operator, batch),)),
    "max_pool2d": lambda operator, batch: (
        nn.MaxPool2d(operator.size("kernel"), operator.size("stride"), operator.size("padding")),
        (_image(operator, batch),),
    ),
    "global_avg_pool": lambda operator, batch: (nn.AdaptiveAvgPool2d(1), (_image(operator, batch),)),
}
