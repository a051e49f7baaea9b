"""Data catalogue: hardware and energy reference tables, read from data files.

`data/hardware/*.toml` hold one chip each. `data/architecture/*.toml` hold the coefficients and energies per action of
one architecture class at their reference process node. `data/model/*.csv` list the named models. A chip is resolved
against its class: energies are scaled to its node, and its overrides are applied. The digest covers the resolved
record. `digest` and `sheet` import little; `load` imports cattrs.
"""

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.generated.catalog import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.catalog")
