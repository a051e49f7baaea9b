"""Measurements on this machine: its hardware and state, and the latency and energy of a model."""

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.generated.device import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.device")
