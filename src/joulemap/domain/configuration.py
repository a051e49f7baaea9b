"""A configuration: hardware, power mode, precision, batch, runtime."""

from __future__ import annotations

from typing import Final, Literal, get_args

import attrs

from joulemap.domain.precision import PRECISION_BYTES

Runtime = Literal["eager", "graph", "fused"]

RUNTIMES: Final[tuple[Runtime, ...]] = get_args(Runtime)
"""How the software stack launches work: a kernel per operator launched by the host, a kernel per operator
without host cost, a kernel per subgraph."""


@attrs.frozen(kw_only=True)
class Configuration:
    """The settings of a run beside its workload."""

    hardware: str
    """Catalogue id."""
    precision: str = attrs.field(default="fp32", validator=attrs.validators.in_(tuple(PRECISION_BYTES)))
    batch: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    runtime: str = attrs.field(default="fused", validator=attrs.validators.in_(RUNTIMES))
    power_mode: str = "default"
