"""What tells runs apart: each dimension of a configuration, once.

From its row follow its column in every view with runs, what it says in the label of a run, whether errors of
predictions differ with it, which run is the newest of a configuration, the key that a run is stored under, what a
question takes one value of, and the options that a follow-up command repeats. `docs/design.md` says what a new one
touches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple


class Dimension(NamedTuple):
    """One dimension of what is run."""

    name: str
    """Its column; where it is asked for the field of `Settings`, the keyword and the option."""
    table: Literal["workload", "hardware_version", "run"]
    """That has the column."""
    view: str = ""
    """Name of the column of views that shows it; its own where this is empty."""
    shown: str = ""
    """SQL of that column; its own column where this is empty."""
    label: str = ""
    """What it says in the label of a run, ending with `{}` for the value; nothing where this is empty."""
    beside: str = ""
    """The dimension that it is said right behind."""
    usual: str = ""
    """SQL of the value that a label does not say."""
    case: int = 0
    """Its place in what errors of predictions are alike in; 0 where it makes no difference, or is said behind one."""
    is_asked: bool = False
    """Whether a run is planned for each of several values."""
    is_swept: bool = False
    """Whether a sweep goes along it, and does not keep its values apart."""

    @property
    def column(self) -> str:
        """Its column in the tables r (run), w (workload) and v (hardware version)."""
        return f"{'v' if self.table == 'hardware_version' else self.table[0]}.{self.name}"

    @property
    def view_column(self) -> str:
        """Its column in the views."""
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
    Dimension(name="runtime", table="run", label="{}", usual="'fused'", case=3, is_asked=True),
    Dimension(name="boundary", table="hardware_version"),
    Dimension(name="host", table="hardware_version"),
    Dimension(name="tf32", table="hardware_version", is_swept=True),  # follows from the hardware and the precision
)
"""In the order of the views' columns and of what a label says."""

ASKED: Final = tuple(one.name for one in DIMENSIONS if one.is_asked)
"""Of a run, beside its workload and hardware."""

TELLING: Final = tuple(
    dict.fromkeys(
        name for one in DIMENSIONS for name in ((one.name, one.view_column, "label", "device_count")
        if one.name == "hardware" else (one.name, one.view_column))
    )
)  # fmt: skip
"""Fields of rows that tell configurations apart: the dimensions, their columns in views, a label and a device count."""


def fill_dimensions(sql: str) -> str:
    """Return SQL of views with the dimensions in it: their columns, labels, and what a newest run is of."""
    labels = spell_labels()
    sql = (
        sql.replace("{dimensions}", _list(f"{one.shown or one.column} AS {one.view_column}" for one in DIMENSIONS))
        .replace("r.{dimension}", _list(f"r.{one.view_column}" for one in DIMENSIONS))
        .replace("{labels}", _list(f"{text} AS {name}" for name, text in labels.items()))
        .replace("{newest}", ", ".join(one.column for one in DIMENSIONS))
        .replace("{settings}", _list(map(_spell_setting, DIMENSIONS)))
    )
    for name, text in labels.items():
        sql = sql.replace(f"{{{name}}}", text)
    return sql


def _list(texts: Iterable[str]) -> str:
    return ",\n    ".join(texts)


def spell_labels() -> dict[str, str]:
    """Return name -> SQL of what runs are called by, of the tables r (run), w (workload) and v (hardware version)."""
    cases = sorted((one for one in DIMENSIONS if one.case), key=lambda one: one.case)
    alike = (_spell_group(one) if _list_beside(one) else one.column for one in cases)
    said = (_spell_group(one) for one in DIMENSIONS if one.label and not one.beside)
    groups = {one.name: _spell_group(one) for one in DIMENSIONS if _list_beside(one)}
    return {
        "configured_hardware": groups["hardware"],
        "precision_label": groups["precision"],
        "label": f"concat_ws(' ', {', '.join(said)})",
        "error_case": f"concat_ws(' ', {', '.join(alike)})",
        "series": f"concat_ws('|', {', '.join(one.column for one in DIMENSIONS if not one.is_swept)})",
    }


def _spell_setting(dimension: Dimension) -> str:
    """Return SQL of a dimension with its value as a text; empty where it is that of another dimension, as usual."""
    text = f"CAST({dimension.column} AS VARCHAR)"
    if dimension.usual in {one.column for one in DIMENSIONS}:
        text = f"CASE WHEN {dimension.column} = {dimension.usual} THEN '' ELSE {text} END"
    return f"{{'setting': '{dimension.name}', 'value': {text}}}"


def _list_beside(dimension: Dimension) -> list[Dimension]:
    return [one for one in DIMENSIONS if one.beside == dimension.name]


def _spell_group(dimension: Dimension) -> str:
    """Return SQL of what a dimension, and those said right behind it, say in a label; null for nothing."""
    text = " || ".join(_spell(one) for one in (dimension, *_list_beside(dimension)))
    return f"nullif({text}, '')" if dimension.usual else text


def _spell(dimension: Dimension) -> str:
    before = dimension.label.removesuffix("{}")
    text = f"'{before}' || {dimension.column}" if before else dimension.column
    return f"CASE WHEN {dimension.column} = {dimension.usual} THEN '' ELSE {text} END" if dimension.usual else text
