"""Collectives: what devices send one another, over the fastest link whose domain holds all of them.

With n devices, S bytes of the whole buffer, B the bandwidth of the link in one direction, l its latency, f the clock,
and w = 2 of a sum that all get, which is a scatter and a gather, else 1:

    library = start / f + l steps + min(moved / (low_share R), ramp / f + moved / R)      rings: NCCL and its kin
    steps   = w (n - 1);  1 + peer_steps (n - 1) of all to all;  1 of a send
    moved   = w ((n - 1) / n + own_share) S hops;  S of a send
    direct  = start.direct / f + l (1 + peer_steps.direct (n - 1)) + min(one, two)        kernels that read each other
    one     = (n - 1) S / (direct_share B)
    two     = l gather_steps + 2 (n - 1) / n S / (direct_share B)
    experts = start.deepep / f + (n - 1) / n S / min(R, expert_bytes f)                   tokens to experts, or back

A library has a protocol that sends flags with the data, quick and half as fast, and one that fills the link after a
ramp; the quicker is taken. Links start and ramp up while the host launches. A device passes own_share of the buffer
through the same channels for itself. Direct kernels are a GPU's sums of at most DIRECT_MOST bytes within a host whose
devices reach each other at once; beyond, engines take the library too. Words of `variant` name a library where one is
meant.

    R    = B of a switch, a pair, a ring; B (n - 1) / (D - 1) in a mesh of D devices; B host_share over PCIe beyond two
    hops = max(1, d n^(1/d) / 4)     of all to all in a ring or torus of d dimensions, which others' bytes pass; else 1

Of a training step a collective may reach beyond the devices of a link: then rings cross from host to host over a
network card of each device, m of n devices in a host, others in between left out, N what a card sends:

    R       = min(R of the link, m N);  N of all to all
    steps   = w (m - 1), and  network_latency w ceil(log2(n / m))  beside them, in a tree of hosts

A device without such links exchanges over PCIe with others in its host. A collective is a kernel of its own: its start
and steps are the launch, its bytes the memory time; in eager the host launches it like any other. What the device sends
is counted in the ledger: w (n - 1) / n S, or (n - 1) S in one stage.

Source: NCCL, src/graph/tuning.cc (forms of ring, LL and Simple; recalled); vLLM, csrc/custom_all_reduce.cuh (one and
two stages; recalled); the numbers are fitted, docs/model.md says to what.
"""

from __future__ import annotations

import math
from typing import Final

import attrs
import numpy as np

from joulemap.domain.hardware import Hardware, Link
from joulemap.domain.reference import LINK_ACTION
from joulemap.model.kernel import KernelColumns
from joulemap.model.ledger import ActionCounts
from joulemap.model.placement import Placed
from joulemap.model.workload import Floats, Integers, put
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import define, frozen

KIND: Final = "communication"

BEHIND: Final = "behind"
"""Word of what devices exchange while others compute, which waits for nothing but the end of the step."""

AHEAD: Final = "ahead"
"""Word of what is fetched while what stands before it computes."""

DIRECT_MOST: Final = 8.0 * 2**20
"""Bytes that direct kernels sum. Source: vLLM, CustomAllreduce.max_size (recalled); the times of both libraries are one
beyond it (collectives of aiconfigurator)."""

HOST_DEVICES: Final = 8
"""Devices of one host, whose processes open each other's memory: what servers have."""

RACK_HOST_DEVICES: Final = 4
"""Of a domain that is larger than a host, as the racks of GB200: a tray of two boards. Beyond a host direct kernels are
those of TensorRT-LLM alone, whose memory is shared through the switch."""

DIMENSIONS: Final = {"ring": 1.0, "torus_2d": 2.0, "torus_3d": 3.0}
"""Topology -> along how many a device has neighbours on both sides."""


