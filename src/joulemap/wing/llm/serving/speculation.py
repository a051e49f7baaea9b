"""Speculative decoding as options write it: a number of draft tokens, or a method with its published acceptance."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from joulemap.catalog import DATA
from joulemap.system import UsageError, read_real, read_whole

ACCEPTANCES: Final = DATA / "model" / "acceptance.toml"
"""File with the published acceptance of draft tokens by depth."""


@cache
def load_methods() -> Mapping[str, Mapping[str, Any]]:
    """Return method -> its draft model, its number of draft tokens, and their acceptance by depth."""
    return tomllib.loads(ACCEPTANCES.read_text(encoding="utf-8"))


def read_speculation(written: str, acceptance: str, draft: str) -> dict[str, Any]:
    """Return the fields of `Serving` for `3`, `mtp` or `eagle3:5`; UsageError for invalid text.

    `acceptance` is a list by depth, which replaces the published one; `draft` replaces the draft of the method.
    """
    name, _, count = written.partition(":")
    method = load_methods().get(name)
    rates = _read_rates(acceptance)
    if method is None:
        known = ", ".join(load_methods())
        tokens = _read_count(written, f"expected a number of tokens or one of {known}, such as mtp or eagle3:5")
        if not rates:
            raise UsageError(
                f"--speculate {written} needs --acceptance, the share of accepted draft tokens, such as 0.7"
            )
    else:
        tokens = _read_count(count, f"expected {name}:3 for 3 tokens") if count else int(method["tokens"])
        rates = rates or tuple(method["by_depth"])
        draft = draft or str(method["draft"])
        if not draft:
            raise UsageError(f"--speculate {name} needs --draft, a smaller model with the same tokenizer")
    return {"speculate": tokens, "acceptance": rates[0], "later_acceptance": rates[1:tokens], "draft": draft}


def _read_count(text: str, expected: str) -> int:
    try:
        return read_whole(text)
    except ValueError:
        raise UsageError(f"--speculate is {text!r}, {expected}") from None


def _read_rates(text: str) -> tuple[float, ...]:
    """Return the acceptance by depth; empty without a text."""
    rates = []
    for part in filter(None, text.split(",")):
        try:
            rate = read_real(part.strip())
        except ValueError:
            raise UsageError(f"--acceptance: {part.strip()!r} is not a number; write 0.7 or 0.8,0.6") from None
        if not 0.0 <= rate <= 1.0:
            raise UsageError(f"--acceptance is {rate:g}, expected a share from 0 to 1")
        rates.append(rate)
    return tuple(rates)
