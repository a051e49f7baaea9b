"""Commands that measure what an answer predicts, as a section of its document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from joulemap.show.present.document import Document, Lines, Section
from joulemap.show.present.template import Template

if TYPE_CHECKING:
    from joulemap.ask.check import Checks

TITLE: Final = "Measure it"
LINE: Final = Template("{hardware}: {command}[ (needs {needs})]; prints {prints}[; power: {power}]")
NOTHING: Final = Template("no common tool measures this on {hardware:and}[: none has an option for {lacking:and}]")
MORE: Final = Template("{count} more; json has all")

SHOWN: Final = 12
"""Maximum commands that people see."""


def add_checks(document: Document, checks: Checks) -> Document:
    """Add commands that measure the rows of a document to its sections and to its data for programs."""
    lines = [LINE(one, needs=one.needs or None, power=one.power or None) for one in checks.commands[:SHOWN]]
    lines += [MORE(count=len(checks.commands) - SHOWN)] if len(checks.commands) > SHOWN else []
    for why in dict.fromkeys(checks.missing.values()):
        lines.append(NOTHING(hardware=[name for name, own in checks.missing.items() if own == why], lacking=list(why)))
    data = document.data
    if isinstance(data, dict):
        data = {**data, "checks": [attrs.asdict(one) for one in checks.commands]}
    return attrs.evolve(document, sections=(*document.sections, Section(TITLE, Lines(lines))), data=data)
