"""Pipelines at their frame rate: time and power of each chip, and the stage that takes most of a frame's time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from joulemap.domain import Table
from joulemap.generated.recommend import RankedConfiguration
from joulemap.plan import Plan, Source, opening_runs, plan_selected
from joulemap.store import fetch
from joulemap.system import frozen
from joulemap.wing.pipeline.generated.row import StageTime
from joulemap.wing.pipeline.pipeline_name import is_pipeline
from joulemap.wing.pipeline.stage import Pipeline, read_pipeline

Place = tuple[str, str, int, str]
"""Hardware, precision, batch and runtime of a run."""


@frozen(kw_only=True)
class Busiest:
    """Stage of a pipeline that takes most of a frame's time on one chip."""

    model: str
    latency_fraction: float
    """Share of this stage in the time of all stages, each evaluated alone."""


@frozen(kw_only=True)
class Paced:
    """Runs of a pipeline at its frame rate."""

    rate_per_s: float
    rows: Table[RankedConfiguration]
    busiest: Mapping[Place, Busiest]

    def records(self) -> list[dict[str, Any]]:
        """Return the rows for machine formats, each with its busiest stage."""
        return [
            {
                "hardware": row.hardware,
                "precision": row.precision,
                "batch": row.batch,
                "runtime": row.runtime,
                "utilization_fraction": self.measure_utilization(row),
                "latency_s": row.latency_s,
                "total_power_w": row.total_power_w,
                "busiest_stage": None if (one := self.find_busiest(row)) is None else one.model,
                "busiest_fraction": None if one is None else one.latency_fraction,
                "run_id": row.run_id,
            }
            for row in self.rows
        ]

    def measure_utilization(self, row: RankedConfiguration) -> float | None:
        """Return the rate divided by the throughput, above 1 if the chip cannot keep up; None if unknown."""
        return None if row.throughput_per_s is None else self.rate_per_s / row.throughput_per_s

    def find_busiest(self, row: RankedConfiguration) -> Busiest | None:
        """Return the busiest stage of a run; None if unknown."""
        return self.busiest.get(place_run(row))


def place_run(row: RankedConfiguration | StageTime) -> Place:
    """Return hardware, precision, batch and runtime of a run, the key that runs of its stages share."""
    return row.hardware, row.precision, row.batch, row.runtime


def find_paced(model: str) -> Pipeline | None:
    """Return the pipeline of a name that states a frame rate; None for any other name.

    Raise UsageError for the name of a pipeline that cannot be parsed.
    """
    pipeline = read_pipeline(model) if is_pipeline(model) else None
    return pipeline if pipeline is not None and pipeline.frames_per_s else None


def pace(source: Source, plan: Plan, pipeline: Pipeline) -> Paced:
    """Return the runs of a pipeline's plan at its frame rate."""
    rate_per_s = pipeline.frames_per_s
    with opening_runs(source, plan, needs_catalogue=True, has_ledger=False) as runs:
        rows = fetch(
            runs.connection, RankedConfiguration, run_ids=list(runs.ids), rate_per_s=rate_per_s, takes_all=True
        )
    return Paced(rate_per_s=rate_per_s, rows=rows, busiest=_find_busiest(source, plan, pipeline))


def _find_busiest(source: Source, plan: Plan, pipeline: Pipeline) -> dict[Place, Busiest]:
    """Return the busiest stage of a pipeline for each configuration of a plan on which every stage runs.

    Each stage is evaluated alone; its time is its latency times its runs per frame.
    """
    seconds: dict[Place, dict[str, float]] = {}
    for stage in pipeline.stages:
        alone = plan_selected((stage.model,), plan.settings, plan.selection)
        with opening_runs(source, alone, has_ledger=False) as runs:
            for row in fetch(runs.connection, StageTime, run_ids=list(runs.ids)):
                stage_s = seconds.setdefault(place_run(row), {})
                stage_s[stage.model] = stage_s.get(stage.model, 0.0) + row.latency_s * stage.count
    names = {stage.model for stage in pipeline.stages}
    return {run_key: _choose(stage_s) for run_key, stage_s in seconds.items() if stage_s.keys() == names}


def _choose(seconds: Mapping[str, float]) -> Busiest:
    model = max(seconds, key=lambda name: seconds[name])
    return Busiest(model=model, latency_fraction=seconds[model] / sum(seconds.values()))
