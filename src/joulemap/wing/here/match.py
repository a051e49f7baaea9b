"""Chips of a machine as hardware: from the catalogue with this machine's memory and limits, or described here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.catalog import find_system, find_usable
from joulemap.catalog.family import Member, list_members
from joulemap.catalog.memory import OWN_MEMORY, find_share
from joulemap.domain import DEFAULT_MODE, Cpu, HardwareEntry, HardwareRef, find_alike
from joulemap.domain.catalogue import describe_like
from joulemap.domain.hardware_ref import name_variant
from joulemap.domain.machine import Gpu
from joulemap.domain.printed import read_words, shorten
from joulemap.physics import Hardware
from joulemap.plan import known_hardware, read_known
from joulemap.system import JoulemapError, find_nearest, frozen
from joulemap.wing.here.machine import Graphics, Machine, Memory
from joulemap.wing.here.show.word import AMBIGUOUS, CATALOGUE, CORES, DERIVED, FASTER_MEMORY, NEAREST, PROBED, SOCKETS

UNKNOWN: Final = "unknown"

LONGEST_NAME: Final = 200
"""Characters of a printed name that are compared with names of chips."""

CPU: Final = "cpu"
GPU: Final = "gpu"
NPU: Final = "npu"

OTHER_CAPACITY: Final = 0.1
"""Relative difference in memory capacity above which two chips of one name are different products.

24 GiB sold as 24 GB differ by less.
"""

OTHER_SIZE: Final = 0.02
"""Relative difference above which the capacity that a driver reports replaces the catalogue's. Error correction takes a
sixteenth.
"""

FASTER: Final = 1.75
"""Ratio of stated to catalogue bandwidth above which the answer asks the user to check the statement. Source: DDR5-5600
over DDR4-3200, which are both published for Intel's 12th to 14th generations.
"""

OTHER_BANDWIDTH: Final = 0.05
OTHER_POWER: Final = 0.02

APPLE: Final = "Apple"
AMD: Final = "AMD"
"""Vendor whose integrated GPUs also use memory that firmware reserves for them."""

NARROW_LANES: Final = ((7, 0), (7, 2), (7, 5), (8, 0))
"""CUDA capabilities with 64 fp32 lanes per multiprocessor. Source: CUDA C++ Programming Guide."""

L2_BYTES_PER_BUS_BIT: Final = 16 * 1024
"""L2 cache in bytes per bit of memory bus, for a GPU that is not in the catalogue. Source: assumed; GA102 has 6 MiB at
384 bits, GA104 4 MiB at 256, TU102 5.5 MiB at 352.
"""


@frozen(kw_only=True, eq=False)
class Device:
    """Chip of the machine, with the hardware that answers use for it."""

    printed: str
    kind: str
    """Class: cpu, gpu or npu."""
    hardware: str | Hardware | None = None
    """Reference to a chip of the catalogue, or a description made from this machine's numbers; None for an unknown
    chip.
    """
    label: str = ""
    """Id of the hardware; empty for an unknown chip."""
    count: int = 1
    memory_bytes: float | None = None
    """Memory of the chip, or of the machine if the chip shares it."""
    usable_bytes: float | None = None
    """Memory that the operating system leaves to models on this chip."""
    reserve_bytes: float = 0.0
    """Memory that the operating system keeps; 0 for a chip with a memory of its own."""
    memory_bytes_per_s: float | None = None
    power_w: float | None = None
    origin: str
    shares_memory: bool = False
    """True if the chip uses the machine's memory."""
    has_link: bool = False
    """True if a link to the host is described."""


@frozen(kw_only=True)
class MatchedChips:
    """Chips of a machine, and a note on each chip that is ambiguous or unknown."""

    devices: tuple[Device, ...]
    notes: tuple[str, ...]

    @property
    def usable(self) -> tuple[Device, ...]:
        """Chips with a hardware description."""
        return tuple(one for one in self.devices if one.hardware is not None)

    def list_kind(self, *kinds: str) -> tuple[Device, ...]:
        """Return the usable chips of the given classes, in the order of the classes."""
        return tuple(one for kind in kinds for one in self.usable if one.kind == kind)


