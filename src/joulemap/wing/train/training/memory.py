"""Memory of a training step on one device: weights, gradients, optimizer state and activations."""

from __future__ import annotations

import numpy as np

from joulemap.physics import RUNTIME, Widths, WorkloadColumns, carried_precision, precision_scale
from joulemap.system import frozen


@frozen(kw_only=True)
class Memory:
    """Bytes on one device at the peak of a step."""

    weights: float
    gradients: float
    states: float
    """Optimizer state, including single-precision master weights."""
    activations: float
    """All other memory: values kept for the backward pass, gathered weights, inputs."""
    reserved: float = 0.0
    """Memory that the process takes before any data, and for exchanges with other devices."""

    @property
    def total(self) -> float:
        """Total bytes on the device."""
        return self.weights + self.gradients + self.states + self.activations + self.reserved


def measure(work: WorkloadColumns, precision: str, runtime: str) -> Memory:
    """Return the memory of a training step.

    Buffers that live from the first to the last operator are gradients and states. Where only GEMMs are narrow, weights
    are stored at 16 bits, with a narrow copy for GEMMs. Source: Transformer Engine, performance_considerations.rst at
    0bd7f52c (memory usage, weights in BF16).
    """
    carried = carried_precision(precision)
    widths = Widths(work, precision)
    is_kept = (work.buffer_birth == 0) & (work.buffer_death == work.operator_count - 1)
    is_scaled = work.buffer_item_bytes > 0.0
    held = work.buffer_bytes * precision_scale(work.buffer_item_bytes, carried)
    peak = widths.peak_activation_bytes(is_fused=RUNTIME[runtime].merges)
    gradients, states = (float(np.sum(held[is_kept & mask])) for mask in (is_scaled, ~is_scaled))
    return Memory(
        weights=Widths(work, carried).weight_bytes + widths.copy_bytes,
        gradients=gradients,
        states=states,
        activations=peak - gradients - states,
    )
