"""Records that questions return: answers, the rows of their tables, their facts, and parts of models and runs."""

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.generated.records import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.records")
