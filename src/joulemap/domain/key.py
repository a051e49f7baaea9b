"""Workload keys."""

from __future__ import annotations

from typing import Final

import attrs

from joulemap.system.record import frozen


@frozen(kw_only=True)
class WorkloadKey:
    """Inputs of a trace; equal keys give equal workloads."""

    source: str
    """Origin of the model: `torchvision:resnet18`, `file:<digest>:<path>:<factory>`, or `module:<digest>:`."""
    input_spec: str
    """Input shapes and dtypes, e.g. `1x3x224x224:fp32`."""
    torch_version: str
    torchvision_version: str
    tracer_version: str
    """Digest of the tracing and fusion rules."""

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits of a SHA-256 over all fields."""
        import hashlib

        text = "\n".join(f"{field.name}={getattr(self, field.name)}" for field in attrs.fields(WorkloadKey))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


NO_KEY: Final = WorkloadKey(source="", input_spec="", torch_version="", torchvision_version="", tracer_version="")
"""Key of a workload that is only counted."""
