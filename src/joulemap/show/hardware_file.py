"""Page of checked hardware files: what each describes, which defaults it takes, and its trial runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from joulemap.ask.hardware_file import FileCheck, FileChecks
from joulemap.generated.hardware import Trial
from joulemap.physics.record.runtime import USUAL_RUNTIME
from joulemap.physics.record.silicon import RETICLE, count_dies
from joulemap.show.column import lay_columns
from joulemap.show.layout import lay_lines
from joulemap.show.page import Asked, Page, compose
from joulemap.show.present.cell import show
from joulemap.show.present.document import Block, Document, Section, Text
from joulemap.show.present.template import Template

OK: Final = Template("ok: {file} describes {hardware} ({architecture})")
LARGE: Final = Template(
    "warning: units and memories would take about {area_mm2:plain} mm2, which is {dies} dies in a package: the reticle "
    "limits one die to {limit:plain} mm2 ({source})"
)


def draw_checks(answer: FileChecks, _asked: Asked) -> Document:
    """Return a line, the class defaults and the trial runs of each file."""
    blocks = [block for check in answer.checks for block in _describe_file(check, answer)]
    return compose(answer, [Section("", blocks)] if blocks else [], answer.trials)


def _describe_file(check: FileCheck, answer: FileChecks) -> Iterator[Block]:
    yield Text(OK(check))
    if (dies := count_dies(check.area_mm2)) > 1:
        yield Text(LARGE(check, limit=RETICLE.value, source=RETICLE.source, dies=dies))
    defaults = ((one.quantity, show(one.value, "value"), one.unit, one.source) for one in check.defaults)
    yield lay_lines("omitted, so assumed | value | unit | rule", defaults)
    shown = (trial for trial in check.trials if trial.runtime == USUAL_RUNTIME)
    yield lay_columns(answer, answer.trials.with_rows(shown), Trial.table)


PAGES: Final = {FileChecks: Page[FileChecks](draw=draw_checks)}
