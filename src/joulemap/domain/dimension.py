"""Dimensions of a configuration, each declared once.

The row of a dimension determines its column in the views and its part of a run's label and key. It determines the
settings and options that set the dimension, and whether prediction errors are grouped by it. `docs/design.md` lists the
files that a new dimension touches.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final, Literal, NamedTuple

from joulemap.physics.record.runtime import USUAL_RUNTIME
from joulemap.system.wing import find_parts


class Dimension(NamedTuple):
    """One property of a run that distinguishes it from other runs, such as its batch size."""

    name: str
    """Column name; for a dimension that a question can set, also the field of `Settings`, the keyword and the
    option."""
    table: Literal["workload", "hardware_version", "run", "dimensions"]
    """Table that has the column. For `dimensions`, the value is an entry of the map `dimensions` in the table of
    workloads.
    """
    view: str = ""
    """View column that shows the dimension; empty for `name`."""
    shown: str = ""
    """SQL expression of the view column; empty if the view shows the table's column as it is."""
    label: str = ""
    """Text in a run's label, ending with `{}` for the value; empty if there is none."""
    beside: str = ""
    """Dimension after whose label this label is written without a space, such as `hardware` for a power mode."""
    usual: str = ""
    """SQL expression of the default value; labels omit it."""
    case: int = 0
    """Position in the key that groups prediction errors, from 1. It is 0 if errors do not depend on the dimension, or
    if the label of another dimension contains it.
    """
    is_asked: bool = False
    """True if a question may list several values, with one run planned for each."""
    is_swept: bool = False
    """True if a sweep varies the dimension within one series."""
    values: tuple[str, ...] = ()
    """Values that a question may set, the default first; the field of `Settings` and the option are derived from them.
    Empty for a dimension that no question sets, or whose field and option are declared elsewhere.
    """
    help: str = ""
    """Description of the option in help."""
    meaning: str = ""
    """Comment of the view column; empty if `schemas/surface/columns.toml` has it."""

    @property
    def column(self) -> str:
        """SQL expression of the value over the tables r (run), w (workload) and v (hardware version).

        A dimension of a wing (an optional part of joulemap) is an empty text at its default value.
        """
        if self.table == "dimensions":
            return f"coalesce(w.dimensions['{self.name}'], '')"
        return f"{'v' if self.table == 'hardware_version' else self.table[0]}.{self.name}"

    @property
    def view_column(self) -> str:
        """Column name in the views."""
        return self.view or self.name


DIMENSIONS: Final = (
    Dimension(name="model", table="workload"),
    Dimension(name="input_spec", table="workload", view="input_shape", shown="w.input_shape", is_swept=True),
    Dimension(name="source", table="workload", view="model_arguments", shown="model_arguments(w.source)"),
    Dimension(name="hardware", table="hardware_version", label="{}", is_swept=True),
    Dimension(name="power_mode", table="run", label="@{}", beside="hardware", usual="'default'", is_swept=True),
    Dimension(name="precision", table="run", label="{}", case=2, is_asked=True),
    Dimension(
        name="weight_precision", table="run", label="/{}", beside="precision", usual="r.precision", is_asked=True
    ),
    Dimension(name="batch", table="run", label="batch {}", case=1, is_swept=True),
    Dimension(name="runtime", table="run", label="{}", usual=f"'{USUAL_RUNTIME}'", case=3, is_asked=True),
    Dimension(name="boundary", table="hardware_version"),
    Dimension(name="host", table="hardware_version"),
    Dimension(name="matmul_precision", table="hardware_version", label="matmul {}", usual="'default'"),
)
"""Dimensions of the core, in the order of view columns and label parts."""

PORT: Final = "dimensions"
"""Extension point at which a wing registers a function that returns the dimensions that it adds."""


@cache
def list_dimensions() -> tuple[Dimension, ...]:
    """Return the dimensions of the core and of all wings."""
    return (*DIMENSIONS, *(one for declare in find_parts(PORT) for one in declare()))


