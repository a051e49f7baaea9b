"""Chips under the engine that the name of a pass states."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from joulemap.catalog.stack import find_engine
from joulemap.model.bulk import Together
from joulemap.model.workload import WorkloadColumns
from joulemap.wing.llm.decoder.column import Asked, pass_columns
from joulemap.wing.llm.decoder.name import find_pass
from joulemap.wing.llm.decoder.step import Step
from joulemap.wing.llm.serving.chip import UnderEngine, describe_pass

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware
    from joulemap.wing.llm.decoder.config import Decoder


def put_under(name: str, batch: int, point: Mapping[str, str]) -> tuple[UnderEngine, ...]:
    """Return the engine of a named pass as a modifier of its chip, as the only element; empty for other models.

    `point` has the precisions of the run. Raises like `find_pass`.
    """
    found = _find(name)
    if found is None:
        return ()
    decoder, asked = found[0], (found[1], batch)
    precision, runtime = point["precision"], point["runtime"]
    weights = "" if point["weight_precision"] == precision else point["weight_precision"]

    def choose(first: Hardware, second: Hardware) -> Hardware:
        together = Together((_describe(decoder, asked),))
        times = [
            one.latency_fs or 0
            for chip in (first, second)
            for one in together.evaluate(chip, precision, runtime, weight_precision=weights)
        ]
        return second if 0 < times[1] < times[0] else first

    return (
        UnderEngine(
            stack=find_engine(asked[0].engine),
            precision=precision,
            weight_precision=weights,
            is_routed=decoder.is_routed,
            pass_key=f"{name}:{batch}",
            faster=choose,
            **describe_pass(asked),
        ),
    )


@cache
def _find(name: str) -> tuple[Decoder, Step] | None:
    found = find_pass(name)
    return (found.decoder, found.step) if found is not None and found.step.engine else None


@cache
def _describe(decoder: Decoder, asked: Asked) -> WorkloadColumns:
    return pass_columns(decoder, [asked])[asked]
