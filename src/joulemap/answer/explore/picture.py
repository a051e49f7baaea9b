"""Designs in two objectives: the front and its band, drawn as the figure of a front is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.computed import find_unknown, make_table, told
from joulemap.answer.explore.tell import describe_design
from joulemap.figure.figure import Figure, make_figure
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.design.outcome import Objective
    from joulemap.design.survey import Survey

LIKE: Final = "that cannot be told apart from the front at 80 %"


@frozen(kw_only=True)
class Dot:
    """A design as the figure of a front has it."""

    status: str = told("front, or dominated")
    hardware: str = told("the design")
    precision: str = told("that it runs at")
    batch: int = told("samples in one input")
    runtime: str = told("that launches its kernels")
    x_value: float = told("of the first objective")
    x_half_width: float | None = told("none: designs like one chip share it")
    y_value: float = told("of the second objective")
    y_half_width: float | None = told("none: designs like one chip share it")
    probability_front: float | None = told("none")
    dominated_by: str | None = told("why it has no name of its own")
    is_available: bool = told("whether it is a design")


def draw_designs(
    survey: Survey, records: Sequence[dict[str, Any]], objectives: Sequence[Objective], title: str, said: str
) -> tuple[Figure, ...]:
    """Return the front of two objectives and what cannot be told apart from it; nothing for one objective.

    `records` are the rows of an answer, `said` what is seen in them.
    """
    if len(objectives) < 2:
        return ()
    x, y = objectives[:2]
    rows = [_dot(survey, record, x, y) for record in records]
    texts = {**_tell(x, "x_"), **_tell(y, "y_"), "label": "{hardware}"}
    made = make_figure("pareto", make_table("designs", Dot, rows), title, said, texts)
    sketch = tuple({**one, "others": LIKE, "notes": ["letters: the front"]} for one in made.sketch)
    return (attrs.evolve(made, sketch=sketch),)


def _dot(survey: Survey, record: dict[str, Any], x: Objective, y: Objective) -> Dot:
    is_front = record["status"] == "front"
    found = {**find_unknown(Dot), **{name: record[name] for name in ("precision", "batch", "runtime")}}
    found |= {"x_value": record[x.column], "y_value": record[y.column], "dominated_by": None if is_front else LIKE}
    status, design = "front" if is_front else "dominated", describe_design(survey, record["design_index"])
    return Dot(**found, status=status, hardware=design, is_available=True)


def _tell(objective: Objective, prefix: str) -> dict[str, str]:
    """Return the texts of an objective along an axis, as those of a metric."""
    unit = objective.unit if objective.unit.isalpha() and objective.unit != "USD" else ""
    texts = {
        "quantity": objective.label,
        "title": f"{objective.label} ({objective.unit})",
        "unit": unit,
        "scale": objective.unit.replace("1/J", ""),
    }
    return {f"{prefix}{name}": text for name, text in texts.items()}
