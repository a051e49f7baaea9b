"""Memory that calls work on: what outlives them, results that take an argument's place, and calls that have none.

A cache is there before the first call, and is written. Its bytes are no weights, although a buffer may hold it: they
come from memory and go back there, and not all of them are made in this inference. An input that is overwritten as a
whole is no cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import torch

from joulemap.trace.formula.placement import PLACING
from joulemap.trace.record import RecordedCall, RecordedTensor, Recorder

_WHOLE: Final = frozenset({"fill_", "zero_", "copy_"})
"""In-place operators that write all of what they are given, which may be a part of its storage."""


@attrs.frozen
class Places:
    """Of one trace, by storage."""

    states: frozenset[int]
    """Of what the model holds and writes, or is given and writes in part."""
    taken: dict[int, int]
    """Storage of a result -> that of the argument whose place it takes."""

    def root(self, storage: int) -> int:
        """Return the storage whose memory this one is."""
        while storage in self.taken:
            storage = self.taken[storage]
        return storage


def find_places(recorder: Recorder, outputs: list[torch.Tensor]) -> Places:
    """Return the memory that outlives calls.

    An operator that puts values into a copy of its first argument takes that one's place if nothing reads it
    afterwards, and if it is no trained parameter, which the next inference needs as it was.
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
    return Places(states=frozenset(states), taken=taken)


def does_nothing(call: RecordedCall, tensors: Sequence[RecordedTensor]) -> bool:
    """Whether a call makes or changes nothing, for what it is given is empty: no kernel starts for it.

    What looks for its rows in data (`nonzero`) has looked, though it finds none.
    Source: `TensorIterator`, the products and the indexing of ATen return where there is no element to work on.
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
    """Return for each storage the last call that reads it; what the model returns is read after all of them."""
    last: dict[int, int] = {}
    for number, call in enumerate(recorder.calls):
        if not call.is_view:
            last.update((recorder.tensors[index].storage, number) for index in call.reads)
    last.update((recorder.tensors[recorder.find(tensor)].storage, len(recorder.calls)) for tensor in outputs)
    return last
