"""Words for facts, and documents and figures of answers: the only English of an answer."""

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.generated.show import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.show")
