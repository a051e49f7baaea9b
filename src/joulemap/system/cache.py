"""Folder of the expendable cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CACHE: Final = "JOULEMAP_CACHE"
"""Environment variable that names another cache folder."""


def cache_folder() -> Path:
    """Return the cache folder: `$JOULEMAP_CACHE`, or joulemap's folder in the user's cache."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "joulemap"
