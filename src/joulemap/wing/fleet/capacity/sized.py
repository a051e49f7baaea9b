"""Fleets of each chip that meet a demand or miss its targets, before they are paid for and ranked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import attrs

from joulemap.ask import Finding, Refusal, Scope, list_findings, read_usage
from joulemap.ask.scope import opening_scope
from joulemap.catalog import load_models
from joulemap.domain import DEFAULT_MODE, Settings, Table, find_model_name
from joulemap.generated.cost import AssumedNumber
from joulemap.plan import Selection, Source, plan_selected, select_hardware
from joulemap.plan.workload import choose_batches
from joulemap.store import fetch
from joulemap.system import UsageError, frozen
from joulemap.wing.decoder import list_decoders
from joulemap.wing.fleet.capacity.rank import Terms
from joulemap.wing.fleet.capacity.row import FleetRow, Sizing
from joulemap.wing.fleet.demand import Demand
from joulemap.wing.fleet.generated.row import MixedRow, Station
from joulemap.wing.llm.serve import Serving

BATCHES: Final = (1, 2, 4, 8, 16, 32, 64)
"""Default batch sizes; batches of other sizes get interpolated times."""


@frozen(kw_only=True, eq=False)
class StoredRuns:
    """Stored runs that fleets are built from, with the assumptions of their costs and what rules find about them."""

    findings: Sequence[Finding | Refusal]
    stations: Table[Station]
    assumptions: Table[AssumedNumber]


@frozen(kw_only=True, eq=False)
class SizedFleets:
    """Fleets of each chip that meet a demand or miss its targets, before they are paid for and ranked."""

    scope: Scope
    stored: StoredRuns
    shares: Mapping[str, float]
    sized: Sequence[Sizing]
    pair: Callable[[Terms, FleetRow | None], list[MixedRow]] = lambda _terms, _best: []
    """Function that finds separate prefill and decode pools, given the best fleet of one kind."""
    engine: str = ""
    serving: Serving | None = None


def size_devices(source: Source, model: str, settings: Settings, demand: Demand) -> SizedFleets:
    """Return how many devices of each chip, which serve requests in batches, meet the target."""
    from joulemap.wing.fleet.capacity.station import size_stations

    shares = _share(find_model_name(model, load_models()), demand)  # runs have the catalogue's name, not an alias
    settings = attrs.evolve(settings, batch=choose_batches(tuple(shares), settings, BATCHES))
    plan = plan_selected(tuple(shares), settings, _fill_boxes(select_hardware(settings, "catalogue")))
    with opening_scope(source, plan, needs_catalogue=True, has_ledger=False) as scope:
        stored = read_stored(scope, settings, metric=demand.deciding)
    scope.check_evaluated()
    return SizedFleets(
        scope=scope, stored=stored, shares=shares, sized=size_stations(stored.stations.rows, shares, demand)
    )


def _share(model: str, demand: Demand) -> dict[str, float]:
    """Return model -> its share of the requests; UsageError for a language model, whose requests take many passes."""
    if model in demand.beside:
        raise UsageError(f"{model} gets the remaining share: --beside is for other models")
    shares = {model: 1.0 - sum(demand.beside.values()), **demand.beside}
    for name in shares:
        if name in list_decoders():
            raise UsageError(
                f"{name} is a language model, which has other targets: --first-token 500ms --between-tokens 30ms"
            )
    return shares


def _fill_boxes(selection: Selection) -> Selection:
    """Return a selection in which a box of identical devices is set to throughput, so that all its devices work.

    A box with a named mode is unchanged.
    """
    alike = {name for name, parts in selection.parts.items() if len({one.id for one in parts}) == 1}
    pairs = ((one, "throughput" if one.id in alike and mode == DEFAULT_MODE else mode) for one, mode in selection.pairs)
    return attrs.evolve(selection, pairs=tuple(dict.fromkeys(pairs)))


def read_stored(
    scope: Scope,
    settings: Settings,
    *,
    metric: str,
    engine: str = "",
    but: Collection[str] = (),
) -> StoredRuns:
    """Return what fleets need of stored runs; `but` are rules that do not apply."""
    used, pay = read_usage(settings)
    rest = {name: value for name, value in used.items() if name != "utilization"}
    return StoredRuns(
        findings=list_findings(scope, metric=metric, but=but),
        stations=fetch(scope.connection, Station, run_ids=list(scope.run_ids), **rest, **pay, engine=engine),
        assumptions=fetch(scope.connection, AssumedNumber, **used),
    )
