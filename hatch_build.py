"""Build hook that renders `queries/`, so that a wheel and an editable installation have the SQL that answers run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RenderQueries(BuildHookInterface[Any]):
    """Rendering of the queries into the package, before its files are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Render the queries of the tree that is built, with its own code."""
        sys.path.insert(0, str(Path(self.root) / "src"))
        from joulemap.tools.query import main

        main()
