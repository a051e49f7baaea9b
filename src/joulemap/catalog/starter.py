"""Write a hardware file to start from: a copy of a known one, or the required fields of a class."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from joulemap.catalog.chip import load_class
from joulemap.catalog.digest import own_files, shipped_files
from joulemap.catalog.family import describe_member
from joulemap.catalog.load import find_hardware, load_catalogue
from joulemap.catalog.parser import read_file
from joulemap.catalog.schema import ChipQuantities, HardwareFile
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.physics.record.configuration import BOARD
from joulemap.physics.record.hardware import UNITS, Hardware
from joulemap.physics.record.quantity import Quantity
from joulemap.system.errors import CatalogueError, UsageError
from joulemap.system.package import list_packages
from joulemap.system.units import SI_SCALE

OWN: Final = """\
# A chip of your own. Check it with `joulemap hardware check FILE`, use it with `--hardware FILE`, or name
# its folder in $JOULEMAP_HARDWARE.
#
"""

PACKAGED: Final = """\
# A chip of this package. Replace every number whose source is `copied`, then run `joulemap extend check FOLDER`.
#
"""

HEAD: Final = """\
# A quantity is {{ value, unit, basis, source }}, with a `note` if needed: unit as the source writes it (GHz, GB/s, MiB,
# TOPS ...), basis one of measured, published, derived, scaled, recalled, assumed, source a key of [sources].
# A number that contradicts another one is refused, unless it has an `explanation`.
"""

MINIMAL: Final = """\
id = "{id}"
architecture = "{architecture}"

# Lines that begin with # are optional. Without them, the class supplies a value marked assumed, or none. They show
# the values of {example}: remove the # and enter those of your chip.
# name = "{id}"
# vendor = "vendor of the chip"
# deployment = {deployment}
# microarchitecture = "{microarchitecture}"
# unit_name = "{unit_name}"
# memory_type = "{memory_type}"
# aliases = []
# doubts = []
# projection = "why its key numbers are projections; empty for a chip that exists"
# unavailable = "why it can be neither bought nor rented; empty if it can"
# sold_in = "phones, laptops or cars, if no board of it is sold; empty if a board can be ordered"
# needs_host = "slot of the card, such as PCIe slot, or the rest of its SoC; empty for a chip that works without a host"
{limit}
[sources]
{copied}mine = "{mine}"

[quantities]
"""

MINE: Final = "where these numbers come from: document, page, link"
"""Source that a new file names until its author replaces it."""

COPIED: Final = "copied"
"""Key of the source of numbers in a new package that are still those of another chip."""

LIMIT_LINES: Final = """\
# A sold chip draws most of its power limit under load, more than energies of circuits explain. With this line, the
# rest is derived from tdp. Without it, energies per action are used as given, and energy does not depend on tdp.
# works_at_limit = true
"""

OTHERS: Final = """
# [compiler]
# list = "rknn"  # a known compiler; then only `host` may be added
# name = "compiler of its programs; without this table, every operator runs"
# cut = "each"
# operators = ["linear", "conv.conv2d", "relu"]
# host = "raspberry_pi_5"
# basis = "assumed"
# source = "mine"

# [[power_modes]]
# name = "low"
# tdp = {mode_tdp}
# clock = {mode_clock}
# unit_count = {unit_count}
# memory_bandwidth = {memory_bandwidth}
# static_power = {static_power}
# means = ["another name"]

# [[links]]
# name = "pcie"
# connects = "host"
# generation = "4"
# link_count = {{ value = 1, unit = "1", basis = "assumed", source = "mine" }}
# lane_count = {{ value = 16, unit = "1", basis = "assumed", source = "mine" }}
# bandwidth = {{ value = 31.5, unit = "GB/s", basis = "assumed", source = "mine" }}

# [[links]]
# name = "mine"
# connects = "device"
# topology = "ring"
# link_count = {{ value = 2, unit = "1", basis = "assumed", source = "mine" }}
# bandwidth = {{ value = 50, unit = "GB/s", basis = "assumed", source = "mine" }}
# domain_size = {{ value = 8, unit = "1", basis = "assumed", source = "mine" }}
# latency = {{ value = 1.5, unit = "us", basis = "assumed", source = "mine" }}
# energy = {{ value = 80, unit = "pJ/B", basis = "assumed", source = "mine" }}

# [[loads]]
# name = "measured"
# model = "resnet50"
# precision = "{precision}"
# batch = 1
# runtime = "engine"
# covers = "board"
# power = {load_power}

