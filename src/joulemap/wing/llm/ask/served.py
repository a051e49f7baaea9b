"""Caveats of deployments: engines without measurements, precisions that differ, slow hosts, and memory limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from joulemap.ask.fact import Quantity, Subject
from joulemap.ask.finding import Finding
from joulemap.ask.scope import Scope
from joulemap.system.record import frozen

ENERGY: Final = "energy_per_token"
DECODE_ENERGY: Final = "decode_energy_per_token"
TIME: Final = "time_per_token"
FIRST: Final = "first_token"
RATE: Final = "tokens_per_s"
COST: Final = "usd_per_million"
TAIL: Final = "first_token_p99"
SERVED_RATE: Final = "requests_per_s"
HITS: Final = "prefix_hits"
BELOW: Final = "hits_below"
REQUEST: Final = "energy_per_request"
UNCACHED: Final = "energy_without_reuse"
IDLE: Final = "idle"
USE: Final = "utilization"
"""Metrics of served language models, beside those of the core."""

OTHER_INTERVALS: Final = ("borrowed", "uncalibrated")
"""Rules of the core on intervals of single passes; those of served models come from measured servers."""

MEASURED: Final = "chip"
"""Evidence of an engine that was measured on a chip itself."""


@frozen(kw_only=True)
class Deployed:
    """Deployment that a rule examines; its key is the number of its row."""

    key: int
    hardware: str
    device_count: int
    precision: str
    expert_device_count: int = 1
    run_id: int | None
    """Stored decode step that represents it."""
    evidence: str = MEASURED
    """Measurements of the engine: `chip`, `vendor` (other chips of the vendor) or empty."""
    vendor: str = ""
    half_width: float | None = None
    """Half-width of the deciding quantity, in natural logarithms."""
    weight_bytes: float = 0.0
    """Bytes of the weights on all devices."""
    slow_s: float = 0.0
    """Time that a slow host adds to each step; 0 if no host was slow."""
    slow_share: float = 0.0
    """Share of the measured servers with a slow host."""
    slow_half_width: float = 0.0
    """Half-width that slow hosts add to the deciding quantity."""
    largest_context: int | None = None
    """Maximum tokens of a sequence that fit; None without a limit."""


def find_served(deployed: Iterable[Deployed], engine: str, *, most_context: int = 0) -> Iterator[Finding]:
    """Yield what may move a decision among deployments, and what limits them.

    `most_context` is the longest context of the model; 0 if unknown.
    """
    known = list(deployed)
    lightest = min((one.weight_bytes for one in known if one.weight_bytes), default=0.0)
    differ = len({one.precision for one in known}) > 1
    for one in known:
        if one.evidence != MEASURED:
            values = {"engine": engine, "vendor": None if one.evidence else one.vendor}
            yield Finding(kind="unmeasured", run_id=one.key, values=values, doubt=one.half_width or 0.0)
        if differ and lightest and one.weight_bytes:
            bias = math.log(lightest / one.weight_bytes)  # as if its weights were as narrow
            yield Finding(kind="precision", run_id=one.key, values={"precision": one.precision}, bias=bias)
        if one.slow_s:
            yield Finding(
                kind="slow_host",
                run_id=one.key,
                values={"engine": engine, "share": one.slow_share, "added_s": Quantity(one.slow_s, "s")},
                doubt=one.slow_half_width,
            )
        if one.largest_context is not None and one.largest_context < most_context:
            yield Finding(kind="context", run_id=one.key, values={"tokens": one.largest_context, "most": most_context})


def name_runs(scope: Scope, deployed: Iterable[Deployed]) -> dict[int, Subject]:
    """Return the row of each deployment -> run."""
    known = list(deployed)
    differ = len({one.precision for one in known}) > 1
    return {
        one.key: Subject(
            hardware=one.hardware,
            settings=(
                *([f"x{one.device_count}"] if one.device_count > 1 else []),
                *([f"ep{one.expert_device_count}"] if one.expert_device_count > 1 else []),
                *([one.precision] if differ else []),
            ),
            is_available=one.run_id is None or scope.outlines[one.run_id].hardware not in scope.unavailable,
            is_named=scope.is_named,
        )
        for one in known
    }


def represent(deployed: Iterable[Deployed]) -> dict[int, list[int]]:
    """Return stored run -> rows that it represents."""
    by_run: dict[int, list[int]] = {}
    for one in deployed:
        if one.run_id is not None:
            by_run.setdefault(one.run_id, []).append(one.key)
    return by_run
