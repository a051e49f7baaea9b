"""Questions as facts: typed values, run ids and weights, without any text for people."""

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.generated.ask import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.ask")
