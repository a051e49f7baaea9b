"""Page of a report, as seen by a reader without JavaScript and by a program."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

VOID = frozenset({"meta", "link", "br", "img"})
OPEN = frozenset({"td", "th", "tr", "tbody", "thead"})
"""Elements whose end tag may be omitted."""


class Page(HTMLParser):
    """Tags, texts, styles and scripts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = text
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.read: list[str] = []
        """Displayed texts."""
        self.styles: list[str] = []
        self.scripts: list[str] = []
        self._within: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attributes}))
        if tag in ("style", "script", "title", "head"):
            self._within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._within and self._within[-1] == tag:
            self._within.pop()

    def handle_data(self, data: str) -> None:
        inside = self._within[-1] if self._within else ""
        if inside == "style":
            self.styles.append(data)
        elif inside == "script":
            self.scripts.append(data)
        elif not inside:
            self.read.append(data)

    @property
    def shown(self) -> str:
        """Displayed text in one line."""
        return " ".join(" ".join(self.read).split())

    @property
    def policy(self) -> dict[str, list[str]]:
        """Content security policy: directive -> values."""
        (told,) = (
            one["content"]
            for tag, one in self.tags
            if tag == "meta" and one.get("http-equiv") == "Content-Security-Policy"
        )
        parts = (part.split() for part in told.split(";"))
        return {name: values for name, *values in parts}

    @property
    def vega(self) -> str:
        """Decompressed script of the page."""
        return gzip.decompress(base64.b64decode(self.scripts[0])).decode()

    @property
    def content(self) -> dict[str, Any]:
        """Downloadable data of the page."""
        (link,) = (one["href"] for tag, one in self.tags if tag == "a" and "download" in one)
        packed = link.removeprefix("data:application/gzip;base64,")
        content: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
        return content

    def table(self, query: str) -> dict[str, list[Any]]:
        """Return the first table of a query as column -> values."""
        table = next(one for one in self.content["tables"] if one["query"].partition("@")[0] == query)
        return {one["name"]: one["values"] for one in table["columns"]}


def digest(text: str) -> str:
    """Return the source of a script or style in a content security policy, by digest."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def list_addresses(page: Page) -> set[str]:
    """Return all addresses that the page loads or links to, except `data:` and anchors."""
    names = ("src", "href", "srcset", "action", "formaction", "data", "poster", "xlink:href")
    addresses = {value for _, one in page.tags for name, value in one.items() if name in names}
    addresses |= set(re.findall(r"url\(([^)]*)\)", " ".join(page.styles)))
    return {one for one in addresses if not one.startswith(("#", "data:"))}
