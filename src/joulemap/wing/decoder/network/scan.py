"""Recurrent mixers with a fixed-size state: the GEMMs, the convolution and the norms around a scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.trace.formula import Cost
from joulemap.trace.single.flow import ITEM_BYTES

if TYPE_CHECKING:
    from joulemap.wing.decoder.network.config import Recurrence
    from joulemap.wing.decoder.network.graph import Read
    from joulemap.wing.decoder.network.row import Pass, Piece


def recur(one: Pass, path: str, mixer: Recurrence, x: int) -> int:
    """Add a recurrence for the heads of a device; return the output tensor."""
    hidden, rows = one.decoder.hidden, one.count
    heads, groups = one.step.queries(mixer.heads, mixer.groups), one.step.part(mixer.groups)
    inner, keys = heads * mixer.head_dim, groups * mixer.state
    wide = inner if mixer.kind in ("mamba", "conv") else inner + 2 * keys
    if mixer.kind == "conv":
        return _mix_near(one, path, mixer, x, inner)
    if mixer.kind == "mamba":
        mixed = one.linear(f"{path}.in_proj", x, 2 * inner, hidden, bias=mixer.bias)
        gate = mixed
    elif mixer.kind == "mamba2":
        mixed = gate = one.linear(f"{path}.in_proj", x, inner + wide + heads, hidden, bias=mixer.bias)
    else:
        mixed = one.linear(f"{path}.in_proj_qkv", x, wide, hidden)
        gate = one.linear(f"{path}.in_proj_z", x, inner, hidden)
        one.linear(f"{path}.in_proj_b", x, heads, hidden)
        one.linear(f"{path}.in_proj_a", x, heads, hidden)
    turned = [_convolve(one, path, mixer, piece, mixed, wide) for piece in one.pieces]
    more: tuple[int, ...] = ()
    if mixer.kind == "mamba":
        more = _decide(one, path, mixer, turned, inner)
    results = [_scan(one, path, mixer, piece, (conv, *more)) for piece, conv in zip(one.pieces, turned, strict=True)]
    if mixer.kind != "mamba" and mixer.has_output_norm:
        group = mixer.head_dim if mixer.kind == "delta" else inner
        normal = one.graph.run(f"{path}.norm", "rms_norm", results, rows=rows * inner // group, columns=group)
        results = [normal]
    count = rows * inner
    reads: tuple[Read, ...] = (*results, (gate, ITEM_BYTES * count))
    opened = one.compute(path, "gated", reads, (rows, inner), 4 * count, count, suffix="gate")
    return one.linear(f"{path}.out_proj", opened, hidden, inner, bias=mixer.bias)


def _mix_near(one: Pass, path: str, mixer: Recurrence, x: int, inner: int) -> int:
    """Add a convolution over the last few tokens, gated before and after (LFM2); return the output tensor."""
    count, hidden = one.count * inner, one.decoder.hidden
    mixed = one.linear(f"{path}.in_proj", x, 3 * inner, hidden, bias=mixer.bias)
    part, shape = ITEM_BYTES * count, (one.count, inner)
    opened = one.compute(path, "gated", ((mixed, 2 * part),), shape, count, suffix="gate_before")
    turned = [_convolve(one, path, mixer, piece, opened, inner) for piece in one.pieces]
    closed = one.compute(path, "gated", (*turned, (mixed, part)), shape, count, suffix="gate")
    return one.linear(f"{path}.out_proj", closed, hidden, inner, bias=mixer.bias)


def _convolve(one: Pass, path: str, mixer: Recurrence, piece: Piece, mixed: int, wide: int) -> int:
    """Add the convolution over the last few tokens of each channel; return its tensor.

    The call overwrites the tail that each sequence stores. Without taps, only the activation remains.
    """
    rows, is_active = piece.count, mixer.kind != "conv"
    own: Read = mixed, ITEM_BYTES * rows * wide
    if not mixer.kernel:
        return one.compute(path, "silu", (own,), (rows, wide), 3 * rows * wide, rows * wide, suffix=piece.call("act"))
    weights = [one.graph.weigh(f"{path}.conv1d.weight", (wide, 1, mixer.kernel))]
    if mixer.conv_bias:
        weights.append(one.graph.weigh(f"{path}.conv1d.bias", (wide,)))
    tail = one.graph.enter((piece.sequences, wide, mixer.kernel - 1))
    cost = Cost(
        kind="depthwise_conv",
        operation="conv1d",
        mac_count=rows * wide * mixer.kernel,
        elementwise_count=rows * wide * (3 * is_active + mixer.conv_bias),
        special_count=rows * wide * is_active,
        gemm=(rows, 1, mixer.kernel, wide),
        tap_count=mixer.kernel,
    )
    made = one.graph.call(
        f"{path}.conv1d", cost, (own, tail, *weights), (rows, wide), suffix=piece.name, aten="conv1d.default"
    )
    one.graph.overwrite(tail)
    return made


def _decide(one: Pass, path: str, mixer: Recurrence, turned: list[int], inner: int) -> tuple[int, ...]:
    """Add the keys, queries and decay rates that Mamba computes from the convolution; return (keys and queries, decay
    rates).
    """
    rows, rank = one.count, mixer.rank
    small = one.linear(f"{path}.x_proj", turned, rank + 2 * mixer.state, inner)
    small = one.sum_up(f"{path}.x_proj", small, rank + 2 * mixer.state)
    rate = small
    if mixer.has_norms:
        for name, width in (("dt", rank), ("b", mixer.state), ("c", mixer.state)):
            made = one.scale(path, small, rows, width, suffix=f"norm_{name}")
            rate = made if name == "dt" else rate
    rate = one.linear(f"{path}.dt_proj", rate, inner, rank, bias=True)
    return small, rate


def _scan(one: Pass, path: str, mixer: Recurrence, piece: Piece, inputs: tuple[int, ...]) -> int:
    heads, groups = one.step.queries(mixer.heads, mixer.groups), one.step.part(mixer.groups)
    state = one.graph.enter((piece.sequences, heads, mixer.head_dim, mixer.state))
    taken: tuple[Read, ...] = (inputs[0],)
    keys = ITEM_BYTES * piece.count * 2 * groups * mixer.state
    if len(inputs) > 1:
        taken = (inputs[0], (inputs[1], keys))
    return one.graph.run(
        path,
        "scan",
        (*taken, state),
        suffix=piece.call("scan"),
        beside=inputs[2:],
        kind=mixer.kind,
        batch=piece.sequences,
        tokens=piece.tokens,
        heads=heads,
        head_dim=mixer.head_dim,
        state=mixer.state,
        groups=groups,
    )
