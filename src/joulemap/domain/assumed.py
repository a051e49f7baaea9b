"""Shares of an energy from which its assumed numbers are a caveat, in a database and without one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from joulemap.system.record import frozen

LEAST_ASSUMED: Final = 0.1
"""Share of assumed numbers in an energy from which they are a caveat."""

MOSTLY_STATIC: Final = 0.8
"""Share of static power in an assumed energy from which the caveat names it."""


@frozen
class AssumedEnergy:
    """Shares of a run's energy that rest on assumed energies per action."""

    energy_fj: float
    """Energy of the whole run in femtojoules."""
    fraction: float
    static_fraction: float
    """Share of the whole energy that is static power with an assumed value."""

    @classmethod
    def add_up(cls, parts: Iterable[AssumedEnergy]) -> AssumedEnergy:
        """Return the assumed shares of a sum of energies; 0 if the sum is 0."""
        listed = list(parts)
        whole_fj = sum(one.energy_fj for one in listed)
        shares = (
            sum(one.energy_fj * share for one, share in zip(listed, some, strict=True)) / (whole_fj or 1.0)
            for some in ([one.fraction for one in listed], [one.static_fraction for one in listed])
        )
        return cls(whole_fj, *shares)
