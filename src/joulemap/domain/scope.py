"""Scopes of measurements of served language models: the part of serving that one value covers.

A scope is one record here and its name in `ScopeName`. Checks of the database, meanings of columns and labels follow
from the record, and intervals ask for its properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from joulemap.system.record import frozen

ScopeName = Literal["prefill_step", "decode_step", "request", "offline", "steady_serving"]


@frozen(kw_only=True)
class Scope:
    """Part of serving a language model that one measured value covers."""

    name: ScopeName
    label: str
    meaning: str
    is_pass: bool
    """True for a single pass; other scopes are of whole requests, which have a prompt and an answer."""
    is_prompt: bool
    """True if prompts alone are measured."""
    is_loaded: bool
    """True if a new request replaces each finished one, so that requests wait for admission."""

    @property
    def is_step(self) -> bool:
        """True if a pass over tokens of answers is measured alone."""
        return self.is_pass and not self.is_prompt


SCOPE: Final[Mapping[str, Scope]] = {
    one.name: one
    for one in (
        Scope(name="prefill_step", label="prefill step", meaning="a pass over prompts",
              is_pass=True, is_prompt=True, is_loaded=False),
        Scope(name="decode_step", label="decode step", meaning="one token of each sequence",
              is_pass=True, is_prompt=False, is_loaded=False),
        Scope(name="request", label="request", meaning="a call of equal sequences, timed alone",
              is_pass=False, is_prompt=False, is_loaded=False),
        Scope(name="offline", label="offline", meaning="a whole batch, first prompt token to last output token",
              is_pass=False, is_prompt=False, is_loaded=False),
        Scope(name="steady_serving", label="steady serving", meaning="requests always in flight",
              is_pass=False, is_prompt=False, is_loaded=True),
    )
}  # fmt: skip
"""Name -> scope."""

SCOPE_NAMES: Final[tuple[ScopeName, ...]] = get_args(ScopeName)

SCOPES: Final = tuple(SCOPE[name] for name in SCOPE_NAMES)
"""Scopes in the order of their names; KeyError at import for a name without a record."""
