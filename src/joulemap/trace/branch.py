"""Higher-order operators: selection of the functions that are recorded, and notes on the others.

    cond, switch        each branch on its own; the one with the most work is recorded
    while_loop          as often as its condition holds, once if that depends on data
    map, scan           the function once for each slice
    flex_attention      one attention; the operations of its score function are counted for each score
    any other           as torch runs it without a compiler

If the predicate is known, the branch that it chooses is recorded.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import torch
from torch._C import DispatchKey
from torch._ops import HigherOrderOperator
from torch.utils._pytree import tree_map

from joulemap.system.errors import ModelError
from joulemap.trace.formula import ATTENTION, Call, count
from joulemap.trace.tape import Step, Tape


def describe_blocks(block_mask: Sequence[Any]) -> str:
    """Return a note on the blocks of scores that a FlexAttention mask omits; empty without a mask."""
    tensors = [part for part in block_mask if isinstance(part, torch.Tensor)]
    if len(tensors) < 2:
        return ""
    shape = tensors[1].shape
    if math.prod(shape[-2:]) <= 1:  # no mask was given
        return ""
    partial, full = _REAL.get(id(block_mask[2]), block_mask[2]), block_mask[4]
    full = _REAL.get(id(full), full)
    if partial.is_meta or (full is not None and full.is_meta):
        return "every block of scores is counted, also those that its mask leaves out"
    kept = int(partial.sum()) + (int(full.sum()) if full is not None else 0)
    return f"its mask keeps {kept:,} of {shape.numel():,} blocks of scores, all are counted"


_REAL: Final[dict[int, torch.Tensor]] = {}
"""id of a tensor without storage -> block counts that it represents, while a module is traced."""


@contextlib.contextmanager
def flex_attention_on_meta() -> Iterator[None]:
    """Let FlexAttention accept tensors without storage, and block masks made on any device.

    Without this context, `_validate_device` and a check of the mask's device refuse such arguments.
    """
    from torch.nn.attention import flex_attention as flex

    usual, twins = flex._validate_device, dict[int, torch.Tensor]()

    def give(mask: Any) -> torch.Tensor:
        real: torch.Tensor = mask.__dict__["kv_num_blocks"]
        if real.is_meta:
            return real
        twin = twins.setdefault(id(real), torch.empty_like(real, device="meta"))
        _REAL[id(twin)] = real
        return twin

    flex._validate_device = lambda *_tensors: None
    numbers = property(give, lambda mask, held: mask.__dict__.update(kv_num_blocks=held))
    flex.BlockMask.kv_num_blocks = numbers  # type: ignore[assignment]
    try:
        yield
    finally:
        flex._validate_device = usual
        del flex.BlockMask.kv_num_blocks
        _REAL.clear()


Function = Callable[..., Any]

ONCE: Final = "its condition depends on data; the body is assumed to run once"


def run_higher_order(tape: Tape, func: HigherOrderOperator, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return the result of a higher-order operator, and record the operators that represent it."""
    name = str(func.name())
    handle = _HANDLERS.get(name)
    if handle is not None:
        return handle(tape, *args, **kwargs)
    dense = func.py_kernels.get(DispatchKey.CompositeExplicitAutograd)
    if dense is None:
        raise ModelError(
            f"the higher-order operator {name} runs only compiled: leave it out of the forward pass, or call what it "
            "computes directly"
        )
    return dense(*args, **kwargs)


def work_of(calls: Sequence[Step]) -> tuple[int, int]:
    """Return (MACs, other operations) of recorded calls."""
    macs = others = 0
    for call in calls:
        if call.is_view:
            continue
        if call.name == ATTENTION:
            scores = call.args[0].numel() // call.args[0].shape[-1] * call.args[1].shape[-2]
            macs += scores * (call.args[0].shape[-1] + call.args[2].shape[-1])
            others += 6 * scores
            continue
        cost = count(call.name, Call(call.args, call.kwargs, call.outputs, call.aten))
        macs += cost.mac_count
        others += cost.elementwise_count + cost.special_count
    return macs, others


