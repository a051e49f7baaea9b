"""Default settings of questions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import attrs

from joulemap.domain.metric import MetricName
from joulemap.domain.settings import Limits, Settings
from joulemap.physics.record.configuration import BOARD, SYSTEM
from joulemap.physics.record.runtime import DEPLOYED_RUNTIME

SETTINGS: Final = Settings()
"""Defaults of a single run: fp32 with torch.compile's kernels, on the hardware that the question chooses."""

CANDIDATES: Final = Settings(
    precision=("fp32", "fp16", "bf16", "int8"), states_precision=True, runtime=(DEPLOYED_RUNTIME,)
)
"""Defaults of a choice among hardware: every chip, every power mode, the batch sizes of `find_batches`, and an
inference engine, because the chosen chip will serve the model, not develop it.
"""

DEPLOYED: Final = attrs.evolve(CANDIDATES, boundary=SYSTEM, fallback_boundary=BOARD)
"""Defaults of questions on fleets and on cost: the candidates of a choice, whose electricity is paid at the wall plug,
where that is known.
"""

BATCHES: Final = (1, 8, 32)
"""Default batch sizes of a choice among data-centre chips, where requests of many users arrive together."""

ALONE: Final = (1,)
"""Default batch size where inputs come one at a time, as from a camera or a microphone."""

PAID_AT_WALL: Final[frozenset[MetricName]] = frozenset({"cost", "carbon"})
"""Metrics that contain electricity, which is paid and generated for the wall plug."""

SERVED: Final = Settings(precision=(), batch=(1, 8, 64), runtime=(DEPLOYED_RUNTIME,))
"""Default settings of served language models; the default precision is the checkpoint's."""

LEARNED: Final = Settings(precision=("bf16",))
"""Defaults of training: 256 samples per step, or one sequence per device."""

LIMITS: Final = Limits()


def price_at_wall(settings: Settings, metrics: Iterable[MetricName]) -> Settings:
    """Return the settings at the boundary of `DEPLOYED` if a metric contains electricity that is paid at the wall.

    A boundary that the question states is kept.
    """
    is_stated = settings.states_boundary or settings.boundary != BOARD
    if is_stated or PAID_AT_WALL.isdisjoint(metrics):
        return settings
    return attrs.evolve(settings, boundary=DEPLOYED.boundary, fallback_boundary=DEPLOYED.fallback_boundary)


def find_batches(deployment: Collection[str], asked: Collection[str] = ()) -> tuple[int, ...]:
    """Return the default batch sizes of a chip in a choice among hardware, from its deployments.

    If the question names deployments (`asked`), only those count. A chip for data centres batches its requests; a chip
    for the edge or an embedded device takes one input at a time.
    """
    places = set(deployment) & set(asked) or set(deployment)
    return ALONE if places and "datacenter" not in places else BATCHES