def match_machine(machine: Machine) -> MatchedChips:
    """Return the chips of a machine, each as hardware of the catalogue or with a description made here.

    A name must match as a whole: no chip is guessed from a part of its name.
    """
    known = known_hardware([name[:LONGEST_NAME] for name in _list_names(machine)])
    notes: list[str] = []
    devices = [*_match_graphics(machine, known, notes)]
    shared = next((one.memory_bytes_per_s for one in devices if one.printed.startswith(APPLE)), None)
    # Apple's memory is on the package, so the catalogue has its bandwidth
    if shared and machine.memory.bytes_per_s is None:
        machine = _set_rate(machine, shared)
    if machine.cpu is not None:
        processor = _match_processor(machine, machine.cpu, known, notes)
        if machine.memory.bytes_per_s is None and any(one.shares_memory for one in devices):
            # chips that share a memory have one bandwidth; where it is unknown, the processor's in the catalogue
            machine = _set_rate(machine, processor.memory_bytes_per_s)
            devices = [*_match_graphics(machine, known, [])]
        devices.append(processor)
    devices += _match_neural(machine, known, notes)
    return MatchedChips(devices=tuple(devices), notes=tuple(notes))


def _set_rate(machine: Machine, bytes_per_s: float | None) -> Machine:
    """Return a machine with the memory bandwidth of one of its chips."""
    return attrs.evolve(machine, memory=attrs.evolve(machine.memory, known_bytes_per_s=bytes_per_s))


def _list_names(machine: Machine) -> Iterator[str]:
    """Yield every name under which a chip of the machine may be known."""
    for one in machine.graphics:
        yield from _spell_graphics(one)
        yield from _split_slashes(one.name)
    yield from _spell_processor(machine)
    for name in machine.neural:
        yield from _spell_neural(name, machine)


def _select(known: Mapping[str, HardwareEntry], *kinds: str) -> dict[str, HardwareEntry]:
    return {name: one for name, one in known.items() if one.architecture in kinds}


def _find(entries: Mapping[str, HardwareEntry], names: Iterable[str]) -> list[HardwareEntry]:
    """Return the hardware that the first matching name refers to; empty if no name matches."""
    return next((alike for name in names if name and (alike := find_alike(entries, name))), [])


def _describe(entry: HardwareEntry) -> Hardware:
    return read_known([entry.digest])[entry.digest]


def _match_graphics(machine: Machine, known: Mapping[str, HardwareEntry], notes: list[str]) -> Iterator[Device]:
    entries = _select(known, GPU)
    counts: dict[Graphics, int] = {}
    for one in machine.graphics:
        counts[one] = counts.get(one, 0) + 1
    board = (machine.board,) if not machine.graphics else ()
    for name in board:
        if matches := _find(entries, [name]):
            counts[Graphics(name=matches[0].name, source="the board's name")] = 1
    for one, count in counts.items():
        matches = _select_variants(_find_graphics(entries, one), one)
        if len(matches) == 1:
            yield _adapt_entry(matches[0], one.name, count, machine.memory, one)
            continue
        described = _describe_graphics(one)
        if described is None:
            notes.append(_explain(one.name, matches, entries))
        yield Device(
            printed=one.name,
            kind=GPU,
            hardware=described,
            label=described.id if described else "",
            count=count,
            memory_bytes=one.memory_bytes,
            usable_bytes=one.memory_bytes,
            memory_bytes_per_s=described.memory_bandwidth.value if described else None,
            power_w=one.power_w,
            origin=DERIVED(assumed=None) if described else UNKNOWN,
        )


def _find_graphics(entries: Mapping[str, HardwareEntry], one: Graphics) -> list[HardwareEntry]:
    """Return the hardware whose name matches a GPU. If none does, match each of the names that lspci joins with a
    slash.
    """
    if matches := _find(entries, _spell_graphics(one)):
        return matches
    every = {entry.id: entry for name in _split_slashes(one.name) for entry in find_alike(entries, name)}
    return list(every.values())


