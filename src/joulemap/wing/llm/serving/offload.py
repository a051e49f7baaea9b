"""Language model with its layers divided between a device and its host, or another device, as in llama.cpp; implements
`Surface`.

    pass   = n / L of a device pass + (L - n) / L of a host pass + copies of activations between the two
    joules = dynamic energy of both + static power of both x pass time + copied bytes x energy per byte

From `SENT_FROM` tokens per pass, the device also computes the host's layers if that is faster; their weights are then
sent for each pass. Source: llama.cpp, ggml-backend and ggml-cuda, `op_offload` from 32 rows on (recalled).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import attrs
import numpy as np

from joulemap.physics import PRECISION_BYTES, Floats, carried_precision
from joulemap.system import frozen
from joulemap.wing.llm.serving.memory import Room
from joulemap.wing.llm.serving.surface import Cost, Passes

if TYPE_CHECKING:
    from joulemap.wing.llm.serving.deployment import Deployment

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
    layers: int = attrs.field(validator=attrs.validators.ge(0))
    """Number of layers on the device."""
    rooms: tuple[Room, Room]
    """Memory of the device and of the host, each sized for the whole model."""

    @classmethod
    def of(cls, device: Deployment, host: Deployment, way: Way) -> Self:
        """Return the offload with all layers on the device."""
        rooms = Room(deployment=device), Room(deployment=host)
        return cls(device=device, host=host, way=way, layers=device.decoder.layer_count, rooms=rooms)

    @property
    def share(self) -> float:
        """Share of the layers that are on the device."""
        return self.layers / self.device.decoder.layer_count

    @property
    def waiting_w(self) -> float:
        """Power of device and host together while they wait within a pass, in watts."""
        return self.device.waiting_w + self.host.waiting_w

    @property
    def resting_w(self) -> float:
        """Power of device and host together between requests, in watts."""
        return self.device.resting_w + self.host.resting_w

    def needed(self, sequences: int, tokens: int) -> tuple[float, float]:
        """Return the bytes that the device and the host hold for `sequences` sequences of `tokens` tokens."""
        bytes_held = []
        for room, share in zip(self.rooms, (self.share, 1.0 - self.share), strict=True):
            held = room.weights + sequences * room.cache(tokens)
            bytes_held.append(share * held + room.workspace * (share > 0.0))
        return bytes_held[0], bytes_held[1]

    def lacks(self, sequences: int, tokens: int) -> tuple[float, str]:
        """Return the bytes that do not fit and the memory that lacks them; 0 bytes if everything fits."""
        device, host = self.needed(sequences, tokens)
        over = device - self.rooms[0].capacity, host - self.rooms[1].capacity
        if self.way.shared_bytes and (lacking := device + host - self.way.shared_bytes) > over[0]:
            return max(0.0, lacking), "memory"
        return (max(0.0, over[0]), "device") if over[0] >= over[1] else (max(0.0, over[1]), "host")

    def divide(self, passes: Passes) -> Shares:
        """Return the time of passes on the device, on the host and in copies, and their energy."""
        share, rest = self.share, 1.0 - self.share
        own, other = self.device.price(passes), self.host.price(passes)
        own_j = own.joules - self.device.waiting_w * own.seconds
        other_j = other.joules - self.host.waiting_w * other.seconds
        tokens = passes.sequences * passes.tokens + passes.chunk
        handed = tokens * self.device.decoder.hidden * PRECISION_BYTES[carried_precision(self.device.precision)]
        crossings = 2.0 * (0.0 < share < 1.0)
        sent = rest * self.rooms[0].weights * (self.way.s_per_byte > 0.0)
        sent_s = sent * self.way.s_per_byte
        is_host = self.host.hardware.architecture == "cpu"  # another GPU keeps its layers
        is_sent = is_host & (share > 0.0) & (tokens >= SENT_FROM) & (sent_s + rest * own.seconds < rest * other.seconds)
        device_s = np.where(is_sent, own.seconds, share * own.seconds)
        host_s = np.where(is_sent, 0.0, rest * other.seconds)
        copied = np.where(is_sent, sent, crossings * handed)
        copy_s = np.where(is_sent, sent_s, crossings * (self.way.latency_s + handed * self.way.s_per_byte))
        work_j = np.where(is_sent, own_j, share * own_j + rest * other_j) + copied * self.way.j_per_byte
        seconds = device_s + host_s + copy_s
        return Shares(device_s=device_s, host_s=host_s, copy_s=copy_s, joules=work_j + self.waiting_w * seconds)

    def price(self, passes: Passes, /) -> Cost:
        """Return the seconds and joules of passes on device and host."""
        divided = self.divide(passes)
        return Cost(seconds=divided.device_s + divided.host_s + divided.copy_s, joules=divided.joules)
