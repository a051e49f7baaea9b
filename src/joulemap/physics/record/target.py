"""Digest of a chip in a run.

The digest of a chip's description is extended by one word for each modifier of a question: calibration, power mode,
boundary, host, matmul precision, changes. The words are added in the order in which the modifiers apply. An empty word
leaves the digest unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from joulemap.physics.record.configuration import BOARD
from joulemap.physics.record.product import DEFAULT

DEFAULT_MODE: Final = "default"
"""Name of the power mode of a chip for which no mode is set."""

DEVICE_WORD: Final = "|device only"
FIXED_VOLTAGE_WORD: Final = "|fixed voltage"


def extend_digest(digest: str, word: str) -> str:
    """Return a chip's digest extended by the word of a modifier."""
    return hashlib.sha256(f"{digest}{word}".encode()).hexdigest()[:16] if word else digest


def calibration_word(calibration_digest: str) -> str:
    """Return the word that a calibration adds to a chip's digest; empty without a calibration."""
    return f"+{calibration_digest}" if calibration_digest else ""


def mode_word(power_mode: str) -> str:
    """Return the word that a power mode adds to a chip's digest; empty for the default mode."""
    return "" if power_mode == DEFAULT_MODE else f"@{power_mode}"


def matmul_word(setting: str) -> str:
    """Return the word that a matmul precision adds to a chip's digest; empty for the default."""
    return "" if setting == DEFAULT else f"|matmul {setting}"


def boundary_word(boundary: str, priced_at: str, version: str, around: str = "") -> str:
    """Return the word that an energy boundary adds to a chip's digest.

    It is empty at the boundary `board` if the energies were also fitted there. `version` is the formula version,
    because formulas determine the energy of the board outside the chip. `around` is the digest of the surroundings.
    """
    return "" if boundary == priced_at == BOARD else f"|{boundary}|{version}" + (f"|{around}" if around else "")


def host_word(host_digest: str, *, is_counted: bool, around: str = "") -> str:
    """Return the word that a host adds to a chip's digest; `host_digest` is the host's own digest in a run.

    `around` is the digest of the host's surroundings if its power at the wall counts.
    """
    return f"|{'in' if is_counted else 'beside'} {host_digest}" + (f"|{around}" if around else "")


def changes_word(values: Iterable[tuple[str, float]], name: str = "") -> str:
    """Return the word that changed numbers and a new name add to a chip's digest; empty without both."""
    words = [*(f"{key}={value!r}" for key, value in values), *([f"as {name}"] if name else [])]
    return f"|set {'|'.join(words)}" if words else ""