def _split_slashes(name: str) -> Iterator[str]:
    """Yield the names that lspci joins with slashes; nothing without a slash.

    `Radeon RX 7700/7800` gives `Radeon RX 7700` and `Radeon RX 7800`.
    """
    first, *others = name.split("/")
    if others:
        yield first.strip()
    words = first.split()
    begin = next((index for index, word in enumerate(words) if word[:1].isdecimal()), len(words))
    for other in others:
        yield " ".join((*words[:begin], other.strip()))


def _spell_graphics(one: Graphics) -> Iterator[str]:
    """Yield possible names of a GPU: the printed name and, for an Apple chip, the name without processor cores."""
    yield one.name
    head, _, tail = one.name.rpartition(" ")
    if one.core_count and tail.endswith("GPU") and head.startswith("Apple"):
        yield f"{head} {one.core_count}GPU"
        yield f"{head} {one.core_count}-core GPU"
        yield head


def _select_variants(matches: Sequence[HardwareEntry], one: Graphics) -> list[HardwareEntry]:
    """Return the entries that agree with the GPU's memory or number of cores; all entries if none agrees."""
    if len(matches) < 2:
        return list(matches)
    kept = []
    for entry in matches:
        hardware = _describe(entry)
        capacity, units = hardware.memory_capacity.value, hardware.unit_count.value
        if one.memory_bytes and abs(one.memory_bytes / capacity - 1.0) > OTHER_CAPACITY:
            continue
        if one.core_count and not one.memory_bytes and units != one.core_count:
            continue
        kept.append(entry)
    return kept if kept else list(matches)


def _describe_graphics(one: Graphics) -> Hardware | None:
    """Return the description of a GPU from its driver's numbers; None if any is missing."""
    needed = (one.capability, one.core_count, one.memory_bus_bits, one.memory_clock_hz, one.clock_hz, one.memory_bytes)
    if one.power_w is None or any(value is None for value in needed):
        return None
    from joulemap.catalog.chip import load_text
    from joulemap.catalog.detected import gpu_text

    numbers: Any = one
    lanes = 64 if one.capability in NARROW_LANES else 128
    gpu = Gpu(
        name=one.name,
        unit_count=max(1, round(numbers.core_count / lanes)),
        capability=numbers.capability,
        clock_hz=numbers.clock_hz,
        memory_bytes=int(numbers.memory_bytes),
        memory_bus_bits=numbers.memory_bus_bits,
        memory_clock_hz=numbers.memory_clock_hz,
        l2_bytes=numbers.memory_bus_bits * L2_BYTES_PER_BUS_BIT,
        power_w=one.power_w,
    )
    return load_text(gpu_text(gpu), one.name).with_own_digest()


def _match_processor(machine: Machine, cpu: Cpu, known: Mapping[str, HardwareEntry], notes: list[str]) -> Device:
    entries = _select(known, CPU)
    matches = _find(entries, _spell_processor(machine))
    if len(matches) > 1:
        matches = [one for one in matches if one.core_count == cpu.core_count] or matches
    if len(matches) == 1:
        entry = matches[0]
        device = _adapt_entry(entry, cpu.name, 1, machine.memory, None, cpu)
        rate, known_rate = machine.memory.bytes_per_s, _describe(entry).memory_bandwidth.value
        if machine.memory.source == "--memory" and rate is not None and rate > FASTER * known_rate:
            notes.append(FASTER_MEMORY(label=entry.id, rate=rate, known=known_rate, ratio=rate / known_rate))
        if cpu.socket_count > 1:
            notes.append(SOCKETS(label=entry.id, count=cpu.socket_count))
        elif cpu.is_virtual and 0 < cpu.core_count < entry.core_count:
            notes.append(CORES(label=entry.id, count=cpu.core_count, whole=entry.core_count))
        return device
    if matches:
        notes.append(_explain(cpu.name, matches, entries))
    from joulemap.catalog.chip import load_text
    from joulemap.catalog.detected import cpu_text

    memory = machine.memory
    own = attrs.evolve(
        cpu,
        memory_bytes=int(memory.capacity_bytes) if memory.capacity_bytes else cpu.memory_bytes,
        memory_bytes_per_s=memory.bytes_per_s,
        memory_source=memory.source,
    )
    hardware = load_text(cpu_text(own), cpu.name).with_own_digest()
    return Device(
        printed=cpu.name,
        kind=CPU,
        hardware=hardware,
        label=hardware.id,
        memory_bytes=hardware.memory_capacity.value,
        usable_bytes=find_usable(hardware),
        reserve_bytes=_find_reserve_bytes(hardware, hardware.memory_capacity.value),
        memory_bytes_per_s=hardware.memory_bandwidth.value,
        power_w=hardware.tdp.value,
        origin=PROBED if memory.source == "--probe" else DERIVED(assumed="bandwidth" if memory.is_unknown else None),
        shares_memory=True,
    )


