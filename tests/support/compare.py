"""Compare floats by relative error only: an absolute tolerance would let every picojoule match."""

from __future__ import annotations

import math


def assert_close(actual: float | None, expected: float | None, *, rel: float = 1e-9) -> None:
    """Fail unless `actual` is `expected` within `rel`, by default but for rounding; only 0 is close to 0."""
    assert actual is not None and expected is not None, f"{actual!r} is not close to {expected!r}"
    assert math.isclose(actual, expected, rel_tol=rel, abs_tol=0.0), f"{actual!r} is not within {rel:g} of {expected!r}"
