"""Scan: tokens are taken one after the other into a state of heads, each of head_dim x state elements.

    mamba    S = exp(dt A) S + (dt B) x     a decay of each element
    mamba2   S = a S + (dt B) x             a decay of each head
    delta    S = a S + b k (v - S k)        and a correction by the current state

The result is S q of each head. For a few tokens, a kernel reads and writes the state element by element. A prompt is
cut into pieces, which are GEMMs: tokens of a piece see one another as in attention, and pieces pass on the state.
mamba has no such GEMMs, because its elements decay separately.

Source: Dao and Gu, arXiv 2405.21060 (pieces of mamba2); Yang et al., arXiv 2412.06464 (of the gated delta rule).
"""

from __future__ import annotations

from typing import Final

from joulemap.domain.operator.name import SingleOperator
from joulemap.physics.record.workload import FEW_TOKENS
from joulemap.trace.formula import Cost
from joulemap.trace.single.flow import Flow, Held, Parts, make_operator

PIECE: Final = 64
"""Tokens of a prompt that see one another before they enter the state. Source: as above; kernels take 64 to 256."""

OPERATIONS: Final = {"mamba": 5, "mamba2": 5, "delta": 7}
"""Operations per element of the state and token: decay, update and output; a correction takes two more."""


def scan_parts(operator: SingleOperator, batch: int) -> Parts:
    """Return the scan as one call, which reads values, keys and queries, and a state that it overwrites."""
    images, tokens, state = batch * operator.size("batch"), operator.size("tokens"), operator.size("state")
    heads, groups, width = operator.size("heads"), operator.size("groups"), operator.size("head_dim")
    kind, inner = str(operator.arguments["kind"]), heads * width
    rows = images * tokens
    rates = rows * (inner * state if kind == "mamba" else heads)
    x, held = Held((rows, inner + 2 * groups * state)), Held((images, heads, width, state))
    decay = Held((inner, state) if kind == "mamba" else (heads,), "decay")
    others = [Held((inner,), "skip")] if kind == "mamba" else [Held((heads,), "step_bias")]
    others += [Held((heads,), "skip")] if kind == "mamba2" else []
    if tokens <= FEW_TOKENS or kind == "mamba":
        count = OPERATIONS[kind] * rows * inner * state
        cost = Cost(kind="elementwise", operation="scan", elementwise_count=count, special_count=rates)
    else:
        piece = min(PIECE, tokens)
        seen = 2 if kind == "delta" else 1
        macs = rows * (seen * groups * state * piece + seen * inner * piece + 2 * inner * state)
        shape = piece, width, state, images * heads * -(-tokens // piece)
        cost = Cost(kind="matmul", operation="scan", mac_count=macs, gemm=shape, special_count=rates)
    result = Held((rows, inner))
    made = make_operator("scan.default", cost, result.shape, "scan")
    reads = (Flow(one, reader=0) for one in (x, held, decay, *others))
    return Parts((made,), (*reads, Flow(result, maker=0), Flow(held, maker=0)), "scan")