def _spell_processor(machine: Machine) -> Iterator[str]:
    """Yield possible names of the processor: an Apple chip with its number of cores, then the board's and its own, each
    also with the suffix `CPU`.
    """
    cpu = machine.cpu
    if cpu is not None and cpu.core_count and cpu.vendor == APPLE:
        yield f"{cpu.name} {cpu.core_count}-core CPU"
    for name in (machine.board, cpu.name if cpu else ""):
        if name:
            yield name
            yield f"{name} CPU"


def _spell_neural(name: str, machine: Machine) -> Iterator[str]:
    """Yield possible names of a neural unit: its printed name, and the processor's name with the suffix `NPU`."""
    yield name
    yield f"{name} NPU"
    if machine.cpu is not None:
        yield f"{machine.cpu.name} NPU"
        yield f"{shorten(machine.cpu.name)} NPU"


def _match_neural(machine: Machine, known: Mapping[str, HardwareEntry], notes: list[str]) -> Iterator[Device]:
    entries = _select(known, NPU)
    for name in machine.neural:
        matches = _find(entries, _spell_neural(name, machine))
        if len(matches) == 1:
            yield _adapt_entry(matches[0], name, 1, machine.memory, None)
        else:
            notes.append(_explain(name, matches, entries))
            yield Device(printed=name, kind=NPU, origin=UNKNOWN)


def _adapt_entry(
    entry: HardwareEntry, printed: str, count: int, memory: Memory, card: Graphics | None, cpu: Cpu | None = None
) -> Device:
    """Return a chip of the catalogue with the memory, the power limit and the cores of this machine."""
    hardware = _describe(entry)
    shares = bool(find_system(hardware)) and (card is None or not hardware.memory_type.startswith(OWN_MEMORY))
    reported = memory.capacity_bytes if shares else card.memory_bytes if card else None
    capacity = reported
    if reported and not shares:
        from joulemap.wing.decoder import LOCAL_ENGINE, find_engine
        from joulemap.wing.llm.serve import find_memory_share

        # the memory share of the engine turns nominal memory into that of drivers; here it is known
        capacity = reported / find_memory_share(find_engine(LOCAL_ENGINE), hardware.memory_type)
    elif reported and entry.vendor == AMD and card is not None and card.memory_bytes:
        capacity = _add_firmware_memory(hardware, reported, card.memory_bytes)
    bus = hardware.memory_bus_width
    if cpu is not None and memory.configuration is not None:
        memory.configuration.check_fit(entry.id, hardware.memory_type, bus.value if bus else None)
    if bus is not None and memory.width_bits:  # modules whose slots no pattern knows are not channels of their own
        widest = round(bus.value) * (1 if cpu is None else cpu.socket_count)
        memory = attrs.evolve(memory, width_bits=min(memory.width_bits, widest))
    rate = memory.bytes_per_s if shares else None
    changes: list[tuple[str, str]] = []
    own_capacity, own_rate = hardware.memory_capacity.value, hardware.memory_bandwidth.value
    if capacity and abs(capacity / own_capacity - 1.0) > (OTHER_CAPACITY if shares else OTHER_SIZE):
        changes.append(("memory_capacity", f"{capacity / 1e9:.4g}GB"))
        own_capacity = capacity
    if rate and entry.architecture == NPU and rate / own_rate - 1.0 > OTHER_BANDWIDTH:
        rate = own_rate  # faster memory raises no rate that the NPU itself limits
    if rate and abs(rate / own_rate - 1.0) > OTHER_BANDWIDTH:
        changes.append(("memory_bandwidth", f"{rate / 1e9:.4g}GB/s"))
        own_rate = rate
    if card is not None and card.core_count and entry.vendor == APPLE and card.core_count != hardware.unit_count.value:
        changes.append(("unit_count", str(card.core_count)))
    mode, power = _find_mode(entry, hardware, card, cpu)
    # boards of one chip have different limits: the driver's stands above one that no source calls the highest
    is_raised = card is not None and (card.power_w or 0.0) > (1.0 + OTHER_POWER) * max((*entry.caps_w, *entry.limits_w))
    if card is not None and card.power_w and is_raised and hardware.power_limit_highest is None:
        changes.append(("tdp", f"{card.power_w:.0f}W"))
        power = card.power_w
    label = name_variant(entry.id, changes) if changes else entry.id
    is_reported = card is not None and card.power_w and abs(card.power_w / power - 1.0) <= OTHER_POWER
    read = {
        "memory": capacity,
        "bandwidth": shares and memory.reports_rate and rate == memory.bytes_per_s,
        "power limit": is_reported,
    }
    return Device(
        printed=printed,
        kind=entry.architecture,
        hardware=str(HardwareRef(entry.id, label[len(entry.id) :], mode)),
        label=entry.id,
        count=count,
        memory_bytes=reported or own_capacity,
        usable_bytes=find_usable(hardware, own_capacity) if shares else reported or own_capacity,
        reserve_bytes=_find_reserve_bytes(hardware, own_capacity) if shares else 0.0,
        memory_bytes_per_s=rate or own_rate,
        power_w=power,
        origin=CATALOGUE(
            read=[name for name, value in read.items() if value],
            assumed="bandwidth" if shares and memory.is_unknown else None,
        ),
        shares_memory=shares,
        has_link=any(one.connects == "host" for one in hardware.links),
    )