# [[coefficients]]
# name = "{coefficient.name}"
# value = {coefficient.value!r}
# unit = "{coefficient.unit}"
# basis = "assumed"
# source = "instead of that of the class"
# sources = 1  # sources, boards and models of the measurements that the value was fitted to; left out if there are none
# boards = 1
# models = 1

# [[energy_overrides]]
# component = "{action.component}"
# action = "{action.action}"
# energy_pj = {action.energy_pj!r}
# basis = "assumed"
# source = "instead of that of the class"
"""

LOAD_TABLE: Final = re.compile(r"^\[\[loads\]\]\n(?:[^\[\n].*\n)*", re.MULTILINE)

SHOWN_UNITS: Final = {"Hz": "GHz", "B/s": "GB/s", "T/s": "GT/s"}
"""SI unit -> unit used in files."""


def own_id(name: str) -> str:
    """Return an id for the user's copy of a chip."""
    return f"my_{name}"


def copy_text(name: str) -> str:
    """Return a copy of a known hardware's file with a new id and without aliases; UnknownNameError if there is none.

    A chip of a family has no separate file: its line and the family's shared keys are written as one file.
    """
    chip_id, content = _read_description(name)
    text = re.sub(r'^id = ".*"$', f'id = "{own_id(chip_id)}"', content, count=1, flags=re.MULTILINE)
    text = re.sub(r"^aliases = \[[^\]]*\]\n", "", text, count=1, flags=re.MULTILINE)
    text = text.replace("works_at_limit = true\n", LIMIT_LINES, 1)
    return OWN + HEAD.format() + LOAD_TABLE.sub(lambda table: _comment_load(chip_id, table[0]), text)


def _comment_load(measured: str, table: str) -> str:
    """Comment out a measured load, which does not apply to the chip that a copy describes."""
    lines = [f"# {line}" for line in table.splitlines()]
    return "\n".join([f"# Measured on {measured}; with it, unattributed energy follows from this power.", *lines, ""])


def _read_description(name: str) -> tuple[str, str]:
    """Return the id of a known hardware and the text of its file."""
    ref = HardwareRef.read(name)
    if ref.mode:
        raise UsageError(f"a file describes all power modes of a chip: name {ref.label} without its mode")
    chip_id = find_hardware(ref.label).id
    for path in (*shipped_files(), *own_files(), *(path for one in list_packages() for path in one.list_hardware())):
        with contextlib.suppress(CatalogueError):  # an invalid file of a package
            chip, content = read_file(path, HardwareFile)
            if chip.id == chip_id:
                return chip_id, content.decode()
    described = describe_member(chip_id)
    assert described is not None
    return chip_id, "".join(_write_tables("", described))


