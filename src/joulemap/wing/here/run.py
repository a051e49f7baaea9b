"""Comparison of a machine's chips for models other than language models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from joulemap.domain import SETTINGS, HardwareEntry, Settings, find_unknown, take
from joulemap.physics import Precision, name_precision
from joulemap.plan import Source, known_hardware
from joulemap.system import UnsupportedError
from joulemap.wing.here.generated.row import RunHere
from joulemap.wing.here.match import CPU, GPU, NPU, Device, MatchedChips
from joulemap.wing.here.serve import list_chips, name_device

POPULAR: Final = ("mobilenet_v3_large", "resnet50", "vit_b_16")
"""Vision models that the answer shows if no model is named, by size."""

USUAL: Final[dict[str, Precision]] = {GPU: "fp16", CPU: "fp32", NPU: "int8"}
"""Class -> default precision of its inference engines."""


def run_model(
    source: Source, models: Sequence[str], chips: MatchedChips, precision: str = "", settings: Settings = SETTINGS
) -> list[RunHere]:
    """Return a row for each model and chip, at the given precision or else the usual precision of the chip's class.

    A chip that cannot run a model is a row with the reason. Raise as `compare` does in all other cases.
    """
    groups: dict[tuple[str, str], list[Device]] = {}
    for device in chips.list_kind(GPU, NPU, CPU):
        link = settings.link if device.has_link else ""
        groups.setdefault((precision or _choose_precision(device), link), []).append(device)
    asked = {
        one: attrs.evolve(settings, hardware=list_chips(devices), precision=(name_precision(one[0]),), link=one[1])
        for one, devices in groups.items()
    }
    if len(models) > 1:  # one evaluation of all models is faster than one per model
        from joulemap.plan.stored_runs import evaluate

        for one in asked.values():
            evaluate(source, models, one)
    return [
        row
        for model in models
        for one, devices in groups.items()
        for row in _compare(source, model, devices, asked[one])
    ]


def _choose_precision(device: Device) -> Precision:
    """Return the supported precision that is nearest to the usual precision of the chip's class."""
    entry = known_hardware([device.label]).get(device.label)
    if entry is None and device.hardware is not None and not isinstance(device.hardware, str):
        entry = HardwareEntry.of(device.hardware)
    usual = USUAL[device.kind]
    return entry.nearest_precision(usual) if entry is not None else usual


def _compare(source: Source, model: str, devices: Sequence[Device], asked: Settings) -> list[RunHere]:
    from joulemap.ask.compare import compare

    labels, precision = {name_device(one): one.label for one in devices}, asked.precision[0]
    try:
        answer = compare(source, model, asked)
    except UnsupportedError as error:
        if len(devices) > 1:  # the error names each chip's reason in one text
            each = [((one,), attrs.evolve(asked, hardware=list_chips((one,)))) for one in devices]
            return [row for some, own in each for row in _compare(source, model, some, own)]
        reason = _spell_plain(str(error), labels)
        refused = {**find_unknown(RunHere), "model": model, "precision": precision, "reason": reason}
        return [RunHere(label=one.label, **refused) for one in devices]
    rows = []
    for row in answer.rows:
        given = {
            **find_unknown(RunHere),
            **take(RunHere, row),
            "model": model,
            "label": labels.get(row.hardware, row.hardware),
            "per_s": row.throughput_per_s,
            "power_w": row.average_power_w,
            "memory_bytes": row.peak_memory_bytes,
            "reason": _spell_plain(row.reason, labels),
        }
        rows.append(RunHere(**given))
    return rows


def _spell_plain(reason: str, labels: Mapping[str, str]) -> str:
    """Return a reason in which each chip has its label, without the changed constants that its full name includes."""
    for name, label in labels.items():
        reason = reason.replace(name, label)
    return reason
