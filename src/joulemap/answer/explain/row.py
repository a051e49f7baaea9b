"""Rows of two runs side by side."""

from __future__ import annotations

from typing import ClassVar

from joulemap.record import frozen


@frozen
class EnergyTerm:
    """One term of a difference in energy, B minus A."""

    query: ClassVar[str] = "explain.energy"

    term: str
    category_a: str | None
    category_b: str | None
    component: str
    action: str
    per: str
    part: str
    count_a: float
    count_b: float
    energy_per_action_a_j: float | None
    energy_per_action_b_j: float | None
    basis_a: str | None
    basis_b: str | None
    difference_fj: int
    difference_j: float
    share_fraction: float | None


@frozen
class MetricTerm:
    """One term of a difference in another metric, B minus A."""

    query: ClassVar[str]

    term: str
    place: str
    per: str
    part_count: int
    count_a: float
    count_b: float
    price_a: float | None
    price_b: float | None
    price_unit: str
    difference_exact: int
    """In fs, in bytes, or twice in fJ fs."""
    difference: float
    unit: str
    share_fraction: float | None


@frozen
class LatencyTerm(MetricTerm):
    """One term of a difference in latency."""

    query: ClassVar[str] = "explain.latency"


@frozen
class EdpTerm(MetricTerm):
    """One term of a difference in energy x delay."""

    query: ClassVar[str] = "explain.edp"


@frozen
class MemoryTerm(MetricTerm):
    """One term of a difference in peak memory."""

    query: ClassVar[str] = "explain.memory"


@frozen
class Effect:
    """A kind of cause, and what it moved the energy."""

    query: ClassVar[str] = "explain.effect"

    effect: str
    """`only in A`, `only in B`, `count`, `price`, `time` or `static power`."""
    difference_fj: int
    difference_j: float
    share_fraction: float | None
    action_count: int
    largest_action: str | None
    largest_difference_j: float | None


@frozen
class CategoryDifference:
    """A category that all architectures share, on both sides."""

    query: ClassVar[str] = "explain.category"

    category: str
    categories_a: str
    """What the architecture of A calls it."""
    categories_b: str
    energy_a_fj: int
    energy_b_fj: int
    difference_fj: int
    energy_a_j: float
    energy_b_j: float
    difference_j: float
    share_fraction: float | None


@frozen
class _Sides:
    energy_a_fj: int
    energy_b_fj: int
    latency_a_fs: int
    latency_b_fs: int
    latency_difference_fs: int
    edp_difference_exact: int
    """Twice, in fJ fs."""


@frozen
class SubgraphDifference(_Sides):
    """One subgraph on both sides, matched by name."""

    query: ClassVar[str] = "explain.subgraph"

    name: str
    fusion_pattern: str
    energy_difference_fj: int
    memory_a_bytes: float
    memory_b_bytes: float
    difference: float
    """Of the metric that is explained."""
    unit: str
    share_fraction: float | None
    bottleneck_a: str | None
    bottleneck_b: str | None
    largest_action: str | None
    """`component.action` whose energy differs most."""
    largest_difference_j: float | None


@frozen
class Traffic:
    """The bytes that one memory carries on both sides."""

    query: ClassVar[str] = "explain.traffic"

    component: str
    action: str
    bytes_a: float | None
    bytes_b: float | None
    difference_bytes: float
    energy_a_j: float
    energy_b_j: float
    is_off_chip: bool


@frozen
class RunPair(_Sides):
    """Both runs and their differences, exact in femtojoules, femtoseconds and bytes."""

    query: ClassVar[str] = "explain.total"

    model: str
    hardware_a: str
    hardware_b: str
    difference_fj: int
    energy_a_j: float
    energy_b_j: float
    difference_j: float
    ratio: float
    latency_a_s: float
    latency_b_s: float
    latency_ratio: float | None
    edp_a_js: float
    edp_b_js: float
    edp_ratio: float | None
    memory_a_bytes: int
    memory_b_bytes: int
    memory_difference_bytes: int
    memory_ratio: float | None
    energy_probability: float | None
    """That the run predicted to need less energy per inference does; None of a subgraph."""
    latency_probability: float | None
    """The same of latency."""
    edp_probability: float | None
    """The same of energy x delay per inference."""
    architecture_a: str
    architecture_b: str
    batch: int
    precision: str
    runtime: str
    run_a: int
    run_b: int
