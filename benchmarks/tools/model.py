"""Table of models that ships with the catalogue, from the installed torchvision (`make models`).

Names, families, default input shapes and published figures are those of torchvision. Each of its models is traced once,
to see whether it can be. Wings that build models of other libraries list them (`construct/builder.py`).
"""

from __future__ import annotations

import csv
import sys
import tomllib
from typing import Any, Final

import attrs
from torchvision import models

from joulemap.catalog.digest import DATA
from joulemap.construct import block
from joulemap.construct.builder import list_builders
from joulemap.construct.model import trace_request
from joulemap.construct.source import resolve_model
from joulemap.domain.catalogue import ModelEntry
from joulemap.system.errors import ModelError

ALIASES: Final = DATA / "model" / "alias.toml"
"""Alternative names of torchvision models and detectors."""

FRAMES: Final = 16
"""Clip length of a video model's default input. Source: torchvision's video references."""

FLOW_SIZE: Final = (520, 960)
"""Frame size of an optical-flow model's default input. Source: torchvision's RAFT example."""

DETECTION_SIZE: Final = 800
"""Shorter side of a detection model's default input. Source: torchvision's detection transform."""


def _task(module: str) -> str:
    for name in ("detection", "segmentation", "video", "optical_flow", "quantization"):
        if f".{name}" in module:
            return name
    return "classification"


def _input_shape(name: str, task: str, transforms: Any) -> tuple[int, ...]:
    crop = getattr(transforms, "crop_size", None) or getattr(transforms, "resize_size", None) or [224]
    size = crop[0] if isinstance(crop, list | tuple) else crop
    if task == "video":
        height, width = (crop[0], crop[-1]) if isinstance(crop, list | tuple) else (crop, crop)
        return (3, FRAMES, height, width)
    if task == "optical_flow":
        return (3, *FLOW_SIZE)
    if task == "detection":
        size = 300 if "300" in name else 320 if "320" in name else DETECTION_SIZE
    return (3, size, size)


def describe(name: str) -> ModelEntry:
    """Return the row of a torchvision model."""
    builder = models.get_model_builder(name)
    task = _task(builder.__module__)
    weights = models.get_model_weights(name).DEFAULT
    operations = weights.meta.get("_ops")
    entry = ModelEntry(
        name=name,
        family=builder.__module__.rsplit(".", 1)[-1],
        task=task,
        input_shape=_input_shape(name, task, weights.transforms()),
        input_layout={"detection": "images", "optical_flow": "pair"}.get(task, "tensors"),
        parameter_count=weights.meta.get("num_params"),
        published_mac_count=round(operations * 1e9) if operations else None,
    )
    try:
        trace_request(resolve_model(name, {name: entry}))
    except ModelError as error:
        return attrs.evolve(entry, is_traceable=False, reason=str(error))
    return entry


def describe_block(name: str) -> ModelEntry:
    """Return the row of a building block."""
    module, _ = block.build(name, {})
    return ModelEntry(
        name=name,
        family=block.find_family(name),
        task="block",
        parameter_count=sum(parameter.numel() for parameter in module.parameters()),
    )


def write_row(entry: ModelEntry) -> list[str]:
    """Return the cells of a row, in the order of its fields."""
    return [
        *(entry.name, entry.family, entry.task, "x".join(map(str, entry.input_shape)), entry.input_layout),
        *("" if count is None else str(count) for count in (entry.parameter_count, entry.published_mac_count)),
        *(str(entry.is_traceable).lower(), entry.reason, entry.package, " ".join(entry.aliases)),
    ]


def main() -> None:
    """Write the table to stdout."""
    aliases = tomllib.loads(ALIASES.read_text(encoding="utf-8"))
    entries = [*map(describe_block, block.BLOCKS), *(entry for one in list_builders() for entry in one.list_models())]
    entries.sort(key=lambda entry: (entry.task != "block", entry.name))
    entries += [describe(name) for name in sorted(models.list_models())]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(field.name for field in attrs.fields(ModelEntry))
    for entry in entries:
        writer.writerow(write_row(attrs.evolve(entry, aliases=(*entry.aliases, *aliases.get(entry.name, ())))))


if __name__ == "__main__":
    main()
