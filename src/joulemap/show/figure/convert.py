"""Conversion of Vega-Lite specifications to SVG and PNG, and the Vega script for browsers, by vl-convert.

vl-convert contains a JavaScript engine; it opens neither files nor the network.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import re
import subprocess
import sys
from functools import cache
from typing import Any, Final, cast

from joulemap.show.present.palette import HUES, PAGE, RAMP, THEMES, Theme
from joulemap.system.cache import cache_folder
from joulemap.system.errors import MissingPackageError, UnknownNameError
from joulemap.system.resource import package_version

INSTALL: Final = "`pip install 'joulemap[plot]'`"
"""Command that installs the package that draws images."""

ROOM: Final = {"left": 26, "top": 8, "right": 26, "bottom": 8}
"""Padding of an SVG in pixels: a reader's font may be wider than the one that labels were measured with."""

FONT: Final = "Arial, Liberation Sans, Helvetica, sans-serif"

SYMBOLS: Final = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-left",
    "triangle-right",
)


def configure(theme: Theme = "light") -> dict[str, Any]:
    """Return the Vega-Lite `config` of a theme: colours, fonts and lines that a figure does not set itself."""
    ink, faint, page = (PAGE[theme][name] for name in ("ink", "faint", "page"))
    return {
        "background": page,
        "font": FONT,
        "padding": 8,
        "range": {
            "category": [one.fill for one in HUES.values()],
            "symbol": list(SYMBOLS),
            "heatmap": list(RAMP),
            "ramp": list(RAMP),
        },
        "title": {"anchor": "start", "color": ink, "subtitleColor": ink, "fontSize": 15, "subtitleFontSize": 12,
                  "subtitlePadding": 4, "offset": 12},
        "axis": {"labelColor": ink, "titleColor": ink, "gridColor": faint, "domainColor": ink, "tickColor": ink,
                 "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 220,
                 "labelSeparation": 4},
        "header": {"labelColor": ink, "titleColor": ink, "labelFontSize": 12},
        "legend": {"labelColor": ink, "titleColor": ink, "labelFontSize": 11, "titleFontSize": 12,
                   "titleFontWeight": "normal", "labelLimit": 220, "symbolBaseFillColor": ink,
                   "symbolBaseStrokeColor": ink},
        "text": {"color": ink, "fontSize": 11},
        "rule": {"color": ink},
        "line": {"strokeWidth": 2},
        "view": {"stroke": faint},
        "style": {"ink": {"fill": ink, "stroke": ink}, "frame": {"stroke": page},
                  "on-light": {"fill": "#000000"}, "on-dark": {"fill": "#ffffff"}},
        "locale": {"number": {"decimal": ".", "thousands": ",", "grouping": [3], "currency": ["", " USD"],
                              "percent": " %"}},
    }  # fmt: skip


VEGA_LITE: Final = "6.1"
"""Version of Vega-Lite that specifications are written for."""

DENSITY: Final = 2.0
"""Dots per pixel of a PNG."""

LEAST_WIDTH: Final = 60
"""Minimum width of a view in pixels, at any figure width."""

TRIES: Final = 3
"""Maximum attempts to draw a figure at a requested width; axes and legends do not scale, so the first may miss it."""


def to_svg(spec: dict[str, Any], theme: str, width: int | None = None) -> str:
    """Draw a specification as SVG.

    `width` is the width of the figure in pixels, as far as its axes leave room; None keeps the width in the
    specification. Raises MissingPackageError without vl-convert-python, UnknownNameError for an unknown theme.
    """
    if theme not in THEMES:
        raise UnknownNameError("theme", theme, THEMES)
    config = {**configure(theme), "aria": False, "padding": ROOM}
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
    """Convert an SVG to PNG, with two dots per pixel."""
    return cast("bytes", import_converter().svg_to_png(drawn, scale=DENSITY))


def is_installed() -> bool:
    """Return whether vl-convert is installed, without importing it."""
    from importlib.util import find_spec

    return find_spec("vl_convert") is not None


def import_converter() -> Any:
    """Import vl-convert; MissingPackageError if it is not installed."""
    try:
        import vl_convert
    except ImportError:
        raise MissingPackageError("vl-convert-python", "plot") from None
    return vl_convert


def _convert(spec: dict[str, Any], config: dict[str, Any]) -> str:
    drawn: str = import_converter().vegalite_to_svg(spec, vl_version=VEGA_LITE, config=config, allowed_base_urls=[])
    return drawn


def _measure(drawn: str) -> float:
    match = re.search(r'\bwidth="([\d.]+)"', drawn)
    assert match is not None, "an SVG without a width"
    return float(match[1])


def _add_widths(view: dict[str, Any]) -> float:
    """Return the total width in pixels of the views that are side by side."""
    if "hconcat" in view:
        return sum(map(_add_widths, view["hconcat"]))
    if "vconcat" in view:
        return max(map(_add_widths, view["vconcat"]))
    if "spec" in view:
        return _add_widths(view["spec"]) * int(view.get("columns", 1))
    width = view.get("width", 0)
    return float(width) if isinstance(width, int | float) else 0.0


def _resize(view: Any, scale: float) -> Any:
    """Return a view with the widths of all views in it multiplied by `scale`."""
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


@cache
def bundle_script() -> str:
    """Return the JavaScript of Vega that defines `vegaEmbed`, from the cache if possible.

    Raises MissingPackageError without vl-convert-python.
    """
    converter = import_converter()
    path = cache_folder() / f"vega-{package_version('vl-convert-python')}-{VEGA_LITE}.js"
    with contextlib.suppress(OSError, ValueError):
        digest, _, kept = path.read_text(encoding="utf-8").partition("\n")
        if digest == _digest(kept):
            return kept
    script = _bundle_apart() or cast("str", converter.javascript_bundle(vl_version=VEGA_LITE))
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{_digest(script)}\n{script}", encoding="utf-8")
    return script


_BUNDLE: Final = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
import vl_convert
sys.stdout.buffer.write(vl_convert.javascript_bundle(vl_version=sys.argv[1]).encode())
"""


def _bundle_apart() -> str:
    """Return the JavaScript of Vega, made in another process; empty if that fails.

    vl-convert holds the interpreter's lock for seconds meanwhile, so that this process could not end on Ctrl-C.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _BUNDLE, VEGA_LITE], stdin=subprocess.DEVNULL, capture_output=True, check=True
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
