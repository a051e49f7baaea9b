"""DuckDB storage: open, migrate, write and read databases. Only this package depends on the database engine."""

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.generated.store import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.store")
