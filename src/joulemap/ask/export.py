"""Export one run as a file for another program."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, get_args

import attrs

from joulemap.ask.scope import Scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, PART_METRICS, PartMetricName
from joulemap.domain.printer import find_printer
from joulemap.domain.settings import ExportFormat, Settings, check_name
from joulemap.exchange.explorer import write_node_data
from joulemap.exchange.pprof import write_profile
from joulemap.exchange.subject import Subject
from joulemap.exchange.trace import write_trace
from joulemap.generated.analyze import RunTotal
from joulemap.generated.export import OperatorSpan, Sample
from joulemap.physics.record.runtime import RUNTIME
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_hardware, select_one
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import opening_runs
from joulemap.store.connection import Connection
from joulemap.store.query import fetch, stream
from joulemap.store.run import find_workload_of
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.resource import need_torch

if TYPE_CHECKING:
    from joulemap.construct.node import ProgramNode
    from joulemap.physics.record.hardware import Hardware
    from joulemap.plan.model import Model

COLUMN: Final[dict[PartMetricName, str]] = {
    "energy": "energy_j",
    "latency": "latency_s",
    "edp": "edp_share_js",
    "memory": "dram_bytes",
}
"""Metric -> field with its value in the rows of operators."""

SAVED: Final = "exported"
"""Kind of a model that was loaded from a saved program (`.pt2`)."""


@contextlib.contextmanager
def export(
    source: Source,
    model: str,
    hardware: str | Hardware,
    form: ExportFormat = "pprof",
    settings: Settings = SETTINGS,
    *,
    against: str | Hardware | None = None,
    metric: PartMetricName = "energy",
) -> Iterator[Iterator[bytes]]:
    """Yield an iterator over the bytes of a file with one run; it is valid only inside the context.

    `pprof` is a gzipped profile, or with `against` the difference to another chip; `perfetto` is a trace in JSON;
    `explorer` is the node data of a saved program in one metric. Raises like `analyze`; UsageError for node data of
    another kind of model, and for `against` with a format other than `pprof`.
    """
    check_name("export format", form, get_args(ExportFormat))
    check_name("metric", metric, PART_METRICS)
    settings.check_single("export")
    if against is not None and form != "pprof":
        raise UsageError(f"only pprof compares two chips, not {form}")
    asked = (hardware,) if against is None else (hardware, against)
    for one in asked:
        select_one(one, settings)
    plan = plan_selected((model,), settings, select_hardware(attrs.evolve(settings, hardware=asked)))
    is_saved = plan.models[0].request.kind == SAVED
    if form == "explorer" and not is_saved:
        raise UsageError(f"{model} is not a saved program: Model Explorer draws a .pt2 of torch.export.save")
    nodes = _find_nodes(plan.models[0], source) if is_saved and form != "perfetto" else ()
    with opening_runs(source, plan) as held:
        scope, connection, ids = Scope.of(held), held.connection, held.ids
        if scope.refused:
            raise UnsupportedError("; ".join(scope.refusals))
        totals = [fetch(connection, RunTotal, run_id=run_id)[0] for run_id in (ids[0], ids[-1])]
        subject, base = (
            Subject(
                model=total.model,
                hardware=total.hardware,
                title=find_printer().describe_run(total, scope),
                energy_fj=total.energy_fj,
                latency_fs=total.latency_fs,
                weight_bytes=total.weight_bytes,
            )
            for total in totals
        )
        spans = stream(connection, OperatorSpan, run_id=ids[0])
        if form == "explorer":
            name = f"{METRIC[metric].label} ({METRIC[metric].unit}) of {subject.title}"
            yield write_node_data(name, _sum_by_node(spans, nodes, metric))
        elif form == "perfetto":
            yield write_trace(subject, spans, _find_live_bytes(connection, ids[0], totals[0]))
        else:
            samples = _find_samples(connection, ids[0], nodes)
            others = None if against is None else (base, _find_samples(connection, ids[-1], nodes))
            yield write_profile(subject, samples, others)


def _find_nodes(model: Model, source: Source) -> tuple[ProgramNode, ...]:
    """Return the node of each operator of a saved program."""
    need_torch(f"tracing {model.request.model}")
    from joulemap.construct.node import find_nodes

    source.talk(f"tracing {model.request.model} …")
    return find_nodes(model.request)


def _find_samples(connection: Connection, run_id: int, nodes: tuple[ProgramNode, ...]) -> Iterator[Sample]:
    """Yield the profile samples of a run; for a saved program, each sample gets the module path of its operator."""
    for sample in stream(connection, Sample, run_id=run_id):
        yield sample.replace(module_path=nodes[sample.operator_index].module_path) if nodes else sample


def _sum_by_node(
    spans: Iterator[OperatorSpan], nodes: tuple[ProgramNode, ...], metric: PartMetricName
) -> dict[str, float]:
    """Return the metric of each node, in program order."""
    amounts: dict[str, float] = {}
    for span in sorted(spans, key=lambda span: span.operator_index):
        name = nodes[span.operator_index].name
        amounts[name] = amounts.get(name, 0.0) + getattr(span, COLUMN[metric])
    return amounts


def _find_live_bytes(connection: Connection, run_id: int, total: RunTotal) -> dict[int, int]:
    """Return operator -> maximum bytes of live activations since the previous operator.

    Values are scaled to the peak of the run, because hardware that splits a batch holds one part at a time.
    """
    from joulemap.physics.merge import build
    from joulemap.physics.width import Widths
    from joulemap.store.workload import read_columns

    work = build(read_columns(connection, find_workload_of(connection, run_id)), RUNTIME[total.runtime])
    is_fused = RUNTIME[total.runtime].merges
    live: list[float] = Widths(work, total.precision).live_bytes(is_fused=is_fused).tolist()
    operators: list[int] = work.active(is_fused=is_fused)[0].tolist()
    scale = total.activation_bytes / (max(live, default=0.0) or 1.0)
    return {
        operator: round(scale * max(live[before + 1 : operator + 1]))
        for before, operator in itertools.pairwise((-1, *operators))
    }
