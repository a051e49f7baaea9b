"""A floor for the prose of README and docs: sentence length, and phrases that no page uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from sample import each

ROOT: Final = Path(__file__).parents[1]

PAGES: Final = {path.stem: path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}

LONGEST: Final = 30
"""Maximum words per sentence."""

BLOCKS: Final = re.compile(
    r"^```.*?^```$|^<!-- [a-z]+ -->.*?<!-- end -->|^(?:\||<|!\[|    \S).*?$", re.DOTALL | re.MULTILINE
)
"""Samples, tables, indented commands, comments and figures; none is prose."""

BANNED: Final = (
    "all that ships", "answers all", "can be had", "if it could be had", "dearer", "takes least", "the doubter",
    "is promised", "the promise", "grown by half", "fails first", "may be of how", "no coefficient saw",
    "nearer first", "nobody measured", "that nobody", "one of its own", "turns round", "turn round",
    "in the midst", "so that others", "of what its", "of what may", "chosen with in view", "makes nothing",
    "what for", "scores nothing", "with in view", "come by themselves", "hang on", "hangs on", "what is had",
)  # fmt: skip
"""Phrases that readers stumble over; WORDS has the term of the field for each."""
