"""Mark of a test whose model has limits, which the plugin of pytest checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.system import MissingPackageError

if TYPE_CHECKING:
    import pytest


def joules(
    *,
    on: str,
    max: str = "",  # noqa: A002 - a test reads as a sentence: `@joules(max="40 mJ", on="l4")`
    latency: str = "",
    precision: str = "bf16",
    batch: int | None = None,
    runtime: str = "fused",
    strict: bool = False,
) -> pytest.MarkDecorator:
    """Return the decorator of a test that fails if its model needs more than `max` per inference, or than `latency`
    per batch, on a chip.

    The model is what the test returns, or else its argument `model`: a pair (module, example inputs), a built-in name
    or a `Workload`. Limits are texts such as `40 mJ` and `5 ms`. A test fails if the whole 80 % interval lies above a
    limit; a strict one also if only the predicted value does. `batch` is that of the example inputs, or 1.

    Raises MissingPackageError without pytest.
    """
    try:
        import pytest
    except ImportError:
        raise MissingPackageError("pytest", "dev") from None
    return pytest.mark.joules(
        on=on, max=max, latency=latency, precision=precision, batch=batch, runtime=runtime, strict=strict
    )
