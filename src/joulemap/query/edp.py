"""A run's energy-delay product taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from joulemap.domain.answer.comparison import Caveat
    from joulemap.domain.answer.edp import (
        EdpBound,
        EdpComparison,
        EdpCut,
        EdpOperatorShare,
        EdpPattern,
        EdpShare,
        EdpTotal,
    )
    from joulemap.store.query import Answer


@attrs.frozen(kw_only=True)
class EdpAnswer:
    """One run's energy-delay product: the shares of its subgraphs, and those of its operators, sum to it."""

    total: EdpTotal
    subgraphs: tuple[EdpShare, ...]
    """Largest share first."""
    operators: tuple[EdpOperatorShare, ...]
    """Largest share first."""
    cuts: tuple[EdpCut, ...]
    """Of subgraphs, then of operators."""
    patterns: tuple[EdpPattern, ...]
    """Largest share first."""
    bounds: tuple[EdpBound, ...]
    """Largest saving first."""
    comparison: tuple[EdpComparison, ...]
    """Subgraph by subgraph, the run itself first; empty where it was compared with nothing."""
    refusals: tuple[str, ...]
    """Why hardware that it was to be compared with cannot run it."""
    caveats: tuple[Caveat, ...]
    """What the trace had to assume or could not count."""
    spelling: Mapping[str, str]
    """Hardware as the answer names it -> as it must be asked for again, where that is a file."""
    answers: tuple[Answer, ...]
    """The queries behind it, with their SQL; the first one gave `total`."""
