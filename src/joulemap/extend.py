"""Names for writing a wing: its registration, commands, options and the objects at its ports."""

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.generated.extend import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.extend")
