"""The choice of which sketch of an answer is drawn."""

from __future__ import annotations

from joulemap.domain.settings import ModelDivision, RunDivision
from joulemap.record import frozen


@frozen(kw_only=True)
class Choice:
    """What of an answer is drawn."""

    by: RunDivision | ModelDivision = "action"
    """The table that is shown, of answers that have several."""
    limit: int = 40
    """Rows that are drawn at most."""
