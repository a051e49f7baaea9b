"""What questions take by themselves."""

from __future__ import annotations

from typing import Final

from joulemap.domain.settings import Limits, Settings, Usage

SETTINGS: Final = Settings(tf32="allowed")
"""One run at fp32 with torch.compile's kernels, on hardware that the question chooses."""

CANDIDATES: Final = Settings(precision=("fp32", "fp16", "bf16", "int8"), tf32="allowed")
"""What is chosen from: with every hardware and power mode, at batches 1, 8 and 32."""

DEPLOYED: Final = Settings(precision=CANDIDATES.precision, runtime=("engine",), tf32="allowed")
"""Candidates as they are deployed to serve requests, by a fleet or for a cost: compiled by an inference engine."""

SERVED: Final = Settings(precision=(), batch=(1, 8, 64), runtime=("engine",), tf32="allowed")
"""Default settings of served language models; without a precision, that of the checkpoint."""

LEARNED: Final = Settings(precision=("bf16",), tf32="allowed")
"""What models are trained at: 256 samples at a time, or a sequence for each device."""

LIMITS: Final = Limits()
USAGE: Final = Usage()
