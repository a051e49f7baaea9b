"""How well hardware is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from joulemap.domain.answer.comparison import Caveat
    from joulemap.domain.answer.utilization import Pairing, Utilization, UtilizationFlag
    from joulemap.store.query import Answer


@attrs.frozen(kw_only=True)
class UtilizationAnswer:
    """One workload on several hardware: how much of each it uses, and what is unhealthy about it."""

    model: str
    batch: int
    precision: str
    runtime: str
    rows: tuple[Utilization, ...]
    """Highest compute utilization first, unsupported ones last."""
    flags: tuple[UtilizationFlag, ...]
    """In the order that the hardware was asked for."""
    pairings: tuple[Pairing, ...]
    """Who wins among all stored runs of models of this size, at this precision; empty unless asked for."""
    caveats: tuple[Caveat, ...]
    """What the trace had to assume or could not count."""
    spelling: Mapping[str, str]
    """Hardware as the rows name it -> as it must be asked for again, where that is a file."""
    answers: tuple[Answer, ...]
    """The queries behind it, with their SQL."""
