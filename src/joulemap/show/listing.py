"""Words for a list of hardware."""

from __future__ import annotations

from collections import Counter
from typing import Final

from joulemap.ask.listing import count_members
from joulemap.domain.table import Table
from joulemap.generated.hardware import ListedHardware
from joulemap.show.present.cell import show_count
from joulemap.show.present.template import Template

CLASSES: Final = Template(
    "{chips}[: {classes:list}][, {unavailable} not available][; {members} (`joulemap hardware list --family all`)]."
)
CLASS: Final = Template("{count} {architecture}")
MORE: Final = Template("{count} more are listed only in chip families")
SOME: Final = "chips of families are not shown"


def describe_classes(rows: Table[ListedHardware], *, has_families: bool = False, is_filtered: bool = False) -> str:
    """Return a sentence with the number of listed chips per class and of unavailable chips.

    `has_families` adds the number of chips in families; `is_filtered` omits this number, because filters apply to it
    too.
    """
    counts = Counter(row.architecture for row in rows)
    if not counts:
        return "No chip matches."
    alone = next(iter(counts)) if len(counts) == 1 else None
    members = count_members((alone,) if alone else ())
    return CLASSES(
        chips=show_count(len(rows), f"{alone} chip" if alone else "chip"),
        classes=None if alone else [CLASS(count=count, architecture=name) for name, count in counts.most_common()],
        unavailable=sum(not row.is_available for row in rows) or None,
        members=(SOME if is_filtered else MORE(count=members)) if has_families and members else None,
    )