@frozen(kw_only=True)
class Path:
    """What devices of a group reach each other by, on one hardware."""

    ring_rate: Floats | float
    """Bytes per second of a device in one direction, all of its links together."""
    peer_rate: Floats | float
    """To one other alone."""
    latency: float
    hops: float
    """Links that a byte passes from any device to any other."""
    is_direct: bool
    """Whether each reads the memory of each at full rate."""
    is_in_host: bool
    near: float
    """Devices of the group that the link joins."""
    far_rate: Floats | float = 0.0
    """Bytes per second of a device to other hosts; 0 where the link joins all of the group."""
    far_latency: Floats | float = 0.0
    """Of all steps between hosts, one way."""


@define(kw_only=True, eq=False)
class Exchange:
    """What collectives take and send. Per-operator arrays, 0 of all else."""

    start_s: Floats
    """Before bytes flow, the steps of the algorithm included."""
    ramp_s: Floats
    """Before they flow at the rate of the link, where that is waited for."""
    busy_s: Floats
    """Seconds of the bytes at the rate of the link."""
    slow_s: Floats
    """Seconds of the bytes at the rate of short messages, which flow at once."""
    sent_bytes: Floats
    """By the device, to all others."""


def find_path(hardware: Hardware, devices: int, stride: int = 0) -> Path:
    """Return how so many devices of a kind reach each other; UnsupportedError where they do not.

    Of a group that may reach beyond a link `stride` says how many devices stand from one of it to the next; 0 of one
    that may not.
    """
    links = [link for link in hardware.links if link.connects == "device" or link.name == "pcie"]
    if not links:
        raise UnsupportedError(f"{hardware.id} has no link to others of its kind")
    able = [link for link in links if devices * max(stride, 1) <= _most(link)]
    if not able and stride:
        return _cross_hosts(hardware, links, devices, stride)
    if not able:
        most = max(map(_most, links))
        raise UnsupportedError(f"{hardware.id}: its links join {most:g} devices at most, not {devices}")
    link = max(able, key=lambda one: (one.connects == "device", one.bandwidth.value))
    rate, peers = link.bandwidth.value, 1.0
    ring, domain = rate, _most(link)
    if link.connects == "host" and devices > 2:
        ring = rate * hardware.coefficient("link_host_share")
    elif link.topology == "mesh":
        ring, peers = rate * (devices - 1) / (domain - 1), domain - 1
    elif link.topology in DIMENSIONS:
        peers = link.link_count.value
    size = DIMENSIONS.get(link.topology, 0.0)
    reaches_all = link.topology in ("switch", "mesh") or devices == 2
    own = RACK_HOST_DEVICES if domain > HOST_DEVICES else HOST_DEVICES
    return Path(
        ring_rate=ring,
        peer_rate=rate / peers,
        latency=link.latency.value,
        hops=max(1.0, size * devices ** (1.0 / size) / 4.0) if size else 1.0,
        is_direct=reaches_all and hardware.architecture == "gpu",
        is_in_host=devices <= own,
        near=devices,
    )


