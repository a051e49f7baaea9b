"""Questions as functions of the package, asked of a workspace that everybody in the program shares.

Its database is where the command line keeps its results: `$JOULEMAP_DB`, else `joulemap.duckdb` in the working
directory; `use` chooses another.
"""

from __future__ import annotations

import atexit
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final

from joulemap.domain.settings import DEFAULT_DATABASE
from joulemap.question import on_default
from joulemap.record import define
from joulemap.workspace import Workspace

if TYPE_CHECKING:
    from joulemap.answer.record import Run
    from joulemap.store.query import Rows


@define
class _Chosen:
    """The workspace that was chosen."""

    workspace: Workspace | None = None


_chosen: Final = _Chosen()


def use(path: str | Path | None) -> Workspace:
    """Ask the database at `path` from now on, one that ends with the program for None; return its workspace.

    Raises UsageError for a path that names a service.
    """
    if path is None:
        folder = mkdtemp(prefix="joulemap-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder) / DEFAULT_DATABASE
    workspace = _chosen.workspace = Workspace(path)
    return workspace


def default_workspace() -> Workspace:
    """Return the workspace that the functions of the package ask."""
    return _chosen.workspace or Workspace(os.environ.get("JOULEMAP_DB") or DEFAULT_DATABASE)


compare: Final = on_default(Workspace.compare, default_workspace)
compare_models: Final = on_default(Workspace.compare_models, default_workspace)
compare_runs: Final = on_default(Workspace.compare_runs, default_workspace)
compare_parts: Final = on_default(Workspace.compare_parts, default_workspace)
rank_hardware: Final = on_default(Workspace.rank_hardware, default_workspace)
analyze: Final = on_default(Workspace.analyze, default_workspace)
explain: Final = on_default(Workspace.explain, default_workspace)
export: Final = on_default(Workspace.export, default_workspace)
pareto: Final = on_default(Workspace.pareto, default_workspace)
plot: Final = on_default(Workspace.plot, default_workspace)
recommend: Final = on_default(Workspace.recommend, default_workspace)
report: Final = on_default(Workspace.report, default_workspace)
cost: Final = on_default(Workspace.cost, default_workspace)
edp: Final = on_default(Workspace.edp, default_workspace)
utilization: Final = on_default(Workspace.utilization, default_workspace)
sensitivity: Final = on_default(Workspace.sensitivity, default_workspace)
flip: Final = on_default(Workspace.flip, default_workspace)
sweep: Final = on_default(Workspace.sweep, default_workspace)
evaluate: Final = on_default(Workspace.evaluate, default_workspace)
operators: Final = on_default(Workspace.operators, default_workspace)
profile: Final = on_default(Workspace.profile, default_workspace)
compare_breakdowns: Final = on_default(Workspace.compare_breakdowns, default_workspace)
break_down: Final = on_default(Workspace.break_down, default_workspace)
fusion: Final = on_default(Workspace.fusion, default_workspace)
architectures: Final = on_default(Workspace.architectures, default_workspace)
workload: Final = on_default(Workspace.workload, default_workspace)


def run(run_id: int) -> Run:
    """Return a stored run as records, as `Workspace.run` does."""
    return default_workspace().run(run_id)


def sql(statement: str, parameters: Mapping[str, Any] | None = None) -> Rows:
    """Run one ad-hoc SELECT read-only, as `Workspace.sql` does."""
    return default_workspace().sql(statement, parameters)
