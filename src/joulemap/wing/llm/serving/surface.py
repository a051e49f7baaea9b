"""Surface: time and energy of a model's passes on all of its devices, by numbers of sequences and tokens.

    pass = {sequences, each with new tokens after its context} + {a chunk of one more prompt after its context}

Serving code, whether by batch, steady load or single requests, prices arrays of passes and knows nothing else of
models and chips.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, Protocol, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from joulemap.physics import Floats
from joulemap.system import UsageError, frozen

KNOTS: Final = 4.0
"""Ratio between neighboring knots of a table."""

MANY: Final = 16.0
"""Requests in flight from which a pass with a prompt, but without an answer, is too rare to be evaluated."""


@frozen(kw_only=True, eq=False)
class Passes:
    """Sizes of passes, one array per size; all arrays have the same shape."""

    sequences: Floats
    """Sequences that each get a next token; 0 for a lone prompt chunk."""
    tokens: Floats
    """New tokens per sequence: 1 in decode, the whole prompt in prefill."""
    context: Floats
    """Tokens per sequence already in the KV cache."""
    chunk: Floats
    """Tokens of an additional prompt chunk; 0 without a chunk."""
    chunk_context: Floats
    following: Floats
    """Consecutive prefill passes, including this one; pipeline stages work on several at once."""

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
        """Return passes from sizes that are scalars or arrays, which broadcast.

        Raises UsageError for sizes that are no numbers or do not broadcast.
        """
        given = (sequences, tokens, context, chunk, chunk_context, following)
        try:
            columns = np.broadcast_arrays(*(np.asarray(one, dtype=np.float64) for one in given))
        except (TypeError, ValueError) as error:
            raise UsageError(f"sizes of passes: {error}") from None
        names = (field.name for field in attrs.fields(cls))
        return cls(**dict(zip(names, columns, strict=True)))

    def checked(self) -> Self:
        """Return the same passes; UsageError for a size that is not finite or below 0, or a pass without a token."""
        for field in attrs.fields(type(self)):
            sizes = getattr(self, field.name)
            is_wrong = ~(np.isfinite(sizes) & (sizes >= 0.0))
            if is_wrong.any():
                raise UsageError(f"{field.name} of a pass is {sizes[is_wrong].flat[0]:g}, expected a number from 0")
        if (self.sequences * self.tokens + self.chunk <= 0.0).any():
            raise UsageError("a pass has no token: it needs sequences, or a chunk of a prompt")
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of all arrays."""
        return self.sequences.shape

    def flatten(self) -> Self:
        """Return the passes with arrays of one dimension."""
        return self._change(np.ravel)

    def take(self, numbers: NDArray[np.intp]) -> Self:
        """Return the passes at these indices of flat arrays."""
        return self._change(lambda sizes: sizes[numbers])

    def _change(self, change: Callable[[Floats], Floats]) -> Self:
        return type(self)(**{field.name: change(getattr(self, field.name)) for field in attrs.fields(type(self))})

    @classmethod
    def joined(cls, several: tuple[Passes, ...]) -> Self:
        """Concatenate several groups of passes."""
        names = [field.name for field in attrs.fields(cls)]
        return cls(**{name: np.concatenate([np.atleast_1d(getattr(one, name)) for one in several]) for name in names})


@frozen(kw_only=True, eq=False)
class Cost:
    """Time and energy of passes on all devices together."""

    seconds: Floats
    joules: Floats


class Surface(Protocol):
    """Cost model of passes, and the devices' idle power."""

    @property
    def waiting_w(self) -> float:
        """Power of all devices in watts while they wait within a pass."""
        ...

    @property
    def resting_w(self) -> float:
        """Power of all devices in watts between requests."""
        ...

    def price(self, passes: Passes, /) -> Cost:
        """Return the time and energy of passes."""
        ...


class PassCost(Protocol):
    """Cost of single passes on all devices, in seconds and joules."""

    @property
    def resting_w(self) -> float:
        """Power of all devices in watts between requests."""

    def find_step(self, sequences: float, context: float) -> tuple[float, float, float, float, float]:
        """Return (seconds, joules, slope of the seconds, slope of the joules, end) of a decode pass.

        The slopes are per token of mean context. Both hold up to the context `end`.
        """

    def find_mixed(self, sequences: float, context: float, prompt: float, prompt_context: float) -> tuple[float, float]:
        """Return the seconds and joules of a pass in which `sequences` decode and `prompt` tokens of prompts run.

        They run after `prompt_context` cached tokens, as one prompt with the same attention work.
        """


