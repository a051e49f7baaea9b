"""Divisions of a language model between devices and their host, or another device, at several numbers of layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from joulemap.catalog import find_usable
from joulemap.domain import SERVED, find_unknown, take
from joulemap.physics import (
    FJ_PER_J,
    Configuration,
    Hardware,
    choose_precision,
)
from joulemap.plan import use_calibration
from joulemap.system import UnsupportedError, UsageError, frozen
from joulemap.wing.decoder import SIXTEEN_BITS
from joulemap.wing.llm.capacity.question import ACTIVATIONS, Question
from joulemap.wing.llm.generated.row import OffloadRow
from joulemap.wing.llm.serving.batch import Batch, run_batches
from joulemap.wing.llm.serving.deployment import Deployment
from joulemap.wing.llm.serving.offload import Offload, Way
from joulemap.wing.llm.serving.surface import Passes
from joulemap.wing.llm.setting import Serving
from joulemap.wing.llm.show.word import MEMORY_LACKS
from joulemap.wing.place import BoxHardware, bind_devices, find_ways


@frozen(kw_only=True, eq=False)
class Division:
    """Results of dividing a model's layers between a GPU and a processor, at several numbers of layers."""

    device: str
    """Catalogue ids of the GPUs."""
    host: str
    """Catalogue id of the processor."""
    precision: str
    part: str
    """Part of the model that is divided: `LAYERS` or `EXPERTS`."""
    rows: list[OffloadRow]

    @property
    def is_routed(self) -> bool:
        """True if experts alone are divided."""
        return self.part == EXPERTS

    @property
    def between_s(self) -> float:
        """Time per output token of the fastest division at the first batch; infinite if none fits."""
        return next((row.between_s or math.inf for row in self.rows if row.is_best), math.inf)


LAYERS: Final = "Layers"
EXPERTS: Final = "Experts of layers"


def divide_layers(box: BoxHardware, question: Question) -> Division:
    """Return the divisions of a model over the set of a box's GPUs of a vendor, with its processor or without, that is
    the fastest, at each batch size.

    Raise UsageError for a box without a GPU or such a partner, UnsupportedError if no division fits.
    """
    settings = question.asked
    bound = bind_devices(box, use_calibration(settings.calibration), "default", settings.boundary).apply(box)
    chips = [(device.name, chip) for (_, device), chip in zip(bound.box, bound.devices, strict=True)]
    others = [one for one in chips if one[1].architecture == "gpu"]
    others = sorted(others, key=lambda one: -one[1].memory_bandwidth.value)
    cards = [one for one in others if one[1].vendor == others[0][1].vendor]  # one back end runs on all
    hosts = [one for one in chips if one[1].architecture == "cpu"][:1]
    sets = [(count, last) for count in range(1, len(cards) + 1) for last in (*cards[count : count + 1], *hosts)]
    if not sets:
        have = ", ".join(dict.fromkeys(one.id for one in box.devices))
        raise UsageError(
            f"layers are divided between a GPU and a CPU or another GPU of its vendor, but {box.id} has {have}"
        )
    divisions = [
        divide_between([chip for _, chip in cards[:count]], last[1], _find_way(bound, cards[0][0], last), question)
        for count, last in sets
    ]
    division = min(divisions, key=lambda one: one.between_s)
    if division.between_s == math.inf:
        raise UnsupportedError(f"no division of {question.decoder.name} fits {box.id}: {division.rows[-1].refusal}")
    return division


def divide_between(devices: Sequence[Hardware], host: Hardware, way: Way, question: Question) -> Division:
    """Return the divisions of a model between calibrated chips, devices and their host, at each batch size.

    Of a mixture of experts, the faster of dividing whole layers or experts alone counts. A division that does not fit
    states the reason. Raise UsageError for several precisions.
    """
    deploy = _choose_precisions(question)
    whole = Offload.of([deploy(one) for one in devices], deploy(host), way)
    ways = {LAYERS: whole}
    if question.decoder.is_routed and not question.decoder.is_traced and host.architecture == "cpu":
        ways[EXPERTS] = whole.keeping_experts_apart()
    precisions = whole.device.precision, whole.device.weight_precision or whole.device.precision
    name = "/".join(dict.fromkeys(precisions))
    batches = question.asked.batch or SERVED.batch
    divisions = (
        Division(
            device=" + ".join(one.id for one in devices),
            host=host.id,
            precision=name,
            part=part,
            rows=[row for batch in batches for row in _divide(one, question.serving, batch)],
        )
        for part, one in ways.items()
    )
    return min(divisions, key=lambda one: one.between_s)


