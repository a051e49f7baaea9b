"""Collectives between devices, over the fastest link whose domain includes all of them.

n devices exchange a buffer of S bytes. The link has the bandwidth B in one direction and the latency l; f is the clock.
w is 2 for an all-reduce, which is a scatter and a gather, else 1:

    library = start / f + l steps + min(moved / (low_share R), ramp / f + moved / R)      rings: NCCL and its kin
    steps   = w (n - 1);  1 + peer_steps (n - 1) of all to all;  1 of a send
    moved   = w ((n - 1) / n + own_share) S hops;  S of a send
    direct  = start.direct / f + l (1 + peer_steps.direct (n - 1)) + min(one, two)        kernels that read each other
    one     = (n - 1) S / (direct_share B)
    two     = l gather_steps + 2 (n - 1) / n S / (direct_share B)
    experts = start.deepep / f + ‖inner / min(R, expert_bytes f), outer / (network_share N)‖   tokens to experts or back

A library has two protocols and uses the faster one. One sends flags with the data, at low latency and about half the
rate. The other fills the link after a ramp. Links start and ramp up while the host launches. A device passes own_share
of the buffer through the same channels for itself. GPUs use direct kernels for all-reduces of at most DIRECT_MOST bytes
within a host whose devices are all directly connected. Every other all-reduce uses the library. A word of `variant`
names a specific library.

    R    = B of a switch, a pair, a ring; B (n - 1) / (D - 1) in a mesh of D devices; B peer_share over PCIe between
           two devices, of which host_share beyond two
    hops = max(1, d n^(1/d) / 4)     all to all in a ring or torus of d dimensions, which forwards others' bytes; else 1

In a training step a collective may reach beyond the devices of a link. Then rings cross hosts over one network card per
device. So does each send between stages of a pipeline whose devices no link joins. A host has m of the n devices, and a
card has the rate N:

    R       = min(R of the link, m N);  N of all to all
    steps   = w (m - 1), and  network_latency w ceil(log2(n / m))  in addition, in a tree of hosts

Tokens may go to experts on h hosts of m devices. `deepep` sends a token once to each host that has one of its k
experts, from where links forward it to each device that has one. `deepep_ll` sends it to each expert by itself (k = 1).
S counts the copies for devices, or for experts. r(x) = x (1 - (1 - 1 / x)^k) is the expected number of x hosts or
devices that have an expert of a token:

    outer   = (h - 1) / h  r(h) / r(n) S
    inner   = (m - 1) / m  S;  1 / h of it for `deepep_ll`

Fields of a product, which an exchange is not, have k (N), the distance between neighbours in devices (K), and the
number of parts of a batch that take turns (taps).

A device without such links exchanges over PCIe with others in its host. A collective is a separate kernel: its start
and steps are the launch, its bytes the memory time. In eager the host launches it like any other. The ledger counts the
bytes that the device sends: w (n - 1) / n S, or (n - 1) S in one stage.

Source: NCCL, src/graph/tuning.cc (forms of ring, LL and Simple; recalled); vLLM, csrc/custom_all_reduce.cuh (one and
two stages; recalled); the numbers are fitted to measurements that docs/time.md lists.
"""

from __future__ import annotations

import math
from typing import Final

import attrs
import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.ledger import ActionCounts
from joulemap.physics.placement import Placed
from joulemap.physics.record.hardware import Hardware, Link
from joulemap.physics.record.reference import LINK_ACTION
from joulemap.physics.workload import Floats, Integers, put
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import define, frozen

KIND: Final = "communication"

BEHIND: Final = "behind"
"""Variant word of a collective that overlaps with later computation and must end by the end of the training step."""

NORM: Final = 2.5
"""Exponent of the norm of the times of links and network, as of a kernel's compute and memory time."""

AHEAD: Final = "ahead"
"""Variant word of a prefetch that overlaps with the computation before it."""

DIRECT_MOST: Final = 8.0 * 2**20
"""Maximum bytes of an all-reduce that direct kernels compute. Source: vLLM, CustomAllreduce.max_size (recalled); beyond
it, the libraries whose collectives aiconfigurator measured take equal times.
"""

