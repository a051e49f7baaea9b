"""Rules of a sound workload, checked before it is stored.

They are those of the database's tables and of the query `audit.conservation`, so that a workload that breaks one is
refused by its model's name and is never found later as a fault of the database.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from joulemap.physics.record.workload import Operator, Workload
from joulemap.system.errors import ModelError

LARGEST: Final = 2**63 - 1
"""Largest number in a column of the database."""

ATTENTION: Final = "aten.scaled_dot_product_attention.default"

COUNTS: Final = (
    "mac_count", "elementwise_count", "special_count", "output_element_count", "gemm_m", "gemm_n", "gemm_k",
    "gemm_groups",
)  # fmt: skip
"""Counts of an operator that may be zero."""

FACTORS: Final = ("tap_count", "step_count", "run_count")
"""Counts of an operator that are at least one."""


def check_workload(workload: Workload) -> None:
    """Raise ModelError, naming the model and the operator, for a workload that breaks a rule of the database."""
    fault = next(_list_faults(workload), "")
    if fault:
        raise ModelError(f"{workload.model}: {fault}")


def find_mac_range(operator: Operator) -> tuple[int, int]:
    """Return the least and the largest number of MACs that agree with an operator's GEMM view.

    The view has the mean size, rounded up, where groups differ in size or queries see different numbers of keys.
    """
    whole = operator.gemm_m * operator.gemm_n * operator.gemm_k * operator.gemm_groups
    rounded = 0
    if operator.operation == "grouped_mm" and operator.gemm_groups > 1:
        rounded = min(operator.gemm_m, operator.gemm_n, operator.gemm_k)
    elif operator.aten == ATTENTION:
        rounded = operator.gemm_k if operator.name.endswith(".weighted_sum") else operator.gemm_n
    return whole - (whole // rounded if rounded else 1) + 1, whole


def _list_faults(workload: Workload) -> Iterator[str]:
    """Yield a text for each broken rule."""
    wholes = (workload.parameter_count, workload.weight_bytes)
    if not all(0 <= one <= LARGEST for one in wholes) or not 0 < workload.batch < 2**31 or workload.inner_batch < 1:
        yield f"a batch of {workload.batch:,} with {wholes[0]:,} weights in {wholes[1]:,} bytes cannot be counted"
    for operator in workload.operators:
        yield from _list_operator_faults(operator)
    held = sorted(index for one in workload.subgraphs for index in one.operator_indices)
    if workload.subgraphs and held != list(range(len(workload.operators))):
        yield "an operator is not in exactly one fused subgraph"
    for tensor in workload.tensors:
        if not 0 <= tensor.byte_count <= LARGEST:
            yield f"tensor {tensor.name!r} of the shape {tensor.shape} cannot be counted"
    for access in workload.accesses:
        if not 0 <= access.fused_byte_count <= access.byte_count <= LARGEST:
            operator = workload.operators[access.operator_index]
            yield f"{_name(operator)} reads or writes {access.byte_count:,} bytes of a tensor, which cannot be counted"
    for edge in workload.edges:
        if not 0 <= edge.producer_index < edge.consumer_index < len(workload.operators):
            yield f"{_name(workload.operators[edge.consumer_index])} reads a value before it is written"


def _list_operator_faults(operator: Operator) -> Iterator[str]:
    for names, least in ((COUNTS, 0), (FACTORS, 1)):
        for name in names:
            count = getattr(operator, name)
            if not least <= count <= LARGEST:
                yield f"{_name(operator)} has shapes that contradict each other: its {name} is {count:,}"
    if operator.operation != "scan":  # a chunked scan has GEMMs of several shapes
        least, most = find_mac_range(operator)
        if not least <= operator.mac_count <= most:
            yield (
                f"{_name(operator)} has shapes that contradict each other: {operator.mac_count:,} MACs by its output, "
                f"{most:,} by its inputs"
            )


def _name(operator: Operator) -> str:
    return f"{operator.operation} {operator.name[:80]!r}"