def _find_reserve_bytes(hardware: Hardware, capacity_bytes: float) -> float:
    return capacity_bytes - find_usable(hardware, capacity_bytes, is_set=True)


def _add_firmware_memory(hardware: Hardware, capacity_bytes: float, own_bytes: float) -> float:
    """Return the capacity at which an integrated GPU may use what firmware reserves for it, beside its usual share.

    It never exceeds what the system leaves of the machine's memory.
    """
    share = find_share(hardware, capacity_bytes)
    if share is None:
        return capacity_bytes
    reserve = _find_reserve_bytes(hardware, capacity_bytes)
    usable = min(capacity_bytes - reserve, own_bytes + capacity_bytes * share.value)
    return max(usable / share.value, usable + reserve)


def _find_mode(entry: HardwareEntry, hardware: Hardware, card: Graphics | None, cpu: Cpu | None) -> tuple[str, float]:
    """Return the power mode that fits the GPU's power limit or the processor's cores, and its power in watts.

    The mode is empty if it is the default.
    """
    power = hardware.tdp.value
    asked = ""
    if card is not None and card.power_w and abs(card.power_w / power - 1.0) > OTHER_POWER:
        asked = f"{card.power_w:.0f}W"
    elif cpu is not None and cpu.is_virtual and 0 < cpu.core_count < entry.core_count:
        asked = f"{cpu.core_count}cores"
    if not asked:
        return "", power
    try:
        mode = entry.find_mode(asked)
    except JoulemapError:
        return "", power
    return ("" if mode == DEFAULT_MODE else mode), entry.cap_w(mode)


def _explain(name: str, matches: Sequence[HardwareEntry], entries: Mapping[str, HardwareEntry]) -> str:
    """Return a note that a chip's name is ambiguous or unknown, with the nearest names."""
    if len(matches) > 1:
        return AMBIGUOUS(name=name, names=[one.id for one in matches])
    own = {word for word, _ in read_words(name) if len(word) > 1}
    kinds = {one.architecture for one in entries.values()}
    every: list[HardwareEntry | Member] = list(entries.values())
    every += [one for one in list_members().values() if one.architecture in kinds]
    alike = [one.names for one in every if own & {word for word, _ in read_words(one.name)}]
    near = find_nearest(shorten(name), alike)
    described = describe_like(entries, near[0]) if near and kinds == {GPU} else None
    return NEAREST(name=name, near=near, described=described)