HOST_DEVICES: Final = 8
"""Maximum devices per host, as is typical of servers. The processes of one host can open each other's memory."""

RACK_HOST_DEVICES: Final = 4
"""Devices per host in a link domain larger than a host, e.g. a two-board tray in a GB200 rack. Beyond a host only
TensorRT-LLM has direct kernels, because it shares memory through the switch."""

DIMENSIONS: Final = {"ring": 1.0, "torus_2d": 2.0, "torus_3d": 3.0}
"""Topology -> number of dimensions along which a device has neighbours on both sides."""


@frozen(kw_only=True)
class Path:
    """Connection between the devices of a group: its rates, latency and hops."""

    ring_rate: Floats | float
    """Bytes per second that a device sends in one direction over all of its links."""
    peer_rate: Floats | float
    """Bytes per second that a device sends to one other device."""
    latency: float
    hops: float
    """Number of links that a byte passes between any two devices."""
    is_direct: bool
    """True if each device can read the memory of every other device at the full link rate."""
    is_in_host: bool
    near: float
    """Number of devices of the group that one link domain joins."""
    far_rate: Floats | float = 0.0
    """Bytes per second that a device sends to other hosts; 0 if the link joins the whole group."""
    far_latency: Floats | float = 0.0
    """Total latency of all steps between hosts, one way, in seconds."""


@define(kw_only=True, eq=False)
class Exchange:
    """Times and bytes of collectives, as per-operator arrays; 0 for other operators."""

    start_s: Floats
    """Time before bytes flow, including the steps of the algorithm."""
    ramp_s: Floats
    """Additional time before bytes flow at the link's rate; 0 for kernels that need no ramp."""
    busy_s: Floats
    """Transfer time at the link's rate."""
    slow_s: Floats
    """Transfer time at the rate of short messages, which need no ramp."""
    sent_bytes: Floats
    """Bytes that the device sends to all others."""
    held_s: Floats
    """Time in which the units of the device take part, instead of computing."""
    held_share: Floats
    """Share of the units that are kept for exchanges at all times."""


def find_path(hardware: Hardware, devices: int, stride: int = 0) -> Path:
    """Return the path between this number of devices of one kind. Raise UnsupportedError if no link joins them.

    `stride` is the distance in devices between neighbours of a group that may reach beyond a link. It is 0 for a group
    that may not.
    """
    links = hardware.peer_links
    if not links:
        raise UnsupportedError(f"{hardware.id} has no link to others of its kind", code="no_link", hardware=hardware.id)
    able = [link for link in links if devices * max(stride, 1) <= _count_devices(link)]
    if not able and stride:
        return _cross_hosts(hardware, links, devices, stride)
    if not able:
        most = max(map(_count_devices, links))
        raise UnsupportedError(
            f"{devices} connected devices are needed; links of {hardware.id} connect at most {most:g}",
            code="linked_devices",
            hardware=hardware.id,
            devices=devices,
            most=most,
        )
    link = max(able, key=lambda one: (one.connects == "device", one.bandwidth.value))
    is_peer = link.connects == "device"
    share = 1.0 if is_peer else hardware.coefficient("link_peer_share")
    rate, peers = link.bandwidth.value * share, 1.0
    ring, domain = rate, _count_devices(link)
    if not is_peer and devices > 2:
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
        is_direct=reaches_all and share == 1.0 and hardware.architecture == "gpu",
        is_in_host=devices <= own,
        near=devices,
    )


def find_send(hardware: Hardware, devices: int) -> Path:
    """Return the path between neighbouring stages of a pipeline: the link that joins all devices, else the network."""
    try:
        return find_path(hardware, devices)
    except UnsupportedError:
        return find_path(hardware, 2, devices)


