"""Utilization of each chip by a model: low values with their reasons, and remedies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.ask.answer import RunAnswer, fetch_tables
from joulemap.ask.fact import Choice, Entry, Fact, Facts, Quantity, Share, ShareLevel, Turn
from joulemap.ask.part import gather
from joulemap.ask.scope import Scope, opening_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.generated.analyze import RunTotal
from joulemap.generated.compare import ModelMix
from joulemap.generated.utilization import (
    BatchZone,
    Grade,
    Pairing,
    PrecisionGain,
    Remedy,
    Utilization,
    UtilizationFlag,
)
from joulemap.physics.record.product import DEFAULT
from joulemap.physics.record.runtime import RUNTIME
from joulemap.plan.remedy import evaluate_sizes, evaluate_variants
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.store.connection import keeping_open
from joulemap.store.query import fetch
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow

BOUNDS: Final = ("compute", "memory", "launch")
"""Possible bottlenecks of a kernel."""

LOWER, OTHER_CHIP, KEEPING = "lower precision", "another chip", ("larger batch", "other runtime", "lower power mode")
"""Remedies: one that may change the accuracy, one that replaces the chip, and those that keep both."""

ALIKE: Final = 0.005
"""Minimum deviation of a ratio from 1 that is a fact."""

MOSTLY: Final = 0.5
"""Minimum share of a model's MACs in GEMMs other than convolutions for `has_plain_gemms`."""


