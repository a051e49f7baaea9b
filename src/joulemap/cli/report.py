"""`joulemap report`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_type_hints

import attrs

from joulemap.cli.command import command, option
from joulemap.cli.complete import complete_hardware
from joulemap.cli.option.hardware import HardwareOptions
from joulemap.cli.option.plot import begin_drawing
from joulemap.cli.option.run import Models, RunOptions
from joulemap.cli.output import DatabaseOptions, check_suffix, emit
from joulemap.cli.panel import OUTPUT
from joulemap.cli.voice import voice
from joulemap.system.name import split_names
from joulemap.system.wing import find_parts

PORT: Final = "report_options"
"""Port at which wings register the options of their chapters."""

CHAPTERS: Final = "Chapters"
"""Help panel with the options of optional chapters."""


def join_records() -> type:
    """Return a record with the fields of all records that wings register at `PORT`, in their order."""
    fields = {}
    for record in find_parts(PORT):
        hints = get_type_hints(record, include_extras=True)
        for field in attrs.fields(record):
            fields[field.name] = attrs.field(default=field.default, metadata=field.metadata, type=hints[field.name])
    return attrs.make_class("JoinedOptions", fields, frozen=True, kw_only=True, class_body={"panel": CHAPTERS})


def split_records(joined: object) -> Iterator[Any]:
    """Yield the records that wings register at `PORT`, with values from a record of `join_records`."""
    for record in find_parts(PORT):
        yield record(**{field.name: getattr(joined, field.name) for field in attrs.fields(record)})


if TYPE_CHECKING:
    ReportOptions = object
else:
    ReportOptions = join_records()


@command
def report(
    words: Models,
    *,
    output: Path = option(
        Path("report.html"), "HTML file to write.", "--output", "-o", metavar="FILE.html", panel=OUTPUT
    ),
    between: str = option(
        "",
        "Two chips whose difference is explained.",
        metavar="A,B",
        shown="the best with each other chip",
        complete=complete_hardware,
    ),
    parts: ReportOptions,
    hardware: HardwareOptions,
    run: RunOptions,
    database: DatabaseOptions,
) -> None:
    """Write an HTML report on models and hardware.

    The page has the decision, its confidence, reasons, figures, tables and sources, in one file. With JavaScript,
    figures are interactive; the page can be read without it. Images need vl-convert-python (pip install
    'joulemap[plot]'). Without it, figures are text charts.

    \b
    joulemap report resnet18
    joulemap report vit_b_16 --where deployment=edge --precision int8 -o vit.html
    joulemap report resnet18 mobilenet_v2 --hardware l4,h100_sxm5 --precision bf16
    joulemap report resnet50 --hardware l4,t4,epyc_9654 --between epyc_9654,l4
    joulemap report resnet50 l4 t4 --precision int8 --rate 2000/s --p99 15ms --place jetson_agx_orin_module
    """
    from joulemap.ask.subject import split_models
    from joulemap.system.file import check_output

    check_suffix(output, ".html", "a page")
    wanted = {one.chapter: one for one in split_records(parts)}
    asked = {name: question for name, one in wanted.items() if (question := one.ask()) is not None}
    check_output(output, (database.db,))
    begin_drawing()
    models, named = split_models(words)
    settings = run.settings(**hardware.keywords(named))
    explained = ("--between", between) if between else ()
    further = [word for one in wanted.values() for word in one.repeat()]
    repeated = (*named, *hardware.repeat(), *run.repeat(), *explained, *further)
    voice.begin_progress()
    answer = database.open().report(models, settings, between=split_names(between), asked=asked, repeated=repeated)
    emit(answer.html().rstrip("\n"), output, (database.db,))
    voice.inform(answer.report.decision)
