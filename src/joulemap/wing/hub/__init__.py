"""Models of libraries by name: timm, transformers, and published networks of these and of diffusers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.system import Wing, make_lookup

if TYPE_CHECKING:
    from joulemap.wing.hub.generated.public import *

    __all__: list[str]
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.wing.hub.generated.public")


def register() -> Wing:
    """Return the model names that this wing adds to the core, and what builds them."""
    return Wing(
        name="hub",
        parts={"models": "joulemap.wing.hub.name:NAMES", "builders": "joulemap.wing.hub.builder:BUILDER"},
    )
