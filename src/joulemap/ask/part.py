"""Facts of runs divided into parts: their values, and the parts with most of the energy or time."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.ask.fact import Choice, Entry, Fact, Facts, Quantity, Share, ShareLevel, ShareMetric, Subject
from joulemap.ask.rule import find_caveats
from joulemap.ask.scope import Scope, opening_scope
from joulemap.domain.metric import METRIC, MetricName
from joulemap.domain.settings import Settings
from joulemap.generated.analyze import RunTotal
from joulemap.generated.model import ModulePart
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import RuntimeName
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_hardware, select_one
from joulemap.plan.source import Source
from joulemap.store.run import find_subgraphs
from joulemap.system.errors import UnknownNameError, UnsupportedError

OF_A_GAP: Final = ("uncalibrated",)
"""SQL rules on the difference of two runs."""


def gather(scope: Scope, metric: MetricName, facts: Iterable[Fact], runs: Mapping[int, Subject] | None = None) -> Facts:
    """Return these facts with the caveats of all rules; weights refer to the first choice, or else to the first run."""
    listed = list(facts)
    choices = [one for one in listed if isinstance(one, Choice)]
    own = [Choice(runs=scope.evaluated_ids[:1], metric=metric, value=Quantity(0.0))]
    caveats = find_caveats(scope, choices or own, metric=metric, but=() if choices else OF_A_GAP)
    return Facts(asked=(metric,), runs=runs or scope.subjects({}), facts=(*listed, *caveats))


def name_models(scope: Scope, rows: Iterable[Any]) -> dict[int, Subject]:
    """Return the runs, with their models if these differ."""
    models = {row.run_id: row.model for row in rows}
    is_several = len(set(models.values())) > 1
    return scope.subjects({run_id: (model,) for run_id, model in models.items()} if is_several else {})


def enter(scope: Scope, row: Any, *more: MetricName) -> Entry:
    """Return energy and latency of a run with their intervals, and further metrics of its row."""
    outline = scope.outlines[row.run_id]
    values: dict[str, Quantity] = {
        "energy": Quantity(row.energy_j, "J", outline.energy_half_width),
        "latency": Quantity(row.latency_s, "s", outline.latency_half_width),
    }
    for name in more:
        values[name] = Quantity(getattr(row, METRIC[name].column), METRIC[name].unit)
    return Entry(runs=(row.run_id,), values=values)


def find_modules(scope: Scope, total: RunTotal, modules: Iterable[ModulePart]) -> Facts:
    """Return the values of one run and its modules, without those inside them, largest energy first."""
    whole = total.energy_fj or 1
    shares = {row.module: row.own_energy_fj / whole for row in modules}
    return gather(scope, "energy", [enter(scope, total), *share_out((total.run_id,), "energy", "module", shares)])


def share_out(
    runs: tuple[int, ...], metric: ShareMetric, level: ShareLevel, shares: Mapping[str, float]
) -> Iterator[Share]:
    """Yield the parts of a division, largest first, without those of no share."""
    for name, share in sorted(shares.items(), key=lambda item: (-item[1], item[0])):
        if share > 0.0:
            yield Share(runs=runs, metric=metric, level=level, name=name, share=share)


def divide(run_id: int, level: ShareLevel, parts: Iterable[tuple[str, int]]) -> Iterator[Share]:
    """Yield the parts of the energy of a run, largest first; `parts` has the name and the femtojoules of each line."""
    sums = Counter[str]()
    for name, energy_fj in parts:
        sums[name] += energy_fj
    whole = sums.total() or 1
    return share_out((run_id,), "energy", level, {name: one / whole for name, one in sums.items()})


@contextlib.contextmanager
def opening_parts(
    source: Source,
    question: str,
    model: str,
    hardware: str | Hardware,
    settings: Settings,
    *,
    runtimes: Sequence[RuntimeName] = (),
    subgraph: str = "",
) -> Iterator[Scope]:
    """Yield the scope of the run on `hardware`, with an open connection.

    `runtimes` replace the runtime of the settings; the run in each must succeed. Raises UsageError for a folder of
    several chips, UnsupportedError if the run on `hardware` was refused, UnknownNameError for a subgraph that no run
    has.
    """
    settings.check_single(question)
    select_one(hardware, settings)
    selection = select_hardware(attrs.evolve(settings, hardware=(hardware,)))
    asked = attrs.evolve(settings, runtime=runtimes or settings.runtime)
    with opening_scope(source, plan_selected((model,), asked, selection)) as scope:
        needed = scope.run_ids[: len(runtimes) or 1]
        if refused := dict.fromkeys(scope.refused[one] for one in needed if one in scope.refused):
            raise UnsupportedError("; ".join(refused))
        check_subgraph(scope, subgraph)
        yield scope


def check_subgraph(scope: Scope, subgraph: str) -> None:
    """Raise UnknownNameError for a subgraph that no run has; an empty name means every subgraph."""
    if subgraph and subgraph not in (known := find_subgraphs(scope.connection, scope.run_ids)):
        raise UnknownNameError("subgraph", subgraph, known)
