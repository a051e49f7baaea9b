"""Language models divided between devices and their host, or another device, as in llama.cpp: layers on each, their
latency and their energy.

    pass   = n / L of a device pass + (L - n) / L of a host pass + copies of activations between them
    joules = dynamic energy of all + static power of all x pass time + copied bytes x energy per byte

Of several devices, the fastest is filled first: the time is linear in the layers of each, so no other split is faster.

From `SENT_FROM` tokens per pass, the device also computes the host's layers if that is faster; their weights are then
sent for each pass. Source: llama.cpp, ggml-backend and ggml-cuda, `op_offload` from 32 rows on (recalled).

Of a mixture of experts, the routed experts alone may be divided, as by llama.cpp's `--n-cpu-moe`. The device then keeps
the rest of every layer and all caches, and activations cross twice for each layer whose experts the host has. The time
of experts is that of a pass less that of a pass without them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

import attrs
import numpy as np

from joulemap.catalog import find_usable
from joulemap.domain import SERVED, find_unknown, take
from joulemap.physics import (
    FJ_PER_J,
    PRECISION_BYTES,
    Configuration,
    Floats,
    Hardware,
    carried_precision,
    choose_precision,
)
from joulemap.plan import use_calibration
from joulemap.system import UnsupportedError, UsageError, frozen
from joulemap.wing.llm.capacity.question import ACTIVATIONS, Question
from joulemap.wing.llm.decoder.config import SIXTEEN_BITS
from joulemap.wing.llm.generated.row import OffloadRow
from joulemap.wing.llm.serving.batch import Batch, run_batches
from joulemap.wing.llm.serving.deployment import Deployment, PassWorkloads
from joulemap.wing.llm.serving.memory import Room
from joulemap.wing.llm.serving.surface import Cost, Passes
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


SENT_FROM: Final = 32.0
"""Tokens per pass from which the weights of the host's layers are sent to the device, if that is faster."""


@frozen(kw_only=True)
class Way:
    """Link between a device and its host."""

    latency_s: float
    s_per_byte: float
    """Transfer time per byte; 0 if device and host share one memory."""
    j_per_byte: float
    shared_bytes: float = 0.0
    """Memory that device and host share, without the system's reserve; 0 if each has its own."""


@frozen(kw_only=True, eq=False)
class Shares:
    """Time of passes on the device, on the host and in copies, and their total energy."""

    device_s: Floats
    host_s: Floats
    copy_s: Floats
    joules: Floats