def _is_known(value: Any) -> bool:
    return not (isinstance(value, torch.Tensor) and value.is_meta)


def _cond(tape: Tape, predicate: Any, true: Function, false: Function, operands: Sequence[Any]) -> Any:
    if _is_known(predicate):
        return (true if predicate else false)(*operands)
    return _costliest(tape, "cond", {"true": true, "false": false}, operands)


def _switch(tape: Tape, index: Any, branches: Sequence[Function], operands: Sequence[Any]) -> Any:
    if _is_known(index):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    return _costliest(tape, "switch", {str(number): one for number, one in enumerate(branches)}, operands)


def _costliest(tape: Tape, name: str, branches: dict[str, Function], operands: Sequence[Any]) -> Any:
    """Return the result of the branch with the most work, and note the work of each branch."""
    works: dict[str, tuple[int, int]] = {}
    for label, branch in branches.items():
        with tape.on_trial() as calls:
            branch(*operands)
            works[label] = work_of(calls())
    chosen = max(works, key=lambda label: sum(works[label]))
    summary = "; ".join(
        f"{label}: {macs:,} MACs and {others:,} other operations" for label, (macs, others) in works.items()
    )
    tape.note(name, f"data chooses the branch, {chosen} is counted ({summary})")
    return branches[chosen](*operands)


def _while_loop(
    tape: Tape, condition: Function, body: Function, carried: Sequence[Any], more: Sequence[Any], **_named: Any
) -> tuple[Any, ...]:
    values = tuple(carried)
    while True:
        goes_on = condition(*values, *more)
        if not _is_known(goes_on):
            tape.note("while_loop", ONCE)
            return tuple(body(*values, *more))
        if not goes_on:
            return values
        values = tuple(body(*values, *more))


def _map(_tape: Tape, function: Function, slices: Sequence[Any], more: Sequence[Any], **_named: Any) -> Any:
    rows = [function(*(one[index] for one in slices), *more) for index in range(slices[0].shape[0])]
    return tree_map(lambda *parts: torch.stack(parts) if isinstance(parts[0], torch.Tensor) else parts[0], *rows)


def _scan(
    _tape: Tape, combine: Function, start: Sequence[Any], slices: Sequence[Any], more: Sequence[Any], **_n: Any
) -> tuple[Any, ...]:
    carried: tuple[Any, ...] = tuple(start)
    rows: list[Sequence[Any]] = []
    for index in range(slices[0].shape[0] if slices else 0):
        given = combine(*carried, *(one[index] for one in slices), *more)
        carried, row = tuple(given[: len(carried)]), given[len(carried) :]
        rows.append(row)
    return (*carried, *(torch.stack(parts) if parts[0] is not None else None for parts in zip(*rows, strict=True)))


def _flex_attention(
    tape: Tape,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Function,
    block_mask: Sequence[Any],
    _scale: float,
    _options: Any,
    score_buffers: Sequence[Any] = (),
    _mask_buffers: Sequence[Any] = (),
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Record one attention over all scores, including masked blocks, like
    `torch.nn.functional.scaled_dot_product_attention`.
    """
    with tape.on_trial() as calls:
        position = [torch.empty((), dtype=torch.int32, device="meta") for _ in range(4)]
        score_mod(torch.empty((), dtype=query.dtype, device="meta"), *position, *score_buffers)
        per_score = work_of(calls())[1]
    kept = describe_blocks(block_mask)
    if kept:
        tape.note("flex_attention", kept)
    out = torch.ops.aten.scaled_dot_product_attention.default(
        query, key, value, enable_gqa=query.shape[1] != key.shape[1]
    )
    tape.calls[-1].score_operations = per_score
    row_shape = query.shape[:-1]
    sums = tuple(torch.empty(row_shape, dtype=torch.float32, device=query.device) for _ in range(2))
    for one in sums:
        tape.add_product(one)
    return out, *sums


_HANDLERS: Final[dict[str, Callable[..., Any]]] = {
    "cond": _cond,
    "switch": _switch,
    "while_loop": _while_loop,
    "map_impl": _map,
    "scan": _scan,
    "flex_attention": _flex_attention,
}
