"""Predictions of latency, energy and memory of neural networks on chips, with their causes.

    import joulemap

    answer = joulemap.Workspace("results.duckdb").compare("resnet18")
    for row in answer.rows:
        print(row.hardware, row.energy_j, row.latency_s)

Here are the questions as functions, the workspace, the records that questions take, and the errors. Answers and their
rows are in `joulemap.records`, parts of chips in `joulemap.catalog`. Importing the package loads neither torch nor
duckdb; a question loads what it needs.
"""

from __future__ import annotations

from joulemap.system import make_lookup as _make_lookup, printers as _printers

TYPE_CHECKING = False

if TYPE_CHECKING:
    from joulemap.domain.printer import Printer as _Printer
    from joulemap.generated.package import *

    __all__: list[str]
    __version__: str
else:
    _find, __dir__ = _make_lookup(__name__, "joulemap.generated.package")

    def __getattr__(name):
        if name == "__version__":
            from importlib.metadata import version

            return version("joulemap")
        return _find(name)


def _load_printer() -> _Printer:
    from joulemap.show import view

    return view


_printers[:] = [_load_printer]
