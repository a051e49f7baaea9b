"""Commands that measure the predictions for a served language model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from joulemap.ask import Checks
from joulemap.ask.check import find_checks
from joulemap.catalog import LANGUAGE, CheckedRun
from joulemap.physics import split_precision
from joulemap.wing.llm.decoder.pass_name import find_checkpoint
from joulemap.wing.llm.stack import DEFAULT, find_engine

if TYPE_CHECKING:
    from joulemap.wing.llm.setting import Serving


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
            engine=serving.engine or DEFAULT,
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
