"""Words that wings bring for their own facts: sentences of caveats, and names of metrics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from joulemap.show.present.template import Template
from joulemap.system.record import frozen
from joulemap.system.wing import find_parts

PORT: Final = "words"


@frozen(kw_only=True)
class Words:
    """Words of one wing, which registers them at the port `words`."""

    caveats: Mapping[str, Template] = {}
    """Kind of caveat -> its sentence."""
    nouns: Mapping[str, str] = {}
    """Metric -> its name in a sentence."""
    better: Mapping[str, Template] = {}
    """Metric -> clause on a clear winner; a metric without one uses less."""


@cache
def read_words() -> Words:
    """Return the words of all wings."""
    caveats, nouns, better = dict[str, Template](), dict[str, str](), dict[str, Template]()
    for words in find_parts(PORT):
        caveats |= words.caveats
        nouns |= words.nouns
        better |= words.better
    return Words(caveats=caveats, nouns=nouns, better=better)
