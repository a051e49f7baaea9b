"""Runtimes: the ways in which software compiles and launches kernels.

A runtime is one record here and its name in `RuntimeName`. Types, options and their help, checks and macros of the
database, and formulas follow from the record: code asks for its properties and never compares its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from joulemap.system.record import frozen

RuntimeName = Literal["eager", "graph", "fused", "engine", "engine@graph", "tflite", "tflite@2.5", "ncnn"]


@frozen(kw_only=True)
class Runtime:
    """Way in which software compiles and launches kernels."""

    name: RuntimeName
    launches_each: bool
    """True if the host launches every kernel; otherwise it launches once per run."""
    is_captured: bool
    """True if kernels are captured once, in a CUDA graph, and replayed by one launch."""
    merges: bool
    """True if a compiler merges the operators of a subgraph into one kernel."""
    is_built: bool
    """True if an inference engine builds the kernels ahead of time, for the shapes of the workload."""
    of_class: str
    """Class of the hardware that a named inference engine runs on; empty for a way that fits any hardware."""

    @property
    def is_compiled(self) -> bool:
        """True if the compiler of a framework makes the kernels, whose GEMMs call a library."""
        return self.merges and not self.is_built


RUNTIME: Final[Mapping[str, Runtime]] = {
    one.name: one
    for one in (
        Runtime(name="eager", launches_each=True, is_captured=False, merges=False, is_built=False, of_class=""),
        Runtime(name="graph", launches_each=False, is_captured=True, merges=False, is_built=False, of_class=""),
        Runtime(name="fused", launches_each=False, is_captured=False, merges=True, is_built=False, of_class=""),
        Runtime(name="engine", launches_each=False, is_captured=False, merges=True, is_built=True, of_class=""),
        Runtime(name="engine@graph", launches_each=False, is_captured=True, merges=True, is_built=True, of_class="gpu"),
        Runtime(name="tflite", launches_each=False, is_captured=False, merges=True, is_built=True, of_class="cpu"),
        Runtime(name="tflite@2.5", launches_each=False, is_captured=False, merges=True, is_built=True, of_class="cpu"),
        Runtime(name="ncnn", launches_each=False, is_captured=False, merges=True, is_built=True, of_class="cpu"),
    )
}  # fmt: skip
"""Name -> runtime."""

STORES_FP16: Final = ("tflite", "tflite@2.5")
"""Runtimes that store weights in fp16 and compute in fp32."""

RUNTIME_NAMES: Final[tuple[RuntimeName, ...]] = get_args(RuntimeName)

RUNTIMES: Final = tuple(RUNTIME[name] for name in RUNTIME_NAMES)
"""Runtimes in the order of their names; KeyError at import for a name without a record."""

MODES: Final = tuple(one.name for one in RUNTIMES if not one.of_class)
"""Runtimes that any hardware may have: all but named inference engines."""

USUAL_RUNTIME: Final[RuntimeName] = "fused"
"""Runtime of questions that state none."""

DEPLOYED_RUNTIME: Final[RuntimeName] = "engine"
"""Runtime of deployments, whose questions state none."""

SEPARATE_RUNTIME: Final[RuntimeName] = "graph"
"""Runtime that gives the cost of each operator as a separate kernel, without launches by the host."""
