"""Default settings of questions."""

from __future__ import annotations

from typing import Final

from joulemap.domain.configuration import BOARD, SYSTEM
from joulemap.domain.settings import Limits, Settings, Usage

SETTINGS: Final = Settings()
"""Defaults of a single run: fp32 with torch.compile's kernels, on the hardware that the question chooses."""

CANDIDATES: Final = Settings(precision=("fp32", "fp16", "bf16", "int8"), states_precision=True)
"""Defaults of a choice among hardware: every chip, every power mode, and batch sizes 1, 8 and 32."""

DEPLOYED: Final = Settings(
    precision=CANDIDATES.precision,
    states_precision=True,
    runtime=("engine",),
    boundary=SYSTEM,
    fallback_boundary=BOARD,
)
"""Defaults of questions on fleets and on cost: the candidates of a choice, compiled by an inference engine. Energy is
at the wall plug where that is known.
"""

SERVED: Final = Settings(precision=(), batch=(1, 8, 64), runtime=("engine",))
"""Default settings of served language models; the default precision is the checkpoint's."""

LEARNED: Final = Settings(precision=("bf16",))
"""Defaults of training: 256 samples per step, or one sequence per device."""

LIMITS: Final = Limits()
USAGE: Final = Usage()
