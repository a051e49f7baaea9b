"""Sphinx settings of the site. `make docs` lays out the pages of docs/ and calls Sphinx with these settings."""

from __future__ import annotations

import html
import os
import re
from importlib.metadata import version as read_version
from types import GenericAlias
from typing import Any, Final

import attrs

from joulemap.domain.table import Row

project = "joulemap"
version = release = read_version("joulemap")
html_title = f"joulemap {version}"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
default_role = "literal"
highlight_language = "text"
smartquotes = False

myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence"]

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
toc_object_entries = False

html_theme = "furo"
html_baseurl = os.environ.get("JOULEMAP_SITE", "")  # where it is published: without it no page names its own address
html_use_index = False
html_favicon = "static/icon.svg"
html_extra_path = ["404.html"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["site.css"]

LITERAL: Final = re.compile(r"(`[^`]*`)")
"""Text between two backticks in a docstring."""

MARKUP: Final = re.compile(r"([*|\\]|(?<=\w)_\b)")
"""Characters of a docstring that reStructuredText would read as markup."""


def escape(_app: object, _what: str, _name: str, value: object, _options: object, lines: list[str]) -> None:
    """Escape the markup of a docstring except its literals; empty the docstring that an alias has from its class."""
    if isinstance(value, GenericAlias):
        lines.clear()
    for index, line in enumerate(lines):
        parts = LITERAL.split(line)
        parts[::2] = [MARKUP.sub(r"\\\1", part) for part in parts[::2]]
        parts[1::2] = [f"{literal}\\ " if rest[:1].isalnum() else literal for literal, rest in _pair(parts)]
        lines[index] = "".join(parts)


def _pair(parts: list[str]) -> list[tuple[str, str]]:
    """Return each literal with the text after it."""
    return list(zip(parts[1::2], parts[2::2], strict=True))


def shorten(_app: object, _what: str, _name: str, value: object, *_rest: object) -> tuple[str, str | None] | None:
    """Return an empty signature for a record, because its fields follow; None for other objects."""
    return ("", None) if isinstance(value, type) and (attrs.has(value) or issubclass(value, Row)) else None


def describe(_app: object, _page: str, _template: str, context: dict[str, Any], tree: Any) -> None:
    """Add metadata for search engines and link previews: the title and the first paragraph of the page."""
    first = next((one for one in tree.findall() if one.tagname == "paragraph"), None) if tree else None
    if first is None:
        return
    about = " ".join(first.astext().split())
    told = {"og:site_name": "joulemap", "og:type": "website", "og:title": html.unescape(context["title"])}
    told |= {"og:description": about, "description": about, "twitter:card": "summary"}
    if html_baseurl:
        told |= {"og:image": f"{html_baseurl.rstrip('/')}/_static/card.png", "twitter:card": "summary_large_image"}
    for name, value in told.items():
        key = "property" if name.startswith("og:") else "name"
        context["metatags"] += f'<meta {key}="{name}" content="{html.escape(value)}">\n'


def setup(app: Any) -> None:
    """Connect the functions of this file to the events of Sphinx."""
    app.connect("autodoc-process-docstring", escape)
    app.connect("autodoc-process-signature", shorten)
    app.connect("html-page-context", describe)
