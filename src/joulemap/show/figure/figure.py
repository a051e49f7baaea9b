"""Figures: specifications with the rows that they draw, as images and in characters."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.domain.figure import DrawingName, ShownName
from joulemap.domain.metric import Metric
from joulemap.domain.table import Table
from joulemap.show.figure.convert import SYMBOLS, is_installed, to_png, to_svg
from joulemap.show.figure.spec import Spec, find_spec, place_parts
from joulemap.show.present.cell import plain
from joulemap.show.present.palette import COLOURS, HUES
from joulemap.show.present.text import make_visible
from joulemap.system.record import frozen


@frozen(kw_only=True, repr=False)
class Drawing:
    """Drawing of an answer in characters, with the table behind it."""

    table: Table[Any]
    """Rows of the drawing, with all columns of the query."""
    sketch: tuple[dict[str, Any], ...]
    """Declarations of charts in characters, for `joulemap.show.figure.sketch`."""
    projected: frozenset[str] = frozenset()
    """Hardware that can be neither bought nor rented; text drawings mark it with `~`."""


@frozen(kw_only=True, repr=False)
class Figure(Drawing):
    """Figure of an answer, with the table behind it."""

    name: ShownName
    version: int
    """Version of the specification."""
    title: str
    about: str = ""
    """Description of the values at the end of the title; empty if the title has none."""
    finding: str
    """Findings of the figure, in sentences."""
    reading: str
    """Explanation of how to read the figure."""
    query: str
    """Query of the rows, `topic.name@version`, or the code that computes them."""
    spec: dict[str, Any]
    """Vega-Lite specification, including the data."""
    chips: Mapping[str, str]
    """Series that the figure colours -> chip behind it; empty if it does not colour chips."""

    @property
    def description(self) -> str:
        """Alternative text: the findings, then how to read the figure."""
        return " ".join(filter(None, (self.finding, self.reading)))

    def __repr__(self) -> str:
        return f"{self.title}\n{self.description}\n{self.table!r}"

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the image above its first rows. Without vl-convert, it has only the rows."""
        rows = self.table._repr_html_()
        if not is_installed():
            return f"<p>{html.escape(self.title)}</p>{rows}"
        return f"<figure>{draw_svg(self)}<details><summary>{html.escape(self.query)}</summary>{rows}</details></figure>"


def draw_svg(figure: Figure, theme: str = "light", width: int | None = None) -> str:
    """Draw a figure as SVG with its title and alternative text.

    `width` is in pixels and defaults to the width of the specification. Raises MissingPackageError without
    vl-convert-python, UnknownNameError for an unknown theme.
    """
    head, _, rest = to_svg(figure.spec, theme, width).partition(">")
    label = html.escape(f"{figure.title}. {figure.description}")
    title = f"<title>{html.escape(figure.title)}</title><desc>{html.escape(figure.description)}</desc>"
    return f'{head} role="img" aria-label="{label}">{title}{rest}'


def draw_png(figure: Figure, theme: str = "light", width: int | None = None) -> bytes:
    """Draw a figure as PNG with two dots per pixel; raises like `draw_svg`."""
    return to_png(draw_svg(figure, theme, width))


NO_TEXTS: Final[Mapping[str, str]] = {}

MARKED: Final = "A ~ marks a chip that you can neither buy nor rent."
"""Sentence for the readers of a figure with such a chip."""


def make_drawing(name: DrawingName, table: Table[Any], texts: Mapping[str, str] = NO_TEXTS) -> Drawing:
    """Return a drawing of rows in characters, without an image; `texts` as in `make_figure`."""
    return Drawing(table=table, sketch=_choose(find_spec(name), texts))


def make_figure(
    name: ShownName, table: Table[Any], subject: str, facts: str = "", texts: Mapping[str, str] = NO_TEXTS
) -> Figure:
    """Return a figure of the rows of a table. `subject` is the text under its title, and `facts` are its findings in
    sentences.

    `texts` replace placeholders `{NAME}` in titles and values of the specification, such as the name of a metric.

    Names of models and hardware stay plain text: neither `texts` nor any expression of a specification contains them.
    """
    spec = find_spec(name)
    subject = make_visible(subject, keep="")
    facts_text = make_visible(" ".join(facts.split()), keep="").rstrip(".")
    finding = f"{facts_text}." if facts_text else ""
    places = [table.names.index(column) for column in spec.columns]
    rows = [
        {column: write_value(cells[index]) for column, index in zip(spec.columns, places, strict=True)}
        for cells in table.cells
    ]
    is_marked = any(row.get("is_available") is False for row in rows)
    reading = f"{spec.reading} {MARKED}" if is_marked else spec.reading
    legends = {name: _list_entries(entries, rows) for name, entries in spec.legends.items()}
    chips = _list_chips(spec, rows)
    view = {
        **_paint(_fill(place_parts(spec.view, legends), texts), spec, chips, choose_colours(chips.values())),
        "title": {**spec.view.get("title", {}), "text": spec.title, "subtitle": subject},
        "description": f"{finding} {reading}".strip(),
        "datasets": {"rows": rows},
        "usermeta": {"figure": f"{spec.name}@{spec.version}", "query": spec.query},
    }
    return Figure(
        name=name,
        version=spec.version,
        title=f"{spec.title}: {subject}",
        finding=finding,
        reading=reading,
        query=spec.query,
        spec=view,
        chips=chips,
        table=table,
        sketch=_choose(spec, texts),
    )


