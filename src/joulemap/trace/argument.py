"""Tensors in the arguments of a module: nested, and inside caches, dataclasses and other objects.

tree of lists, tuples, dicts ──► tensor
└──► object ──► its attributes, slots and items ──► tensor
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import keystr, tree_leaves, tree_leaves_with_path, tree_map

from joulemap.system.errors import ModelError
from joulemap.trace.guest import first_line

TensorOrModule = torch.Tensor | torch.nn.Module
"""Types that a search through arguments yields: tensors, and modules, whose tensors are weights."""

MOST_VALUES: Final = 65_536
"""Maximum elements of an integer or boolean input whose values a trace keeps, such as lengths, ids, grids and masks."""

_CLOSED: Final = (
    str, bytes, int, float, complex, type, type(None), torch.dtype, torch.device, FunctionType, MethodType, ModuleType,
)  # fmt: skip
"""Types whose objects are not searched, because they contain no tensors."""


def named_tensors(value: Any) -> list[tuple[str, torch.Tensor]]:
    """Return (path, tensor) for each distinct tensor in nested arguments, in order.

    A path is written like code: `['cache'].layers[0].keys`.
    """
    found: dict[int, tuple[str, torch.Tensor]] = {}
    for place, leaf in _leaves(value, "", set()):
        if isinstance(leaf, torch.Tensor):
            found.setdefault(id(leaf), (place, leaf))
    return list(found.values())


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return the distinct tensors in nested arguments, in order."""
    return [leaf for _, leaf in named_tensors(value)]


def replace_tensors(value: Any, make: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Return the arguments with each tensor replaced by `make(tensor)`. Objects that contain a tensor are copied; all
    others are shared.

    Raises ModelError for an object with tensors that cannot be copied.
    """
    made: dict[int, Any] = {}

    def put(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            if id(leaf) not in made:
                made[id(leaf)] = make(leaf)
            return made[id(leaf)]
        if isinstance(leaf, torch.nn.Module):
            return leaf
        seen: set[int] = set()
        held = [value for _, value in _find_held(leaf, "", seen)]
        if not any(isinstance(value, torch.Tensor) for value in held):
            return leaf
        for value in held:
            put(value)
        kept = {id(value): value for value in held if isinstance(value, torch.nn.Module)}
        try:
            return copy.deepcopy(leaf, {**kept, **made})
        except Exception as error:
            raise ModelError(
                f"the inputs hold a {type(leaf).__name__} that cannot be copied: {first_line(error)}"
            ) from error

    return tree_map(put, value)


def has_values(tensor: torch.Tensor) -> bool:
    """Return whether a trace keeps the values of an input: at most `MOST_VALUES` integers or booleans, with storage."""
    return (
        not tensor.is_meta
        and not isinstance(tensor, FakeTensor)
        and tensor.layout == torch.strided
        and not tensor.is_floating_point()
        and not tensor.is_complex()
        and tensor.numel() <= MOST_VALUES
    )


def _leaves(value: Any, place: str, seen: set[int]) -> Iterator[tuple[str, TensorOrModule]]:
    try:
        leaves = [(keystr(path), leaf) for path, leaf in tree_leaves_with_path(value)]
    except ValueError:  # the type is registered without names for its parts
        leaves = [(f"[{number}]", leaf) for number, leaf in enumerate(tree_leaves(value))]
    for path, leaf in leaves:
        yield from _find_held(leaf, place + path, seen)


def _find_held(leaf: Any, place: str, seen: set[int]) -> Iterator[tuple[str, TensorOrModule]]:
    """Yield (path, value) of an object that is a tensor or module, or of the tensors and modules inside it."""
    if isinstance(leaf, torch.Tensor | torch.nn.Module):
        yield place, leaf
        return
    if isinstance(leaf, _CLOSED) or id(leaf) in seen:
        return
    seen.add(id(leaf))
    if isinstance(leaf, Mapping):
        for key, item in leaf.items():
            yield from _leaves(item, f"{place}[{key!r}]", seen)
    elif isinstance(leaf, list | tuple | set | frozenset):
        for index, item in enumerate(leaf):
            yield from _leaves(item, f"{place}[{index}]", seen)
    for name, item in _attributes(leaf):
        yield from _leaves(item, f"{place}.{name}", seen)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict):
        yield from held.items()
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)
