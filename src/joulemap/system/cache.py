"""Cache folder, which may be deleted at any time, and its JSON files."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from joulemap.system.draft import drafting

CACHE: Final = "JOULEMAP_CACHE"
"""Environment variable that names the cache folder."""


def cache_folder() -> Path:
    """Return the cache folder: `$JOULEMAP_CACHE`, or joulemap's folder in the user's cache."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "joulemap"


def read_cached(path: Path) -> dict[str, Any]:
    """Return the JSON object in a cache file; empty if the file is missing or holds anything else."""
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict):
            return content
    return {}


def write_cached(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a cache file by a JSON object, as a whole; do nothing if the folder cannot be written."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with drafting(path.parent) as draft:
            (draft / path.name).write_text(json.dumps(content), encoding="utf-8")
            (draft / path.name).replace(path)
