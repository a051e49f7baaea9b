"""Memory of calls: state that persists after a call, results in place of an argument, and calls without effect.

A cache exists before the first call, and is written. Its bytes are not weights, even if a buffer holds it: they come
from memory and go back there, and not all of them are computed in this inference. An input that is overwritten as a
whole is not a cache.

A given past to which new rows are joined (`torch.cat`) is a cache as well, but one that frameworks copy. Only the join
reads the past, and its result is returned or multiplied by another activation, as keys and values are. Features that a
network joins are read by a convolution or a linear layer instead.
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
"""Operators whose result still contains the given keys or values."""


@attrs.frozen
class Places:
    """Memory of one trace, by storage."""

    states: frozenset[int]
    """Storages of the model that a pass writes, and inputs that it partly overwrites."""
    taken: dict[int, int]
    """Storage of a result -> storage of the argument whose place it takes."""
    appending: frozenset[int]
    """Calls that join rows to a given past."""

    def root(self, storage: int) -> int:
        """Return the storage whose memory this one shares."""
        while storage in self.taken:
            storage = self.taken[storage]
        return storage


def find_places(recorder: Recorder, outputs: list[torch.Tensor]) -> Places:
    """Return the memory that persists after calls.

    An operator that puts values into a copy of its first argument takes the place of that argument. It does so if
    nothing reads the argument afterwards, and if it is not a parameter, which the next inference needs unchanged.
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
    """Return the tensor that a call joins others to, the first that has elements; None if it joins nothing."""
    if call.name != "cat":
        return None
    return next((index for index in call.reads if recorder.tensors[index].tensor.numel()), None)


def _find_appending(
    recorder: Recorder, first: dict[int, RecordedTensor], outputs: list[torch.Tensor]
) -> frozenset[int]:
    """Return the calls that join rows to a given past, or to the result of such a call."""
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
        """Return whether the result of a join is returned, joined again or multiplied by another activation."""
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
    """Return whether a call makes or changes nothing because its arguments are empty, so that no kernel is launched.

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
    """Return the last call that reads each storage; the outputs of the model are read after all calls."""
    last: dict[int, int] = {}
    for number, call in enumerate(recorder.calls):
        if not call.is_view:
            last.update((recorder.tensors[index].storage, number) for index in call.reads)
    last.update((recorder.tensors[recorder.find(tensor)].storage, len(recorder.calls)) for tensor in outputs)
    return last
