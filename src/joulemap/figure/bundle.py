"""Vega, Vega-Lite and Vega-Embed as one script, which draws a figure in a browser without a network.

vl-convert-python has the libraries in it; putting them together takes seconds, so the result is kept in the
cache folder.
"""

from __future__ import annotations

import contextlib
import hashlib
from functools import cache
from typing import cast

from joulemap.figure.convert import VEGA_LITE, import_converter
from joulemap.system.resource import cache_folder, package_version


@cache
def bundle_script() -> str:
    """Return the script, which sets `vegaEmbed`; MissingPackageError without vl-convert-python."""
    converter = import_converter()
    place = cache_folder() / f"vega-{package_version('vl-convert-python')}-{VEGA_LITE}.js"
    with contextlib.suppress(OSError, ValueError):
        digest, _, kept = place.read_text(encoding="utf-8").partition("\n")
        if digest == _digest(kept):
            return kept
    script = cast("str", converter.javascript_bundle(vl_version=VEGA_LITE))
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{_digest(script)}\n{script}", encoding="utf-8")
    return script


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
