"""Describe torchvision's zoo as the table that ships with the catalogue.

`python -m joulemap.trace.zoo > src/joulemap/catalog/data/model/torchvision.csv` rewrites it (`make models`): names,
families, default input shapes and the published figures come from the installed torchvision, and every model is traced
once to tell whether it can be.
"""

from __future__ import annotations

import csv
import sys
from typing import Any

import torch
from torchvision import models

from joulemap.domain.workload import WorkloadKey
from joulemap.errors import ModelError
from joulemap.trace.build import build_torchvision
from joulemap.trace.module import trace_module

FRAMES = 16
"""Clip length of a video model's default input. Source: torchvision's video references."""

COLUMNS = (
    "name",
    "family",
    "task",
    "input_shape",
    "parameter_count",
    "published_mac_count",
    "is_traceable",
    "reason",
)


def _task(module: str) -> str:
    for name in ("detection", "segmentation", "video", "optical_flow", "quantization"):
        if f".{name}" in module:
            return name
    return "classification"


def _input_shape(task: str, transforms: Any) -> tuple[int, ...]:
    crop = getattr(transforms, "crop_size", None) or getattr(transforms, "resize_size", None) or [224]
    size = crop[0] if isinstance(crop, list | tuple) else crop
    if task == "video":
        height, width = (crop[0], crop[-1]) if isinstance(crop, list | tuple) else (crop, crop)
        return (3, FRAMES, height, width)
    return (3, size, size)


def describe(name: str) -> dict[str, str]:
    """Return one row of the table."""
    builder = models.get_model_builder(name)
    task = _task(builder.__module__)
    weights = models.get_model_weights(name).DEFAULT
    transforms = weights.transforms()
    reason = {
        "detection": "its control flow depends on data and it takes a list of images",
        "optical_flow": "it takes two images",
        "quantization": "quantized modules cannot be built on the meta device; trace the float model with int8",
    }.get(task, "")
    shape = _input_shape(task, transforms) if not reason else ()
    if not reason:
        key = WorkloadKey(source="", input_spec="", torch_version="", torchvision_version="", tracer_version=0)
        try:
            trace_module(
                build_torchvision(name, shape[-1]),
                [torch.empty(1, *shape, device="meta")],
                key=key,
                model=name,
                batch=1,
            )
        except ModelError as error:
            reason = str(error)
    operations = weights.meta.get("_ops")
    return {
        "name": name,
        "family": builder.__module__.rsplit(".", 1)[-1],
        "task": task,
        "input_shape": "x".join(map(str, shape)),
        "parameter_count": str(weights.meta.get("num_params") or ""),
        "published_mac_count": str(round(operations * 1e9)) if operations else "",
        "is_traceable": "false" if reason else "true",
        "reason": reason,
    }


def main() -> None:
    """Write the table to stdout."""
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for name in sorted(models.list_models()):
        writer.writerow(describe(name))


if __name__ == "__main__":
    main()
