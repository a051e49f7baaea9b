"""Notes on architecture classes, beside numbers."""

from __future__ import annotations

import attrs


def _filled(_instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not value.strip():
        raise ValueError(f"{attribute.name} is empty")


@attrs.frozen(kw_only=True)
class ArchitectureNote:
    """How a class of hardware handles one matter, and who says so."""

    architecture: str = attrs.field(validator=_filled)
    topic: str = attrs.field(validator=_filled)
    """`instruction fetch`, `coherence` or `data movement`."""
    text: str = attrs.field(validator=_filled)
    source: str = attrs.field(validator=_filled)
