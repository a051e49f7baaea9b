"""Models of libraries by name: timm, transformers, and published networks of these and of diffusers."""

from __future__ import annotations

from joulemap.system import Wing


def register() -> Wing:
    """Return the model names that this wing adds to the core, and what builds them."""
    return Wing(
        name="hub",
        parts={"models": "joulemap.wing.hub.name:NAMES", "builders": "joulemap.wing.hub.builder:BUILDER"},
    )
