"""The table of laws: what joulemap promises of every answer.

Laws of one evaluation (`joulemap.physics.law`) come first; the others compare two predictions, two answers to one
question, or an answer with itself. A comparison obeys a law if its left value is at most `tolerance` times the right.
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from joulemap.physics.law import LAWS as EVALUATED
from joulemap.system.record import frozen
from laws.panel import find_chip
from laws.question import Question

EXISTS: Final = "it exists"
"""Group of the laws of one evaluation."""


@frozen(kw_only=True)
class Law:
    """Statement that holds for any chip, model and setting."""

    name: str
    group: str
    sentence: str
    tolerance: float = 1.0
    reason: str = "exact"
    """Reason for the tolerance."""
    value: str = ""
    """Field of `joulemap.Prediction` that a law on two predictions compares; empty for any other law."""


@frozen(kw_only=True)
class Exempt:
    """Comparisons that may break a law, up to a ratio, with the reason."""

    law: str
    chip: str = "*"
    """Pattern of hardware ids."""
    model: str = "*"
    """Pattern of the model's name."""
    precision: str = "*"
    """Pattern of the precision."""
    vendor: str = "*"
    """Vendor of the hardware."""
    most: float
    """Largest ratio that is explained."""
    why: str
    source: str
    is_fault: bool = False
    """True for a known fault that is to be mended; False where the law does not apply."""

    def covers(self, law: str, question: Question, ratio: float) -> bool:
        """Return whether a broken comparison is one of these."""
        if law != self.law or ratio > self.most or (self.vendor != "*" and not question.hardware):
            return False
        vendor = find_chip(question.hardware).vendor if self.vendor != "*" else ""
        pairs = (
            (question.hardware, self.chip), (question.name, self.model), (question.precision, self.precision),
            (vendor, self.vendor),
        )  # fmt: skip
        return all(fnmatchcase(one, pattern) for one, pattern in pairs)


def _read() -> tuple[Law, ...]:
    entries = tomllib.loads((Path(__file__).parent / "laws.toml").read_text())["laws"]
    evaluated = (
        Law(name=one.name, group=EXISTS, sentence=one.sentence, tolerance=one.tolerance, reason=one.reason)
        for one in EVALUATED
    )
    return (*evaluated, *(Law(**entry) for entry in entries))


LAWS: Final = _read()

BY_NAME: Final = {one.name: one for one in LAWS}