@frozen(kw_only=True, eq=False)
class CostGrid:
    """Costs at the knots of two sizes, linear in both sizes between the knots and beyond the last knot."""

    first: Floats
    second: Floats
    values: Floats
    """Array of shape first x second x (seconds, joules)."""

    @cached_property
    def lists(self) -> tuple[list[float], list[float], list[list[list[float]]]]:
        """Knots and values as lists, which single points are read from faster."""
        return self.first.tolist(), self.second.tolist(), self.values.tolist()

    def find(self, first: float, second: float) -> tuple[float, float, float, float, float]:
        """Return seconds and joules at one point, their slopes along the second size, and the end of these slopes."""
        rows, columns, values = self.lists
        row = bisect_right(rows, first, 1, len(rows) - 1) - 1
        column = bisect_right(columns, second, 1, len(columns) - 1) - 1
        along = (first - rows[row]) / (rows[row + 1] - rows[row])
        start, end = columns[column], columns[column + 1]
        near, far = values[row], values[row + 1]
        (low_s, low_j), (high_s, high_j) = near[column], near[column + 1]
        (low_far_s, low_far_j), (high_far_s, high_far_j) = far[column], far[column + 1]
        low_s, low_j = low_s + along * (low_far_s - low_s), low_j + along * (low_far_j - low_j)
        high_s, high_j = high_s + along * (high_far_s - high_s), high_j + along * (high_far_j - high_j)
        longer, dearer = (high_s - low_s) / (end - start), (high_j - low_j) / (end - start)
        return low_s + longer * (second - start), low_j + dearer * (second - start), longer, dearer, end


@frozen(kw_only=True, eq=False)
class Table:
    """Tabulated surface that is fast to read: decode cost, and the extra cost of prompt tokens in a pass.

    Kernels run one after another, so the attention of a prompt adds to all other work.
    """

    resting_w: float
    decode: CostGrid
    """Cost of decode passes, by number of sequences and their context."""
    prompt: CostGrid
    """Extra cost of prompt tokens with an empty KV cache, by number of decoding sequences and prompt tokens."""
    attention: CostGrid
    """Extra cost of cached context, by number of prompt tokens and their context."""

    def find_step(self, sequences: float, context: float) -> tuple[float, float, float, float, float]:
        """Return the cost of a decode pass and its slopes, as `PassCost` defines them."""
        return self.decode.find(sequences, context)

    def find_mixed(self, sequences: float, context: float, prompt: float, prompt_context: float) -> tuple[float, float]:
        """Return the cost of a pass with prompt tokens, as `PassCost` defines it."""
        seconds, joules = self.decode.find(sequences, context)[:2] if sequences else (0.0, 0.0)
        if prompt:
            least = self.prompt.lists[1][0]
            more_s, more_j, *_ = self.prompt.find(sequences, max(prompt, least))
            late_s, late_j, *_ = self.attention.find(prompt, prompt_context)
            seconds, joules = seconds + more_s + late_s, joules + more_j + late_j
        return seconds, joules

    def step(
        self,
        sequences: ArrayLike,
        context_tokens: ArrayLike,
        prompt_tokens: ArrayLike = 0.0,
        prompt_context: ArrayLike = 0.0,
    ) -> tuple[Floats, Floats]:
        """Return seconds and joules of passes with decoding sequences and the prompt tokens of all prompts.

        `context_tokens` is the mean context of the decoding sequences. `prompt_context` is the cached context at which
        one prompt attends as much as all prompts together; it is below 0 for several short prompts. Fewer prompt
        tokens than the first knot cost as much as it does, because such a pass reads the same weights.
        """
        given = (sequences, context_tokens, prompt_tokens, prompt_context)
        sizes = np.broadcast_arrays(*(np.asarray(one, dtype=np.float64) for one in given))
        costs = [self.find_mixed(*one) for one in zip(*(column.ravel().tolist() for column in sizes), strict=True)]
        seconds, joules = np.array(costs).reshape(-1, 2).T
        return seconds.reshape(sizes[0].shape), joules.reshape(sizes[0].shape)


