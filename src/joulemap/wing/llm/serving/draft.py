"""Tokens guessed ahead: a draft model makes a few of each sequence, one after another, and a pass verifies them all.

    step   = k passes of the draft + a pass of the model over 1 + k tokens of each sequence
    tokens of a step = (1 - a^(k + 1)) / (1 - a)          k guesses, each of which holds with a probability a

The draft reads prompts too. What it is made of lies on the same devices, which stand by while it works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from joulemap.system.record import frozen
from joulemap.wing.llm.serving.batch import accept
from joulemap.wing.llm.serving.surface import Cost, Passes, Surface

if TYPE_CHECKING:
    from joulemap.wing.llm.serving.deployment import Deployment


@frozen(kw_only=True, eq=False)
class Draft:
    """What guesses tokens ahead."""

    guessed_tokens: int = attrs.field(validator=attrs.validators.ge(1))
    """Of each sequence in a step, beside the one that is sure."""
    acceptance: float = attrs.field(validator=(attrs.validators.ge(0.0), attrs.validators.le(1.0)))
    """Probability of each that it holds, where those before it do."""
    deployment: Deployment | None = None
    """Of the model that guesses; None where guesses cost nothing, as those looked up in the prompt."""

    @property
    def accepted_tokens(self) -> float:
        """Of a sequence in a step, in the mean."""
        return accept(self.guessed_tokens, self.acceptance)


@frozen(kw_only=True, eq=False)
class Guessing:
    """A surface whose answers work on tokens guessed ahead beside the one that is sure."""

    surface: Surface
    draft: Draft

    @property
    def idle_w(self) -> float:
        """Watts of all devices while they wait."""
        return self.surface.idle_w

    def price(self, passes: Passes, /) -> Cost:
        """Return what passes take, those of answers with the guesses before them."""
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
        waiting = (self.idle_w - guess.idle_w) * seconds
        return Cost(seconds=whole.seconds + seconds, joules=whole.joules + once.joules + more * again.joules + waiting)
