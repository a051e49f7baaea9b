"""A figure: a specification with the rows that it draws, and how it is drawn."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any, Final

from joulemap.domain.metric import Metric
from joulemap.domain.table import Table
from joulemap.figure.convert import is_installed, to_png, to_svg
from joulemap.figure.spec import DrawingName, ShownName, Spec, find_spec
from joulemap.present.cell import plain
from joulemap.present.text import make_visible
from joulemap.system.record import frozen


@frozen(kw_only=True, repr=False)
class Drawing:
    """What is drawn of an answer in characters, with the table behind it."""

    table: Table[Any]
    """The rows behind it, with every column."""
    sketch: tuple[dict[str, Any], ...]
    """How it is drawn in characters, as `joulemap.figure.sketch` reads it."""


@frozen(kw_only=True, repr=False)
class Figure(Drawing):
    """What is drawn of an answer, with the table behind it."""

    name: ShownName
    version: int
    """Of the specification."""
    title: str
    finding: str
    """What is seen in it, in sentences."""
    reading: str
    """How it is read."""
    query: str
    """`topic.name@version`, or what computes its rows."""
    spec: dict[str, Any]
    """Vega-Lite with its data."""

    @property
    def description(self) -> str:
        """Alternative text: what is seen in it, then how it is read."""
        return " ".join(filter(None, (self.finding, self.reading)))

    def __repr__(self) -> str:
        return f"{self.title}\n{self.description}\n{self.table!r}"

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it: drawn, with its first rows below; those alone without what draws."""
        rows = self.table._repr_html_()
        if not is_installed():
            return f"<p>{html.escape(self.title)}</p>{rows}"
        return f"<figure>{draw_svg(self)}<details><summary>{html.escape(self.query)}</summary>{rows}</details></figure>"


def draw_svg(figure: Figure, theme: str = "light", width: int | None = None) -> str:
    """Return a figure as SVG with its title and alternative text, `width` pixels wide or as its specification says.

    Raises MissingPackageError without vl-convert-python, UnknownNameError for a theme that is none.
    """
    head, _, rest = to_svg(figure.spec, theme, width).partition(">")
    label = html.escape(f"{figure.title}. {figure.description}")
    told = f"<title>{html.escape(figure.title)}</title><desc>{html.escape(figure.description)}</desc>"
    return f'{head} role="img" aria-label="{label}">{told}{rest}'


def draw_png(figure: Figure, theme: str = "light", width: int | None = None) -> bytes:
    """Return a figure as PNG with two dots to a pixel; raises as `draw_svg`."""
    return to_png(draw_svg(figure, theme, width))


NO_TEXTS: Final[Mapping[str, str]] = {}


def make_drawing(name: DrawingName, table: Table[Any], texts: Mapping[str, str] = NO_TEXTS) -> Drawing:
    """Return what is drawn of rows in characters alone; `texts` as `make_figure` takes them."""
    return Drawing(table=table, sketch=_choose(find_spec(name), texts))


def make_figure(
    name: ShownName, table: Table[Any], subject: str, facts: str = "", texts: Mapping[str, str] = NO_TEXTS
) -> Figure:
    """Return a figure of rows; `subject` says what they are about, `facts` what is seen in them, in sentences.

    `texts` are what titles and values of the specification that are written `{NAME}` stand for, such as a metric.

    Names of models and hardware are texts wherever they stand: no expression of a specification is made of them, and
    none is in `texts`.
    """
    spec = find_spec(name)
    subject = make_visible(subject, keep="")
    said = make_visible(" ".join(facts.split()), keep="").rstrip(".")
    finding = f"{said}." if said else ""
    places = [table.names.index(column) for column in spec.columns]
    rows = [
        {column: write_value(cells[place]) for column, place in zip(spec.columns, places, strict=True)}
        for cells in table.cells
    ]
    view = {
        **_fill(spec.view, texts),
        "title": {**spec.view.get("title", {}), "text": spec.title, "subtitle": subject},
        "description": f"{finding} {spec.reading}".strip(),
        "datasets": {"rows": rows},
        "usermeta": {"figure": f"{spec.name}@{spec.version}", "query": spec.query},
    }
    return Figure(
        name=name,
        version=spec.version,
        title=f"{spec.title}: {subject}",
        finding=finding,
        reading=spec.reading,
        query=spec.query,
        spec=view,
        table=table,
        sketch=_choose(spec, texts),
    )


def tell_metric(metric: Metric, prefix: str = "") -> dict[str, str]:
    """Return the texts of a metric along an axis: what it is, that with its unit, and what ends each number.

    `unit` follows a number with an SI prefix where it takes one; `scale` is how a sketch writes a value.
    """
    unit = metric.unit if metric.unit.isalpha() and metric.unit != "USD" else ""
    scale = "%" if metric.column.endswith("_fraction") else metric.unit.replace("1/J", "")
    texts = {"quantity": metric.meaning, "title": f"{metric.meaning} ({metric.unit})", "unit": unit, "scale": scale}
    return {f"{prefix}{name}": text for name, text in texts.items()}


class _Texts(dict[str, Any]):
    """Texts by name; a name of which nothing is known stays as it is written."""

    def __missing__(self, name: str) -> _Unknown:
        return _Unknown(name)


@frozen
class _Unknown:
    name: str

    def __format__(self, unit: str) -> str:
        return f"{{{self.name}:{unit}}}" if unit else f"{{{self.name}}}"


def _choose(spec: Spec, texts: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
    """Return the sketches of a specification with its texts; what is written `{NAME}` besides waits for a row."""
    known = _Texts(texts)
    return tuple(_fill(one, known) for one in spec.sketch)


def _fill(part: Any, texts: Mapping[str, Any]) -> Any:
    """Return a part of a specification with texts in it; where they are not all known, as in a view, those alone."""
    if isinstance(part, dict):
        return {name: _fill(value, texts) for name, value in part.items()}
    if isinstance(part, list):
        return [_fill(value, texts) for value in part]
    is_text = isinstance(part, str) and (isinstance(texts, _Texts) or part[:1] + part[-1:] == "{}")
    return part.format_map(texts) if is_text else part


def write_value(value: Any) -> Any:
    """Return a value as JSON holds it, a text without what steers a reader."""
    return make_visible(value, keep="") if isinstance(value, str) else plain(value)