Paint = tuple[str, str]
"""Colour and shape of a chip."""

NO_CHIP: Final[Paint] = (COLOURS["unknown"].fill, "circle")
"""Paint of a series that belongs to several chips."""


def choose_colours(chips: Iterable[str]) -> dict[str, Paint]:
    """Return a colour and a shape for each chip. They depend only on the set of chips, not on their order in a
    figure.

    No two chips have the same colour and shape, unless there are more than the palette has pairs.
    """
    names = sorted({*chips} - {""})
    fills = [one.fill for one in HUES.values()]
    count = len(fills)
    return {
        name: (fills[index % count], SYMBOLS[(index + index // count) % len(SYMBOLS)])
        for index, name in enumerate(names)
    }


def paint(figure: Figure, colours: Mapping[str, Paint]) -> Figure:
    """Return a figure with its chips in these colours and shapes, so that several figures agree."""
    if not figure.chips:
        return figure
    return attrs.evolve(figure, spec=_paint(figure.spec, find_spec(figure.name), figure.chips, colours))


def _list_chips(spec: Spec, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the chip behind each drawn series of the rows; empty if the figure does not colour chips.

    Where several series are of one chip, each counts as a chip of its own, so that colours tell them apart.
    """
    if spec.series is None:
        return {}
    label, chip, least = spec.series.label, spec.series.chip, spec.series.least
    chips = {str(row[label]): row[chip] or "" for row in rows if row[label] is not None}
    if least:
        values: dict[str, float] = {}
        for row in rows:
            if row[least] is not None:
                values[row[label]] = min(row[least], values.get(row[label], row[least]))
        kept = sorted(values, key=lambda name: (values[name], name))[: spec.series.most]
        chips = {name: chips[name] for name in kept}
    named = [name for name in chips.values() if name]
    return chips if len({*named}) == len(named) else {name: name for name in chips}


def _paint(part: Any, spec: Spec, chips: Mapping[str, str], colours: Mapping[str, Paint]) -> Any:
    """Return a part of a specification in which the encodings of a series have the colours and shapes of its chips."""
    if isinstance(part, list):
        return [_paint(value, spec, chips, colours) for value in part]
    if not isinstance(part, dict) or spec.series is None:
        return part
    painted = {name: _paint(value, spec, chips, colours) for name, value in part.items() if name != "datasets"}
    for index, channel in enumerate(("color", "shape")):
        encoding = painted.get(channel)
        if isinstance(encoding, dict) and encoding.get("field") == spec.series.label:
            range_ = [colours.get(chip, NO_CHIP)[index] for chip in chips.values()]
            painted[channel] = {**encoding, "scale": {"domain": list(chips), "range": range_}}
    return painted if "datasets" not in part else {**painted, "datasets": part["datasets"]}


def _list_entries(entries: Mapping[str, Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the entries of a legend that at least one row has."""
    return [
        entry
        for entry, wanted in entries.items()
        if any(
            all(bool(row[name]) if value is True else row[name] == value for name, value in wanted.items())
            for row in rows
        )
    ]


def describe_metric(metric: Metric, prefix: str = "") -> dict[str, str]:
    """Return the texts for an axis of a metric, for `make_figure`: `quantity`, `title`, `unit` and `scale`.

    `quantity` is its name. `unit` follows a number with an SI prefix; it is empty if the unit takes none, and stands in
    `title` then. `scale` is the format of a value in a sketch.
    """
    unit = metric.unit if metric.unit.isalpha() and metric.unit != "USD" else ""
    scale = "%" if metric.column.endswith("_fraction") else metric.unit.replace("1/J", "")
    title = metric.meaning if unit else f"{metric.meaning} ({metric.unit})"
    texts = {"quantity": metric.meaning, "title": title, "unit": unit, "scale": scale}
    return {f"{prefix}{name}": text for name, text in texts.items()}


class _Texts(dict[str, Any]):
    """Texts by name for `str.format_map`; an unknown name stays a placeholder."""

    def __missing__(self, name: str) -> _Unknown:
        return _Unknown(name)


@frozen
class _Unknown:
    name: str

    def __format__(self, unit: str) -> str:
        return f"{{{self.name}:{unit}}}" if unit else f"{{{self.name}}}"


def _choose(spec: Spec, texts: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
    """Return the sketches of a specification with these texts filled in. Other placeholders `{NAME}` stay for the
    rows.
    """
    known = _Texts(texts)
    return tuple(_fill(one, known) for one in spec.sketch)


def _fill(part: Any, texts: Mapping[str, Any]) -> Any:
    """Return a part of a specification with its placeholders replaced by texts.

    Outside of sketches, a placeholder is replaced only if it is the whole text.
    """
    if isinstance(part, dict):
        return {name: _fill(value, texts) for name, value in part.items()}
    if isinstance(part, list):
        return [_fill(value, texts) for value in part]
    is_text = isinstance(part, str) and (isinstance(texts, _Texts) or part[:1] + part[-1:] == "{}")
    return part.format_map(texts) if is_text else part


def write_value(value: Any) -> Any:
    """Return a value in the form that JSON stores, without control characters in texts."""
    return make_visible(value, keep="") if isinstance(value, str) else plain(value)
