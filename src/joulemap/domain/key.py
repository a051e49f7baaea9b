"""The key of a workload."""

from __future__ import annotations

import re
from typing import Final

import attrs

_MODULE: Final = re.compile(r"[^\W\d]\w*#[0-9a-f]{8}")


def name_module(class_name: str, digest: str) -> str:
    """Return the name of a module that is in a program's memory and nowhere else."""
    return f"{class_name}#{digest[:8]}"


def is_module_name(name: str) -> bool:
    """Return whether a model has such a name, which no command knows."""
    return _MODULE.fullmatch(name) is not None


@attrs.frozen(kw_only=True)
class WorkloadKey:
    """What a trace depends on; two equal keys give the same workload."""

    source: str
    """`torchvision:resnet18`, or `file:<digest>:<factory>` for a user's file, `module:<digest>:` for a module."""
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
