"""`joulemap plot`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast, get_args

import typer

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import NamedHardwareOptions
from joulemap.cli.option.run import PRECISION_HELP, Model, RunOptions, precisions
from joulemap.cli.output import MOST_DRAWN, DatabaseOptions, OutputOptions, emit
from joulemap.cli.panel import OUTPUT
from joulemap.cli.voice import end_progress, voice
from joulemap.domain.figure import FigureName
from joulemap.domain.metric import MetricName
from joulemap.show.present.format import TABLE
from joulemap.show.present.palette import Theme
from joulemap.system.errors import UsageError
from joulemap.system.file import check_output, is_stream, write_pieces
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.show.figure.figure import Figure

DRAWN: Final = (".svg", ".png", ".json")
"""File suffixes of figures; .json is the Vega-Lite specification with its data."""


@frozen(kw_only=True)
class PlotRunOptions(RunOptions):
    """Options for running a model for a figure."""

    precision: str = precisions(
        "",
        f"{PRECISION_HELP.rstrip('.')}; several for pareto.",
        is_list=True,
        shown="the plotted command's",
    )


@command
def plot(
    figure: Annotated[FigureName, typer.Argument(metavar="FIGURE", help=f"Figure: {', '.join(get_args(FigureName))}.")],
    model: Model,
    *,
    metric: MetricName | None = option(None, "Metric of a waterfall, tornado, flip or heatmap.", shown="energy"),
    theme: Theme = option("light", "Page background; ignored for json.", panel=OUTPUT),
    width: int | None = option(
        None,
        "Width of an svg in pixels; a png has twice as many.",
        metavar="PIXELS",
        min=200,
        max=4000,
        shown="the figure's own",
        panel=OUTPUT,
    ),
    output: Path | None = option(
        None,
        "File to write: .svg, .png, or .json for the Vega-Lite specification.",
        "--output",
        "-o",
        shown="text on a terminal, json in a pipe",
        panel=OUTPUT,
    ),
    hardware: NamedHardwareOptions,
    run: PlotRunOptions,
    database: DatabaseOptions,
) -> None:
    """Draw one figure for a slide or a paper.

    waterfall and flip need two chips; tornado and edp need one. Images need vl-convert-python (pip install
    'joulemap[plot]'). Without it, an svg holds a text chart.

    \b
    joulemap plot sweep resnet18 l4 h100_sxm5 --precision bf16 -o sweep.svg
    joulemap plot pareto mobilenet_v2 --where deployment=edge --precision int8 -o front.png --theme dark
    joulemap plot waterfall resnet50 l4 rtx_4090 --precision fp16 --metric energy -o why.svg
    joulemap plot roofline resnet50 GPU TPU CPU --precision bf16 -o roofs.svg
    joulemap plot tornado resnet18 l4 --precision bf16 --width 600 -o doubt.png
    joulemap plot cost resnet50 l4 t4 epyc_9654 > cost.vl.json
    """
    suffix = "" if output is None or is_stream(output) else output.suffix.lower()
    if suffix not in ("", *DRAWN):
        raise UsageError(f"{output}: {suffix} is not a format of figures: use .svg, .png or .json")
    if output is not None and not suffix and not is_stream(output):
        raise UsageError(f"{output} has no suffix: use .svg, .png or .json")
    inputs = database.guarded(output)
    if output is not None:
        check_output(output, inputs)
    from joulemap.show.figure.convert import INSTALL, import_converter, is_installed

    if suffix == ".png":
        import_converter()
    given: dict[str, Any] = {**run.keywords(), **hardware.keywords()}
    kept = {name: value for name, value in given.items() if value}
    voice.begin_progress()
    made = database.open().plot(model, figure, metric=metric, **cast("Any", kept))
    end_progress()
    if output is None and sys.stdout is not None and sys.stdout.isatty():
        _draw(made)
        return
    if suffix not in (".svg", ".png"):
        emit(json.dumps(made.spec, ensure_ascii=False, indent=2), output, inputs)
        return
    from joulemap.show.figure.figure import draw_png, draw_svg
    from joulemap.show.figure.sketch import draw_text_svg

    drawn: str | bytes
    if suffix == ".svg" and not is_installed():
        voice.inform(f"joulemap: the svg holds a text chart; {INSTALL} draws images")
        drawn = draw_text_svg(made, theme)
    else:
        drawn = draw_svg(made, theme, width) if suffix == ".svg" else draw_png(made, theme, width)
    assert output is not None
    if write_pieces(output, (drawn,), inputs):
        voice.inform(f"wrote {output}")


def _draw(figure: Figure) -> None:
    """Print a figure as a text chart."""
    from joulemap.show.figure.sketch import make_sketches
    from joulemap.show.present.document import Document, Section

    drawn = list(make_sketches(figure, MOST_DRAWN, figure.projected))
    sections = (Section("", drawn),)
    OutputOptions(form=TABLE).write(
        Document(title=figure.title, answer=figure.finding, sections=sections, data={}, table=figure.table)
    )
