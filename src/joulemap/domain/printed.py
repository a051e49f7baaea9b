"""Names of chips as machines print them: `AMD Ryzen 9 5950X 16-Core Processor (znver3)` means `Ryzen 9 5950X`.

General rules remove parts that do not identify the chip: vendor, trademark signs, clock, core count, generation prefix,
board revision, built-in graphics. The remaining words must equal those of a known name. A word that distinguishes
chips, such as `Laptop`, `PCIe` or `80GB`, is never removed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Final

from joulemap.system.name import split_words

_CLOCK: Final = re.compile(r"\s*@\s*\d+(?:\.\d+)?\s*[GM]Hz\b", re.IGNORECASE)
_INTEL: Final = re.compile(r"\b(?:intel|xeon|pentium|celeron|atom|cpu)\b.*\s@\s*\d+\.\d+\s*GHz", re.IGNORECASE)
"""Pattern of a processor name that ends in its base clock, as Intel's names do."""

_PROCESSOR: Final = re.compile(r"\bprocessor\b|\bcpu\b|@ *[\d.]+ *ghz|\b(?:with|w)[/ ]+(?:amd |ati )?radeon\b")
"""Pattern of a text that occurs only in names of processors."""

_REMOVED: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"\((?:r|tm|c)\)|[®™©]",
        r"@\s*\d+(?:\.\d+)?\s*[gm]hz",
        r"\b\d+(?:st|nd|rd|th) gen(?:eration)?\b",
        r"\b\d+p[+ ]\d+e[+ ](?=\d+ ?gpu\b)",
        r"\b(?:\d+|dual|quad|six|eight|twelve|sixteen)[- ]cores?\b(?! gpu)",
        r"\b(?:with|w)[/ ]+(?:amd |ati )?radeon\b.*",
        r"\brev(?:ision)?\.? *\d[\d. ]*\b|\bmodel [a-d]\b",
        r"\b(?:gddr|lpddr|ddr|hbm)\d\w*\b",
        r"(?<=\be\d[- ]\d{4}) 0\b",
    )
)
"""Patterns of the parts of a printed name that do not identify the chip, in lower case and in the order of their
removal.
"""

_SAME: Final = ((re.compile(r"\blaptop gpu\b|\bmobile\b|\bnotebook\b"), "laptop"), (re.compile(r"[_/,]"), " "))
"""(pattern of other spellings, common spelling). The first pair is applied after the words of `_REMOVED` are gone."""

_CODE_NAME: Final = re.compile(r"\s*[(\[][^()\[\]=]*[)\]]")
"""Pattern of a remark in brackets, such as `(znver3)` or `(RADV NAVI31)`, but not `[tdp=60W]`."""

_CORE: Final = re.compile(r"(?<!\d[ -])(?<!\d)\bcore (?=i\d|ultra|m\d|\d|m )")
"""Pattern of Intel's brand, which is not a number of cores: `Core i7`, `Core Ultra 7`."""

VENDORS: Final = {
    "advanced": "amd",
    "amd": "amd",
    "apple": "apple",
    "ati": "amd",
    "geforce": "nvidia",
    "instinct": "amd",
    "intel": "intel",
    "nvidia": "nvidia",
    "qualcomm": "qualcomm",
    "radeon": "amd",
}
"""Word of a vendor or of its brand -> vendor."""

NEEDLESS: Final = frozenset(VENDORS).union(
    ("arm", "broadcom", "chip", "co", "core", "corp", "corporation", "design", "devices", "graphics", "inc", "ltd"),
    ("developer", "kit", "micro", "processor", "series", "soc", "technologies", "the", "with", "generation", "edition"),
)
"""Words of vendors, brands and kinds that are optional in a name."""

_PLAIN_PRO: Final = re.compile(r"\b(ryzen \d) pro\b")
"""Pattern of the name of a Ryzen PRO, the managed version of the same chip."""

_WITHOUT_GRAPHICS: Final = re.compile(r"(\bi\d[- ]\d{4,5}k?)f\b")
"""Pattern of the name of an Intel processor with suffix F: the same cores without graphics."""


def drop_clock(name: str) -> str:
    """Return a processor name without the base clock that Intel prints after `@`; any other text unchanged."""
    return _CLOCK.sub("", name).strip() if _INTEL.search(name) else name


@lru_cache(8192)
def find_vendors(name: str) -> frozenset[str]:
    """Return the vendors that a name states."""
    vendors = frozenset(VENDORS[word] for word in split_words(name) if word in VENDORS)
    return vendors or frozenset({"intel"} if _CORE.search(name.lower().replace("_", " ")) else ())


def is_processor(name: str) -> bool:
    """Return True if a printed name identifies a processor, so that it cannot mean the graphics on the same chip."""
    return _PROCESSOR.search(name.lower().replace("_", " ")) is not None


Words = frozenset[tuple[str, int]]
"""Words of a name with their counts; the order does not matter."""


def list_readings(name: str, without: Collection[str] = ("",)) -> Iterator[Mapping[str, Words]]:
    """Yield the identifying words of a printed name, once for each way to read it.

    Each reading maps every word of `without` to the identifying words except this one. The name is read with its remark
    in brackets, then without it. Further readings drop a suffix that changes no number: a Ryzen PRO, or a processor
    without graphics.
    """
    seen: set[Words] = set()
    plain = name.lower()
    for text in (plain, _CODE_NAME.sub(" ", plain)):
        reduced = _reduce(text)
        for one in (reduced, _WITHOUT_GRAPHICS.sub(r"\1", _PLAIN_PRO.sub(r"\1", reduced))):
            words = _keep(one)
            if words and words not in seen:
                seen.add(words)
                yield {word: _keep(one, word) for word in without}


def shorten(name: str) -> str:
    """Return the identifying part of a printed name, for suggestions; the name itself if nothing is left."""
    reduced = _reduce(_CODE_NAME.sub(" ", name.lower()))
    return " ".join(word for word in reduced.split() if word not in NEEDLESS) or name


@lru_cache(8192)
def read_words(name: str, without: str = "") -> Words:
    """Return the identifying words of a known name, except the word `without`. Cached: each search compares all names
    of the catalogue.
    """
    return _keep(_reduce(name.lower()), without)


def _reduce(text: str) -> str:
    for pattern, word in _SAME[1:]:
        text = pattern.sub(word, text)
    for pattern in _REMOVED:
        text = pattern.sub(" ", text)
    return " ".join(_SAME[0][0].sub(_SAME[0][1], " ".join(text.split())).split())


def _keep(text: str, without: str = "") -> Words:
    kept = {word: count for word, count in split_words(text).items() if word not in NEEDLESS and word != without}
    return frozenset(kept.items())
