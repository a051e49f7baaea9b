"""Declared metrics, dimensions and measured columns: every column that a declaration names exists where it is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

import attrs
import pytest

from blank import open_blank
from joulemap.catalog.measurement import FIGURES
from joulemap.domain.dimension import Dimension, list_dimensions
from joulemap.domain.measurement import Measurement
from joulemap.domain.metric import METRIC, METRIC_NAMES, METRICS, PART_METRICS, RUN_METRICS, VARIED_METRICS, Metric
from joulemap.store.connection import Connection
from joulemap.store.library import find_query
from joulemap.system.resource import folder

NUMBERS = ("DOUBLE", "FLOAT", "BIGINT", "INTEGER", "HUGEINT", "DECIMAL")


@cache
def blank() -> Connection:
    return open_blank()


@cache
def columns(table: str) -> dict[str, str]:
    """Return column -> type of a table or view."""
    return {name: kind for name, kind, *_ in blank().execute(f"DESCRIBE {table}").fetchall()}


def find_wrong_metrics(metrics: Iterable[Metric]) -> Iterator[str]:
    """Yield where a metric's column is absent, is no number or has another unit."""
    answers = find_query("cube.cost")
    units = {column.name: column.unit for column in answers.columns}
    for one in metrics:
        views = ("run_figures", "runs") if one.is_of_runs else ()
        parts = ("subgraph_results", "operator_results") if one.name in PART_METRICS and one.name != "memory" else ()
        for view in (*views, *parts):
            if not columns(view).get(one.column, "").startswith(NUMBERS):
                yield f"{one.name}: {view} has no number {one.column}"
        if one.column not in units:
            yield f"{one.name}: {answers.name} has no column {one.column}"
        elif (units[one.column] or "1") != one.unit:
            yield f"{one.name}: {answers.name} has {one.column} in {units[one.column]}, not {one.unit}"
        if one.half_width_column and one.half_width_column not in columns("internal.run_total"):
            yield f"{one.name}: run_total has no column {one.half_width_column}"


def find_wrong_dimensions(dimensions: Iterable[Dimension]) -> Iterator[str]:
    """Yield where a dimension's column is absent from its table or from the views of runs."""
    listed = tuple(dimensions)
    for one in listed:
        if one.table != "dimensions" and one.name not in columns(f"internal.{one.table}"):
            yield f"{one.name}: the table {one.table} has no such column"
        for view in ("run_figures", "runs"):
            if one.view_column not in columns(view):
                yield f"{one.name}: {view} has no column {one.view_column}"
        if one.beside and one.beside not in {other.name for other in listed}:
            yield f"{one.name}: no dimension is called {one.beside}"
        if one.label and not one.label.endswith("{}"):
            yield f"{one.name}: its label does not end with {{}}"


def test_every_metric_is_a_column_wherever_runs_are_compared() -> None:
    assert list(find_wrong_metrics(METRICS)) == []
    forgotten = attrs.evolve(METRIC["power"], column="noise_db", unit="dB")
    assert len(list(find_wrong_metrics([forgotten]))) == 3
    elsewhere = attrs.evolve(METRIC["power"], unit="kW")
    assert len(list(find_wrong_metrics([elsewhere]))) == 1


def test_the_names_of_metrics_are_declared_once() -> None:
    assert tuple(METRIC) == METRIC_NAMES
    assert len({one.column for one in METRICS}) == len(METRICS)
    assert {*PART_METRICS, *VARIED_METRICS, *RUN_METRICS} <= set(METRIC)


def test_every_dimension_is_a_column_of_its_table_and_of_runs() -> None:
    assert list(find_wrong_dimensions(list_dimensions())) == []
    cases = [one.case for one in list_dimensions() if one.case]
    assert sorted(cases) == list(range(1, len(cases) + 1))
    forgotten = Dimension(name="noise", table="run", view="loudness", beside="sound", label="{} dB")
    assert len(list(find_wrong_dimensions([forgotten]))) == 5


@pytest.mark.wings
def test_a_lake_has_the_columns_of_a_database() -> None:
    views = (folder("schemas") / "lake" / "views.sql").read_text()
    points = views[views.index("VIEW points") :]
    named = {one.column for one in METRICS if one.is_of_runs and not one.formula}
    assert {name for name in named if not re.search(rf"\b(AS |p\.){name},", points)} == set()
    assert "{dimensions}," in points and "{metrics}," in points


def test_every_measured_value_is_a_column() -> None:
    fields = {field.name for field in attrs.fields(Measurement)}
    assert fields == columns("internal.measurement").keys() - {"measurement_id", "content_digest"}
    assert set(FIGURES) <= fields
