"""Deployments as facts: rows and values, engines without measurements, slow hosts, memory limits, and checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from joulemap.ask import Checks, Finding, Quantity, Scope, Subject
from joulemap.ask.check import find_checks
from joulemap.catalog import LANGUAGE, CheckedRun
from joulemap.physics import split_precision
from joulemap.system import frozen
from joulemap.wing.decoder import ENGINE, find_checkpoint, find_engine
from joulemap.wing.llm.capacity.slow import SlowHost
from joulemap.wing.llm.generated.row import ServedPhase
from joulemap.wing.llm.setting import Serving

ENERGY: Final = "energy_per_token"
DECODE_ENERGY: Final = "decode_energy_per_token"
TIME: Final = "time_per_token"
FIRST: Final = "first_token"
RATE: Final = "tokens_per_s"
COST: Final = "usd_per_million"
TAIL: Final = "first_token_p99"
SERVED_RATE: Final = "requests_per_s"
IDLE: Final = "idle"
USE: Final = "utilization"
"""Metrics of served language models, beside those of the core."""

REUSE: Final[Mapping[str, tuple[str, ...]]] = {
    "prefix_hits": ("prefix_hit_fraction", ""),
    "hits_below": ("tier_hit_fraction", ""),
    "energy_per_request": ("request_j", "J"),
    "energy_without_reuse": ("uncached_request_j", "J"),
}
"""Metric of a prefix cache -> field of a row, and unit."""

OTHER_INTERVALS: Final = ("borrowed", "uncalibrated")
"""Rules of the core on intervals of single passes; those of served models come from measured servers."""

MEASURED: Final = "chip"
"""Evidence of an engine that was measured on a chip itself."""


@frozen(kw_only=True)
class ExaminedDeployment:
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
    host: SlowHost = SlowHost()
    """Slow hosts among the measured servers."""
    slow_step_s: float | None = None
    """Time of a step that slow hosts delay, if it decides."""
    largest_context: int | None = None
    """Maximum tokens of a sequence that fit; None without a limit."""

    @classmethod
    def of(
        cls, key: int, row: Any, step: ServedPhase | None, hosts: Mapping[str, SlowHost], **own: Any
    ) -> ExaminedDeployment:
        """Return the deployment of a row of an answer; `step` is the stored decode step, `own` has further fields."""
        known: dict[str, Any] = {} if step is None else {"evidence": step.evidence, "vendor": step.vendor}
        names = ("hardware", "device_count", "precision")
        host = hosts.get(row.hardware, SlowHost())
        return cls(key=key, host=host, **{name: getattr(row, name) for name in names}, **known, **own)


def find_served(deployed: Iterable[ExaminedDeployment], engine: str, *, most_context: int = 0) -> Iterator[Finding]:
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
        if one.host.added_s:
            yield Finding(
                kind="slow_host",
                run_id=one.key,
                values={"engine": engine, "share": one.host.share, "added_s": Quantity(one.host.added_s, "s")},
                doubt=one.host.find_half_width(one.slow_step_s) if one.slow_step_s else 0.0,
            )
        if one.largest_context is not None and one.largest_context < most_context:
            yield Finding(kind="context", run_id=one.key, values={"tokens": one.largest_context, "most": most_context})


def name_runs(scope: Scope, deployed: Iterable[ExaminedDeployment]) -> dict[int, Subject]:
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


def represent(deployed: Iterable[ExaminedDeployment]) -> dict[int, list[int]]:
    """Return stored run -> rows that it represents."""
    by_run: dict[int, list[int]] = {}
    for one in deployed:
        if one.run_id is not None:
            by_run.setdefault(one.run_id, []).append(one.key)
    return by_run


class ServedRun(NamedTuple):
    """Configuration of a served language model that a command measures."""

    label: str
    """Name of the configuration in the answer."""
    hardware: str
    precision: str
    """Precision of activations, with the weight format if it differs."""
    batch: int
    device_count: int
    """Devices of one server."""
    rate_per_s: float = 0.0
    """Arrival rate of random requests at one server; 0 for none."""
    in_flight: int = 0
    """Concurrent requests at one server; 0 for none. Without these and without a rate, the run is one batch."""


def check_served(model: str, serving: Serving, runs: Iterable[ServedRun], spell: Callable[[str], str]) -> Checks:
    """Return the commands that measure requests to a language model; `spell` returns a chip's name in a question."""
    checked = []
    for run in runs:
        precision, weights = split_precision(run.precision)
        joined = run.device_count // (serving.pipeline_devices * serving.data_devices)
        devices, stages = find_engine(serving.engine).divide(joined, serving.pipeline_devices)
        settings = CheckedRun(
            model=model,
            checkpoint=find_checkpoint(model),
            kind=LANGUAGE,
            precision=precision,
            weights=weights,
            batch=run.batch,
            engine=serving.engine or ENGINE,
            prompt=serving.prompt,
            output=serving.output,
            devices=devices,
            pipeline_devices=stages,
            expert_devices=serving.expert_devices,
            data_devices=serving.data_devices,
            cache=serving.cache,
            speculates=bool(serving.speculate),
            reuses_prefixes=serving.reuses_prefixes,
            rate_per_s=run.rate_per_s,
            in_flight=run.in_flight,
        )
        checked.append((run.label, spell(run.hardware), settings))
    return find_checks(checked)
