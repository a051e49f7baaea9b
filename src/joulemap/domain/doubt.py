"""How far predictions may be off: half-widths of 80 % intervals, and what two runs share of their errors.

An error is ln(measured / predicted). A half-width h is that of an 80 % interval of it: a figure v lies between
v exp(-h) and v exp(h) four times in five. docs/doubt.md says where they come from and how they have done.
"""

from __future__ import annotations

import math
from typing import Final, Literal

import attrs

from joulemap.domain.quantity import BASES, Quantity
from joulemap.system.record import frozen

Standing = Literal["this hardware", "its class", "other classes"]
"""Whose measurements say how far predictions of a run are off."""

LOGISTIC: Final = 2.1972245773362196
"""Half-width of an 80 % interval of the standard logistic distribution: ln(0.9 / 0.1)."""

MEAN_TO_WIDTH: Final = 1.6094379124341003
"""Half-width of an 80 % interval over the mean of absolute errors, ln(5): exact where they are exponential, 1.606 of a
normal distribution."""

FULL_GROUPS: Final = 2.0
"""Groups of measurements that weigh as much as what was thought without them."""

TOLD_APART: Final = 0.8
"""Probability from which on one run is said to be better than another."""

CORRELATION: Final = 0.7
"""Of the errors of latency and energy of one run: 0.73 of the 1,038 configurations on three boards that have both."""

DoubtQuantity = Literal["latency", "energy", "joint"]
"""`joint`: what the errors of latency and energy of one run have in common."""

DOUBTED: Final[tuple[DoubtQuantity, ...]] = ("latency", "energy")
"""What has errors of its own."""

OWN: Final = "own"
"""Factor that a run shares with itself alone."""

MODEL: Final = "model"
"""Kind of work of a whole model; that of a single operator is its kind."""


@frozen(kw_only=True)
class ErrorScale:
    """How far predictions were from measurements in one group of them; empty texts stand for all."""

    quantity: DoubtQuantity
    level: int = attrs.field(validator=attrs.validators.ge(0))
    """How many of the following say something: of the groups that a run is in, that of the highest level holds."""
    architecture: str
    work: str
    """`model`, or the kind of a single operator."""
    runtime: str
    precision: str
    hardware: str
    half_width: float = attrs.field(validator=attrs.validators.gt(0.0))
    """Of the natural logarithm."""
    group_count: int = attrs.field(validator=attrs.validators.ge(1))
    """Model families times boards: rows of one are much alike."""
    row_count: int


@frozen(kw_only=True)
class ErrorShare:
    """The part of an error's variance that runs share which are alike in something."""

    quantity: DoubtQuantity
    factor: str
    """What they share: `class`, `board`, `model`, `board_model`, `case`; `own`: what no other run has."""
    share: Quantity


@frozen(kw_only=True)
class BasisSpread:
    """How far prices per action of a basis may be off together, where nobody measured what they add up to."""

    price_basis: str = attrs.field(validator=attrs.validators.in_(BASES))
    half_width: Quantity
    """Of the natural logarithm."""


@frozen(kw_only=True)
class Doubt:
    """All that intervals and probabilities follow from."""

    scales: tuple[ErrorScale, ...]
    shares: tuple[ErrorShare, ...]
    spreads: tuple[BasisSpread, ...]

    def complete_shares(self) -> tuple[ErrorShare, ...]:
        """Return the shares, what they leave to each run, and how `CORRELATION` divides among them.

        A factor has of it as much as the geometric mean of its shares of latency and of energy.
        """
        known = {(one.quantity, one.factor): one.share.value for one in self.shares}
        factors = [*dict.fromkeys(factor for _, factor in known), OWN]
        left = {
            name: 1.0 - sum(share for (quantity, _), share in known.items() if quantity == name) for name in DOUBTED
        }
        joint = {
            factor: math.sqrt(math.prod(known.get((name, factor), left[name]) for name in DOUBTED))
            for factor in factors
        }
        scale = CORRELATION / sum(joint.values())
        return (
            *self.shares,
            *(_derived(name, OWN, share) for name, share in left.items()),
            *(_derived("joint", factor, share * scale) for factor, share in joint.items()),
        )


def _derived(quantity: DoubtQuantity, factor: str, share: float) -> ErrorShare:
    value = Quantity(
        value=share, unit="1", basis="derived", source="what the other shares leave (docs/doubt.md)", note=""
    )
    return ErrorShare(quantity=quantity, factor=factor, share=value)
