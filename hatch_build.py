"""Build hook that generates code, so that wheels and editable installations have the SQL, row types and stubs.

A wheel has the large tables of measurements compressed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STANDARD = "standard"
"""Version of a wheel that is installed as a copy. An editable installation reads the tables of its checkout."""


class GenerateCode(BuildHookInterface[Any]):
    """Generation of code into the package, before its files are collected."""

    packed: tuple[Path, ...] = ()
    """Tables that this build packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Generate the code of the tree that is built, with its own programs, and pack its tables for a wheel."""
        sys.path[:0] = [str(Path(self.root) / name) for name in ("src", "benchmarks")]
        from tools.generate import main
        from tools.pack import pack_tables

        main()
        if version == STANDARD:
            self.packed = pack_tables(Path(self.root))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the tables that this build packed."""
        for path in self.packed:
            path.unlink()
