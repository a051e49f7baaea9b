"""Compare floats by relative error only: an absolute tolerance would let every picojoule match."""

from __future__ import annotations

import math


def assert_close(actual: float, expected: float, *, rel: float) -> None:
    """Fail unless `actual` is within the relative error `rel` of `expected`; 0 matches only 0."""
    assert math.isclose(actual, expected, rel_tol=rel, abs_tol=0.0), f"{actual!r} is not within {rel:g} of {expected!r}"
