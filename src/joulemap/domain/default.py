"""What questions take by themselves."""

from __future__ import annotations

from typing import Final

from joulemap.domain.settings import Limits, Settings, Usage

SETTINGS: Final = Settings()
"""One run at fp32 with torch.compile's kernels, on hardware that the question chooses."""

CANDIDATES: Final = Settings(precision=("fp32", "fp16", "bf16", "int8"))
"""What is chosen from: with every hardware and power mode, at batches 1, 8 and 32."""

SERVED: Final = Settings(precision=("bf16",), batch=(1, 8, 64), runtime=("engine",))
"""What language models are served at."""

LEARNED: Final = Settings(precision=("bf16",))
"""What models are trained at: 256 samples at a time, or a sequence for each device."""

LIMITS: Final = Limits()
USAGE: Final = Usage()