@frozen(kw_only=True, eq=False)
class Offload:
    """Decoder with some layers on a device and the rest on its host."""

    device: Deployment
    host: Deployment
    way: Way
    layers: int
    """Number of layers on the devices."""
    rooms: tuple[Room, ...]
    """Memory of each device, the fastest first, and of the host, each sized for the whole model."""
    kept: tuple[Room, ...] | None = None
    """Memory of the model without routed experts on each of them, if the experts alone are divided."""
    counts: tuple[int, ...] = (1,)
    """Layers on each device, or numbers in the same proportion."""

    @classmethod
    def of(cls, devices: Sequence[Deployment], host: Deployment, way: Way) -> Self:
        """Return the offload with all layers on the devices, which are given the fastest first."""
        rooms = tuple(Room(deployment=one) for one in (*devices, host))
        return cls(device=devices[0], host=host, way=way, layers=host.decoder.layer_count, rooms=rooms)

    def keeping_experts_apart(self) -> Self:
        """Return the offload of the routed experts alone."""
        works = PassWorkloads(self.device.decoder.without_experts())
        bare = (attrs.evolve(one.deployment, workloads=works, totals={}) for one in self.rooms)
        return attrs.evolve(self, kept=tuple(Room(deployment=one) for one in bare))

    def fill(self, sequences: int, tokens: int) -> Self:
        """Return the offload with each device filled in turn; what fits on none counts for the last."""
        held, _ = self.needed(sequences, tokens)
        left = self._held_layers
        each, counts = max(0.0, held - self.rooms[0].workspace) / max(left, 1), []
        for room in self.rooms[:-1]:
            most = int(max(0.0, room.capacity - room.workspace) / each) if each else left
            counts.append(min(left, most))
            left -= counts[-1]
        return attrs.evolve(self, counts=(*counts[:-1], counts[-1] + left))

    @property
    def _held_layers(self) -> int:
        return self.layers if self.kept is None else self.device.decoder.layer_count

    @property
    def share(self) -> float:
        """Share of the layers that are on the device."""
        return self.layers / self.device.decoder.layer_count

    @property
    def waiting_w(self) -> float:
        """Power of device and host together while they wait within a pass, in watts."""
        return sum(room.deployment.waiting_w for room in self.rooms)

    @property
    def resting_w(self) -> float:
        """Power of device and host together between requests, in watts."""
        return sum(room.deployment.resting_w for room in self.rooms)

    def needed(self, sequences: int, tokens: int) -> tuple[float, float]:
        """Return the bytes that the device and the host hold for `sequences` sequences of `tokens` tokens."""
        if self.kept is not None:
            device, *_, host = (room.weights - kept.weights for room, kept in zip(self.rooms, self.kept, strict=True))
            own = self.kept[0].weights + sequences * self.rooms[0].cache(tokens) + self.rooms[0].workspace
            left = (1.0 - self.share) * host
            return own + self.share * device, left + self.rooms[-1].workspace * (left > 0.0)
        bytes_held = []
        for room, share in ((self.rooms[0], self.share), (self.rooms[-1], 1.0 - self.share)):
            held = room.weights + sequences * room.cache(tokens)
            bytes_held.append(share * held + room.workspace * (share > 0.0))
        return bytes_held[0], bytes_held[1]

    def lacks(self, sequences: int, tokens: int) -> tuple[float, str]:
        """Return the bytes that do not fit and the memory that lacks them; 0 bytes if everything fits."""
        device, host = self.needed(sequences, tokens)
        first, *others = self.rooms[:-1]
        layer = max(device - first.workspace, 1.0) / max(self._held_layers, 1)  # a device holds whole layers
        room = first.capacity + sum(max(0.0, one.capacity - one.workspace) // layer * layer for one in others)
        over = device - room, host - self.rooms[-1].capacity
        if self.way.shared_bytes and (lacking := device + host - self.way.shared_bytes) > over[0]:
            return max(0.0, lacking), "memory"
        return (max(0.0, over[0]), "device") if over[0] >= over[1] else (max(0.0, over[1]), "host")

    def divide(self, passes: Passes) -> Shares:
        """Return the time of passes on the device, on the host and in copies, and their energy."""
        share, rest = self.share, 1.0 - self.share
        own_s, own_j = self._mix(self.rooms, passes)
        other_s, other_j = _work(self.host, passes)
        kept_s, kept_j, weights = np.zeros(1), np.zeros(1), self.rooms[0].weights
        crossings = 2.0 * (0.0 < share < 1.0)
        if self.kept is not None:
            kept_s, kept_j = self._mix(self.kept, passes)
            left_s, left_j = _work(self.kept[-1].deployment, passes)
            own_s, own_j = np.maximum(own_s - kept_s, 0.0), np.maximum(own_j - kept_j, 0.0)
            other_s, other_j = np.maximum(other_s - left_s, 0.0), np.maximum(other_j - left_j, 0.0)
            weights = weights - self.kept[0].weights
            crossings = 2.0 * (self.device.decoder.layer_count - self.layers)
        tokens = passes.sequences * passes.tokens + passes.chunk
        handed = tokens * self.device.decoder.hidden * PRECISION_BYTES[carried_precision(self.device.precision)]
        sent = rest * weights * (self.way.s_per_byte > 0.0)
        sent_s = sent * self.way.s_per_byte
        is_host = self.host.hardware.architecture == "cpu"  # another GPU keeps its layers
        has_device = (share > 0.0) | (self.kept is not None)
        is_sent = is_host & has_device & (tokens >= SENT_FROM) & (sent_s + rest * own_s < rest * other_s)
        device_s = kept_s + np.where(is_sent, own_s, share * own_s)
        host_s = np.where(is_sent, 0.0, rest * other_s)
        handovers = sum(one > 0 for one in self.counts) - 1.0 if has_device else 0.0
        copied = np.where(is_sent, sent, crossings * handed) + handovers * handed
        hop_s = self.way.latency_s + handed * self.way.s_per_byte
        copy_s = np.where(is_sent, sent_s, crossings * hop_s) + handovers * hop_s
        work_j = kept_j + np.where(is_sent, own_j, share * own_j + rest * other_j) + copied * self.way.j_per_byte
        seconds = device_s + host_s + copy_s
        return Shares(device_s=device_s, host_s=host_s, copy_s=copy_s, joules=work_j + self.waiting_w * seconds)

    def _mix(self, rooms: Sequence[Room], passes: Passes) -> tuple[Floats, Floats]:
        """Return the seconds and dynamic joules of passes on the devices, each with its share of the layers."""
        total, seconds, joules = float(sum(self.counts)) or 1.0, np.zeros(1), np.zeros(1)
        for room, count in zip(rooms, self.counts, strict=False):
            own_s, own_j = _work(room.deployment, passes)
            seconds, joules = seconds + count / total * own_s, joules + count / total * own_j
        return seconds, joules

    def price(self, passes: Passes, /) -> Cost:
        """Return the seconds and joules of passes on device and host."""
        divided = self.divide(passes)
        return Cost(seconds=divided.device_s + divided.host_s + divided.copy_s, joules=divided.joules)


def _work(deployment: Deployment, passes: Passes) -> tuple[Floats, Floats]:
    """Return the seconds of passes and their joules beyond static power."""
    cost = deployment.price(passes)
    return cost.seconds, cost.joules - deployment.waiting_w * cost.seconds
