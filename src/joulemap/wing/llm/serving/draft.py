"""Speculative decoding: a draft model guesses a few tokens of each sequence in turn, and one pass verifies them all.

    step   = k draft passes + one model pass over 1 + k tokens of each sequence
    tokens per step = (1 - a^(k + 1)) / (1 - a)           k guesses, each accepted with probability a

The draft model reads prompts too. It is stored on the same devices; devices that it does not use idle meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from joulemap.system import frozen
from joulemap.wing.llm.serving.batch import accept
from joulemap.wing.llm.serving.surface import Cost, Passes, Surface

if TYPE_CHECKING:
    from joulemap.wing.llm.serving.deployment import Deployment


@frozen(kw_only=True, eq=False)
class Draft:
    """Draft model and acceptance rate for speculative decoding."""

    guessed_tokens: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Tokens guessed per sequence and step, in addition to the verified token; 0 without speculative decoding."""
    acceptance: float = attrs.field(default=0.0, validator=(attrs.validators.ge(0.0), attrs.validators.le(1.0)))
    """Probability that a guess is accepted, given that all guesses before it were."""
    later: tuple[float, ...] = ()
    """Acceptance of the second and later guesses; empty if it is `acceptance` for all."""
    deployment: Deployment | None = None
    """Deployment of the draft model; None if guesses cost nothing, such as guesses that are looked up in the prompt."""

    @property
    def accepted_tokens(self) -> float:
        """Mean tokens gained per sequence and step, including the verified token."""
        return accept(self.guessed_tokens, self.acceptance, self.later)


@frozen(kw_only=True, eq=False)
class Guessing:
    """Surface with speculative decoding: decode passes also verify guessed tokens."""

    surface: Surface
    draft: Draft

    @property
    def waiting_w(self) -> float:
        """Power of all devices in watts while they wait within a pass."""
        return self.surface.waiting_w

    @property
    def resting_w(self) -> float:
        """Power of all devices in watts between requests."""
        return self.surface.resting_w

    def price(self, passes: Passes, /) -> Cost:
        """Return the cost of passes; decode passes include the draft passes before them."""
        is_answer = (passes.tokens == 1.0) & (passes.sequences > 0.0)
        guessed = np.where(is_answer, self.draft.guessed_tokens, 0.0)
        whole = self.surface.price(attrs.evolve(passes, tokens=passes.tokens + guessed))
        guess = self.draft.deployment
        if guess is None:
            return whole
        once = guess.price(passes)
        again = guess.price(attrs.evolve(passes, chunk=np.zeros_like(passes.chunk)))
        more = np.maximum(guessed - 1.0, 0.0)
        seconds = once.seconds + more * again.seconds
        waiting = (self.waiting_w - guess.waiting_w) * seconds
        return Cost(seconds=whole.seconds + seconds, joules=whole.joules + once.joules + more * again.joules + waiting)


NO_DRAFT: Final = Draft()
"""No speculative decoding: each step adds one token to a sequence."""


def guess(surface: Surface, draft: Draft) -> Surface:
    """Return a surface with speculative decoding; `surface` itself without guessed tokens."""
    return Guessing(surface=surface, draft=draft) if draft.guessed_tokens else surface
