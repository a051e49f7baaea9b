"""Half-widths of points: predictions that were evaluated and not stored, each on a chip at a configuration.

    points ─► case of each point ─► errors and uncertain numbers, once per case ─► half-widths of all points

A case is a chip with a configuration. Many points may have one case, such as designs of one chip, or each its own.
"""

from __future__ import annotations

from collections.abc import Sequence, Set as AbstractSet
from functools import cached_property
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.physics.interval import half_width
from joulemap.physics.interval.error_record import ErrorRecord, HeldOutErrors, Widths
from joulemap.physics.interval.error_scale import MODEL, SAME_SIZE, BasisSpread, Doubt, find_peak, find_thin_bounds
from joulemap.physics.interval.half_width import HalfWidths, Spent, stack_errors
from joulemap.physics.interval.probability import Floats
from joulemap.physics.interval.scale import Subject
from joulemap.physics.record.address import CLOCK, MEMORY_BANDWIDTH, SOURCE, STATIC_POWER, Address, find_quantity
from joulemap.physics.record.configuration import BOUNDARY, Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import HOST_ACTION, STATIC_ACTION
from joulemap.physics.record.surrounding import GROWTH_HALF_WIDTH, HOST_HALF_WIDTH
from joulemap.physics.total import PointColumns
from joulemap.system.record import define, frozen

Rows = NDArray[np.int64]

NOTHING: Final[frozenset[Address]] = frozenset()

KEPT: Final = 8192
"""Maximum cases whose hardware is remembered, so that a process that makes chips does not keep them all."""


@frozen(kw_only=True)
class Case:
    """Chip and configuration of points."""

    hardware: Hardware
    """Hardware as evaluated, with all its modifiers."""
    configuration: Configuration
    work: str = MODEL
    """Kind of work of the model (`Workload.work`)."""
    calibration: str = ""
    """Digest of the calibration of the hardware; empty without one."""
    varied: AbstractSet[Address] = NOTHING
    """Numbers in which the points differ; they are given, so they count as exact."""

    def describe(self, ops_per_s: float) -> Subject:
        """Return the key of an error lookup for points with a peak of `ops_per_s`."""
        return Subject(
            work=self.work,
            architecture=self.hardware.architecture,
            runtime=self.configuration.runtime,
            precision=self.configuration.precision,
            hardware=self.hardware.id.partition("[")[0],  # a variant has the errors of its base
            ops_per_s=ops_per_s,
            is_single=self.configuration.batch == 1,
        )


@frozen(kw_only=True)
class Known:
    """Uncertain numbers of the hardware of one case."""

    own_number: Widths
    """Half-widths of the numbers of the hardware file that bound compute, memory and launches."""
    thin: Widths
    """Half-widths that thinly measured numbers add to the same."""
    host_w: float
    has_load: bool
    growth_half_width: float
    host_half_width: float
    ranged: tuple[float, ...]
    """Half-width that the stated range of static power adds, for each basis of an energy; 0 for all others."""
    shares_basis: bool
    """True if the host's static power has the same basis as that of the chip."""