def _cross_hosts(hardware: Hardware, links: list[Link], devices: int, stride: int) -> Path:
    """Return the path between devices of several hosts: the link inside each host, and a network between hosts."""
    card = hardware.coefficient("network_bytes")
    near = max(1, int(max(map(_count_devices, links))) // stride)
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


def _count_devices(link: Link) -> float:
    """Return the number of devices that a link joins; infinite if the link states none."""
    if link.connects == "host":
        return HOST_DEVICES
    return np.inf if link.domain_size is None else link.domain_size.value


def find_exchange(kernels: KernelColumns, hardware: Hardware) -> Exchange | None:
    """Return the times and bytes of collectives, or None if the kernels contain none. Raises like `find_path`."""
    is_ours = kernels.work.of_kind(KIND)
    if not is_ours.any():
        return None
    exchange = Exchange(**{field.name: np.zeros(len(is_ours)) for field in attrs.fields(Exchange)})
    groups, strides = kernels.work.gemm_groups, kernels.work.gemm_k
    sends = kernels.work.operation == "send"
    for devices, stride, is_send in np.unique(np.stack([groups, strides, sends])[:, is_ours], axis=1).T.tolist():
        rows = np.flatnonzero(is_ours & (groups == devices) & (strides == stride) & (sends == is_send))
        path = find_send(hardware, int(devices)) if is_send else find_path(hardware, int(devices), int(stride))
        for name, values in _time(kernels, rows, hardware, path, int(devices)).items():
            setattr(exchange, name, put(getattr(exchange, name), rows, values))
    return exchange


def _time(kernels: KernelColumns, rows: Integers, hardware: Hardware, path: Path, devices: int) -> dict[str, Floats]:
    """Return field of `Exchange` -> its values for the collectives at `rows`, over `devices` devices."""
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
    is_once, is_each = (operation == "all_to_all") & (named == "deepep"), named == "deepep_ll"
    is_routed = is_once | is_each
    routed_rate = np.minimum(path.ring_rate, hardware.coefficient("link_expert_bytes") / clocks)
    routed_starts = (hardware.coefficient("link_start_clocks", name) for name in ("deepep", "deepep_ll"))
    routed_start = np.where(is_once, *routed_starts) * clocks
    hosts, taken = math.ceil(devices / path.near), np.maximum(kernels.work.gemm_n[rows], 1.0)
    outer = (1.0 - 1.0 / hosts) * _count_reached(hosts, taken) / _count_reached(devices, taken) * whole
    inner = near / path.near * np.where(is_each, 1.0 / hosts, 1.0) * whole
    outer_s = outer / (hardware.coefficient("link_network_share") * hardware.coefficient("network_bytes"))
    routed_s = ((inner / routed_rate) ** NORM + outer_s**NORM) ** (1.0 / NORM)
    sent = np.where(is_routed, inner + outer, sent)
    held = np.minimum(whole / routed_rate, routed_s) + routed_start
    share = hardware.coefficient("link_expert_units") / hardware.unit_count.value
    first = [is_direct, is_routed]
    own = [np.where(is_one, one, two), routed_s]
    return {
        "start_s": np.select(first, [direct_start + np.where(is_one, 0.0, more), routed_start], start),
        "ramp_s": np.where(is_direct | is_routed, 0.0, ramp),
        "busy_s": np.select(first, own, busy),
        "slow_s": np.select(first, own, slow),
        "sent_bytes": np.where(is_direct & is_one, others * whole, sent),
        "held_s": np.where(is_each, held, 0.0),
        "held_share": np.where(is_once, share, 0.0),
    }


def _count_reached(places: float, taken: Floats) -> Floats:
    """Return the expected number of hosts or devices that have at least one of a token's experts."""
    return places * (1.0 - (1.0 - 1.0 / places) ** taken)


def add_links(placement: Placed, kernels: KernelColumns, hardware: Hardware) -> Placed:
    """Return the placement with the link times of collectives. Raises like `find_path`."""
    exchange = find_exchange(kernels, hardware)
    if exchange is None:
        return placement
    is_ours = kernels.work.of_kind(KIND)
    launch = kernels.per_operator(placement.launch_s)  # Links get ready during the host's launch.
    at_once = np.maximum(launch, exchange.start_s) + exchange.slow_s
    is_short = at_once <= np.maximum(launch, exchange.start_s + exchange.ramp_s) + exchange.busy_s
    busy = np.where(is_short, exchange.slow_s, exchange.busy_s)
    led, start = is_ours[kernels.leader], kernels.of_leader(exchange.start_s + np.where(is_short, 0.0, exchange.ramp_s))

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
    """Return the placement with collectives overlapped with computation, as far as a training step allows. One
    collective runs at a time. A `BEHIND` collective starts once its data exist, and the step ends with the last one. An
    `AHEAD` collective starts when the data of the one before it are read. The kernel that reads its own data waits for
    it. A kernel takes only the time that is not hidden. Its memory traffic takes bandwidth from other kernels in any
    case.
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
    for column in places.tolist():
        now = before[:, column] + waited
        if ahead[column]:
            linked = np.maximum(linked, read) + rows[:, column]
            seen[:, column] = np.maximum(linked - now, 0.0)
            waited, read = waited + seen[:, column], now + seen[:, column]
        else:
            linked = np.maximum(linked, now) + rows[:, column]
    last = [column for column in places.tolist() if behind[column]]
    left = np.maximum(linked - before[:, last[-1]] - waited, 0.0) if last else np.zeros(count)
    for column in reversed(last):
        seen[:, column] = np.minimum(rows[:, column], left)
        left = left - seen[:, column]
    is_hidden = behind | ahead
    shown = kernels.per_operator(is_hidden.astype(float)) > 0.0
    return attrs.evolve(
        placement,
        compute_s=np.where(shown, 0.0, placement.compute_s),
        memory_s=np.where(shown, kernels.per_operator(seen.reshape(seconds.shape)), placement.memory_s),
        launch_s=np.where(is_hidden, 0.0, placement.launch_s),
        pass_s=np.where(is_hidden, 0.0, placement.pass_s),
    )


def overlap_parts(placement: Placed, kernels: KernelColumns, hardware: Hardware) -> Placed:
    """Return the placement of one of two parts of a batch, which take turns: while one part exchanges tokens with
    experts, the other one computes. An exchange meets the computation before it and the one after it, and half of it
    counts for each part. It takes what remains, the time in which its own units copy, and the computation that units
    kept for exchanges do not do.
    """
    mine = kernels.work.takes_turns
    exchange = find_exchange(kernels, hardware) if mine.any() else None
    if exchange is None:
        return placement
    led = mine[kernels.leader]
    places = np.flatnonzero(led)
    marks = np.flatnonzero(led | (np.diff(kernels.workload_index[kernels.leader], prepend=-1) > 0))
    seconds = placement.launch_s + np.maximum(*map(kernels.per_kernel, (placement.compute_s, placement.memory_s)))
    computing = np.add.reduceat(np.where(led, 0.0, seconds), marks, axis=-1)  # after each exchange, until the next one
    after = np.searchsorted(marks, places)
    rows, held, share = (
        np.broadcast_to(one, seconds.shape)[..., places]
        for one in (seconds, *map(kernels.per_kernel, (exchange.held_s, exchange.held_share)))
    )
    met = computing[..., after - 1], computing[..., after]
    shown = np.mean([np.maximum(one / (1.0 - share) + held, rows) - one for one in met], axis=0)
    own = kernels.per_operator(put(np.zeros(seconds.shape), places, shown))
    return attrs.evolve(
        placement,
        compute_s=np.where(mine, 0.0, placement.compute_s),
        memory_s=np.where(mine, own, placement.memory_s),
        launch_s=np.where(led, 0.0, placement.launch_s),
        pass_s=np.where(led, 0.0, placement.pass_s),
    )


def count_links(kernels: KernelColumns, hardware: Hardware) -> ActionCounts:
    """Return the count of the link action: bytes that each collective sends to other devices; empty without
    collectives.
    """
    exchange = find_exchange(kernels, hardware)
    return {} if exchange is None else {LINK_ACTION: exchange.sent_bytes}
