"""What a trace had to assume, or could not count."""

from __future__ import annotations

import attrs


@attrs.frozen
class Caveat:
    """A row of `model.caveat`: something the trace had to assume, or could not count."""

    kind: str
    """`uncounted` or `assumed`."""
    text: str
    operator_count: int | None