@frozen(kw_only=True, eq=False)
class Knots:
    """Knots of the two sizes of each grid of a `Table`."""

    answers: tuple[Floats, Floats]
    prompts: tuple[Floats, Floats]
    pieces: tuple[Floats, Floats]

    @cached_property
    def passes(self) -> Passes:
        """Passes on whose costs a table depends."""
        decode, mixed, late = (_cross(*pair) for pair in (self.answers, self.prompts, self.pieces))
        contexts, some = self.answers[1], self.prompts[0]
        middle = float(contexts[len(contexts) // 2])
        return Passes.joined(
            (
                Passes.of(decode[0], context=decode[1]),
                Passes.of(mixed[0], context=middle, chunk=mixed[1]),
                Passes.of(some[some > 0.0], context=middle),
                Passes.of(0.0, chunk=late[0], chunk_context=late[1]),
            )
        )

    def tabulate(self, surface: Surface) -> Table:
        """Return the table of a surface at these knots."""
        (counts, contexts), (some, sizes), (parts, behind) = self.answers, self.prompts, self.pieces
        cost, few = surface.price(self.passes), np.count_nonzero(some)
        both = np.stack([cost.seconds, cost.joules], axis=-1)
        ends = np.cumsum([len(counts) * len(contexts), len(some) * len(sizes), few])
        answering, with_prompt, alone, attending = np.split(both, ends)
        base = np.concatenate([np.zeros((len(some) - few, 2)), alone])
        mixed = with_prompt.reshape(len(some), len(sizes), 2) - base[:, None]
        attending = attending.reshape(len(parts), len(behind), 2)
        return Table(
            resting_w=surface.resting_w,
            decode=CostGrid(first=counts, second=contexts, values=answering.reshape(len(counts), len(contexts), 2)),
            prompt=CostGrid(first=some, second=sizes, values=mixed),
            attention=CostGrid(first=parts, second=behind, values=attending - attending[:, :1]),
        )


def choose_knots(*, sequences: int, context_tokens: int, prompt_tokens: int) -> Knots:
    """Return the knots of a table up to a number of sequences, a context per sequence, and prompt tokens per pass."""
    contexts = np.concatenate([[0.0], _knots(512.0, context_tokens, 8.0)])
    return Knots(
        answers=(_knots(1.0, sequences, 2.0), contexts),
        prompts=(np.append(0.0, _knots(1.0, sequences)), _knots(16.0, prompt_tokens, 2.0)),
        pieces=(_knots(16.0, prompt_tokens), contexts),
    )


def choose_steady_knots(
    *,
    sequences: Sequence[float],
    contexts: tuple[float, float],
    prompts: Sequence[float],
    prompt_tokens: int,
    alone: bool,
) -> Knots:
    """Return the knots for some numbers of requests in flight: a quarter of the passes that any load would need.

    Nearly all passes have between a quarter of the `sequences` and all of them, at contexts between two numbers of
    tokens, and prompt tokens that are a small multiple of one of the `prompts`, or those of a whole pass. Prompts of
    many requests are evaluated beside answers only, unless they often run `alone`.
    """
    fewest, most, shortest = min(sequences), max(2.0, *sequences), min(prompts)
    counts = np.unique(np.maximum(1.0, [1.0, fewest / KNOTS, most / KNOTS, *sequences, most]))
    beside = np.unique(np.maximum(1.0, [fewest / KNOTS, math.sqrt(fewest * most), most]))
    beside = beside if fewest >= MANY and not alone else np.append(0.0, counts[[0, -1]])
    least = 16.0 if 4 * shortest > prompt_tokens or shortest <= 256 else 256.0  # long prompts are cut if few fit a pass
    sizes = {least, *(one for one in (256.0, *prompts, 4.0 * shortest) if least < one < prompt_tokens / 1.5)}
    pieces = np.array(sorted({*sizes, max(32.0, float(prompt_tokens))}))
    return Knots(
        answers=(counts, np.array([contexts[0], max(contexts[1], contexts[0] + 1)], dtype=np.float64)),
        prompts=(beside, pieces),
        pieces=(np.array([16.0, pieces[-1]]), np.array([0.0, contexts[1]])),
    )


def _knots(least: float, most: float, ratio: float = KNOTS) -> Floats:
    """Return values from `least` to `most` at a constant ratio, at least two."""
    count = max(1, math.ceil(math.log(max(most, least * 2.0) / least, ratio)))
    knots = least * ratio ** np.arange(count)
    return np.append(knots, max(most, least * 2.0))


def _cross(first: Floats, second: Floats) -> Floats:
    """Return all pairs of two arrays' elements, as an array of two rows."""
    return np.stack([column.ravel() for column in np.meshgrid(first, second, indexing="ij")])


def count_accepted(guessed: int, acceptance: float, later: Sequence[float] = ()) -> float:
    """Return the mean tokens per sequence and step, with `guessed` guesses of a given acceptance rate.

    `later` contains the rates of the second and later guesses, the last rate repeated. The first rejected guess
    discards all later guesses, and the step always yields one further token. Source: Leviathan et al., arXiv
    2211.17192, equation 1.
    """
    if later:
        rates = [acceptance, *later, *[later[-1]] * guessed][:guessed]
        return 1.0 + math.fsum(math.prod(rates[: depth + 1]) for depth in range(guessed))
    if acceptance >= 1.0:
        return guessed + 1.0
    return float((1.0 - acceptance ** (guessed + 1)) / (1.0 - acceptance))
