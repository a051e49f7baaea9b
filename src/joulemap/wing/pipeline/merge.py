"""Join the workloads of stages into the workload of one frame, which runs the stages in order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

import attrs

from joulemap.physics import Access, Buffer, Edge, Operator, Subgraph, Tensor, Workload, WorkloadKey
from joulemap.wing.pipeline import FRAME

BETWEEN: Final = "; its stages run one after another; work between stages, such as cropping or sampling, is not counted"
"""End of a note that every pipeline has."""

WEIGHT: Final = "weight"
"""Role of an access whose bytes count once, however often a stage runs."""


def merge_workloads(
    stages: Sequence[tuple[Workload, int]], model: str, key: WorkloadKey, inference: str = FRAME
) -> Workload:
    """Return the fused workload of one frame, from (workload, runs per frame) of each stage. Its first note starts with
    `inference`.

    Runs of a stage are equal and share its weights, so its operators appear once with a run count. The first part of a
    module path names the stage.
    """
    joined = _Joined()
    names = dict(zip(_name_stages([work for work, _ in stages]), (work for work, _ in stages), strict=True))
    for name, (work, count) in zip(names, stages, strict=True):
        joined.append(work, name, count)
    return Workload(
        key=key,
        model=model,
        batch=stages[0][0].batch,
        parameter_count=sum(work.parameter_count for work, _ in stages),
        weight_bytes=sum(work.weight_bytes for work, _ in stages),
        operators=tuple(joined.operators),
        tensors=tuple(joined.tensors),
        accesses=tuple(joined.accesses),
        edges=tuple(joined.edges),
        buffers=tuple(joined.buffers),
        subgraphs=tuple(joined.subgraphs),
        notes=(inference + BETWEEN, *(f"{name}: {note}" for name, work in names.items() for note in work.notes)),
    )


def _name_stages(works: Sequence[Workload]) -> list[str]:
    """Return a distinct name for each stage: the stem of a file, or a model's name without its sizes."""
    names: list[str] = []
    for work in works:
        path = PurePath(work.model.partition("(")[0])
        is_version = path.suffix[1:2].isdigit()  # of a name such as net-3.1
        plain = path.name if is_version else path.stem
        name = plain.replace(".", "_").replace(":", "_") or "stage"
        names.append(name if name not in names else f"{name}_{len(names) + 1}")
    return names


@attrs.define
class _Joined:
    operators: list[Operator] = attrs.field(factory=list)
    tensors: list[Tensor] = attrs.field(factory=list)
    accesses: list[Access] = attrs.field(factory=list)
    edges: list[Edge] = attrs.field(factory=list)
    buffers: list[Buffer] = attrs.field(factory=list)
    subgraphs: list[Subgraph] = attrs.field(factory=list)

    def append(self, work: Workload, name: str, count: int) -> None:
        """Append `count` equal runs of a stage."""
        first, storage, tensor_offset = len(self.operators), len(self.buffers), len(self.tensors)
        self.tensors += [
            attrs.evolve(
                one,
                producer_index=None if one.producer_index is None else one.producer_index + first,
                buffer_index=None if one.buffer_index is None else one.buffer_index + storage,
            )
            for one in work.tensors
        ]

        def shift(index: int) -> int:
            return index + first

        self.operators += [
            attrs.evolve(
                _repeat(one, count),
                name=f"{name}.{one.name}",
                module_path=f"{name}.{one.module_path}" if one.module_path else name,
            )
            for one in work.operators
        ]
        self.accesses += [
            attrs.evolve(
                one,
                operator_index=shift(one.operator_index),
                tensor_index=one.tensor_index + tensor_offset,
                byte_count=one.byte_count * (1 if one.role == WEIGHT else count),
                fused_byte_count=one.fused_byte_count * (1 if one.role == WEIGHT else count),
            )
            for one in work.accesses
        ]
        self.edges += [
            Edge(
                producer_index=shift(one.producer_index),
                consumer_index=shift(one.consumer_index),
                tensor_index=one.tensor_index + tensor_offset,
            )
            for one in work.edges
        ]
        self.buffers += [
            attrs.evolve(
                one,
                birth_index=shift(one.birth_index),
                death_index=shift(one.death_index),
                release_index=shift(one.release_index),
            )
            for one in work.buffers
        ]
        self.subgraphs += [
            attrs.evolve(one, name=f"{name}.{one.name}", operator_indices=tuple(map(shift, one.operator_indices)))
            for one in work.subgraphs
        ]


def _repeat(operator: Operator, count: int) -> Operator:
    """Return an operator with the work of `count` runs; a GEMM of two activations gets more groups, any other more
    rows.
    """
    by_group = operator.kind == "matmul"
    return attrs.evolve(
        operator,
        run_count=operator.run_count * count,
        mac_count=operator.mac_count * count,
        elementwise_count=operator.elementwise_count * count,
        special_count=operator.special_count * count,
        output_element_count=operator.output_element_count * count,
        gemm_groups=operator.gemm_groups * (count if by_group else 1),
        gemm_m=operator.gemm_m * (1 if by_group else count),
    )
