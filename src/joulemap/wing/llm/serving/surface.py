"""A surface: what passes of a model take on all of its devices, over how many sequences and tokens they are of.

    pass = {sequences, each of so many tokens behind its context} + {a piece of one more prompt behind its context}

Whoever serves, batch by batch, steadily or request by request, asks for passes in arrays and knows nothing else of
models and chips.
"""

from __future__ import annotations

import math
from typing import Final, Protocol, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from joulemap.system.record import frozen

Floats = NDArray[np.float64]

KNOTS: Final = 4.0
"""Ratio of knots of a table that follow one another."""


@frozen(kw_only=True, eq=False)
class Passes:
    """Passes, an array for each of their sizes; arrays are of one shape."""

    sequences: Floats
    """Whose last tokens are asked for; 0 for a piece of a prompt alone."""
    tokens: Floats
    """Of each of them: 1 of answers, a whole prompt before the first."""
    context: Floats
    """Of each of them, in the cache before."""
    chunk: Floats
    """Tokens of one more prompt; 0 for none."""
    chunk_context: Floats
    following: Floats
    """Passes over prompts that follow one another, this one in: stages of a pipeline work on several at once."""

    @classmethod
    def of(
        cls,
        sequences: ArrayLike,
        *,
        tokens: ArrayLike = 1.0,
        context: ArrayLike = 0.0,
        chunk: ArrayLike = 0.0,
        chunk_context: ArrayLike = 0.0,
        following: ArrayLike = 1.0,
    ) -> Self:
        """Return passes of sizes that are one for all or arrays alike."""
        columns = np.broadcast_arrays(
            *(
                np.asarray(one, dtype=np.float64)
                for one in (sequences, tokens, context, chunk, chunk_context, following)
            )
        )
        names = (field.name for field in attrs.fields(cls))
        return cls(**dict(zip(names, columns, strict=True)))

    @classmethod
    def joined(cls, several: tuple[Passes, ...]) -> Self:
        """Return passes one behind the other."""
        names = [field.name for field in attrs.fields(cls)]
        return cls(**{name: np.concatenate([np.atleast_1d(getattr(one, name)) for one in several]) for name in names})


@frozen(kw_only=True, eq=False)
class Cost:
    """What passes take, on all devices together."""

    seconds: Floats
    joules: Floats


class Surface(Protocol):
    """What passes take, and what devices draw between them."""

    @property
    def idle_w(self) -> float:
        """Watts of all devices while they wait."""
        ...

    def price(self, passes: Passes, /) -> Cost:
        """Return what passes take."""
        ...


@frozen(kw_only=True, eq=False)
class Grid:
    """Costs at the knots of two sizes, in between linear in both, and beyond the last ones too."""

    first: Floats
    second: Floats
    values: Floats
    """First x second x (seconds, joules)."""

    def read(self, first: Floats, second: Floats) -> Floats:
        """Return seconds and joules at places, as the last dimension."""
        row, along = _locate(self.first, first)
        column, across = _locate(self.second, second)
        low = self.values[row, column] * (1.0 - across) + self.values[row, column + 1] * across
        high = self.values[row + 1, column] * (1.0 - across) + self.values[row + 1, column + 1] * across
        found: Floats = low * (1.0 - along) + high * along
        return found


def _locate(knots: Floats, places: Floats) -> tuple[NDArray[np.int64], Floats]:
    index = np.clip(np.searchsorted(knots, places, side="right") - 1, 0, len(knots) - 2)
    share = (places - knots[index]) / (knots[index + 1] - knots[index])
    return index.astype(np.int64), share[..., None]


@frozen(kw_only=True, eq=False)
class Table:
    """A surface at knots, quick to read: what answers take, and what prompts add to a pass.

    Kernels run one after another, so that the work of a prompt in its attention adds to all else.
    """

    idle_w: float
    decode: Grid
    """Over sequences and their context."""
    prompt: Grid
    """Over sequences that decode and tokens of prompts: what these add where nothing is cached before."""
    attention: Grid
    """Over tokens of prompts and of their context: what the context adds."""

    def step(
        self,
        sequences: ArrayLike,
        context_tokens: ArrayLike,
        prompt_tokens: ArrayLike = 0.0,
        prompt_context: ArrayLike = 0.0,
    ) -> tuple[Floats, Floats]:
        """Return seconds and joules of passes with so many prompt tokens, of all prompts, and sequences that decode.

        `context_tokens` is the mean of these; `prompt_context` such that one prompt with so many cached tokens attends
        as much as all, below 0 for several short ones.
        """
        count, context, prompt, behind = np.broadcast_arrays(
            *(np.asarray(one, dtype=np.float64) for one in (sequences, context_tokens, prompt_tokens, prompt_context))
        )
        has_prompt = (prompt > 0.0)[..., None]
        total = np.where((count > 0.0)[..., None], self.decode.read(count, context), 0.0)
        total = total + np.where(has_prompt, self.prompt.read(count, prompt), 0.0)
        total = total + np.where(has_prompt, self.attention.read(prompt, behind), 0.0)
        return total[..., 0], total[..., 1]


def tabulate(surface: Surface, *, sequences: int, context_tokens: int, prompt_tokens: int) -> Table:
    """Return a surface at knots up to so many sequences, tokens of each in the cache and prompt tokens of a pass."""
    counts, prompts = _knots(1.0, sequences, 2.0), _knots(16.0, prompt_tokens, 2.0)
    contexts = np.concatenate([[0.0], _knots(512.0, context_tokens, 8.0)])
    few, pieces = _knots(1.0, sequences), _knots(16.0, prompt_tokens)
    some = np.concatenate([[0.0], few])
    decode = _cross(counts, contexts)
    mixed = _cross(some, prompts)
    behind = _cross(pieces, contexts)
    middle = float(contexts[len(contexts) // 2])
    cost = surface.price(
        Passes.joined(
            (
                Passes.of(decode[0], context=decode[1]),
                Passes.of(mixed[0], context=middle, chunk=mixed[1]),
                Passes.of(few, context=middle),
                Passes.of(0.0, chunk=behind[0], chunk_context=behind[1]),
            )
        )
    )
    both = np.stack([cost.seconds, cost.joules], axis=-1)
    ends = np.cumsum([decode.shape[1], mixed.shape[1], len(few)])
    answers, with_prompt, alone, attending = np.split(both, ends)
    base = np.concatenate([np.zeros((1, 2)), alone])
    attending = attending.reshape(len(pieces), len(contexts), 2)
    return Table(
        idle_w=surface.idle_w,
        decode=Grid(first=counts, second=contexts, values=answers.reshape(len(counts), len(contexts), 2)),
        prompt=Grid(first=some, second=prompts, values=with_prompt.reshape(len(some), len(prompts), 2) - base[:, None]),
        attention=Grid(first=pieces, second=contexts, values=attending - attending[:, :1]),
    )


def _knots(least: float, most: float, ratio: float = KNOTS) -> Floats:
    """Return places from the least to the most, each so many times the one before; two at least."""
    count = max(1, math.ceil(math.log(max(most, least * 2.0) / least, ratio)))
    places = least * ratio ** np.arange(count)
    return np.append(places, max(most, least * 2.0))


def _cross(first: Floats, second: Floats) -> Floats:
    """Return all pairs, as two rows."""
    return np.stack([column.ravel() for column in np.meshgrid(first, second, indexing="ij")])
