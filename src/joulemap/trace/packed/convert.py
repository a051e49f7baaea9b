"""Replacement of a model's 16-bit weights by the weights that its checkpoint stores."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
import torch
from torch import nn

from joulemap.trace.packed.checkpoint import ANY, Checkpoint, Matrix
from joulemap.trace.packed.method import name_method, read_checkpoint
from joulemap.trace.packed.weight import PackedWeight

SETTING: Final = "quantization_config"

_DETAILS: Final = ("quant_algo", "quant_type")
"""Names of settings that distinguish the variants of a method."""

_EXPERTS: Final = ("experts", "Experts")
"""(suffix of module names, part of class names) of modules whose parameters are matrices of several experts."""

_PROJECTIONS: Final = {"gate_up_proj": "gate_proj"}
"""Name of a matrix of all experts -> name of the matrix of one expert in checkpoints, or of its first half."""


_TEXT: Final = "language_model."
"""Prefix of names in the text part of a multimodal model; some versions of transformers omit it."""


@attrs.frozen
class _Place:
    """Weight parameter of a module that may be stored packed."""

    module: nn.Module
    path: str
    name: str
    matrix: Matrix
    is_transposed: bool


def store_weights(module: nn.Module, values: Mapping[str, Any] | None, source: str) -> tuple[str, ...]:
    """Replace a module's weights by the packed weights of a checkpoint with this `quantization_config`. Return notes on
    it.

    Raises ModelError like `read_checkpoint`.
    """
    if values is None:
        return ()
    checkpoint = read_checkpoint(values, source)
    if checkpoint is None:
        details = [str(values[name]) for name in _DETAILS if isinstance(values.get(name), str)]
        return (
            f"{SETTING} says {' '.join((name_method(values), *details))}, which is not read: weights are counted at "
            "the precision asked for; --weight-precision int4 narrows them",
        )
    if values.get("dequantize"):
        return (f"{SETTING}: {checkpoint.method}, made wide as it is loaded: weights are at the precision asked for",)
    defaults = (*find_exceptions(module), *(getattr(module, "_keep_in_fp32_modules", None) or ()))
    left = []
    is_any = False
    for place in list(_find_places(module)):
        stored = checkpoint.find(place.matrix, defaults)
        if stored is None:
            left.append(place.path)
            continue
        wide = getattr(place.module, place.name)
        is_any = True
        place.module.register_parameter(place.name, PackedWeight.store(wide, stored, is_transposed=place.is_transposed))
    return (_describe(checkpoint, left, is_any=is_any),)


def _describe(checkpoint: Checkpoint, left: list[str], *, is_any: bool) -> str:
    """Return a note on the formats of a checkpoint, and on the modules in `left`, which are not converted."""
    line = f"{SETTING}: {checkpoint.describe()}"
    if not is_any:
        return f"{line}; no weights of this model are converted"
    names = sorted(dict.fromkeys(left), key=lambda name: name.count("."))
    if not names:
        return line
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{line}; {names[0]}{more} not converted"


def _find_places(model: nn.Module) -> Iterator[_Place]:
    """Yield the weights of linear layers and of experts."""
    blocks = _find_blocks(model)
    for path, module in model.named_modules():
        classes = tuple(kind.__name__ for kind in type(module).__mro__)
        inside = any(path.startswith(f"{block}.") for block in blocks)
        if isinstance(module, nn.Linear) or "Conv1D" in classes:
            kind: Any = "linear" if isinstance(module, nn.Linear) else "conv1d"
            matrix = Matrix(names=_name(path), kind=kind, classes=classes, is_in_blocks=inside)
            yield _Place(module, path, "weight", matrix, kind == "conv1d")
        elif path.endswith(_EXPERTS[0]) or any(_EXPERTS[1] in name for name in classes):
            for name, parameter in module.named_parameters(recurse=False):
                if parameter.dim() == 3 and not name.endswith("bias"):
                    names = _name(f"{path}.0.{_PROJECTIONS.get(name, name)}")
                    matrix = Matrix(names=names, kind="experts", classes=ANY, is_in_blocks=inside)
                    yield _Place(module, path, name, matrix, _is_transposed(module, name, parameter))


def _name(path: str) -> tuple[str, ...]:
    """Return the names that a checkpoint may use for a module, with and without the prefixes `model.` and
    `language_model.`.
    """
    inner = path.removeprefix("model.")
    names = [path, inner, f"model.{path}"]
    if inner.startswith(_TEXT):
        rest = inner.removeprefix(_TEXT)
        names += [f"{_TEXT}model.{rest}", f"model.{rest}"]
    elif "." not in path:
        names.append(f"{_TEXT}{path}")
    return tuple(dict.fromkeys(names))


def _is_transposed(module: nn.Module, name: str, parameter: torch.Tensor) -> bool:
    """Return whether the last dimension of an expert's weight is its outputs."""
    stated = getattr(module, "is_transposed", None)
    if isinstance(stated, bool):
        return stated
    width = getattr(module, "hidden_size", getattr(module, "hidden_dim", None))
    rows, columns = parameter.shape[1:]
    return rows != columns and width == (columns if name.startswith("down") else rows)


def _find_blocks(model: nn.Module) -> tuple[str, ...]:
    """Return the path of the outermost module list with the most parameters; an empty tuple without a list."""
    lists: dict[str, int] = {}
    for path, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and not any(path.startswith(f"{outer}.") for outer in lists):
            lists[path] = sum(parameter.numel() for parameter in module.parameters())
    return (max(lists, key=lambda path: lists[path]),) if lists else ()


def find_exceptions(model: Any) -> Iterator[str]:
    """Yield the modules that a library does not convert by default: tied modules, the last module and the output.

    Source: transformers, `quantizers/base.py`, `get_keys_to_not_convert`.
    """
    tied = getattr(model, "all_tied_weights_keys", None) or {}
    keys = [*tied, *(tied.values() if isinstance(tied, Mapping) else ())]
    keys += [name for name, _ in model.named_parameters()][-1:]
    yield from (str(key).removesuffix(".weight") for key in keys)
    with contextlib.suppress(AttributeError, NotImplementedError):
        output = model.get_output_embeddings()
        yield from (name for name, module in model.named_modules() if output is not None and module is output)
