"""Designs that are evaluated in blocks, by several processes, and kept in a lake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from joulemap.design.outcome import DesignColumns, Load, Outcomes, combine, evaluate_load
from joulemap.domain.block import Block
from joulemap.lake.block import describe
from joulemap.lake.fill import Filled, fill
from joulemap.store.point import read_points
from joulemap.system.record import frozen
from joulemap.system.resource import digest_code

if TYPE_CHECKING:
    from joulemap.design.group import Group
    from joulemap.design.space import Space
    from joulemap.model.workload import Floats, Integers

BLOCK: Final = 65_536
"""Designs of a shard."""

SMALLEST: Final = 256
"""Designs of a block where there are few for the processes."""

READ: Final = (
    "latency_fs", "interval_fs", "energy_fj", "weight_bytes", "activation_bytes", "clock_fraction", "throughput_limit",
    "refusal", "latency_half_width", "energy_half_width",
)  # fmt: skip
"""Columns of a shard that outcomes follow from."""


@frozen(kw_only=True, eq=False)
class DesignTask:
    """A block of designs, of one of their models."""

    block: Block
    space: Space
    load: Load
    values: Mapping[str, Floats]


def evaluate_task(task: DesignTask) -> DesignColumns:
    """Return the totals of a block."""
    return evaluate_load(task.space, task.values, task.load, task.block.point_count)


def survey_lake(
    lake: Path,
    groups: Sequence[Group],
    jobs: int,
    cluster: str,
    tell: Callable[[int, int], None],
    see: Callable[[Outcomes], None],
) -> None:
    """Show the outcomes of every design of groups, in their order, kept in a lake: what is there is not evaluated.

    What `tell` raises ends it; finished shards stay.
    """
    parts = [(group, numbers) for group in groups for numbers in cut_blocks(group, jobs)]
    total = sum(len(one.numbers) * len(one.loads) for one in groups)
    questions: list[set[str]] = []
    shown = 0

    def list_tasks() -> Iterator[DesignTask]:
        for group, numbers in parts:
            tasks = [_make_task(group, numbers, load) for load in group.loads]
            questions.append({one.block.digest for one in tasks})
            yield from tasks

    def told(filled: Filled) -> None:
        nonlocal shown
        while shown < len(questions) and filled.questions >= questions[shown]:
            group, numbers = parts[shown]
            blocks = [_make_task(group, numbers, load).block for load in group.loads]
            totals = [SimpleNamespace(**read_points(lake, one, READ)) for one in blocks]
            see(combine(group.space, group.space.values_at(numbers), group.loads, totals, len(numbers)))
            shown += 1
        tell(min(filled.point_count, total), total)

    fill(lake, list_tasks(), evaluate_task, jobs=jobs, cluster=cluster, tell=told)


def cut_blocks(group: Group, jobs: int) -> list[Integers]:
    """Return designs in blocks: large ones, or as many as give each process its part."""
    size = min(BLOCK, max(SMALLEST, -(-len(group.numbers) // (2 * jobs))))
    blocks, start = [], 0
    while start < len(group.numbers):
        end = group.end_block(start, size)
        blocks.append(group.numbers[start:end])
        start = end
    return blocks


def _make_task(group: Group, numbers: Integers, load: Load) -> DesignTask:
    values = group.space.values_at(numbers)
    constants = group.space.law.constants
    assert load.workload is not None
    block = describe(
        load.workload,
        group.space.hardware,
        load.configuration,
        {name: (constants[name].unit, np.ascontiguousarray(column)) for name, column in values.items()},
        calibration=load.calibration,
        rules=digest_code("design/area.py", "design/rule.py", "design/place.py", "domain/change.py"),
    )
    return DesignTask(block=block, space=group.space, load=attrs.evolve(load, workload=None), values=values)
