"""Figures of answers: Vega-Lite specifications with their rows, and drawing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.generated.figure import *

    __all__: list[str]
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.figure")
