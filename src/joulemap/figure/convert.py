"""Vega-Lite to SVG and PNG by vl-convert: a JavaScript engine of its own that opens neither files nor the network."""

from __future__ import annotations

import copy
import re
from typing import Any, Final, cast

from joulemap.figure.theme import THEMES, configure
from joulemap.system.errors import MissingPackageError, UnknownNameError

VEGA_LITE: Final = "6.1"
"""Version of Vega-Lite that specifications are written for."""

DENSITY: Final = 2.0
"""Dots of a PNG to a pixel."""

LEAST_WIDTH: Final = 60
"""Pixels of a view, however narrow the figure shall be."""

TRIES: Final = 3
"""Drawings until a width is kept to: axes and legends are not scaled with the views."""


def to_svg(spec: dict[str, Any], theme: str, width: int | None = None) -> str:
    """Return a specification as SVG, at most `width` pixels wide where its axes leave room, or as it says itself.

    Raises MissingPackageError without vl-convert-python, UnknownNameError for a theme that is none.
    """
    if theme not in THEMES:
        raise UnknownNameError("theme", theme, THEMES)
    config = {**configure(theme), "aria": False}
    drawn = _convert(spec, config)
    for _ in range(TRIES if width is not None else 0):
        excess = _measure(drawn) - (width or 0)
        views = _add_widths(spec)
        if abs(excess) < 2 or not views:
            break
        spec = _resize(spec, max(views - excess, LEAST_WIDTH) / views)
        drawn = _convert(spec, config)
    return drawn


def to_png(drawn: str) -> bytes:
    """Return an SVG as PNG, with two dots to a pixel."""
    return cast("bytes", import_converter().svg_to_png(drawn, scale=DENSITY))


def is_installed() -> bool:
    """Return whether what draws is there, without importing it."""
    from importlib.util import find_spec

    return find_spec("vl_convert") is not None


def import_converter() -> Any:
    """Return the module that draws; MissingPackageError where it is not installed."""
    try:
        import vl_convert
    except ImportError:
        raise MissingPackageError("vl-convert-python", "plot") from None
    return vl_convert


def _convert(spec: dict[str, Any], config: dict[str, Any]) -> str:
    drawn: str = import_converter().vegalite_to_svg(spec, vl_version=VEGA_LITE, config=config, allowed_base_urls=[])
    return drawn


def _measure(drawn: str) -> float:
    found = re.search(r'\bwidth="([\d.]+)"', drawn)
    assert found is not None, "an SVG without a width"
    return float(found[1])


def _add_widths(view: dict[str, Any]) -> float:
    """Return the pixels of the views beside each other in a view."""
    if "hconcat" in view:
        return sum(map(_add_widths, view["hconcat"]))
    if "vconcat" in view:
        return max(map(_add_widths, view["vconcat"]))
    if "spec" in view:
        return _add_widths(view["spec"]) * int(view.get("columns", 1))
    width = view.get("width", 0)
    return float(width) if isinstance(width, int | float) else 0.0


def _resize(view: Any, scale: float) -> Any:
    """Return a view whose views are wider or narrower."""
    if not isinstance(view, dict):
        return view
    made = copy.copy(view)
    for name in ("hconcat", "vconcat"):
        if name in made:
            made[name] = [_resize(one, scale) for one in made[name]]
    if "spec" in made:
        made["spec"] = _resize(made["spec"], scale)
    if isinstance(made.get("width"), int | float):
        made["width"] = max(made["width"] * scale, LEAST_WIDTH)
    return made