@define(eq=False)
class PointErrors:
    """Known errors, with what was found for earlier points; one object serves many evaluations."""

    doubt: Doubt
    held_out: HeldOutErrors = attrs.field(factory=dict)
    _known: dict[tuple[Any, ...], tuple[Hardware, Known]] = attrs.field(factory=dict, init=False, repr=False)

    def __reduce__(self) -> tuple[type[PointErrors], tuple[Doubt, HeldOutErrors]]:
        """Pickle only the errors: keys of the cache are identities, which mean nothing to another process."""
        return PointErrors, (self.doubt, self.held_out)

    @cached_property
    def record(self) -> ErrorRecord:
        """Errors by subject."""
        return ErrorRecord(scales=self.doubt.scales, floors=self.doubt.floors, held_out=self.held_out)

    @cached_property
    def _spreads(self) -> tuple[BasisSpread, ...]:
        return self.doubt.spreads

    @cached_property
    def _places(self) -> dict[str, int]:
        return {one.number_basis: index for index, one in enumerate(self._spreads)}

    @cached_property
    def _beyond(self) -> dict[str, tuple[float, float]]:
        return dict(zip(self._places, self.doubt.own_half_widths(), strict=True))

    @cached_property
    def _limits(self) -> tuple[Floats, Floats]:
        """Sorted smallest and largest sizes of chips to which error scales apply."""
        least = np.sort([one.least_ops_per_s / SAME_SIZE for one in self.doubt.scales])
        return least, np.sort([one.most_ops_per_s * SAME_SIZE for one in self.doubt.scales])

    def find_half_widths(self, points: PointColumns, cases: Sequence[Case], rows: Rows) -> HalfWidths:
        """Return the half-widths of 80 % intervals of logarithms, one row per point; 0 for a refused point.

        `rows` is the index in `cases` of each point. Half-widths are NaN where no errors are known.
        """
        subjects, of_subject = self._find_subjects(points, cases, rows)
        latency, power = stack_errors(subjects, of_subject)
        widths = half_width.combine_errors(latency, power, self._sum(points, [self._find(one) for one in cases], rows))
        is_there = points.refusal == ""
        return HalfWidths(
            **{one.name: np.where(is_there, getattr(widths, one.name), 0.0) for one in attrs.fields(HalfWidths)}
        )

    def _find_subjects(
        self, points: PointColumns, cases: Sequence[Case], rows: Rows
    ) -> tuple[list[tuple[float, ...]], Rows]:
        """Return errors of distinct subjects, and the index of each point's subject.

        Points of one case differ in the size of their chip only if it follows a varied number. All sizes between two
        limits of error scales have the same subject.
        """
        found: list[tuple[float, ...]] = []
        firsts = np.zeros(len(cases), dtype=np.int64)
        beside = np.zeros(len(rows), dtype=np.int64)
        for number, case in enumerate(cases):
            fastest = max(peak.rate.value for peak in case.hardware.peaks.values())
            firsts[number], sizes = len(found), [fastest]
            mine = np.flatnonzero((rows == number) & (points.refusal == ""))
            if case.varied and mine.size:
                asked = case.configuration
                rate = case.hardware.product_rate(asked.precision, asked.weight_precision, asked.runtime)
                each = fastest * (points.peak_ops_per_s[mine] / rate)
                least, most = self._limits
                cells = np.stack([np.searchsorted(least, each, "right"), np.searchsorted(most, each, "left")])
                _, leaders, beside_first = np.unique(cells, axis=1, return_index=True, return_inverse=True)
                beside[mine] = beside_first.ravel()
                sizes = each[leaders].tolist()
            found += [self.record.find_errors(case.describe(size), case.calibration) for size in sizes]
        return found, firsts[rows] + beside

    def _sum(self, points: PointColumns, known: Sequence[Known], rows: Rows) -> Spent:
        """Return the inputs of half-widths from the energies and times of points."""
        count = len(points)
        total = np.maximum(points.energy_fj, 1).astype(np.float64)
        parts, owned, static = (np.zeros((len(self._spreads), count)) for _ in range(3))
        for key, spent in points.spent_fj.items():
            place = self._places[key.basis]
            parts[place] += spent
            owned[place] += spent * key.is_own
            static[place] += spent * (key.common_category == "static")

        def column(name: str) -> Floats:
            return np.array([getattr(one, name) for one in known], dtype=float)[rows]

        host_fj = column("host_w") * points.interval_fs  # W = fJ / fs
        shares = column("shares_basis")
        ranged = np.array([one.ranged for one in known], dtype=float)[rows].T
        basis_square, own_square = np.zeros(count), np.zeros(count)
        for place, spread in enumerate(self._spreads):
            width = spread.half_width.value * parts[place] + ranged[place] * (static[place] - host_fj * shares)
            basis_square += np.square(width / total)
            own_square += np.square(self._beyond[spread.number_basis][0] * owned[place] / total)
        return Spent(
            latency_fs=np.maximum(points.latency_fs, 1).astype(np.float64),
            bound_fs=points.share_fs.astype(np.float64),
            own_number=np.array([one.own_number for one in known], dtype=float)[rows],
            thin=np.array([one.thin for one in known], dtype=float)[rows],
            suppressed_s=points.suppressed_s,
            basis_square=basis_square,
            own_square=own_square,
            has_load=column("has_load") > 0.0,
            host_share=host_fj / total,
            growth_half_width=column("growth_half_width"),
            host_half_width=column("host_half_width"),
            breaks_law=points.breaks_law,
        )

    def _find(self, case: Case) -> Known:
        """Return the uncertain numbers of a case's hardware, cached."""
        hardware, precision = case.hardware, case.configuration.precision
        key = id(hardware), precision, case.varied
        if len(self._known) > KEPT:
            self._known.clear()
        if key not in self._known:
            self._known[key] = hardware, self._know(hardware, precision, case.varied)  # kept, so no other gets its id
        return self._known[key][1]

    def _know(self, hardware: Hardware, precision: str, varied: AbstractSet[Address]) -> Known:
        peak = find_peak(hardware.architecture, precision)
        is_at_wall = BOUNDARY[hardware.boundary].is_at_wall
        growth, host = (
            hardware.coefficient(name) if is_at_wall else 0.0 for name in (GROWTH_HALF_WIDTH, HOST_HALF_WIDTH)
        )
        ranged, shares_basis = ((0.0,) * len(self._spreads), False)
        if STATIC_POWER not in varied:
            ranged, shares_basis = self._find_ranged(hardware)
        evidence = {name: one.evidence for name, one in hardware.quantities() if one.evidence is not None}
        return Known(
            own_number=self._find_own(hardware, peak, varied),
            thin=find_thin_bounds(evidence, peak),
            host_w=hardware.host_w,
            has_load=any(load.covers == "board" and load.power.basis != "assumed" for load in hardware.loads),
            growth_half_width=growth,
            host_half_width=host,
            ranged=ranged,
            shares_basis=shares_basis,
        )

    def _find_own(self, hardware: Hardware, peak: str | None, varied: AbstractSet[Address]) -> Widths:
        """Return half-widths due to uncertain hardware numbers, for time bound by (compute, memory, launch)."""

        def width(address: Address) -> float:
            quantity = find_quantity(hardware, address)
            is_given = quantity.source.endswith(SOURCE) or any(one[:2] == address[:2] for one in varied)
            return 0.0 if is_given else self._beyond[quantity.basis][1]

        clock = width(CLOCK)
        compute = max(clock, width(Address("peak", peak))) if peak and peak in hardware.peaks else clock
        return compute, width(MEMORY_BANDWIDTH), clock

    def _find_ranged(self, hardware: Hardware) -> tuple[tuple[float, ...], bool]:
        """Return the half-width that the stated range of static power adds to energies of each basis, and whether the
        host's static power has that basis too.
        """
        reference = hardware.reference
        own, host = (reference.position(key) for key in (STATIC_ACTION, HOST_ACTION))
        assert own is not None
        row = reference.actions[own]
        place = self._places[row.basis]
        more = row.range_half_width - self._spreads[place].half_width.value
        if row.range_half_width == 0.0 or more <= 0.0:
            return (0.0,) * len(self._spreads), False
        ranged = tuple(more if index == place else 0.0 for index in range(len(self._spreads)))
        return ranged, host is not None and reference.actions[host].basis == row.basis
