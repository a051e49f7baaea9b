"""The catalogue: every hardware and model that joulemap knows by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from joulemap.domain.hardware import Hardware
from joulemap.errors import UnknownNameError

DEFAULT_HARDWARE: Final = ("xeon_8490h", "h100_sxm5", "tpu_v4", "kpu_t256")
"""What a comparison takes when no hardware is named: one of each architecture class."""


@attrs.frozen
class Catalogue:
    """Every hardware that joulemap knows, by id."""

    hardware: Mapping[str, Hardware]
    digest: str
    """Of all data files."""

    def find(self, name: str) -> Hardware:
        """Return the hardware with this id; UnknownNameError offers the nearest ids."""
        found = self.hardware.get(name)
        if found is None:
            raise UnknownNameError("hardware", name, self.hardware, "see `joulemap hardware list`")
        return found


@attrs.frozen(kw_only=True)
class ModelEntry:
    """A model known by name. Published figures are for its default weights, at batch 1."""

    name: str
    family: str
    task: str
    """`classification`, `segmentation`, `video` …"""
    input_shape: tuple[int, ...]
    """Of one sample, without the batch; empty where the model brings its own inputs."""
    input_layout: str
    """`tensors`; `images`: a list with one image for each of the batch; `pair`: two tensors of this shape."""
    parameter_count: int | None
    """As published by torchvision."""
    published_mac_count: int | None
    """torchvision's `_ops`, which counts MACs, in units."""
    is_traceable: bool
    reason: str
    """Why not, if not."""


@attrs.frozen(kw_only=True)
class ShippedWorkload:
    """What the package has traced of a model, at its default input."""

    model: str
    is_affine: bool
    """Whether its workload at other batches follows exactly from the shipped one."""
    parameter_count: int
    mac_count: int
    """At batch 1."""
    torch_version: str
    torchvision_version: str
    tracer_version: int
