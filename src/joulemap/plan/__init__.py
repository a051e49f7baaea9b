"""Planning of runs: settings become a list of runs, which are found in the database or evaluated and stored."""

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.generated.plan import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.plan")
