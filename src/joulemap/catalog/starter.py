"""The text of a hardware file to start from: a copy of a known one, or the fewest fields that a class needs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from joulemap.catalog.digest import own_files, shipped_files
from joulemap.catalog.load import load_catalogue, load_class
from joulemap.catalog.parser import read_file
from joulemap.catalog.schema import HardwareFile
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.catalogue import find_entry
from joulemap.domain.hardware import Hardware
from joulemap.system.errors import UsageError

HEAD: Final = """\
# A hardware target of your own. Check it with `joulemap hardware check FILE`, use it with `--hardware FILE`, or name
# its folder in $JOULEMAP_HARDWARE.
#
# A quantity is {{ value, unit, basis, source }}: unit as the source writes it (GHz, GB/s, MiB, TOPS ...), basis one of
# measured, published, derived, scaled, recalled, assumed, source a key of [sources]. A number that another one
# contradicts is refused, unless it has an `explanation`.
"""

MINIMAL: Final = """\
id = "{id}"
architecture = "{architecture}"{comment}

[sources]
mine = "where these numbers come from: document, page, link"

[quantities]
unit_count = {{ value = {unit_count:g}, unit = "1", basis = "assumed", source = "mine" }}
clock = {{ value = {clock_ghz:g}, unit = "GHz", basis = "assumed", source = "mine" }}
memory_capacity = {{ value = {capacity_gb:g}, unit = "GB", basis = "assumed", source = "mine" }}
memory_bandwidth = {{ value = {bandwidth_gb_per_s:g}, unit = "GB/s", basis = "assumed", source = "mine" }}
tdp = {{ value = {tdp_w:g}, unit = "W", basis = "assumed", source = "mine" }}
"""

MINIMAL_PEAK: Final = """
[peaks.{precision}]
rate = {{ value = {rate_tops:g}, unit = "{unit}", basis = "assumed", source = "mine" }}
"""


def own_id(name: str) -> str:
    """Return an id for a copy of a hardware."""
    return f"my_{name}"


def copy_text(name: str) -> str:
    """Return the file of a known hardware under an id of its own and without its aliases; UnknownNameError."""
    path = _find_file(name)
    chip, content = read_file(path, HardwareFile)
    text = re.sub(r'^id = ".*"$', f'id = "{own_id(chip.id)}"', content.decode(), count=1, flags=re.MULTILINE)
    text = re.sub(r"^aliases = \[[^\]]*\]\n", "", text, count=1, flags=re.MULTILINE)
    return HEAD.format() + text


def _find_file(name: str) -> Path:
    plain, at, _ = name.partition("@")
    if at:
        raise UsageError(f"a file describes all power modes of a chip: ask for {plain}")
    found = find_entry(load_catalogue().entries, plain).id
    return next(path for path in (*shipped_files(), *own_files()) if read_file(path, HardwareFile)[0].id == found)


def minimal_text(architecture: str) -> str:
    """Return the smallest file of a class, with the numbers of a shipped one; CatalogueError for a class unknown."""
    shared = load_class(architecture, "template")
    example = _example(architecture)
    comment = f"\n# a unit of this class: {example.unit_name}"
    if shared.defaults:
        rules = "".join(f"\n#   {quantity}" for quantity in dict.fromkeys(entry.quantity for entry in shared.defaults))
        comment += (
            f"\n# left out here, filled in by the class and marked assumed; write any of them to know better:{rules}"
        )
    text = MINIMAL.format(
        id=own_id(architecture),
        architecture=architecture,
        comment=comment,
        unit_count=example.units,
        clock_ghz=example.clock.value / 1e9,
        capacity_gb=example.memory_capacity.value / 1e9,
        bandwidth_gb_per_s=example.memory_bandwidth.value / 1e9,
        tdp_w=example.tdp.value,
    )
    for precision, peak in example.peaks.items():
        text += MINIMAL_PEAK.format(
            precision=precision,
            rate_tops=peak.rate.value / 1e12,
            unit="TOPS" if precision.startswith("int") else "TFLOPS",
        )
    return HEAD.format() + text


def _example(architecture: str) -> Hardware:
    """Return the hardware of a class whose numbers a file starts with."""
    return load_catalogue().hardware[CLASS_HARDWARE[architecture]]
