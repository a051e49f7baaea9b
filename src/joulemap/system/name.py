"""Comparison of names as users write them: normalization, words and similarity."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.system.errors import UsageError

if TYPE_CHECKING:
    from difflib import SequenceMatcher

PROJECTED: Final = "~"
"""Mark that tables put before hardware that can be neither bought nor rented; not part of the name."""

FROZEN: Final = " (frozen)"
"""Mark after the name of a weight that no optimizer changes (`requires_grad=False`)."""

_IGNORED: Final = re.compile(r"\((?:r|tm)\)|[\s_-]+")
_COMMA: Final = re.compile(r",(?![^()]*\))")
_WORD: Final = re.compile(r"[^\W\d_]+|\d+")
_SEPARATOR: Final = re.compile(r"[\W_]+")

LIKENESS: Final = 0.6
"""Smallest similarity, from 0 to 1, at which a known name is suggested."""

SPREAD: Final = 0.15
"""Largest gap in similarity to the best match at which another name is suggested."""

FAMILY_LIKENESS: Final = 0.7
"""Smallest similarity, from 0 to 1, of two model families at which one model is suggested for the other."""

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
"""Size and variant words that many model families share."""

NEAREST: Final = 3
"""Maximum number of suggested names."""


def split_names(text: str) -> tuple[str, ...]:
    """Split `a,b` into names; commas in brackets do not separate. UsageError if a non-empty text has no name."""
    names = tuple(part.strip() for part in _COMMA.split(text) if part.strip())
    if text and not names:
        raise UsageError(f"cannot read the names in {text!r}: write a,b")
    return names


def join_choices(names: Iterable[str]) -> str:
    """Return names as a list of choices: `a, b or c`."""
    *first, last = names
    return " or ".join((", ".join(first), last)) if first else last


def unmark(name: str) -> str:
    """Return the name of a chip without the mark that tables add."""
    return name.strip().removeprefix(PROJECTED).strip()


def fold_name(name: str) -> str:
    """Return a name in the form used for comparison: case, spaces, `-`, `_`, `(R)` and `(TM)` do not matter."""
    return _IGNORED.sub("", name.lower())


def split_words(name: str) -> Counter[str]:
    """Return the words and numbers of a name with their counts: `H100-SXM5` gives h, 100, sxm and 5."""
    return Counter(_WORD.findall(name.lower()))


def keeps_parts(asked: str, names: Iterable[str]) -> bool:
    """Return True if the letters and digits of each word of a query follow one another in the same way in a name.

    `RTX4090` does in `rtx_4090`, but `h10` does not in `hailo_10h`.
    """
    known = [_WORD.findall(name.lower()) for name in names]
    parts = (_WORD.findall(word) for word in _SEPARATOR.split(asked.lower()))
    return all(
        len(one) < 2 or any(one == own[at : at + len(one)] for own in known for at in range(len(own))) for one in parts
    )


def has_words(asked: Counter[str], known: Counter[str], besides: Iterable[str]) -> bool:
    """Return True if a query has every word of a known name and no others except those in `besides`."""
    return not known - asked and set(asked - known) <= set(besides)


def fold_into(name: str, known: Collection[str], ignoring: str = "") -> str:
    """Return the known name that equals a name in the form of `fold_name`; the name unchanged if there is none.

    `ignoring` is another character that `name` may contain and that does not matter.
    """
    if name in known:
        return name
    folded = fold_name(name.replace(ignoring, "") if ignoring else name)
    return next((one for one in known if fold_name(one) == folded), name)


def find_nearest(name: str, known: Iterable[Sequence[str]]) -> list[str]:
    """Return suggestions for a misspelt name, most similar first.

    `known` has the names of each item. A suggestion is the first name of an item with a similar name.
    """
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, fold_name(name))
    ranked: list[tuple[float, str]] = []
    for names in known:
        likeness = 0.0
        for one in names:
            matcher.set_seq2(fold_name(one))
            likeness = _measure(matcher, max(LIKENESS, likeness)) or likeness
        if likeness >= LIKENESS:
            ranked.append((-likeness, names[0]))
    ranked.sort()
    least = max(LIKENESS, -ranked[0][0] - SPREAD) if ranked else LIKENESS
    return [first for unlikeness, first in ranked[:NEAREST] if -unlikeness >= least]


def _measure(matcher: SequenceMatcher[str], least: float) -> float:
    """Return the likeness of two names, 0 below `least`; upper bounds that cost less than the likeness come first."""
    if matcher.real_quick_ratio() < least or matcher.quick_ratio() < least:
        return 0.0
    likeness = matcher.ratio()
    return likeness if likeness >= least else 0.0


def find_meant(name: str, known: Iterable[str]) -> list[str]:
    """Return the known models that a misspelt name most likely means, most similar first.

    Size words and numbers are ignored, so `bert_large` does not match `raft_large`.
    """
    from difflib import SequenceMatcher, get_close_matches

    def keep_family(text: str) -> str:
        return "".join(word for word in split_words(text) if word not in SIZES and not word.isdecimal())

    family = keep_family(name)
    matcher = SequenceMatcher(None, family)

    def is_kin(known: str) -> bool:
        matcher.set_seq2(keep_family(known.rpartition("/")[2]))
        return _measure(matcher, FAMILY_LIKENESS) > 0

    alike = sorted(one for one in known if not family or is_kin(one))
    return get_close_matches(name.lower(), alike, n=NEAREST, cutoff=0.5)


MOST_WORDS: Final = 16
"""Maximum words of a name; a bound for the search in a long list of unknown ones."""


def join_words(words: Sequence[str], is_name: Callable[[str], bool]) -> tuple[str, ...] | None:
    """Join adjacent words into known names, each as long as possible; None if some word is part of no name."""
    names: list[str] = []
    start = 0
    while start < len(words):
        ends = range(min(len(words), start + MOST_WORDS), start, -1)
        end = next((end for end in ends if is_name(" ".join(words[start:end]))), None)
        if end is None:
            return None
        names.append(" ".join(words[start:end]))
        start = end
    return tuple(names)


_MODULE: Final = re.compile(r"[^\W\d]\w*#[0-9a-f]{8}")


def name_module(class_name: str, digest: str) -> str:
    """Return the name of a model that exists only in a program's memory."""
    return f"{class_name}#{digest[:8]}"


def is_module_name(name: str) -> bool:
    """Return True if a model exists only in a program's memory, so that no command can load it."""
    return _MODULE.fullmatch(name) is not None
