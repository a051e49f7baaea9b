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

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

import attrs
import numpy as np

from joulemap.catalog import make_port
from joulemap.physics import PRECISION_BYTES, Floats, Hardware, carried_precision
from joulemap.system import frozen
from joulemap.wing.llm.row import ON_EXPERTS
from joulemap.wing.llm.serving.deployment import Deployment, PassWorkloads
from joulemap.wing.llm.serving.memory import Room
from joulemap.wing.llm.serving.surface import Cost, Passes

if TYPE_CHECKING:
    from joulemap.wing.decoder import Decoder, Stack

SENT_FROM: Final = 32.0
"""Tokens per pass from which the weights of the host's layers are sent to the device, if that is faster."""


HOST_LINK: Final = "pcie4x16"
"""Host link of a GPU whose description has none. Source: assumed; slot of most boards since 2020."""


@frozen(kw_only=True)
class Way:
    """Link between a device and its host."""

    latency_s: float
    s_per_byte: float
    """Transfer time per byte; 0 if device and host share one memory."""
    j_per_byte: float
    shared_bytes: float = 0.0
    """Memory that device and host share, without the system's reserve; 0 if each has its own."""

    @classmethod
    def of(cls, device: Hardware) -> Self:
        """Return the link of a device to its host: the one in its description, or `HOST_LINK`."""
        own = next((one for one in device.links if one.connects == "host"), None)
        link = own or make_port(HOST_LINK)
        return cls(latency_s=link.latency.value, s_per_byte=1.0 / link.bandwidth.value, j_per_byte=link.energy.value)


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

    @property
    def stack(self) -> Stack:
        """Engine that runs the model."""
        return self.device.stack

    @property
    def decoder(self) -> Decoder:
        """Decoder that is divided."""
        return self.device.decoder

    @property
    def step_tokens(self) -> int:
        """Maximum tokens of a pass."""
        return self.device.step_tokens

    @property
    def hardware(self) -> Hardware:
        """The first device."""
        return self.device.hardware

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

    def divided(self, split: str) -> Self:
        """Return the offload with the layers on each chip of `ServingRow.layer_split`, at most those of the model."""
        *counts, last = map(int, split.removeprefix(ON_EXPERTS).split("/"))
        if split.startswith(ON_EXPERTS):
            layers = max(0, self.decoder.layer_count - last)
            return attrs.evolve(self.keeping_experts_apart(), layers=layers, counts=tuple(counts))
        return attrs.evolve(self, layers=min(sum(counts), self.decoder.layer_count), counts=tuple(counts))

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
