"""Questions as they are declared where they are answered, made by `make rows`."""

from pathlib import Path

from joulemap.workspace import Workspace

_chosen: Workspace | None

def use(
    path: str | Path | None,
) -> Workspace:
    """Ask the database at `path` from now on, one that ends with the program for None; return its workspace.

    Raises UsageError for a path that names a service.
    """

def default_workspace() -> Workspace:
    """Return the workspace that the functions of the package ask."""

_asked: Workspace
explore = _asked.explore
explore_all = _asked.explore_all
compare = _asked.compare
compare_models = _asked.compare_models
report = _asked.report
compare_runs = _asked.compare_runs
compare_parts = _asked.compare_parts
compare_breakdowns = _asked.compare_breakdowns
rank_hardware = _asked.rank_hardware
analyze = _asked.analyze
break_down = _asked.break_down
explain = _asked.explain
sensitivity = _asked.sensitivity
flip = _asked.flip
architectures = _asked.architectures
contrast_phases = _asked.contrast_phases
pareto = _asked.pareto
plot = _asked.plot
recommend = _asked.recommend
cost = _asked.cost
place = _asked.place
llm = _asked.llm
offload = _asked.offload
fleet = _asked.fleet
train = _asked.train
modules = _asked.modules
watch = _asked.watch
evaluate = _asked.evaluate
run = _asked.run
workload = _asked.workload
operators = _asked.operators
profile = _asked.profile
edp = _asked.edp
fusion = _asked.fusion
utilization = _asked.utilization
sweep = _asked.sweep
sql = _asked.sql
verify = _asked.verify
diff = _asked.diff
export = _asked.export