@frozen(kw_only=True)
class UtilizationAnswer(RunAnswer):
    """Utilization of several chips by one model, with flags and remedies."""

    rows: Table[Utilization]
    """Utilization of each chip, highest compute utilization first; unsupported chips are last."""
    grades: Table[Grade]
    """Utilization grades, with the minimum share of each."""
    flags: Table[UtilizationFlag]
    """Problems in how each chip is used, in the order of the hardware."""
    remedies: Table[Remedy] | None
    """Settings that may raise the utilization of each chip; None unless requested."""
    zones: Table[BatchZone] | None
    """Efficient batch sizes of each chip; None unless requested."""
    precisions: Table[PrecisionGain] | None
    """Gains of each precision over fp32, or over the widest precision; None unless requested."""
    remedied: Table[Utilization]
    """Utilization after the first remedy of the least used chip; empty unless remedies were requested."""
    pairings: Table[Pairing] | None
    """Best hardware for stored models of each size class, at this precision; None unless requested."""
    untraced: str
    """Reason why the model could not be traced at other batch sizes; empty if it was, or without advice."""
    facts: Facts
    """Shares, flags and remedies, from which all sentences are made."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats; a table that was not requested is an empty list."""
        empty: dict[str, Any] = {"remedies": [], "zones": [], "precisions": [], "pairings": []}
        return {**empty, **super().data(), "untraced": self.untraced}

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Runs of the hardware that was not refused."""
        return self.used

    @property
    def used(self) -> list[Utilization]:
        """Rows of hardware that was not refused, highest utilization first."""
        return [row for row in self.rows if row.status == "ok"]

    @property
    def used_rows(self) -> Table[Utilization]:
        """Table of hardware that was not refused."""
        return self.rows.with_rows(self.used)

    @property
    def better(self) -> dict[int, Remedy]:
        """Run id -> setting that reduces its energy x delay most, if one does."""
        return {row.run_id: one for row in self.used for one in rank_remedies(row, self.remedies or ())[:1]}

    @property
    def tried(self) -> Table[Remedy] | None:
        """Remedies that were tried, those of the table among them."""
        rows = self.remedies
        return None if rows is None else rows.with_rows(row for row in rows if row.remedy_rank is not None)

    @property
    def varied_zones(self) -> Table[BatchZone] | None:
        """Efficient batch sizes, if some hardware ran at several."""
        return self.zones if any(len(row.batches) > 1 for row in self.zones or ()) else None


def rank_remedies(row: Utilization, remedies: Iterable[Remedy]) -> list[Remedy]:
    """Return the remedies that help a run: the setting that reduces its energy x delay most, or if no setting helps,
    the first remedy that may change the accuracy or the hardware; then a lower precision that reduces it more.
    """
    named = [one for one in remedies if one.run_id == row.run_id and one.is_better and one.remedy_rank is not None]
    settings = [one for one in named if one.remedy in KEEPING]
    first = max(settings, key=lambda one: one.gain_ratio) if settings else next(iter(named), None)
    if first is None:
        return []
    lower = [one for one in named if one.remedy == LOWER and one.gain_ratio > first.gain_ratio]
    return [first, *([max(lower, key=lambda one: one.gain_ratio)] if lower else [])]


def find_facts(
    scope: Scope,
    rows: Sequence[Utilization],
    remedies: Iterable[Remedy],
    *,
    has_plain_gemms: bool,
) -> Facts:
    """Return the facts of chips that were not refused, best used first: shares, the `remedies` of the least used chip,
    best first, and the work and rates that limit it.

    With `has_plain_gemms`, most GEMMs of a run at fp32 are no convolutions, so that they do not run in TF32.
    """
    facts: list[Fact] = []
    if len(rows) > 1:
        best, second = (row.compute_utilization_fraction or 0.0 for row in rows[:2])
        ids, ratio = tuple(row.run_id for row in rows), best / second if second else None
        facts.append(Choice(runs=ids, metric="utilization", value=Quantity(best, "1"), ratio=ratio))
    lanes: ShareLevel = "lanes" if has_plain_gemms else "convolutions"
    for row in rows:
        facts += _share(row, scope.outlines[row.run_id].latency_half_width, lanes)
    facts += [_turn(one, scope.unavailable) for one in remedies]
    facts += [_work(one) for one in fetch(scope.connection, RunTotal, run_id=rows[-1].run_id)]
    return gather(scope, "utilization", facts)


def _share(row: Utilization, half_width: float | None, lanes: ShareLevel) -> Iterator[Fact]:
    """Yield the utilization of a chip, its grade, its main bottleneck, and the share of its fp32 peak if that is what
    most of its GEMMs can reach.
    """
    runs, used = (row.run_id,), row.compute_utilization_fraction or 0.0
    yield Entry(runs=runs, values={"utilization": Quantity(used, "1", half_width)})
    yield Share(runs=runs, metric="compute", level="grade", name=row.compute_grade or "", share=used)
    times = {name: getattr(row, f"{name}_time_fraction") or 0.0 for name in BOUNDS}
    first = max(times, key=lambda name: times[name])
    if times[first] > 0.0:
        yield Share(runs=runs, metric="time", level="bottleneck", name=first, share=times[first])
    if row.fp32_peak_ops_per_s and row.attained_ops_per_s is not None:
        yield Share(runs=runs, metric="fp32", level=lanes, share=row.attained_ops_per_s / row.fp32_peak_ops_per_s)


def _work(row: RunTotal) -> Entry:
    """Return the work of a run and the rates at which its chip does it."""
    values = {
        "latency": Quantity(row.latency_s, "s"),
        "kernels": Quantity(float(row.kernel_count), "1"),
        "kernel_time": Quantity(row.latency_s / (row.kernel_count or 1), "s"),
        "tiles": Quantity(row.tile_count / (row.kernel_count or 1), "1"),
        "units_used": Quantity(float(row.units_used_count), "1"),
        "units": Quantity(float(row.units_total_count), "1"),
        "dram": Quantity(row.dram_bytes, "B"),
        "dram_rate": Quantity(row.dram_bytes / row.interval_s, "B/s"),
        "bandwidth": Quantity(row.memory_bandwidth_bytes_per_s, "B/s"),
        "attained": Quantity(row.attained_ops_per_s, "ops/s"),
        "peak": Quantity(row.peak_ops_per_s, "ops/s"),
        "padding": Quantity(row.padding_fraction or 0.0, "1"),
    }
    return Entry(runs=(row.run_id,), values=values)


def _turn(row: Remedy, unavailable: Collection[str]) -> Turn:
    """Return what another setting or chip changes; `unavailable` hardware can be neither bought nor rented."""
    ratios = {"energy_per_inference": row.energy_ratio, "latency": row.latency_ratio}
    values = {name: one for name, one in ratios.items() if abs(one - 1.0) >= ALIKE}
    return Turn(
        runs=(row.chosen_run_id,),
        axis=row.remedy,
        of=(row.run_id,),
        after=row.choice,
        metric="throughput",
        ratio=row.throughput_ratio,
        values={**values, "is_available": int(row.choice not in unavailable)},
    )


@keeping_open()
def utilization(
    source: Source,
    model: str,
    settings: Settings = SETTINGS,
    *,
    min_compute_fraction: float = 0.2,
    max_bandwidth_fraction: float = 0.9,
    max_idle_fraction: float = 0.8,
    has_advice: bool = True,
    is_pairing: bool = False,
) -> UtilizationAnswer:
    """Compute the utilization of each chip by the model, and flag unhealthy values with a reason.

    A run is flagged below `min_compute_fraction` of the peak, above `max_bandwidth_fraction` of the bandwidth that its
    class sustains, and above `max_idle_fraction` of the units idle. With `has_advice`, the model is evaluated at other
    batches, precisions and power modes and on other hardware; without it only the runs themselves are evaluated.
    `is_pairing` evaluates a few models of each size class, and finds the best of these chips per size. Raises like
    `compare`, UsageError for a limit outside 0 to 1 and for a pairing of one chip.
    """
    limits: dict[str, Any] = {
        "min_compute_fraction": min_compute_fraction,
        "max_bandwidth_fraction": max_bandwidth_fraction,
        "max_idle_fraction": max_idle_fraction,
    }
    check_fractions(limits)
    settings.check_single("utilization")
    plan = plan_runs((model,), settings)
    if is_pairing and len(plan.selection.pairs) < 2:
        raise UsageError("a pairing compares chips: name several, or none for the default chips")
    variants = evaluate_variants(source, plan) if has_advice else None
    sized = evaluate_sizes(source, plan) if is_pairing else ()
    with opening_scope(source, plan) as scope:
        scope.check_evaluated()
        ids, first = list(scope.run_ids), settings.runtime[0]
        given: dict[str, Any] = {"run_ids": ids, "takes_all": settings.takes_all}
        connection = scope.connection
        tables: dict[str, Any] = {
            **fetch_tables(connection, UtilizationAnswer, **limits, run_ids=ids),
            "remedies": fetch(connection, Remedy, **given, other_ids=variants.ids) if variants else None,
            "zones": fetch(connection, BatchZone, run_ids=list(variants.batch)) if variants else None,
            "precisions": fetch(connection, PrecisionGain, run_ids=list(variants.precision)) if variants else None,
            "pairings": fetch(connection, Pairing, run_ids=[*ids, *sized]) if is_pairing else None,
        }
        mix = fetch(scope.connection, ModelMix, run_ids=ids)
        has_plain_gemms = (
            sum(row.mac_fraction or 0.0 for row in mix if "conv" not in row.kind) > MOSTLY
            and settings.matmul_precision == DEFAULT
            and not RUNTIME[first].is_built
        )
        used = [row for row in tables["rows"] if row.status == "ok"]
        better = rank_remedies(used[-1], tables["remedies"] or ())
        facts = find_facts(scope, used, better, has_plain_gemms=has_plain_gemms)
        tables["remedied"] = fetch(scope.connection, Utilization, run_ids=[one.chosen_run_id for one in better[:1]])
        return UtilizationAnswer(scope=scope, **tables, facts=facts, untraced=variants.untraced if variants else "")


def check_fractions(fractions: Mapping[str, float]) -> None:
    """Raise UsageError for a fraction outside 0 to 1."""
    for name, value in fractions.items():
        if not 0.0 <= value <= 1.0:
            raise UsageError(f"{name} is {value:g}, expected a fraction from 0 to 1")
