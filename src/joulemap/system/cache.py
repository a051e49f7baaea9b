"""The folder for what joulemap keeps to be faster, and can do without."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CACHE: Final = "JOULEMAP_CACHE"
"""Environment variable that names another folder."""


def cache_folder() -> Path:
    """Return where joulemap keeps what it can do without: `$JOULEMAP_CACHE`, or its folder under the user's cache."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "joulemap"