def _cross_hosts(hardware: Hardware, links: list[Link], devices: int, stride: int) -> Path:
    """Return how devices of several hosts reach each other: over the link in each, and a network between."""
    card = hardware.coefficient("network_bytes")
    near = max(1, int(max(map(_most, links))) // stride)
    inner = find_path(hardware, near * stride) if near > 1 else None
    hosts = -(-devices // near)
    return Path(
        ring_rate=np.minimum(inner.ring_rate, near * card) if inner else card,
        peer_rate=card,
        latency=inner.latency if inner else 0.0,
        hops=1.0,
        is_direct=False,
        is_in_host=False,
        near=near,
        far_rate=card,
        far_latency=hardware.coefficient("network_latency") * math.ceil(math.log2(hosts)),
    )


def _most(link: Link) -> float:
    """Return the devices that a link joins, the first one included."""
    if link.connects == "host":
        return HOST_DEVICES
    return np.inf if link.domain_size is None else link.domain_size.value


def find_exchange(kernels: KernelColumns, hardware: Hardware) -> Exchange | None:
    """Return what the collectives among the operators take; None where there are none. Raises as `find_path`."""
    is_ours = kernels.work.of_kind(KIND)
    if not is_ours.any():
        return None
    found = Exchange(**{field.name: np.zeros(len(is_ours)) for field in attrs.fields(Exchange)})
    groups, strides = kernels.work.gemm_groups, kernels.work.gemm_k
    for devices, stride in np.unique(np.stack([groups, strides])[:, is_ours], axis=1).T.tolist():
        rows = np.flatnonzero(is_ours & (groups == devices) & (strides == stride))
        path = find_path(hardware, int(devices), int(stride))
        for name, values in _time(kernels, rows, hardware, path, int(devices)).items():
            setattr(found, name, put(getattr(found, name), rows, values))
    return found


def _time(kernels: KernelColumns, rows: Integers, hardware: Hardware, path: Path, devices: int) -> dict[str, Floats]:
    """Return what collectives of so many devices take and send, by field of `Exchange`."""
    operation = kernels.work.operation[rows]
    named = np.array([one.partition(" ")[0] for one in kernels.work.variant[rows].tolist()], dtype=np.str_)
    whole = np.maximum(kernels.input_bytes, kernels.output_bytes)[..., rows]
    others = devices - 1.0
    is_sum, is_send = operation == "all_reduce", operation == "send"
    may_read = path.is_direct & ((named == "trtllm") | path.is_in_host)
    is_direct = is_sum & (named != "nccl") & (whole <= DIRECT_MOST) & may_read
    clocks, latency = 1.0 / hardware.full_clock.value, path.latency

    times = np.where(is_sum, 2.0, 1.0)
    near = path.near - 1.0
    steps = np.where(operation == "all_to_all", 1.0 + hardware.coefficient("link_peer_steps") * near, times * near)
    steps = np.where(is_send, 1.0, steps)
    passed = times * (others / devices + hardware.coefficient("link_own_share"))
    passed = np.where(operation == "all_to_all", passed * path.hops, passed)
    rate = np.where(is_send, path.peer_rate, path.ring_rate)
    rate = np.where((operation == "all_to_all") & np.greater(path.far_rate, 0.0), path.far_rate, rate)
    busy = np.where(is_send, 1.0, passed) * whole / rate
    slow, ramp = busy / hardware.coefficient("link_low_share"), hardware.coefficient("link_ramp_clocks") * clocks
    start = hardware.coefficient("link_start_clocks") * clocks + latency * steps + path.far_latency * times
    sent = np.where(is_send, 1.0, times * others / devices) * whole

    starts = (hardware.coefficient("link_start_clocks", name) for name in ("trtllm", "direct"))
    direct_rate = hardware.coefficient("link_direct_share") * path.ring_rate
    direct_start = np.where(named == "trtllm", *starts) * clocks
    direct_start = direct_start + latency * (1.0 + hardware.coefficient("link_peer_steps", "direct") * others)
    one, two = others * whole / direct_rate, 2.0 * others / devices * whole / direct_rate
    more = latency * hardware.coefficient("link_gather_steps")
    is_one = one <= more + two
    is_routed = (operation == "all_to_all") & (named == "deepep")
    routed_rate = np.minimum(path.ring_rate, hardware.coefficient("link_expert_bytes") / clocks)
    routed_start = hardware.coefficient("link_start_clocks", "deepep") * clocks
    first = [is_direct, is_routed]
    own = [np.where(is_one, one, two), sent / routed_rate]
    return {
        "start_s": np.select(first, [direct_start + np.where(is_one, 0.0, more), routed_start], start),
        "ramp_s": np.where(is_direct | is_routed, 0.0, ramp),
        "busy_s": np.select(first, own, busy),
        "slow_s": np.select(first, own, slow),
        "sent_bytes": np.where(is_direct & is_one, others * whole, sent),
    }


def add_links(placement: Placed, kernels: KernelColumns, hardware: Hardware) -> Placed:
    """Return the placement in which collectives take what their links do; raises as `find_path`."""
    found = find_exchange(kernels, hardware)
    if found is None:
        return placement
    is_ours = kernels.work.of_kind(KIND)
    launch = kernels.per_operator(placement.launch_s)  # of the host, during which links get ready
    at_once = np.maximum(launch, found.start_s) + found.slow_s
    is_short = at_once <= np.maximum(launch, found.start_s + found.ramp_s) + found.busy_s
    busy = np.where(is_short, found.slow_s, found.busy_s)
    led, start = is_ours[kernels.leader], kernels.of_leader(found.start_s + np.where(is_short, 0.0, found.ramp_s))

    def own(column: Floats, mine: Floats | float) -> Floats:
        return np.where(is_ours, mine, column)

    overlap = placement.overlap
    if overlap is not None:
        overlap = attrs.evolve(
            overlap,
            compute_s=own(overlap.compute_s, 0.0),
            memory_s=own(overlap.memory_s, busy),
            launch_s=np.where(led, np.maximum(overlap.launch_s, start), overlap.launch_s),
            shared_s=own(overlap.shared_s, 0.0),
        )
    return attrs.evolve(
        placement,
        compute_s=own(placement.compute_s, 0.0),
        memory_s=own(placement.memory_s, np.maximum(busy, placement.memory_s)),
        launch_s=np.where(led, np.maximum(placement.launch_s, start), placement.launch_s),
        overlap=overlap,
    )


def hide_exchange(placement: Placed, kernels: KernelColumns) -> Placed:
    """Return the placement in which devices exchange while they compute, as far as a training step lets them.

    One exchange is under way at a time. What is sent behind others begins when it is there, and the step ends with the
    last of it; what is fetched ahead begins as the one before it is read, and is waited for. What does not end in time
    is what a kernel takes; what it reads and writes of the memory takes that from others in any case.
    """
    work, leader = kernels.work, kernels.leader
    if not work.has_word(BEHIND, AHEAD).any():
        return placement
    behind, ahead = (work.has_word(word)[leader] for word in (BEHIND, AHEAD))
    seconds = placement.launch_s + np.maximum(*map(kernels.per_kernel, (placement.compute_s, placement.memory_s)))
    each = kernels.kernel_count // kernels.workload_count
    rows = seconds.reshape(-1, each)
    count = len(rows)
    places = np.flatnonzero((behind | ahead)[:each])
    own = rows.copy()
    own[:, places] = 0.0
    before = np.cumsum(own, axis=1)
    waited, linked, read = np.zeros(count), np.zeros(count), np.zeros(count)
    seen = np.zeros_like(rows)
    for place in places.tolist():
        now = before[:, place] + waited
        if ahead[place]:
            linked = np.maximum(linked, read) + rows[:, place]
            seen[:, place] = np.maximum(linked - now, 0.0)
            waited, read = waited + seen[:, place], now + seen[:, place]
        else:
            linked = np.maximum(linked, now) + rows[:, place]
    last = [place for place in places.tolist() if behind[place]]
    left = np.maximum(linked - before[:, last[-1]] - waited, 0.0) if last else np.zeros(count)
    for place in reversed(last):
        seen[:, place] = np.minimum(rows[:, place], left)
        left = left - seen[:, place]
    is_hidden = behind | ahead
    shown = kernels.per_operator(is_hidden.astype(float)) > 0.0
    return attrs.evolve(
        placement,
        compute_s=np.where(shown, 0.0, placement.compute_s),
        memory_s=np.where(shown, kernels.per_operator(seen.reshape(seconds.shape)), placement.memory_s),
        launch_s=np.where(is_hidden, 0.0, placement.launch_s),
    )


def count_links(kernels: KernelColumns, hardware: Hardware) -> ActionCounts:
    """Return the bytes that the device sends to others; none where there are no collectives."""
    found = find_exchange(kernels, hardware)
    return {} if found is None else {LINK_ACTION: found.sent_bytes}
