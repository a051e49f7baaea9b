"""`joulemap plot`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import NamedHardwareOptions
from joulemap.cli.option.run import Model, RunOptions, precisions
from joulemap.cli.output import DatabaseOptions, Force, OutputOptions, emit
from joulemap.cli.voice import voice
from joulemap.domain.metric import MetricName
from joulemap.figure.convert import Theme
from joulemap.figure.spec import FigureName
from joulemap.present.format import TABLE
from joulemap.system.errors import UsageError
from joulemap.system.file import check_output, is_stream, write_pieces
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.figure.figure import Figure

DRAWN: Final = (".svg", ".png", ".json")
"""Ends of the names of figures; json is the specification with its data."""


MOST_DRAWN: Final = 40
"""Rows that are drawn in characters."""


@frozen(kw_only=True)
class PlotRunOptions(RunOptions):
    """How a model is run for a figure."""

    precision: str = precisions(
        "",
        "fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 or int4; several for a figure of choices.",
        shown="that of the question",
    )


@command
def plot(
    figure: Annotated[FigureName, typer.Argument(help="What is drawn.")],
    model: Model,
    *,
    metric: MetricName | None = option(None, "Of a waterfall, tornado, flip or heatmap.", shown="energy"),
    theme: Theme = option("light", "Of the page that it stands on; json has none."),
    width: int | None = option(
        None, "Pixels of an svg; a png has twice as many.", min=200, max=4000, shown="that of the figure"
    ),
    output: Path | None = option(
        None,
        "The file: .svg, .png, or .json for the specification of Vega-Lite.",
        "--output",
        "-o",
        shown="drawn on a terminal, json in a pipe",
    ),
    force: Force = False,
    hardware: NamedHardwareOptions,
    run: PlotRunOptions,
    database: DatabaseOptions,
) -> None:
    """Draw one figure for a slide or a paper.

    It is the figure of the question that has its numbers: a waterfall and a flip are about two hardware, a tornado and
    an edp about one. Images need vl-convert-python (pip install 'joulemap[plot]'); without it an svg holds the figure
    in characters.

    \b
    joulemap plot sweep resnet18 l4 h100_sxm5 -o sweep.svg
    joulemap plot pareto mobilenet_v2 --deployment edge --precision int8 -o front.png --theme dark
    joulemap plot waterfall resnet18 h100_sxm5 tpu_v4 --metric latency -o why.svg
    joulemap plot roofline resnet18 GPU TPU KPU CPU -o roofs.svg
    joulemap plot tornado resnet18 l4 --width 600 -o doubt.png
    joulemap plot cost resnet50 l4 t4 epyc_9654 > cost.vl.json
    """
    suffix = "" if output is None or is_stream(output) else output.suffix.lower()
    if suffix not in ("", *DRAWN):
        raise UsageError(f"{output}: {suffix} is no format of a figure: name it .svg, .png or .json")
    if output is not None and not suffix and not is_stream(output):
        raise UsageError(f"{output} says no format: name it .svg, .png or .json")
    inputs = database.guarded(output)
    if output is not None:
        check_output(output, inputs, force=force)
    from joulemap.figure.convert import INSTALL, import_converter, is_installed

    if suffix == ".png":
        import_converter()
    given: dict[str, Any] = {**run.keywords(), **hardware.keywords()}
    kept = {name: value for name, value in given.items() if value}
    made = database.open().plot(model, figure, metric=metric, **cast("Any", kept))
    if output is None and sys.stdout is not None and sys.stdout.isatty():
        _draw(made)
        return
    if suffix not in (".svg", ".png"):
        emit(json.dumps(made.spec, ensure_ascii=False, indent=2), output, inputs, force=force)
        return
    from joulemap.figure.figure import draw_png, draw_svg
    from joulemap.figure.sketch import draw_text_svg

    drawn: str | bytes
    if suffix == ".svg" and not is_installed():
        voice.inform(f"joulemap: drawn in characters: {INSTALL} draws images")
        drawn = draw_text_svg(made, theme)
    else:
        drawn = draw_svg(made, theme, width) if suffix == ".svg" else draw_png(made, theme, width)
    assert output is not None
    if write_pieces(output, (drawn,), inputs, force=force):
        voice.inform(f"wrote {output}")


def _draw(figure: Figure) -> None:
    """Write a figure to the terminal, in characters."""
    from joulemap.figure.sketch import make_sketches
    from joulemap.present.document import Document, Section

    drawn = list(make_sketches(figure, MOST_DRAWN, frozenset()))
    sections = (Section("", drawn),)
    OutputOptions(form=TABLE).write(
        Document(title=figure.title, answer=figure.finding, sections=sections, data={}, table=figure.table)
    )
