"""Names for the patterns of subgraphs: the operations of a kernel in order, with short names for known chains."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final

from joulemap.physics.fuse.group import ANCHORS
from joulemap.physics.record.workload import Operator, Subgraph

GATES: Final = frozenset({"sigmoid", "hardsigmoid"})
"""Operations that end a squeeze-and-excitation gate."""

_NORM: Final = r"(?:sqrt\+div|rsqrt\+mul)(?:\+mul)?(?:\+add)?"
_WRITTEN: Final = (
    ("layer_norm", rf"reduce\+sub\+(?:pow|square|mul)\+reduce\+(?:sub\+)?add\+{_NORM}"),
    ("layer_norm", rf"moment\+sub\+add\+{_NORM}"),
    ("layer_norm", r"reduce\+moment\+sub\+(?:mul\+)?add\+(?:sqrt\+)?div(?:\+add)?"),
    ("rms_norm", r"(?:pow|square|mul)\+reduce\+add\+(?:rsqrt\+mul|sqrt\+div)(?:\+mul)?"),
    ("softmax", r"(?:reduce\+sub\+)?exp\+reduce\+div"),
    ("gelu", r"(?:mul\+)?(?:pow|mul\+mul)\+mul\+add\+mul\+tanh\+add\+(?:mul\+)?mul"),
    ("gelu", r"(?:mul\+)?(?:div|mul)\+erf\+add\+mul(?:\+mul)?"),
    ("rotary", r"(?:mul\+)?neg\+cat\+(?:mul\+)?mul\+add"),
    ("rotary", r"mul\+mul\+sub\+mul\+mul\+add\+(?:cat|stack)"),
    ("swiglu", r"silu\+mul"),
)
CHAINS: Final = tuple((name, re.compile(rf"(?<![^+])(?:{chain})(?![^+])")) for name, chain in _WRITTEN)
"""(name, regular expression) of chains that models write operator by operator. The expression matches operations joined
by `+`.
"""

WORDS: Final = 6
"""Maximum number of operations in the name of a pattern."""


def describe(members: Sequence[Operator], indices: Sequence[int]) -> Subgraph:
    """Return a subgraph of these operators, named after its first GEMM, or else its first operator. `indices` are
    theirs.
    """
    computing = [member for member in members if not member.is_view]
    leaders = [member for member in computing if member.kind in ANCHORS] or computing or list(members)
    operations = [member.operation for member in computing] or ["view"]
    if members[0].kind == "reduction" and operations[-1] in GATES:
        pattern = "squeeze_excitation"
    elif operations.count("matmul") == 2 and "softmax" in operations:
        pattern = "attention"
    else:
        pattern = name_chain(tuple(operations))
    return Subgraph(
        pattern=pattern,
        name=leaders[0].name,
        operator_indices=tuple(indices),
        step_count=max(member.step_count for member in members),
    )


@lru_cache(maxsize=4096)
def name_chain(operations: tuple[str, ...]) -> str:
    """Return the name of a chain of operations: the operations joined by `+`, with known chains under their names.

    An operation that is repeated directly is named once. Operations beyond `WORDS` are only counted.
    """
    text = "+".join(operations)
    for name, chain in CHAINS:
        text = chain.sub(name, text)
    words = [word for word, _ in groupby(text.split("+"))]
    if len(words) > WORDS:
        return "+".join(words[: WORDS - 1]) + f"+{len(words) - WORDS + 1}_more"
    return "+".join(words)