DECLARED: Final = tuple(one for one in DIMENSIONS if one.values)
"""Dimensions of the core with listed values, so that setting and option are derived from them."""

ASKED: Final = tuple(one.name for one in DIMENSIONS if one.is_asked)
"""Names of the dimensions of which a question may list several values, such as precision."""

DISTINGUISHING: Final = tuple(
    dict.fromkeys(
        name for one in DIMENSIONS for name in ((one.name, one.view_column, "label", "device_count")
        if one.name == "hardware" else (one.name, one.view_column))
    )
)  # fmt: skip
"""Fields of a row that show its configuration: dimensions, their columns in views, a label and a device count."""


def fill_views(sql: str) -> str:
    """Return SQL of views with its placeholders filled in: columns of metrics with a formula, columns and labels of
    dimensions, and keys of the newest run.
    """
    from joulemap.domain.metric import METRICS  # only a database that is opened anew needs it

    labels, known = spell_labels(), list_dimensions()
    sql = (
        sql.replace("{dimensions}", _list(f"{one.shown or one.column} AS {one.view_column}" for one in known))
        .replace("r.{dimension}", _list(f"r.{one.view_column}" for one in known))
        .replace("{metrics}", _list(f"{one.formula} AS {one.column}" for one in METRICS if one.formula))
        .replace("{labels}", _list(f"{text} AS {name}" for name, text in labels.items()))
        .replace("{newest}", ", ".join(one.column for one in known))
        .replace("{settings}", _list(map(_spell_setting, known)))
    )
    for name, text in labels.items():
        sql = sql.replace(f"{{{name}}}", text)
    return sql


def _list(texts: Iterable[str]) -> str:
    return ",\n    ".join(texts)


def spell_labels() -> dict[str, str]:
    """Return label column -> SQL expression over the tables r (run), w (workload) and v (hardware version)."""
    cases = sorted((one for one in list_dimensions() if one.case), key=lambda one: one.case)
    alike = (_spell_group(one) if _list_beside(one) else one.column for one in cases)
    labels = (_spell_group(one) for one in list_dimensions() if one.label and not one.beside)
    apart = (
        f"nullif({one.column}, '')" if one.table == "dimensions" else one.column
        for one in list_dimensions()
        if not one.is_swept
    )
    groups = {one.name: _spell_group(one) for one in list_dimensions() if _list_beside(one)}
    return {
        "configured_hardware": groups["hardware"],
        "precision_label": groups["precision"],
        "label": f"concat_ws(' ', {', '.join(labels)})",
        "error_case": f"concat_ws(' ', {', '.join(alike)})",
        "series": f"concat_ws('|', {', '.join(apart)})",
    }


def _spell_setting(dimension: Dimension) -> str:
    """Return SQL for a struct of a dimension's name and its value as text. The value is empty if it equals another
    dimension that is its default.
    """
    text = f"CAST({dimension.column} AS VARCHAR)"
    if dimension.usual in {one.column for one in list_dimensions()}:
        text = f"CASE WHEN {dimension.column} = {dimension.usual} THEN '' ELSE {text} END"
    return f"{{'setting': '{dimension.name}', 'value': {text}}}"


def _list_beside(dimension: Dimension) -> list[Dimension]:
    return [one for one in list_dimensions() if one.beside == dimension.name]


def _spell_group(dimension: Dimension) -> str:
    """Return SQL for the joined labels of a dimension and those attached to it (`beside`). A dimension with a default
    gives null in place of an empty text.
    """
    text = " || ".join(_spell(one) for one in (dimension, *_list_beside(dimension)))
    return f"nullif({text}, '')" if dimension.usual else text


def _spell(dimension: Dimension) -> str:
    before = dimension.label.removesuffix("{}")
    text = f"'{before}' || {dimension.column}" if before else dimension.column
    return f"CASE WHEN {dimension.column} = {dimension.usual} THEN '' ELSE {text} END" if dimension.usual else text
