"""Blocks of designs for several processes, kept in a lake."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import attrs
import numpy as np

from joulemap.physics import Floats, Integers
from joulemap.system import frozen
from joulemap.wing.explore.block import Block
from joulemap.wing.explore.design.outcome import DesignColumns, ModelShare, Outcomes, combine, evaluate_model
from joulemap.wing.explore.design.space import Space
from joulemap.wing.explore.lake.block import describe_block, read_points, vary
from joulemap.wing.explore.lake.fill import Filled, fill
from joulemap.wing.explore.lake.shard import rule_version


@frozen(kw_only=True, eq=False)
class Group:
    """Designs with the same base chip, precision, batch and runtime."""

    hardware: str
    """Base chip with its power mode."""
    dimensions: Mapping[str, str]
    batch: int
    space: Space
    models: tuple[ModelShare, ...]
    numbers: Integers
    """Numbers of the designs in their space."""
    outcomes: Outcomes | None = None
    """Outcomes already computed by a search."""

    def end_block(self, start: int, most: int) -> int:
        """Return the end of the block that starts at `start` with up to `most` designs.

        If the group is a whole space, the block is a sub-grid, which is evaluated faster.
        """
        is_whole = len(self.numbers) == self.space.size
        return self.space.end_block(start, most) if is_whole else min(start + most, len(self.numbers))


BLOCK: Final = 65_536
"""Maximum number of designs per shard."""

SMALLEST: Final = 256
PARTS: Final = 16
"""Number of blocks into which a small space is cut."""

READ: Final = (
    "latency_fs", "interval_fs", "energy_fj", "weight_bytes", "activation_bytes", "clock_fraction", "throughput_limit",
    "refusal", "latency_half_width", "energy_half_width",
)  # fmt: skip
"""Columns of a shard that are read to compute outcomes."""


@frozen(eq=False)
class DesignTask:
    """Block of designs for one model, as sent to another process.

    It contains design numbers; the values of constants are computed on first use, because a scheduler unpickles tasks
    too.
    """

    packed: bytes
    """Pickled space, model and description, which are equal in all blocks of a group.

    The sender packs them once, and the evaluating process unpacks them once.
    """
    numbers: range | Integers

    def __reduce__(self) -> tuple[Any, ...]:
        return DesignTask, (self.packed, self.numbers)

    @cached_property
    def values(self) -> dict[str, Floats]:
        """Parameter -> its value in each design."""
        return _unpack(self.packed)[0].values_at(np.asarray(self.numbers, dtype=np.int64))

    @cached_property
    def block(self) -> Block:
        """Description under which the lake stores the results of the task."""
        space, _, plain = _unpack(self.packed)
        constants = space.law.constants
        return vary(plain, space.hardware, {name: (constants[name].unit, one) for name, one in self.values.items()})


def evaluate_task(task: DesignTask) -> DesignColumns:
    """Return the totals of a block."""
    space, model, _ = _unpack(task.packed)
    return evaluate_model(space, task.values, model, len(task.numbers))


@lru_cache(maxsize=16)
def _unpack(packed: bytes) -> tuple[Space, ModelShare, Block]:
    parts: tuple[Space, ModelShare, Block] = pickle.loads(zlib.decompress(packed))
    return parts


def survey_lake(
    lake: Path,
    groups: Sequence[Group],
    jobs: int,
    cluster: str,
    report: Callable[[int, int, int], None],
    see: Callable[[Outcomes], None],
) -> int:
    """Evaluate the designs of groups that a lake lacks, and pass the outcomes of all designs to `see` in order.

    Return the number of designs evaluated now. An exception from `report` stops the survey; finished shards stay.
    """
    parts = cut_blocks(groups)
    kept: list[list[tuple[str, str]]] = [[] for _ in parts]
    total, model_count = sum(len(numbers) for _, numbers in parts), len(groups[0].models)
    last = Filled()
    done = 0

    def note() -> Iterator[DesignTask]:
        for index, task in make_tasks(parts):
            kept[index].append((task.block.folder, task.block.digest))
            yield task

    def record(filled: Filled) -> None:
        nonlocal done, last
        last = filled
        while (
            done < len(parts) and len(kept[done]) == model_count and filled.questions >= {one for _, one in kept[done]}
        ):
            group, numbers = parts[done]
            totals = [SimpleNamespace(**read_points(lake, *one, READ)) for one in kept[done]]
            see(combine(group.space, group.space.values_at(numbers), group.models, totals, len(numbers)))
            done += 1
        report(
            (filled.known_point_count + filled.point_count) // model_count,
            total,
            filled.known_point_count // model_count,
        )

    fill(lake, note(), evaluate_task, jobs=jobs, cluster=cluster, report=record)
    return last.point_count // model_count


def cut_blocks(groups: Sequence[Group]) -> list[tuple[Group, Integers]]:
    """Return the groups with their designs in blocks, which do not depend on the number of processes.

    A small space is cut into a few smaller blocks.
    """
    blocks = []
    for group in groups:
        count, start = len(group.numbers), 0
        each = min(BLOCK, max(SMALLEST, -(-count // PARTS)))
        while start < count:
            end = group.end_block(start, each)
            blocks.append((group, group.numbers[start:end]))
            start = end
    return blocks


def make_tasks(parts: Sequence[tuple[Group, Integers]]) -> Iterator[tuple[int, DesignTask]]:
    """Yield (index of the part, task) for each part and each of its models."""
    packed: dict[int, bytes] = {}
    for index, (group, numbers) in enumerate(parts):
        first, count = int(numbers[0]), len(numbers)
        plain = range(first, first + count)
        for model in group.models:
            if id(model) not in packed:
                packed[id(model)] = _pack(group.space, model)
            yield index, DesignTask(packed[id(model)], plain if np.array_equal(numbers, plain) else numbers)


def _pack(space: Space, model: ModelShare) -> bytes:
    """Return the pickled data that all blocks of a model have in common."""
    assert model.workload is not None
    plain = describe_block(
        model.workload, space.hardware, model.configuration, {}, calibration=model.calibration, rules=rule_version()
    )
    return zlib.compress(pickle.dumps((space, attrs.evolve(model, workload=None), plain)), 1)
