"""Memory of calls: state that persists after a call, results in place of an argument, and calls without effect.

A cache exists before the first call, and calls write to it. Its bytes are not weights, even if a buffer holds it: they
come from memory and return there, and this inference does not compute all of them. An input that is overwritten as a
whole is not a cache.

Given keys and values to which `torch.cat` appends rows are a cache as well, but one that frameworks copy. Only the
`cat` reads them, and its result is returned or multiplied by another activation. Features that a network concatenates
differ: a convolution or a linear layer reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import torch

from joulemap.trace.formula import ATTENTION
from joulemap.trace.formula.placement import PLACING
from joulemap.trace.record import RecordedCall, RecordedTensor, Recorder

_WHOLE: Final = frozenset({"fill_", "zero_", "copy_"})
"""In-place operators that overwrite their whole target, which may be a part of its storage."""

_PRODUCTS: Final = frozenset({"bmm", "baddbmm", "matmul", "mm", "mv", "dot", "flex_attention", ATTENTION})
"""Operators that multiply activations by each other, if they read no parameter."""

_HANDING: Final = frozenset(
    {"_to_copy", "clone", "contiguous", "div", "expand_copy", "mul", "repeat", "repeat_interleave", "reshape", "to"}
)
"""Operators that pass on keys or values, possibly scaled, repeated or copied."""


@attrs.frozen
class Places:
    """Storages that outlive the calls of a trace, or that several tensors share."""

    states: frozenset[int]
    """Storages of the model that the pass writes, and of inputs that it overwrites partly."""
    taken: dict[int, int]
    """Storage of a result -> storage of the argument whose memory it reuses."""
    appending: frozenset[int]
    """Indices of `cat` calls that append rows to given keys or values."""

    def root(self, storage: int) -> int:
        """Return the storage whose memory `storage` reuses, or `storage` itself."""
        while storage in self.taken:
            storage = self.taken[storage]
        return storage


def find_places(recorder: Recorder, outputs: list[torch.Tensor]) -> Places:
    """Return which storages persist after the calls of a trace, and which results reuse an argument's memory.

    An operator that puts values into a copy of its first argument reuses the memory of that argument. This holds if no
    later call reads the argument. A parameter is never reused, because the next inference needs it unchanged.
    """
    first: dict[int, RecordedTensor] = {}
    for value in recorder.tensors:
        first.setdefault(value.storage, value)
    last = _last_reads(recorder, outputs)
    taken: dict[int, int] = {}
    states: set[int] = set()
    for number, call in enumerate(recorder.calls):
        if call.mutates:
            for index in call.writes:
                value = recorder.tensors[index]
                held = first[value.storage]
                if held.producer is None and (held.role != "input" or _writes_a_part(call, value.tensor)):
                    states.add(value.storage)
        elif call.name in PLACING and call.reads and call.writes:
            held = first[recorder.tensors[call.reads[0]].storage]
            made = recorder.tensors[call.writes[0]].storage
            is_free = last.get(held.storage, -1) <= number and not isinstance(held.tensor, torch.nn.Parameter)
            if is_free and made != held.storage:
                taken[made] = held.storage
                if held.producer is None or held.storage in states:
                    states.update((held.storage, made))
    return Places(states=frozenset(states), taken=taken, appending=_find_appending(recorder, first, outputs))


def find_past(recorder: Recorder, call: RecordedCall) -> int | None:
    """Return the index of the first nonempty tensor that a `cat` call joins; None for other calls or without one."""
    if call.name != "cat":
        return None
    return next((index for index in call.reads if recorder.tensors[index].tensor.numel()), None)


def _find_appending(
    recorder: Recorder, first: dict[int, RecordedTensor], outputs: list[torch.Tensor]
) -> frozenset[int]:
    """Return the `cat` calls that append rows to given keys or values, or to the result of such a call."""
    calls, tensors = recorder.calls, recorder.tensors
    pasts = {
        number: tensors[past].storage
        for number, call in enumerate(calls)
        if (past := find_past(recorder, call)) is not None
    }
    if not pasts:
        return frozenset()
    readers: dict[int, list[int]] = {}
    for number, call in enumerate(calls):
        if not call.is_view:
            for storage in {tensors[index].storage for index in call.reads}:
                readers.setdefault(storage, []).append(number)
    returned = {tensors[recorder.find(tensor)].storage for tensor in outputs}

    def is_kept(number: int) -> bool:
        """Return whether a `cat` result is returned, appended to again, or multiplied by another activation."""
        made = tensors[calls[number].writes[0]].storage
        if made in returned and any(tensors[index].producer is not None for index in calls[number].reads):
            return True
        seen, left = {made}, [made]
        while left:
            storage = left.pop()
            for reader in readers.get(storage, []):
                call = calls[reader]
                if pasts.get(reader) == storage or (call.name in _PRODUCTS and not _reads_weights(recorder, call)):
                    return True
                if call.name in _HANDING and (next_one := tensors[call.writes[0]].storage) not in seen:
                    seen.add(next_one)
                    left.append(next_one)
        return False

    found: set[int] = set()
    grown: set[int] = set()
    for number, past in pasts.items():
        held = first[past]
        is_given = past in grown or (held.role == "input" and held.producer is None)
        if is_given and all(pasts.get(reader) == past for reader in readers[past]) and is_kept(number):
            found.add(number)
            grown.add(tensors[calls[number].writes[0]].storage)
    return frozenset(found)


def _reads_weights(recorder: Recorder, call: RecordedCall) -> bool:
    return any(recorder.tensors[recorder.tensors[index].base].role == "parameter" for index in call.reads)


def does_nothing(call: RecordedCall, tensors: Sequence[RecordedTensor]) -> bool:
    """Return whether a call launches no kernel, because its arguments are empty and it makes or changes nothing.

    An operator that searches data for its rows (`nonzero`) does work even if it finds none.

    Source: `TensorIterator`, the products and the indexing of ATen return if there is no element to work on.
    """
    if call.is_view:
        return False
    given = [tensors[index].tensor for index in call.reads]
    is_given_nothing = any(not tensor.numel() for tensor in given)
    if call.mutates and call.name.removesuffix("_") in PLACING:
        return is_given_nothing
    looks = torch.Tag.dynamic_output_shape in call.func.tags
    return not any(tensor.numel() for tensor in call.outputs or given) and (is_given_nothing or not looks)


def _writes_a_part(call: RecordedCall, tensor: torch.Tensor) -> bool:
    if call.name.removesuffix("_") in PLACING:
        return True
    return call.name in _WHOLE and tensor.numel() * tensor.element_size() < tensor.untyped_storage().nbytes()


def _last_reads(recorder: Recorder, outputs: list[torch.Tensor]) -> dict[int, int]:
    """Return storage -> last call that reads it. Outputs of the model count as read after the last call."""
    last: dict[int, int] = {}
    for number, call in enumerate(recorder.calls):
        if not call.is_view:
            last.update((recorder.tensors[index].storage, number) for index in call.reads)
    last.update((recorder.tensors[recorder.find(tensor)].storage, len(recorder.calls)) for tensor in outputs)
    return last
