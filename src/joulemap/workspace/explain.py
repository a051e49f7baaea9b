"""Why one run differs from another: every decomposition of a pair of stored runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from joulemap.catalog.sheet import find_notes
from joulemap.domain.answer.calibration import RunCalibration
from joulemap.domain.answer.explanation import (
    CategoryDifference,
    Constant,
    Effect,
    EnergyTerm,
    MetricTerm,
    RunPair,
    Setting,
    SubgraphDifference,
    Traffic,
)
from joulemap.errors import UnknownNameError, UnsupportedError
from joulemap.query.answer import DifferenceAnswer, ExplainAnswer
from joulemap.store.connection import Connection
from joulemap.store.library import find_query
from joulemap.store.query import find_projected, run_queries, run_query
from joulemap.store.read import find_refusals

if TYPE_CHECKING:
    from joulemap.store.query import Answer


def explain_pair(
    connection: Connection, run_a: int, run_b: int, metric: str, spelling: Mapping[str, str]
) -> ExplainAnswer:
    """Return why run B differs from run A in a metric; both are stored.

    Raises UnsupportedError where one was refused, or none of its operators runs as a kernel.
    """
    refusals = find_refusals(connection, [run_a, run_b])
    reasons = list(dict.fromkeys(reason for one in (run_a, run_b) if (reason := refusals[one]) is not None))
    if reasons:
        raise UnsupportedError("; ".join(reasons))
    sides = {"run_a": run_a, "run_b": run_b}
    asked: list[tuple[str, Mapping[str, object]]] = [
        ("explain.energy", sides),
        ("explain.total", sides),
        ("explain.effect", sides),
        ("explain.category", sides),
        ("explain.subgraph", {**sides, "metric": metric}),
        ("calibration.run", {"run_ids": [run_a, run_b]}),
    ]
    if metric != "energy":
        asked.append((f"explain.{metric}", sides))
    if metric == "memory":
        asked.append(("explain.traffic", sides))
    found = dict(zip((name for name, _ in asked), run_queries(connection, asked), strict=True))
    found["explain.total"] = find_projected(connection, found["explain.total"])
    total = RunPair(*found["explain.total"].rows[0])
    if total.energy_a_fj is None or total.energy_b_fj is None:
        raise UnsupportedError(f"{total.model}: none of its operators runs as a kernel, so there is nothing to explain")
    return ExplainAnswer(
        metric=metric,
        total=total,
        terms=tuple(EnergyTerm(*row) for row in found["explain.energy"].rows),
        metric_terms=tuple(MetricTerm(*row) for row in found[f"explain.{metric}"].rows) if metric != "energy" else (),
        effects=tuple(Effect(*row) for row in found["explain.effect"].rows),
        categories=tuple(CategoryDifference(*row) for row in found["explain.category"].rows),
        subgraphs=tuple(SubgraphDifference(*row) for row in found["explain.subgraph"].rows),
        traffic=tuple(Traffic(*row) for row in found["explain.traffic"].rows) if metric == "memory" else (),
        notes=find_notes((total.architecture_a, total.architecture_b)),
        calibrations=tuple(RunCalibration(*row) for row in found["calibration.run"].rows),
        spelling=spelling,
        answers=(found.pop("explain.total"), *found.values()),
    )


def find_difference(connection: Connection, run_a: int, run_b: int) -> DifferenceAnswer:
    """Return what differs between two stored runs, as `Workspace.difference` documents it."""
    refusals = find_refusals(connection, [run_a, run_b])
    for run_id in (run_a, run_b):
        if run_id not in refusals:
            raise UnknownNameError("run", str(run_id), (), "see `joulemap query run run.list`")
    sides = {"run_a": run_a, "run_b": run_b}
    setting = run_query(connection, find_query("run.setting"), sides)
    constant = run_query(connection, find_query("run.constant"), sides)
    explanation = None
    latency: Answer | None = None
    if all(refusal is None for refusal in refusals.values()):
        explanation = explain_pair(connection, run_a, run_b, "energy", {})
        latency = run_query(connection, find_query("explain.latency"), sides)
    return DifferenceAnswer(
        settings=tuple(Setting(*row) for row in setting.rows),
        constants=tuple(Constant(*row) for row in constant.rows),
        explanation=explanation,
        delays=tuple(MetricTerm(*row) for row in latency.rows) if latency else (),
        answers=(setting, constant, *(explanation.answers if explanation else ()), *((latency,) if latency else ())),
    )
