"""Words by which the modifiers of a question extend the digest of a chip.

A chip as described has the digest of its content. Each modifier (calibration, power mode, boundary, host, TF32,
changes) extends it by a word, in the order in which they apply. A modifier with an empty word leaves it unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from joulemap.domain.configuration import BOARD

DEFAULT_MODE: Final = "default"
"""Power mode of a chip in none of its named modes."""

TF32_WORD: Final = "|tf32"
DEVICE_WORD: Final = "|device only"
FIXED_VOLTAGE_WORD: Final = "|fixed voltage"


def extend_digest(digest: str, word: str) -> str:
    """Return the digest of a chip after a modifier with this word."""
    return hashlib.sha256(f"{digest}{word}".encode()).hexdigest()[:16] if word else digest


def calibration_word(calibration_digest: str) -> str:
    """Return the word of a calibration; none for the class's own numbers."""
    return f"+{calibration_digest}" if calibration_digest else ""


def mode_word(power_mode: str) -> str:
    """Return the word of a power mode; none for the default mode."""
    return "" if power_mode == DEFAULT_MODE else f"@{power_mode}"


def boundary_word(boundary: str, priced_at: str, version: str, around: str = "") -> str:
    """Return the word of a boundary; none at the board if the energies were fitted there.

    `version` is the formula version, because formulas determine the board's share beyond the chip. `around` is the
    digest of the surroundings at the boundary `system`.
    """
    return "" if boundary == priced_at == BOARD else f"|{boundary}|{version}" + (f"|{around}" if around else "")


def host_word(host_digest: str, *, is_counted: bool, around: str = "") -> str:
    """Return the word of a host, given the host's digest in a run.

    `around` is the digest of the host's surroundings if its power at the wall counts.
    """
    return f"|{'in' if is_counted else 'beside'} {host_digest}" + (f"|{around}" if around else "")


def changes_word(values: Iterable[tuple[str, float]], name: str = "") -> str:
    """Return the word of changed numbers and of a new name; none without either."""
    words = [*(f"{key}={value!r}" for key, value in values), *([f"as {name}"] if name else [])]
    return f"|set {'|'.join(words)}" if words else ""
