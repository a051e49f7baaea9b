"""Domain records: frozen, with no behaviour beyond their invariants and derived properties."""

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.generated.domain import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.domain")
