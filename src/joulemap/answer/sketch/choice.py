"""What of an answer is drawn."""

from __future__ import annotations

import attrs

from joulemap.domain.settings import ModelDivision, RunDivision


@attrs.frozen(kw_only=True)
class Choice:
    """What of an answer is drawn."""

    by: RunDivision | ModelDivision = "action"
    """The table that is shown, of answers that have several."""
    limit: int = 40
    """Rows that are drawn at most."""
