"""Parts of random networks: layers and operators as Python text, with sizes to be drawn.

A part is an expression that makes a module, and its inputs. Names in braces are sizes: `b` the batch, the others drawn
from `SIZES`. Parts of `BLOCKS` are what networks consist of; those of `list_operators` are single ATen operators, each
called with arguments that its schema and torch accept, so that every operator with a formula occurs.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import torch

from joulemap.system.record import frozen

SIZES: Final[Mapping[str, tuple[int, ...]]] = {
    "c": (3, 8, 32, 64, 256),
    "d": (8, 64, 96, 512, 1024, 4096),
    "e": (2, 8, 64),
    "h": (1, 4, 8),
    "l": (1, 7, 64, 196, 1024),
    "n": (6, 16, 200),
    "r": (1, 2, 4),
    "s": (14, 28, 56, 128),
    "v": (100, 30000),
    "x": (10, 300, 3000),
}
"""Size -> values: channels, width, experts, heads, length, small width, ratio, side, vocabulary, boxes."""

UNEVEN: Final = ("c", "d", "l", "s", "v", "x")
"""Sizes that may be any whole number; the others divide something."""

HEADER: Final = '''import functools

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

aten = torch.ops.aten


class Call(nn.Module):
    """Module that calls a function on its inputs."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class Spelled(nn.Module):
    """Module that calls a function on other modules, whose weights it uses, and on its inputs."""

    def __init__(self, function, *modules):
        super().__init__()
        self.function, self.modules_ = function, nn.ModuleList(modules)

    def forward(self, *inputs):
        return self.function(self.modules_, *inputs)


class Linears(nn.Module):
    """Weights of several experts."""

    def __init__(self, experts, width):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.weight = nn.Parameter(torch.zeros(experts, width, width))

    def forward(self, x):
        share, chosen = self.gate(x).softmax(-1).topk(2)
        return torch.einsum("bld,edf->blef", x, self.weight).mean(2) * share.sum(-1, keepdim=True) + chosen.sum()