def _find_way(box: BoxHardware, device: str, processor: tuple[str, Hardware]) -> Way:
    """Return the link between a device and the host, by name and hardware; UsageError if there is none."""
    host, chip = processor
    precision = next(iter(box.peaks))
    members = box.list_members(Configuration(hardware=box.id, precision=precision, runtime="engine", batch=1))
    names = [one.device.name for one in members]
    hops = find_ways(box.box, members).get((names.index(device), len(names) - 1 - names[::-1].index(host)))
    if hops is None:
        raise UsageError(f"{box.id}: no link joins {device} to {host}")
    memories = {one.device.memory for one in members if one.device.name in (device, host)}
    shared = next((one.capacity.value for one in box.box.memories if memories == {one.name}), 0.0)
    return Way(
        latency_s=sum(hop.latency_s for hop in hops),
        s_per_byte=sum(hop.s_per_byte for hop in hops),
        j_per_byte=sum(hop.fj_per_byte for hop in hops) / FJ_PER_J,
        shared_bytes=find_usable(chip, shared) if shared else 0.0,
    )


def _choose_precisions(question: Question) -> Callable[[Hardware], Deployment]:
    """Return a function that deploys the model on a chip, in a precision that the chip has; UsageError for several."""
    settings, published = question.asked, question.decoder.published
    is_free = not settings.precision
    if is_free:
        stored = (published.weights,) if published and published.weights else ()
        settings = attrs.evolve(
            settings, precision=SIXTEEN_BITS[0], weight_precision=settings.weight_precision or stored
        )
    (asked, weights), *others = settings.precisions
    if others:
        raise UsageError("name one precision for the divided layers")

    def deploy(chip: Hardware) -> Deployment:
        own = next((one for one in ACTIVATIONS if is_free and one in chip.peaks), asked)
        stored = "" if weights == asked else weights  # a chip that computes in another precision reads the same weights
        precision, _ = choose_precision(chip, own, stored)
        return Deployment(
            workloads=question.workloads,
            hardware=chip,
            stack=question.stack,
            precision=precision,
            weight_precision=stored,
            cache=question.serving.cache,
            totals={},
        )

    return deploy


def _divide(whole: Offload, serving: Serving, batch: int) -> list[OffloadRow]:
    """Return rows for 0, 1/4, 1/2, 3/4 and all of the layers on the device, and for the fewest and the most that fit.

    Apart from copies, the step time is linear in the layers, so one of these divisions is the fastest.
    """
    count, context = whole.device.decoder.layer_count, serving.prompt + serving.output
    every = {layers: attrs.evolve(whole, layers=layers).fill(batch, context) for layers in range(count + 1)}
    fitting = [layers for layers, one in every.items() if one.lacks(batch, context)[0] <= 0.0]
    step = Passes.of([float(batch)], context=float(serving.prompt + serving.output // 2))
    shown = {0, count // 4, count // 2, 3 * count // 4, count, *fitting[:1], *fitting[-1:]}
    between = {layers: float(every[layers].price(step).seconds[0]) for layers in shown if layers in fitting}
    best = min(between, key=lambda layers: between[layers], default=None)
    rows = []
    for layers in sorted(shown):
        one = every[layers]
        device_bytes, host_bytes = one.needed(batch, context)
        lacking, where = one.lacks(batch, context)
        fields: dict[str, Any] = {
            **find_unknown(OffloadRow),
            "refusal": MEMORY_LACKS(memory=where, lacking=lacking),
        }
        if layers in fitting:
            fields |= {"refusal": "", **_measure(one, serving, batch, step)}
        rows.append(
            OffloadRow(
                batch=batch,
                layers=layers,
                is_best=layers == best,
                device_bytes=device_bytes,
                host_bytes=host_bytes,
                split="/".join(map(str, one.counts)),
                **fields,
            )
        )
    return rows


def _measure(one: Offload, serving: Serving, batch: int, step: Passes) -> dict[str, float]:
    """Return the fields of `OffloadRow` for latency and energy of a division that fits."""
    asked = Batch(
        sequences=batch,
        prompt_tokens=serving.prompt,
        output_tokens=serving.output,
        step_tokens=one.device.step_tokens,
    )
    (cost,) = run_batches(one, (asked,))
    taken = one.divide(step)
    parts = {"device": taken.device_s[0], "host": taken.host_s[0], "copy": taken.copy_s[0]}
    total = float(sum(parts.values()))
    return {
        **take(OffloadRow, cost),
        "tokens_per_s": batch / cost.between_s,
        "output_token_j": cost.between_j / batch,
        **{f"{name}_fraction": float(part) / total for name, part in parts.items()},
    }
