"""Names as people write them: what is alike in two of them, and which words one has beyond another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, cast

from joulemap.domain.configuration import PRECISION_BYTES, Precision
from joulemap.system.errors import UsageError

PROJECTED: Final = "~"
"""How tables mark a hardware that can be neither bought nor rented; it is no part of its name."""

FROZEN: Final = " (frozen)"
"""How a workload marks the name of a weight that no optimizer changes: one with `requires_grad=False`."""

_IGNORED: Final = re.compile(r"\((?:r|tm)\)|[\s_-]+")
_COMMA: Final = re.compile(r",(?![^()]*\))")
_WORD: Final = re.compile(r"[^\W\d_]+|\d+")

LIKENESS: Final = 0.6
"""From 0 to 1: what is less like a name was not meant by it."""

SPREAD: Final = 0.15
"""What is less like a name than the most like one is by so much was not meant either."""

FAMILY_LIKENESS: Final = 0.7
"""Likeness, from 0 to 1, that the families of two models have at least where one was meant by the other."""

SIZES: Final = frozenset(
    [
        "tiny",
        "nano",
        "micro",
        "mini",
        "small",
        "medium",
        "base",
        "big",
        "large",
        "huge",
        "giant",
        "b",
        "g",
        "h",
        "l",
        "m",
        "s",
        "t",
        "v",
        "x",
        "xl",
        "xxl",
        "instruct",
        "chat",
        "hf",
        "it",
    ]
)
"""Words of models' names that many families have."""

NEAREST: Final = 3
"""Names that are offered in place of one that does not exist."""


PRECISION_NAMES: Final[dict[str, Precision]] = {
    "float64": "fp64",
    "double": "fp64",
    "float32": "fp32",
    "single": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float8": "fp8",
    "float4": "fp4",
}
"""What frameworks call a precision -> its name here."""


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in `a,b`, where commas in brackets part none; UsageError for none, unless the text is empty."""
    names = tuple(part.strip() for part in _COMMA.split(text) if part.strip())
    if text and not names:
        raise UsageError(f"cannot read the names in {text!r}: write a,b")
    return names


def unmark(name: str) -> str:
    """Return a hardware as it is asked for, from how a table shows it."""
    return name.strip().removeprefix(PROJECTED).strip()


def fold_name(name: str) -> str:
    """Return a name as names are compared: case, spaces, `-`, `_`, `(R)` and `(TM)` do not matter."""
    return _IGNORED.sub("", name.lower())


def split_words(name: str) -> Counter[str]:
    """Return the words and numbers of a name, whatever their order: `H100-SXM5` is h, 100, sxm and 5."""
    return Counter(_WORD.findall(name.lower()))


def has_words(asked: Counter[str], known: Counter[str], besides: Iterable[str]) -> bool:
    """Whether what is asked for has every word of a known name, and no others than some that say nothing new."""
    return not known - asked and set(asked - known) <= set(besides)


def fold_into(name: str, known: Collection[str], ignoring: str = "") -> str:
    """Return the known name that differs from one in nothing that matters, else the name as it is.

    `ignoring` is a character that does not matter in the name either.
    """
    if name in known:
        return name
    folded = fold_name(name.replace(ignoring, "") if ignoring else name)
    return next((one for one in known if fold_name(one) == folded), name)


def name_precision(name: str) -> Precision:
    """Return the precision that is meant, in any case or as frameworks call it; any other text as it is."""
    found = fold_into(name, (*PRECISION_BYTES, *PRECISION_NAMES))
    return cast("Precision", PRECISION_NAMES.get(found, found))


def find_nearest(name: str, known: Iterable[Sequence[str]]) -> list[str]:
    """Return the first name of each of those groups of names that have one most like this, the most like first."""
    from difflib import SequenceMatcher

    folded = fold_name(name)
    ranked = sorted(
        (-max(SequenceMatcher(None, folded, fold_name(one)).ratio() for one in names), names[0]) for names in known
    )
    least = max(LIKENESS, -ranked[0][0] - SPREAD) if ranked else LIKENESS
    return [first for unlikeness, first in ranked[:NEAREST] if -unlikeness >= least]


def find_meant(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names of models that a misspelt one most likely means, the most like first.

    Words for a size and numbers say nothing: `bert_large` is no `raft_large`.
    """
    from difflib import SequenceMatcher, get_close_matches

    def keep_family(text: str) -> str:
        return "".join(word for word in split_words(text) if word not in SIZES and not word.isdecimal())

    family = keep_family(name)
    alike = sorted(
        one
        for one in known
        if not family or SequenceMatcher(None, family, keep_family(one.rpartition("/")[2])).ratio() >= FAMILY_LIKENESS
    )
    return get_close_matches(name.lower(), alike, n=NEAREST, cutoff=0.5)


def join_words(words: Sequence[str], is_name: Callable[[str], bool]) -> tuple[str, ...] | None:
    """Return the names that words make, each as long as it can be; None where some of the words make none."""
    names: list[str] = []
    start = 0
    while start < len(words):
        ends = range(len(words), start, -1)
        end = next((end for end in ends if is_name(" ".join(words[start:end]))), None)
        if end is None:
            return None
        names.append(" ".join(words[start:end]))
        start = end
    return tuple(names)
