"""Inputs of a decoder's forward pass: new tokens, and the keys, values and states of cached tokens (its past).

factory that takes tokens and cached   its inputs, unchanged
example inputs that contain a past     the same inputs, resized to the sequences, tokens and past requested
argument for a past                    the past that the model itself returns for the cached tokens
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

import attrs
import torch

from joulemap.construct import Inputs, Run
from joulemap.system import ModelError
from joulemap.trace.argument import named_tensors, replace_tensors, tensors_in
from joulemap.wing.hub.guess import USE_CACHE
from joulemap.wing.hub.modality import parameters_of

PAST: Final = re.compile(r"(layer_)?past\w*|(kv_?|key_values?_?)?caches?(_params)?|kvs?|(key_value_)?states?|mems?")
"""Pattern of argument names of a forward pass that contain keys, values or states of earlier tokens."""

OFFSETS: Final = ("start_pos", "start", "offset", "pos", "position")
"""Argument names of a forward pass that state the number of earlier tokens."""

LAST: Final = "logits_to_keep"
"""Argument of transformers classes that limits the logits to those of the last tokens."""

IDS: Final = "input_ids"

ALL_LOGITS: Final = "logits are of all tokens of a prompt, as its forward pass computes them"

ADVICE: Final = (
    "return (module, inputs) with a past in the inputs, take past=None and return (logits, past), or let the factory "
    "take batch, tokens and cached"
)
"""Advice for error messages: how to make a custom module decode."""


@attrs.frozen(kw_only=True)
class Pass:
    """Forward pass of a decoder."""

    model: str
    """Name of the model in errors."""
    is_transformers: bool
    """True for a class of transformers, whose names of inputs have a known meaning."""
    sequences: int
    tokens: int
    """New tokens per sequence."""
    cached: int
    """Tokens per sequence that are already in the KV cache."""
    has_all_logits: bool
    """True to compute logits of all tokens in a model that can omit them."""


def build_past(
    module: torch.nn.Module, own: Any, asked: Pass, run: Run, *, is_sized: bool
) -> tuple[Inputs, tuple[str, ...]]:
    """Return (inputs of a decoder's pass, notes). Raise ModelError if inputs cannot be found.

    `own` are the module's own inputs. They are used unchanged if `is_sized`, because a factory made them for this pass.
    """
    if is_sized:
        return _call(own, asked), ()
    if own is not None and any(leaf.is_floating_point() and leaf.dim() > 2 for leaf in tensors_in(own)):
        inputs = _Example.find(_call(own, asked), asked, run).sized(asked)
        return inputs, _note_logits(asked)
    return _return(module, asked, run)


def _call(own: Any, asked: Pass) -> Inputs:
    """Return a module's own inputs as (positional, keyword) arguments."""
    if isinstance(own, Mapping):
        return (), dict(own)
    if isinstance(own, list | tuple) and len(own):
        return tuple(own), {}
    if isinstance(own, torch.Tensor):
        return (own,), {}
    raise ModelError(f"{asked.model} has no example inputs: {ADVICE}")


def _note_logits(asked: Pass) -> tuple[str, ...]:
    return (ALL_LOGITS,) if asked.tokens > 1 else ()


def _tokens(sequences: int, tokens: int) -> torch.Tensor:
    return torch.empty((sequences, tokens), dtype=torch.int64, device="meta")


def _return(module: torch.nn.Module, asked: Pass, run: Run) -> tuple[Inputs, tuple[str, ...]]:
    """Return (inputs, notes): new tokens, and the past that the module returns for the cached tokens."""
    taken = parameters_of(module)
    past = next((name for name in taken if PAST.fullmatch(name)), "")
    ids = IDS if IDS in taken else next(iter(taken), "")
    if asked.is_transformers and (ids != IDS or getattr(getattr(module, "config", None), "is_encoder_decoder", False)):
        raise ModelError(f"{asked.model} is not a decoder: its forward pass takes {', '.join(taken)}, not tokens alone")
    if not past or past == ids:
        raise ModelError(
            f"{asked.model} has no input for the state of earlier tokens: its forward pass takes "
            f"{', '.join(taken) or 'nothing'}; {ADVICE}"
        )
    usual: dict[str, Any] = {USE_CACHE: True} if USE_CACHE in taken else {}
    if LAST in taken and not asked.has_all_logits:
        usual[LAST] = 1
    offset = next((name for name in OFFSETS if name in taken), "")
    notes = () if LAST in taken else _note_logits(asked)
    held: dict[str, Any] = {}
    if asked.cached:
        made = run((), {ids: _tokens(asked.sequences, asked.cached), **usual, **({offset: 0} if offset else {})})
        held = {past: _find_past(made, past, asked.model)}
    elif taken[past].default is inspect.Parameter.empty:
        raise ModelError(f"{asked.model} requires {past} even without earlier tokens: {ADVICE}")
    held |= {offset: asked.cached} if offset else {}
    return ((), {ids: _tokens(asked.sequences, asked.tokens), **held, **usual}), notes


def _find_past(made: Any, name: str, model: str) -> Any:
    """Return the keys, values and states among the results of a forward pass. Raise ModelError if there are none."""
    found: Any = None
    if isinstance(made, Mapping):
        found = made.get(name)
    elif hasattr(made, name):
        found = getattr(made, name)
    elif isinstance(made, list | tuple) and len(made) > 1:
        found = made[1] if len(made) == 2 else made[1:]
    if not tensors_in(found):
        raise ModelError(f"{model} takes {name} and returns none: expected (logits, {name}); {ADVICE}")
    return found


@attrs.frozen(kw_only=True)
class _Example:
    """Example inputs with a past, and the quantity with which each of their dimensions grows."""

    inputs: Inputs
    grows: Mapping[int, Mapping[int, str]]
    """Index of a tensor -> dimension -> `batch`, `tokens`, `cached` or `total` (cached plus new tokens)."""
    sizes: Mapping[str, int]

    @classmethod
    def find(cls, inputs: Inputs, asked: Pass, run: Run) -> _Example:
        """Return the interpretation of example inputs with which the module also runs correctly at other sizes.

        Raises ModelError if there is none.
        """
        leaves = [leaf for _, leaf in named_tensors(inputs)]
        ids = next((leaf for leaf in leaves if leaf.dim() == 2 and not leaf.is_floating_point()), None)
        if ids is None:
            raise ModelError(f"{asked.model} is not a decoder: no input has integers of the shape batch x tokens")
        usual = _first_shape(run(*inputs))
        for more, one in product((1, 0), list(_read(inputs, leaves, ids))):  # some modules do not run with more tokens
            grown = {"batch": 1, "tokens": more, "cached": 3}
            try:
                first, *rest = _first_shape(run(*one.resized({name: one.sizes[name] + grown[name] for name in grown})))
            except ModelError:
                continue
            between = zip(rest[:-1], usual[1:-1], strict=False)
            if first == usual[0] + 1 and rest[-1:] == [*usual[-1:]] and all(a - b in (0, more) for a, b in between):
                return one
        shapes = ", ".join(f"{place.lstrip('.')} {'x'.join(map(str, leaf.shape))}" for place, leaf in
                           named_tensors(inputs)[:8])  # fmt: skip
        raise ModelError(
            f"{asked.model} has no inputs that can grow like a past of keys and values ({shapes}); {ADVICE}"
        )

    def sized(self, asked: Pass) -> Inputs:
        """Return the inputs, resized to the batch, tokens and past of a request."""
        return self.resized({"batch": asked.sequences, "tokens": asked.tokens, "cached": asked.cached})

    def resized(self, sizes: Mapping[str, int]) -> Inputs:
        """Return the inputs with resized tensors, and with integers equal to the old length of the past replaced."""
        places = {id(leaf): place for place, (_, leaf) in enumerate(named_tensors(self.inputs))}
        whole = {**sizes, "total": sizes["cached"] + sizes["tokens"]}

        def resize(leaf: torch.Tensor) -> torch.Tensor:
            grows = self.grows[places[id(leaf)]]
            if not grows:
                return leaf
            shape = [whole[grows[index]] if index in grows else size for index, size in enumerate(leaf.shape)]
            return torch.empty(shape, dtype=leaf.dtype, device="meta")

        positional, named = replace_tensors(self.inputs, resize)
        count = self.sizes["cached"]

        def fit(value: Any) -> Any:
            return sizes["cached"] if type(value) is int and value == count else value

        return tuple(map(fit, positional)), {name: fit(value) for name, value in named.items()}


def _read(inputs: Inputs, leaves: Sequence[torch.Tensor], ids: torch.Tensor) -> Iterator[_Example]:
    """Yield possible interpretations of the dimensions of example inputs, the likeliest first."""
    batch, tokens = ids.shape
    deep = [leaf for leaf in leaves if leaf.is_floating_point() and leaf.dim() > 2]
    most = max(leaf.dim() for leaf in deep)
    seen: list[Mapping[int, Mapping[int, str]]] = []
    lengths = -2, *range(-3, -most - 1, -1), -1
    for length, has_masks, is_thin, first in product(lengths, (True, False), (True, False), range(3)):
        counts = [leaf.shape[length] for leaf in deep if leaf.dim() >= -length]
        for cached in sorted(set(counts), key=lambda size: (-counts.count(size), -size)):
            grows: dict[int, Mapping[int, str]] = {}
            for place, leaf in enumerate(leaves):
                is_past = any(leaf is one for one in deep) and leaf.dim() >= -length and leaf.shape[length] == cached
                if is_past:
                    grows[place] = {leaf.dim() + length: "cached", **_find_batch(leaf, batch, length, first)}
                else:
                    grows[place] = _find_sizes(leaf, batch, tokens, cached * has_masks, is_thin=is_thin)
            if grows not in seen:
                seen.append(grows)
                yield _Example(inputs=inputs, grows=grows, sizes={"batch": batch, "tokens": tokens, "cached": cached})


def _find_batch(leaf: torch.Tensor, batch: int, length: int, first: int) -> dict[int, str]:
    """Return {dimension: `batch`} of a tensor with a past: the dimension of size `batch` at index `first` among such;
    empty if absent.
    """
    alike = [index for index, size in enumerate(leaf.shape) if size == batch and index != leaf.dim() + length]
    return {alike[first]: "batch"} if first < len(alike) else {}


def _find_sizes(leaf: torch.Tensor, batch: int, tokens: int, cached: int, *, is_thin: bool) -> dict[int, str]:
    """Return dimension -> quantity for an input without a past, such as ids, positions, angles and masks.

    Every dimension that may count tokens is included. With `is_thin`, a floating-point input counts tokens only in its
    second-last dimension.
    """
    found: dict[int, str] = {}
    if leaf.dim() and leaf.shape[0] == batch and (leaf.dim() > 1 or tokens != batch):
        found[0] = "batch"
    alike = [index for index, size in enumerate(leaf.shape) if size == tokens and index not in found]
    if leaf.is_floating_point() and leaf.dim() > 1 and is_thin:
        alike = [index for index in alike if index == leaf.dim() - 2]
    found |= dict.fromkeys(alike, "tokens")
    total = cached + tokens if cached else 0
    return {**{index: "total" for index, size in enumerate(leaf.shape) if size == total}, **found}


def _first_shape(made: Any) -> tuple[int, ...]:
    """Return the shape of the first tensor in a result; empty without one."""
    first = next(iter(tensors_in(made)), None)
    return () if first is None else tuple(first.shape)