class Early(nn.Module):
    """Classifier with an exit after half of its layers."""

    def __init__(self, width):
        super().__init__()
        self.first, self.exit = nn.Linear(width, width), nn.Linear(width, 10)
        self.second, self.last = nn.Linear(width, width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.first(x).relu()
        return self.exit(x), self.last(self.second(x).relu())


class Loop(nn.Module):
    """Recurrent layer as a loop of cells."""

    def __init__(self, cell, width, states):
        super().__init__()
        self.cell, self.width, self.states = cell, width, states

    def forward(self, x):
        state, outputs = x.new_zeros(x.shape[0], self.width), []
        whole = (state, state)
        for step in range(x.shape[1]):
            if self.states == 2:
                whole = self.cell(x[:, step], whole)
            else:
                whole = (self.cell(x[:, step], whole[0]),)
            outputs.append(whole[0])
        return torch.stack(outputs, 1)


class Gates(nn.Module):
    """LSTM with gates by hand."""

    def __init__(self, inner, width):
        super().__init__()
        self.enter, self.stay = nn.Linear(inner, 4 * width), nn.Linear(width, 4 * width)

    def forward(self, x):
        hidden = cell = x.new_zeros(x.shape[0], self.stay.in_features)
        outputs = []
        for step in range(x.shape[1]):
            i, f, g, o = (self.enter(x[:, step]) + self.stay(hidden)).chunk(4, 1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
            outputs.append(hidden)
        return torch.stack(outputs, 1)
'''


@frozen(kw_only=True)
class Part:
    """Text of a module and of its inputs, with sizes in braces."""

    name: str
    module: str
    inputs: tuple[str, ...]


def _call(name: str, function: str, *inputs: str) -> Part:
    return Part(name=name, module=f"Call({function})", inputs=inputs)


def _read() -> Iterator[Part]:
    for entry in tomllib.loads((Path(__file__).parent / "parts.toml").read_text())["parts"]:
        if "function" in entry:
            yield _call(entry["name"], entry["function"], *entry["inputs"])
        else:
            yield Part(name=entry["name"], module=entry["module"], inputs=tuple(entry["inputs"]))


BLOCKS: Final = tuple(_read())
"""Layers and operators of networks that people have."""

SHAPES: Final = (
    "{b}, {n}", "{b}, {l}, {n}", "{b}, {c}, {s}, {s}", "{n}, {n}", "{n}", "{b}, {n}, {n}", "{b}, {c}, {l}",
    "{b}, {c}, 8, 8, 8",
)  # fmt: skip
"""Shapes that arguments of an operator are tried with, all alike."""

TRIED: Final = {"b": 2, "n": 6, "l": 8, "c": 3, "s": 14}
"""Sizes with which an operator is tried."""

TYPES: Final = ("float32", "int64", "bool", "complex64")

INDICES: Final = frozenset({"index", "indices", "offsets", "target", "targets", "lengths", "self_size"})
"""Names of arguments that hold whole numbers in most operators."""


@cache
def find_call(name: str) -> Part | None:
    """Return a part that calls an ATen operator, with the first arguments that torch accepts; None if it takes none."""
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        if any(one.is_out for one in schema.arguments):
            continue
        overload = schema.overload_name or "default"
        operator = getattr(getattr(torch.ops.aten, name, None), overload, None)
        if operator is None:
            continue
        given = [one for one in schema.arguments if not one.has_default_value()]
        for part in _list_calls(f"{name}.{overload}", given):
            if _is_accepted(part):
                return part
    return None


def _list_calls(operator: str, arguments: list[Any]) -> Iterator[Part]:
    """Yield parts that call an operator, over shapes, types and numbers of its arguments."""
    for shape in SHAPES:
        for kind in TYPES:
            for number in (1, 2, 3):
                texts, inputs = [], list[str]()
                for one in arguments:
                    tensor = f"torch.zeros({shape}, dtype=torch.{'int64' if one.name in INDICES else kind})"
                    text = _write_argument(one, tensor, shape.count(",") + 1, number, inputs)
                    if text is None:
                        return
                    texts.append(f"{one.name}={text}" if one.kwarg_only else text)
                names = ", ".join(f"x{index}" for index in range(len(inputs)))
                if inputs:
                    function = f"lambda {names}: aten.{operator}({', '.join(texts)})"
                    yield _call(operator.partition(".")[0], function, *inputs)


def _write_argument(argument: Any, tensor: str, rank: int, number: int, inputs: list[str]) -> str | None:
    """Return the text of an argument; a tensor becomes an input. None for a type that no rule covers."""
    kind = str(argument.type)
    if kind == "Tensor":
        inputs.append(tensor)
        return f"x{len(inputs) - 1}"
    if kind == "List[Tensor]":
        inputs.extend([tensor, tensor])
        return f"[x{len(inputs) - 2}, x{len(inputs) - 1}]"
    if kind == "List[Optional[Tensor]]":
        inputs.append("torch.zeros({b}, dtype=torch.int64)")
        return f"[x{len(inputs) - 1}]"
    if kind.startswith("List[int]"):
        return str([number] * (argument.N or rank))
    texts = {
        "int": str(number), "float": str(0.5 * number), "number": str(number), "bool": "False", "str": "'sum'",
        "List[float]": "[1.0, 1.0]", "Device": "x0.device",
    }  # fmt: skip
    return "None" if kind.startswith("Optional") else texts.get(kind)


def _is_accepted(part: Part) -> bool:
    names = {"torch": torch, "aten": torch.ops.aten, "Call": lambda function: function}
    try:
        with torch.device("meta"), torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inputs = [eval(one.format(**TRIED), names) for one in part.inputs]
            result = eval(part.module.format(**TRIED), names)(*inputs)
    except Exception:  # torch's errors have any type
        return False
    return any(isinstance(one, torch.Tensor) for one in (result if isinstance(result, tuple | list) else (result,)))
