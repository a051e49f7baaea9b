"""Questions as functions of the package, all answered by one workspace.

Its database is where the command line keeps its results: `$JOULEMAP_DB`, else `joulemap.duckdb` in the working
directory; `use` chooses another. The stub, which `make rows` writes, declares each question with its signature.
"""

from __future__ import annotations

import atexit
import os
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from joulemap.question import Question
from joulemap.system.config import DEFAULT_DATABASE
from joulemap.workspace import Workspace

_chosen: Workspace | None = None


def use(path: str | Path | None) -> Workspace:
    """Use the database at `path` from now on, or a temporary one for None; return its workspace.

    Raises UsageError for a path that names a service.
    """
    if path is None:
        folder = mkdtemp(prefix="joulemap-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder) / DEFAULT_DATABASE
    global _chosen
    _chosen = Workspace(path)
    return _chosen


def default_workspace() -> Workspace:
    """Return the workspace that the functions of the package use."""
    return _chosen or Workspace(os.environ.get("JOULEMAP_DB") or DEFAULT_DATABASE)


if TYPE_CHECKING:
    from joulemap.generated.shortcut import *
else:

    def __getattr__(name):
        question = vars(Workspace).get(name)
        if not isinstance(question, Question) or not question.is_shared:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals().setdefault(name, question.share(default_workspace))
