"""torchvision's zoo: build a model without weights, and describe all as the table that ships with the catalogue.

`python -m joulemap.trace.zoo > src/joulemap/catalog/data/model/zoo.csv` rewrites the table (`make models`): names,
families, default input shapes and published figures come from the installed torchvision, and every model is traced once
to tell whether it can be.
"""

from __future__ import annotations

import csv
import inspect
import sys
from typing import Any, Final

import torch

from joulemap.domain.catalogue import ModelEntry
from joulemap.errors import ModelError
from joulemap.trace.module import build_on_meta

FRAMES: Final = 16
"""Clip length of a video model's default input. Source: torchvision's video references."""

FLOW_SIZE: Final = (520, 960)
"""Frame size of an optical-flow model's default input. Source: torchvision's RAFT example."""

DETECTION_SIZE: Final = 800
"""Shorter side of a detection model's default input. Source: torchvision's detection transform."""

QUANTIZED: Final = "quantized_"
QUANTIZED_NOTE: Final = "int8 modules cannot be built without data: operators and counts are those of the float model"

COLUMNS: Final = (
    "name",
    "family",
    "task",
    "input_shape",
    "input_layout",
    "parameter_count",
    "published_mac_count",
    "is_traceable",
    "reason",
)


def build(name: str, image_size: int = 224) -> tuple[torch.nn.Module, tuple[str, ...]]:
    """Return (model without weights on the meta device, notes); ModelError if it cannot be built."""
    notes: tuple[str, ...] = ()
    if name.startswith(QUANTIZED):
        name = name.removeprefix(QUANTIZED)
        notes = (QUANTIZED_NOTE,)
    return build_torchvision(name, image_size), notes


def build_torchvision(name: str, image_size: int = 224) -> torch.nn.Module:
    """Return a torchvision model without weights on the meta device; ModelError if it cannot be built."""
    from torchvision import models

    arguments: dict[str, Any] = {"weights": None}
    builder = models.get_model_builder(name)
    family = builder.__module__.rsplit(".", 1)[-1]
    if family in ("googlenet", "inception"):
        arguments["init_weights"] = False
    if family == "googlenet":
        arguments["aux_logits"] = False
    if family == "vision_transformer":
        arguments["image_size"] = image_size
    if "weights_backbone" in inspect.signature(builder).parameters:
        arguments["weights_backbone"] = None
    try:
        with build_on_meta():
            module: torch.nn.Module = builder(**arguments)
    except Exception:
        try:
            with torch.device("meta"):
                module = builder(**arguments)
        except Exception as error:
            raise ModelError(f"{name} could not be built: {type(error).__name__}: {error}") from error
    return module


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


def describe(name: str) -> dict[str, str]:
    """Return one row of the table."""
    from torchvision import models

    from joulemap.trace.build import trace_request
    from joulemap.trace.source import resolve_model

    builder = models.get_model_builder(name)
    task = _task(builder.__module__)
    weights = models.get_model_weights(name).DEFAULT
    shape = _input_shape(name, task, weights.transforms())
    layout = {"detection": "images", "optical_flow": "pair"}.get(task, "tensors")
    parameters = weights.meta.get("num_params")
    operations = weights.meta.get("_ops")
    entry = ModelEntry(
        name=name,
        family=builder.__module__.rsplit(".", 1)[-1],
        task=task,
        input_shape=shape,
        input_layout=layout,
        parameter_count=parameters,
        published_mac_count=round(operations * 1e9) if operations else None,
        is_traceable=True,
        reason="",
    )
    reason = ""
    try:
        trace_request(resolve_model(name, {name: entry}))
    except ModelError as error:
        reason = str(error)
    return {
        "name": name,
        "family": entry.family,
        "task": task,
        "input_shape": "x".join(map(str, shape)),
        "input_layout": layout,
        "parameter_count": str(entry.parameter_count or ""),
        "published_mac_count": str(entry.published_mac_count or ""),
        "is_traceable": "false" if reason else "true",
        "reason": reason,
    }


def describe_block(name: str) -> dict[str, str]:
    """Return one row of the table for a building block."""
    from joulemap.trace import block

    module, _ = block.build(name, {})
    return {
        "name": name,
        "family": block.find_family(name),
        "task": "block",
        "input_shape": "",
        "input_layout": "tensors",
        "parameter_count": str(sum(parameter.numel() for parameter in module.parameters())),
        "published_mac_count": "",
        "is_traceable": "true",
        "reason": "",
    }


def main() -> None:
    """Write the table to stdout."""
    from torchvision import models

    from joulemap.trace import block

    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for name in sorted(block.BLOCKS):
        writer.writerow(describe_block(name))
    for name in sorted(models.list_models()):
        writer.writerow(describe(name))


if __name__ == "__main__":
    main()
