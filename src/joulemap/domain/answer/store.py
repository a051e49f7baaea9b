"""What the database says of itself."""

from __future__ import annotations

import attrs


@attrs.frozen
class Finding:
    """A row of `audit.conservation`: a rule that the database breaks."""

    rule: str
    run_id: int
    place: str
    expected: str
    found: str


@attrs.frozen(kw_only=True)
class RunTally:
    """How many runs `Workspace.evaluate` was asked for, by what became of them."""

    stored_count: int
    """Stored before, evaluated or refused."""
    evaluated_count: int
    refused_count: int
    """Configurations that their hardware cannot run, stored with the reason."""

    @property
    def run_count(self) -> int:
        """All runs that were asked for; each is stored now."""
        return self.stored_count + self.evaluated_count + self.refused_count
