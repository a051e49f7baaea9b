"""Phases of a request to a language model: the kinds of passes that it takes.

A phase is one record here and its name in `PhaseName`. The option `--phase`, the dimension of a run, columns of
answers and names of passes follow from the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from joulemap.system import frozen

PhaseName = Literal["prefill", "decode"]


@frozen(kw_only=True)
class Phase:
    """Kind of pass of a language model."""

    name: PhaseName
    label: str
    """Name of one pass in lists of choices."""
    reads_prompt: bool
    """True if a pass reads many tokens of a prompt; otherwise it adds one token to each sequence."""
    size: str
    """Argument of a pass's name that states its size: new tokens, or tokens in the KV cache."""
    option: str
    """Option of commands with this size."""


PHASE: Final[Mapping[str, Phase]] = {
    one.name: one
    for one in (
        Phase(name="prefill", label="prefill", reads_prompt=True, size="tokens", option="prompt"),
        Phase(name="decode", label="a decode step", reads_prompt=False, size="cached", option="cached"),
    )
}
"""Name -> phase."""

PHASE_NAMES: Final[tuple[PhaseName, ...]] = get_args(PhaseName)
"""Names in the order in which a request takes the phases."""

PHASES: Final = tuple(PHASE[name] for name in PHASE_NAMES)
"""Phases in that order; KeyError at import for a name without a record."""

PROMPT, ANSWER = (next(one for one in PHASES if one.reads_prompt is is_prompt) for is_prompt in (True, False))
"""Phase of the prompt, and phase of the tokens of the answer."""

MIXED: Final = "mixed"
"""Phase of a pass with a chunk of a prompt beside tokens of answers."""

MOST_GUESSED: Final = 15
"""Maximum draft tokens per sequence and step."""


def find_phase(tokens: float) -> Phase:
    """Return the phase of a pass that takes this number of new tokens per sequence."""
    return PROMPT if tokens > 1 else ANSWER
