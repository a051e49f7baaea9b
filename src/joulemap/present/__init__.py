"""Render documents as table, json, csv, markdown and html; SQL and arithmetic do not belong here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.generated.present import *

    __all__: list[str]
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.present")
