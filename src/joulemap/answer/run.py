"""One run, as answers about it tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from joulemap.answer.scope import Scope


@attrs.frozen
class RunRow:
    """A run as a whole. Energy and latency are per batch."""

    model: str
    hardware: str
    architecture: str
    batch: int
    precision: str
    runtime: str
    is_projection: bool
    energy_fj: int
    energy_j: float
    latency_fs: int
    latency_s: float
    edp_js: float
    subgraph_count: int
    operator_count: int
    run_id: int

    def title(self, scope: Scope) -> str:
        """Return model, hardware and configuration in a line."""
        return (
            f"{self.model} on {scope.mark(self.hardware)} ({self.architecture}), batch {self.batch}, {self.precision}, "
            f"{self.runtime}"
        )
