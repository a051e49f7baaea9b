"""Equipment around each chip up to the wall plug: by a table of hardware, else by class and slot."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from joulemap.catalog.digest import DATA
from joulemap.domain.host import SOLE_SLOTS, is_part
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.surrounding import Surrounding
from joulemap.system.errors import CatalogueError, UsageError

if TYPE_CHECKING:
    from joulemap.domain.catalogue import HardwareEntry
    from joulemap.physics.record.hardware import Hardware

FOLDER: Final = DATA / "system"


@cache
def load_surroundings() -> Mapping[str, Surrounding]:
    """Return name of a form -> equipment around a chip; CatalogueError for an invalid table."""
    with (FOLDER / "form.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    labels = {row["form"]: row["label"] for row in rows if row["label"]}
    sources: dict[str, str] = {}
    numbers: dict[str, dict[str, Quantity]] = {}
    try:
        for row in rows:
            source = sources[f"{row['form']}.{row['quantity']}"] = _write_out(row, sources, labels)
            numbers.setdefault(row["form"], {})[row["quantity"]] = Quantity(
                value=float(row["value"]), unit=row["unit"], basis=row["basis"], source=source
            )
        return {name: Surrounding(name=name, label=labels[name], **values) for name, values in numbers.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise CatalogueError(f"system/form.csv: {error}") from error


def _write_out(row: Mapping[str, str], sources: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """Return the source of a number; a reference to another form or number is replaced by that source."""
    reference, semicolon, rest = row["source"].partition("; ")
    kind, _, name = reference.partition(": ")
    form, quantity = row["form"], row["quantity"]
    if kind == "form":
        return f"{sources[f'{name}.{quantity}']} (of {labels[name]}){semicolon}{rest}"
    if kind == "number":
        return f"{sources[f'{form}.{name}']}{semicolon}{rest}"
    return row["source"]


@cache
def _load_named() -> Mapping[str, tuple[str, str]]:
    """Return hardware -> (form, reason); the reason says why a form is missing."""
    with (FOLDER / "hardware.csv").open(newline="", encoding="utf-8") as file:
        return {row["hardware"]: (row["form"], row["reason"]) for row in csv.DictReader(file)}


def explain_missing(hardware: HardwareEntry | Hardware) -> str:
    """Return the reason why a chip's power at the wall is unknown; empty if its form is known."""
    if _find_form(hardware):
        return ""
    _, reason = _load_named().get(_describe_id(hardware), ("", ""))
    if not reason and hardware.sold_in:
        reason = (
            f"it is sold only inside {hardware.sold_in}, and no measurement separates it from the rest of these devices"
        )
    return reason or "no measurement at a wall plug shows what the computer around it draws"


def find_surrounding(hardware: HardwareEntry | Hardware) -> Surrounding:
    """Return the equipment between a chip and the wall plug; UsageError if it is unknown."""
    form = _find_form(hardware)
    if not form:
        raise UsageError(f"{hardware.id} has no energy at the wall: {explain_missing(hardware)}; use --boundary board")
    return load_surroundings()[form]


def _describe_id(hardware: HardwareEntry | Hardware) -> str:
    """Return the id of a chip's description; for a variant, the id of its base."""
    return getattr(hardware, "described", hardware.id)


def _find_form(hardware: HardwareEntry | Hardware) -> str:
    """Return the name of a chip's form; empty for none.

    A chip that the table does not name has the form of its slot or class. Unmeasured servers of accelerators are
    assumed to equal servers of eight boards.
    """
    form, reason = _load_named().get(_describe_id(hardware), ("", ""))
    if form or reason or hardware.sold_in:
        return form
    slot, in_datacenter = hardware.needs_host, "datacenter" in hardware.deployment
    if slot and not is_part(slot):
        return "stick" if slot.startswith(SOLE_SLOTS) else "card_server" if in_datacenter else "card_computer"
    if not in_datacenter:
        return ""
    return "cpu_server" if hardware.architecture == "cpu" else "other_server"
