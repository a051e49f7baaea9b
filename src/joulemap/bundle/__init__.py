"""Packed data that predictions need without a database: built-in workloads, and chips as their runs use them."""

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.generated.bundle import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.bundle")
