"""Text on the shares of an energy that rest on assumed numbers.

The ledger gives the share: lines whose energy per action has the basis `assumed`. Every answer about runs states a
share above a third: in the table next to the energy, and in the headline.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from joulemap.domain.name import unmark
from joulemap.present.cell import show_share
from joulemap.present.document import SHARE_HEADING
from joulemap.present.template import Template, find_named
from joulemap.store.run import AssumedEnergy

PART: Final = Template("{share} of the energy of {hardware}[ ({basis})]")
UP_TO: Final = Template("up to {share}")
OF_EACH: Final = Template("assumed numbers account for {parts:and}")
OF_MANY: Final = Template("assumed numbers account for {shares:range} of the energy of {names:and}[ ({basis})]")
STATIC_BASIS: Final = "mostly static power"

LEAST_STATED: Final = 1.0 / 3.0
"""Assumed share of an energy above which answers state it."""

SHARE_FIELD: Final = "assumed_energy_fraction"
"""Field with the assumed share in rows that hold their own share rather than that of a run."""

MOSTLY: Final = 0.8
"""Minimum share of static power in the assumed energy for which the text names static power as its cause."""

MOST_NAMED: Final = 2
"""Maximum chips in a headline whose assumed shares are listed one by one; for more chips, the range is stated."""

_ENERGY: Final = re.compile(r"\benergy\b|\d [pnµmk]?J\b")
"""Pattern that identifies a headline about energy."""


def names_energy(headline: str) -> bool:
    """Return True for a headline about energy."""
    return _ENERGY.search(headline) is not None


def names_chip(headline: str, name: str, *, is_exact: bool = False) -> bool:
    """Return whether a headline names a chip; `is_exact` excludes its power modes, written after `@`.

    A headline that knows what it names is not searched, because a chip's id may be any word. Compiles no pattern per
    chip.
    """
    if found := find_named(headline):
        return name in (found if is_exact else {part for one in found for part in (one, *one.split("@", 1)[:1])})
    start = headline.find(name)
    while start >= 0:
        before, after = headline[:start][-1:], headline[start + len(name) :][:1]
        if not (_is_of_word(before) or _is_of_word(after) or (is_exact and after == "@")):
            return True
        start = headline.find(name, start + 1)
    return False


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def show_assumed(one: AssumedEnergy | None) -> str:
    """Return an assumed share for a table cell; empty for a share up to a third."""
    return "" if one is None or one.fraction <= LEAST_STATED else show_share(one.fraction)


def head_assumed(shares: Iterable[AssumedEnergy | None]) -> str:
    """Return the column of assumed shares in the syntax of `lay`; empty if no share is above a third."""
    return f"*{SHARE_HEADING} {SHARE_FIELD} | " if any(map(show_assumed, shares)) else ""


def is_whole(one: AssumedEnergy, energy_j: float | None) -> bool:
    """Return whether `energy_j` is the energy of the whole run rather than of a part."""
    return energy_j is not None and math.isclose(energy_j * 1e15, one.energy_fj, rel_tol=1e-9)


def describe_assumed(headline: str, energies: Mapping[str, Sequence[AssumedEnergy]]) -> str:
    """Return the assumed share of the energy of each chip that a headline names; empty if none exceeds a third.

    `energies` maps the displayed name of a chip to the energies of its runs.
    """
    if not names_energy(headline):
        return ""
    found: list[tuple[float, str, str]] = []
    for name, each in energies.items():
        shares = sorted(each, key=lambda one: one.fraction)
        if shares[-1].fraction <= LEAST_STATED or not names_chip(headline, unmark(name), is_exact=True):
            continue
        ends = [show_share(one.fraction) for one in (shares[0], shares[-1])]
        share = ends[0] if ends[0] == ends[1] else UP_TO(share=ends[1])
        basis = name_assumed(shares[-1])
        found.append((shares[-1].fraction, name, PART(share=share, hardware=name, basis=basis)))
    if len(found) > MOST_NAMED:
        ends = [show_share(pick(found)[0]) for pick in (min, max)]
        bases = {name_assumed(max(energies[name], key=lambda one: one.fraction)) for _, name, _ in found}
        basis = bases.pop() if len(bases) == 1 else ""
        return OF_MANY(shares=ends, names=[name for _, name, _ in found], basis=basis)
    return OF_EACH(parts=[part for *_, part in found]) if found else ""


def name_assumed(energy: AssumedEnergy) -> str:
    """Return the words for assumed static power if it dominates the assumed energy; otherwise an empty text."""
    return STATIC_BASIS if energy.static_fraction >= MOSTLY * energy.fraction else ""