def _write_tables(path: str, table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the TOML of a table: its own keys, then its tables; a quantity stays on one line."""
    inner = {key: one for key, one in table.items() if _is_table(one)}
    yield from (f"{key} = {_write_value(one)}\n" for key, one in table.items() if key not in inner)
    for key, one in inner.items():
        name = f"{path}.{key}" if path else key
        if isinstance(one, list):
            for item in one:
                yield f"\n[[{name}]]\n"
                yield from _write_tables(name, item)
        else:
            yield f"\n[{name}]\n"
            yield from _write_tables(name, one)


def _is_table(value: object) -> bool:
    """Return whether a value of a hardware file is a table or a list of tables, not a number with its source."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], dict)
    return isinstance(value, dict) and "value" not in value


def _write_value(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_write_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_write_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def packaged_text(chip_id: str, architecture: str, like: str) -> str:
    """Return a minimal file of a class for a package, in which each number is marked as copied from another chip.

    The other chip is `like`, or the default chip of the class without one. CatalogueError for an unknown class,
    UnknownNameError for an unknown chip.
    """
    example = find_hardware(like) if like else _example(architecture)
    text = _fill(example, chip_id, f'{COPIED} = "copied from {example.id}: replace the number, basis and source"\n')
    lines = text.partition("[quantities]\n")
    numbers = re.sub(r'^(?!#)(.*)source = "mine"', rf'\1source = "{COPIED}"', lines[2], flags=re.MULTILINE)
    return "".join((PACKAGED, HEAD.format(), *lines[:2], numbers))


def list_unreplaced(text: str) -> Iterator[tuple[str, int]]:
    """Yield the key and line of each number of a hardware file whose source is still a placeholder of a new file, and
    of the placeholder.
    """
    lines = text.splitlines()
    keys = (line.partition("=")[0].strip() for line in lines if MINE in line and not line.startswith("#"))
    marks = [MINE, *(f'source = "{key}"' for key in (COPIED, *keys))]
    table = ""
    for number, line in enumerate(lines, start=1):
        if line.startswith("["):
            table = line.strip("[] ")
        elif not line.startswith("#") and any(mark in line for mark in marks):
            yield f"{table}.{line.partition('=')[0].strip()}", number


def minimal_text(architecture: str) -> str:
    """Return a minimal file of a class with the numbers of a built-in chip; CatalogueError for an unknown class.

    All optional keys of the class are included as comments.
    """
    load_class(architecture, "template")
    return OWN + HEAD.format() + _fill(_example(architecture), own_id(architecture), "")


def _fill(example: Hardware, chip_id: str, copied: str) -> str:
    """Return a minimal file with the numbers of an example; `copied` is a line of `[sources]`, or empty."""
    architecture = example.architecture
    shared = load_class(architecture, "template")
    text = MINIMAL.format(
        id=chip_id,
        copied=copied,
        mine=MINE,
        architecture=architecture,
        example=example.name,
        deployment=json.dumps(example.deployment),
        microarchitecture=example.microarchitecture,
        unit_name=example.unit_name,
        memory_type=example.memory_type,
        limit="" if shared.priced_at == BOARD else LIMIT_LINES,
    )
    for field in attrs.fields(ChipQuantities):
        mark = "" if field.default is attrs.NOTHING else "# "
        text += _write(field.name, getattr(example, field.name), mark, UNITS[field.name])
    for index, (precision, peak) in enumerate(example.stated_peaks.items()):
        text += f"\n[peaks.{precision}]\n" + _write("rate", _rate(precision, peak.rate), "")
        if index:
            continue
        text += f"# operations_per_clock = {peak.operations_per_clock!r}\n# clock_ghz = {peak.clock_hz / 1e9!r}\n"
        text += f"# unit_count = {peak.unit_count}\n"
        text += f"# engine = {json.dumps(peak.engine or 'the component that gives it')}\n"
        text += f"# explanation = {json.dumps(peak.explanation or 'why it is not units x operations x clock')}\n"
    if shared.geometry:
        text += "\n# [geometry]\n"
        text += "".join(_write(name, example.geometry.get(name), "# ", "1") for name in shared.geometry)
    for level in example.memory_levels:
        text += f'\n# [[memory_levels]]\n# name = "{level.name}"\n# kind = "{level.kind}"\n# per = "{level.per}"\n'
        text += _write("capacity", level.capacity, "# ") + _write("bandwidth", level.bandwidth, "# ", "B/s")
    of = {name: _entry(getattr(example, name)) for name in ("unit_count", "memory_bandwidth", "static_power")}
    text += OTHERS.format(
        **of,
        mode_tdp=_entry(attrs.evolve(example.tdp, value=(example.tdp.value + example.static_power.value) / 2)),
        mode_clock=_entry(attrs.evolve(example.clock, value=example.clock.value / 2)),
        load_power=_entry(attrs.evolve(example.tdp, value=(example.tdp.value + example.static_power.value) / 2)),
        precision=next(iter(example.stated_peaks)),
        coefficient=shared.coefficients[0],
        action=shared.actions[0],
    )
    return text


def _rate(precision: str, rate: Quantity) -> Quantity:
    """Return a peak in the unit that data sheets use, TOPS or TFLOPS."""
    return attrs.evolve(rate, value=rate.value / 1e12, unit="TOPS" if precision.startswith("int") else "TFLOPS")


def _write(key: str, quantity: Quantity | None, mark: str, unit: str = "") -> str:
    """Return the line of a key, or a comment with the unit if the example has no number for it."""
    if quantity is None:
        return f"# {key}: in {SHOWN_UNITS.get(unit, unit)}, not known here\n"
    return f"{mark}{key} = {_entry(quantity)}\n"


def _entry(quantity: Quantity) -> str:
    """Return a number in file format, with basis `assumed`."""
    unit = SHOWN_UNITS.get(quantity.unit, quantity.unit)
    if unit == "B":
        unit = next((one for one in ("GB", "MiB", "KiB") if quantity.value % SI_SCALE[one][0] == 0), unit)
    value = quantity.value / SI_SCALE[unit][0] if SI_SCALE[unit][1] == quantity.unit else quantity.value
    return f'{{ value = {value:.12g}, unit = "{unit}", basis = "assumed", source = "mine" }}'


def _example(architecture: str) -> Hardware:
    """Return the built-in hardware whose numbers appear in a minimal file of a class; CatalogueError without one."""
    if architecture not in CLASS_HARDWARE:
        raise CatalogueError(f"{architecture} has no default chip to start from: name one with --like")
    return load_catalogue().hardware[CLASS_HARDWARE[architecture]]
