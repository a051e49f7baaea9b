"""Options that wings add to a command, each as a separate record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, get_type_hints

import attrs

from joulemap.system.wing import find_parts

CHAPTERS: Final = "Chapters"
"""Panel of the options of a report's further chapters."""


def join_records(port: str) -> type:
    """Return a record with the fields of all records that wings register at a port, in their order."""
    fields = {}
    for record in find_parts(port):
        hints = get_type_hints(record, include_extras=True)
        for field in attrs.fields(record):
            fields[field.name] = attrs.field(default=field.default, metadata=field.metadata, type=hints[field.name])
    return attrs.make_class("JoinedOptions", fields, frozen=True, kw_only=True, class_body={"panel": CHAPTERS})


def split_records(port: str, joined: object) -> Iterator[Any]:
    """Yield the records of a port with the values of a joined one."""
    for record in find_parts(port):
        yield record(**{field.name: getattr(joined, field.name) for field in attrs.fields(record)})


if TYPE_CHECKING:
    ReportOptions = object
else:
    ReportOptions = join_records("report_options")
