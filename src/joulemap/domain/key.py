"""The key of a workload."""

from __future__ import annotations

from typing import Final

import attrs

from joulemap.system.record import frozen


@frozen(kw_only=True)
class WorkloadKey:
    """What a trace depends on; two equal keys give the same workload."""

    source: str
    """`torchvision:resnet18`, `file:<digest>:<path>:<factory>` for a user's file, `module:<digest>:` for a module."""
    input_spec: str
    """Shapes and dtypes, e.g. `1x3x224x224:fp32`."""
    torch_version: str
    torchvision_version: str
    tracer_version: str
    """Digest of the rules by which it was traced and fused."""

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits of a SHA-256 over all fields."""
        import hashlib

        text = "\n".join(f"{field.name}={getattr(self, field.name)}" for field in attrs.fields(WorkloadKey))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


NO_KEY: Final = WorkloadKey(source="", input_spec="", torch_version="", torchvision_version="", tracer_version="")
"""Of a workload that is only counted."""
