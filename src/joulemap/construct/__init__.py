"""Resolution of a request to a module and its inputs: torchvision, files, saved programs, in-memory modules.

Wings build the models that they name (`builder`). The key of a shipped workload does not depend on this package,
because `trace` and `fuse` decide what is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.generated.construct import *

    __all__: list[str]
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.construct")
