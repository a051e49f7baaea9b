"""Runs: workload x hardware x configuration, with a ledger.

Symbols of the formulas in this package, per operator unless stated otherwise:

    MACs, EW, SF    mac_count, elementwise_count, special_count, whole batch
    M, N, K, G      GEMM view: G independent GEMMs of M x K by K x N
    O, taps         output elements; window size
    in, w, out      bytes that cross the kernel's boundary: activations read, weights read, results written
    R, share        in + w; R / (bytes that the operator would read as a separate kernel)
    p               bytes of an element at the precision
    U, f            units that support the precision; the clock at which its peak is quoted
    ⌈x⌉             x rounded up

A name with underscores is a coefficient or geometry constant of the hardware, whose value has a source in the
catalogue. Memory time and the host's part of a launch follow `traffic` and `placement` unless a class overrides them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.system import make_lookup

if TYPE_CHECKING:
    from joulemap.generated.physics import *

    __all__: list[str]
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.generated.physics")
