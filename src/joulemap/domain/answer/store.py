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
