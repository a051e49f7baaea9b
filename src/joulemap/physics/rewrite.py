"""Softmax and norms that a model writes operator by operator, as the one operator that a compiler makes of them.

A compiler writes the module as the same formula, so that both are one kernel. The last operator of the formula takes
the kind, the counts and the bytes of all; the others become views.

Source: torch/_decomp/decompositions.py (native_layer_norm) and torch/_inductor/decomposition.py (softmax), which
torch.compile applies before it fuses; fusions of layer norms of ONNX Runtime, OpenVINO and TensorRT (recalled).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from joulemap.physics.workload import KIND_CODE, ROLE_CODE, Integers, WorkloadColumns, sum_by

_ROOT: Final = r"add\+(?:sqrt\+div|rsqrt\+mul)(?:\+mul)?(?:\+add)?"
_FORMULAS: Final = (
    ("softmax", "softmax", r"(?:reduce\+sub\+)?exp\+reduce\+div"),
    ("normalization", "layer_norm", rf"reduce\+sub\+(?:pow|square|mul)\+reduce\+{_ROOT}"),
    ("normalization", "layer_norm", rf"(?:reduce\+)?(?:moment\+sub|sub\+moment)\+{_ROOT}"),
    ("normalization", "rms_norm", r"(?:pow|square|mul)\+reduce\+add\+(?:rsqrt\+mul|sqrt\+div)(?:\+mul)?"),
)
FORMULAS: Final = tuple((kind, name, rf"(?<![^+])(?:{text})(?![^+])") for kind, name, text in _FORMULAS)
"""(kind, operation, regular expression) of formulas; the expression matches operations joined by `+`."""

ROWS: Final = ("reduce", "moment")
"""Operations of which each formula has one at least."""


def join_formulas(work: WorkloadColumns) -> WorkloadColumns:
    """Return the workload in which each softmax or norm that is written out within a subgraph is one operator."""
    found = [*_find_formulas(work)]
    if not found:
        return work
    kind, operation, target = work.kind.copy(), work.operation.astype(object), np.arange(work.operator_count)
    for members, name, made in found:
        kind[members] = KIND_CODE["view"]
        kind[members[-1]], operation[members[-1]] = KIND_CODE[name], made
        target[members] = members[-1]
    owner = target[work.access_operator]
    simple, special = (sum_by(target, one, len(target)) for one in (work.elementwise_count, work.special_count))
    return attrs.evolve(
        work,
        kind=kind,
        operation=operation.astype(np.str_),
        elementwise_count=simple,
        special_count=special,
        access_operator=owner,
        access_bytes=np.where(owner != work.access_operator, work.access_fused_bytes, work.access_bytes),
    )


def _find_formulas(work: WorkloadColumns) -> Iterator[tuple[Integers, str, str]]:
    """Yield the operators of each formula with the kind and the operation of what they compute."""
    computes = ~work.is_view & ~work.is_foldable & (work.kernel_step_count == 1.0)
    reduces = computes & work.of_operation(*ROWS) & work.of_kind("reduction")
    if not (reduces & (work.output_element_count > 1.0)).any():
        return
    inner = (work.access_role == ROLE_CODE["output"]) & (work.access_fused_bytes == 0.0)
    hidden = np.bincount(work.access_operator[inner].astype(np.intp), minlength=work.operator_count) > 0
    rows = np.flatnonzero(computes & np.isin(work.subgraph_index, work.subgraph_index[reduces]))
    rows = rows[np.argsort(work.subgraph_index[rows], kind="stable")]
    for members in np.split(rows, np.flatnonzero(np.diff(work.subgraph_index[rows])) + 1):
        yield from _match(members, work.operation[members].tolist(), hidden.take(members).tolist())


def _match(members: Integers, operations: Sequence[str], hidden: Sequence[bool]) -> Iterator[tuple[Integers, str, str]]:
    text, done = "+".join(operations), 0
    for kind, operation, formula in FORMULAS:
        for match in re.finditer(formula, text):
            first, last = (text[:end].count("+") for end in match.span())
            if first >= done and all(hidden[first:last]):
                done = last + 1
                yield members[first : last + 1], kind, operation
