"""Subject lines, data and checks on runs, shared by several answers. Energy and latency are per batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.domain.catalogue import DEFAULT_MODE
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.physics.record.configuration import BOARD, SYSTEM
from joulemap.physics.record.product import FP32
from joulemap.show.present.cell import mark_projected, show_chance
from joulemap.show.present.document import Text
from joulemap.show.present.template import Template
from joulemap.show.product import Fp32Run, describe_fp32
from joulemap.show.title import RUNS, Conditions, Title, bind

if TYPE_CHECKING:
    from joulemap.ask.scope import Scope
    from joulemap.generated.analyze import RunTotal
    from joulemap.generated.edp import EdpTotal
    from joulemap.generated.fusion import FusionTotal

MOST_MODES: Final = 2
"""Maximum chips whose default power mode a subject line names."""

TITLE: Final = Template("{model} on {name} ({architecture}), batch {batch}, {precision}, {runtime}")

EXACT: Final = Template("The {noun} sum exactly to {whole}: {wholes:and}.")
INEXACT: Final = Template("The {noun} do not sum to {whole}: {parts:and} instead of {wholes:and}.")


ONE_BY_ONE: Final = "latency"
"""Value of `throughput_limit` for a run at full clock whose batches do not overlap."""


def show_limit(row: Any) -> str:
    """Return the throughput limit of a run for a table cell; empty if batches run one after another."""
    return "" if row.throughput_limit in (None, ONE_BY_ONE) else row.throughput_limit


def show_sure(scope: Scope, chance: float | None, *hardware: str) -> str:
    """Return a chance that rests on hardware; empty if it is unknown whether any of it runs every operator."""
    is_known = scope.unlisted.isdisjoint(HardwareRef.read(one).label for one in hardware)
    return show_chance(chance) if is_known else ""


OVERLAPPING: Final = 1.0 - 1e-9
"""Ratio of interval to latency below which batches overlap."""


def overlaps(interval_s: float | None, latency_s: float | None) -> bool:
    """Return whether a batch starts before the previous one has ended."""
    return interval_s is not None and latency_s is not None and interval_s < OVERLAPPING * latency_s


def prove(noun: str, whole: str, *sums: tuple[int, int, str]) -> Text:
    """Return a sentence that states whether sums of rows equal the whole; each of `sums` is (sum, whole, unit)."""
    parts, wholes = ([f"{one[side]:,} {one[2]}" for one in sums] for side in (0, 1))
    is_exact = all(one == other for one, other, _ in sums)
    return Text((EXACT if is_exact else INEXACT)(noun=noun, parts=parts, whole=whole, wholes=wholes))


def prove_parts(noun: str, rows: Iterable[Any], total: Any) -> Text:
    """Return the check that parts sum to the run in energy and, if parts have times, in latency."""
    listed = list(rows)
    units = {"energy_fj": "fJ"} | ({"latency_fs": "fs"} if listed and hasattr(listed[0], "latency_fs") else {})
    sums = [(sum(getattr(row, name) for row in listed), getattr(total, name), unit) for name, unit in units.items()]
    return prove(noun, "the run", *sums)


def title_runs(scope: Scope) -> Title:
    """Return a title with models, batch sizes, precisions and runtimes."""
    return Title(form=RUNS, values={"models": scope.models, **list_settings(scope)})


def list_settings(scope: Scope) -> dict[str, Any]:
    """Return batch sizes, precisions and runtimes as values of a title."""
    return {
        "batches": [str(batch) for batch in scope.batches],
        "precisions": scope.labels,
        "runtimes": scope.runtimes,
    }


def title_run(row: RunTotal | EdpTotal | FusionTotal, scope: Scope, runtime: str = "") -> Title:
    """Return a title with model, hardware and configuration; `runtime` replaces the run's own runtime."""
    values = {
        "model": row.model,
        "name": mark_projected(row.hardware, scope.unavailable),
        "precision": row.precision,
        "runtime": runtime or row.runtime,
    }
    return Title(form=TITLE, row=row, values=values)


def describe_run(row: RunTotal | EdpTotal | FusionTotal, scope: Scope) -> str:
    """Return model, hardware and configuration of a run in one line."""
    return bind(title_run(row, scope), find_conditions(scope))


def describe_products(scope: Scope) -> str:
    """Return what fp32 means in the runs; empty if every chip computes in fp32."""
    distinct = dict.fromkeys(
        (one.architecture, one.vendor, tuple(one.hardware_precisions), one.matmul_precision, one.runtime)
        for one in scope.outlines.values()
        if one.precision == FP32
    )
    return describe_fp32(Fp32Run.of(*one) for one in distinct)


def find_conditions(scope: Scope) -> Conditions:
    """Return the conditions of the runs for a subject line."""
    return Conditions(
        boundaries=scope.boundaries,
        is_wall_else_board=scope.selection.fallback_boundary == BOARD and len(scope.boundaries) > 1,
        modes=name_modes(scope),
        hosts=tuple(dict.fromkeys(filter(None, scope.hosts.values()))),
        changes={mark_projected(name, scope.unavailable): numbers for name, numbers in scope.changes.items()},
        products=describe_products(scope),
        is_fp32=scope.precisions == ((FP32, FP32),),
    )


def name_modes(scope: Scope) -> dict[str, str]:
    """Return chip -> name of its default power mode, for chips with several named modes that run in the default.

    It is empty for more than `MOST_MODES` chips, whose modes the notes name. Projected chips are left out.
    """
    known = [
        entry
        for entry, mode in scope.selection.pairs
        if mode == DEFAULT_MODE and entry.default_names and len(entry.distinct_modes) > 1 and not entry.unavailable
    ]
    return {one.id: one.default_names[0] for one in known} if len(known) <= MOST_MODES else {}


def repeat_boundary(scope: Scope, hardware: Iterable[str], repeated: Sequence[str]) -> list[str]:
    """Return the repeated options, plus `--boundary system` if the boundary was not given but all hardware runs at
    it.
    """
    is_implied = bool(scope.selection.fallback_boundary) and "--boundary" not in repeated
    is_at_wall = all(HardwareRef.read(name).label in scope.at_wall for name in hardware)
    return [*repeated, *(("--boundary", SYSTEM) if is_implied and is_at_wall else ())]
