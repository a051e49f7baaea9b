"""Language models served by two pools: one kind reads prompts, another answers, and the cache crosses a link.

    every pair of kinds ─► its lower bound ─► the few that may win ─► fewest servers of each, simulated together

The lower bound of a pair follows from the prompts, and the answers within their target, that a server of each kind can
serve. A pair is not simulated if its bound exceeds the best fleet of one kind or the best pair so far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.system import frozen
from joulemap.wing.fleet.capacity.cost import HOURS, MONTHS
from joulemap.wing.fleet.capacity.mixture import BY_PHASE, MOST_REPORTED, MixturePart, form_row
from joulemap.wing.fleet.capacity.row import DeviceLoad, FleetRow, Sizing
from joulemap.wing.llm.serve import run_pools, size_pools

if TYPE_CHECKING:
    from joulemap.wing.fleet.capacity.rank import Terms
    from joulemap.wing.fleet.demand import Demand, Level
    from joulemap.wing.fleet.generated.row import MixedRow
    from joulemap.wing.llm.serve import Question, Server, Throughput, Window

TRIED: Final = 12
"""Maximum pairs that are simulated; pairs with the lowest bounds come first."""

CELL: Final = 6
"""Maximum servers of a pool that are simulated together; a larger pool is simulated as several equal cells."""


@frozen(kw_only=True, eq=False)
class _Kind:
    """Kind of server that may form the prompt pool or the answer pool."""

    server: Server
    sizing: Sizing

    @property
    def prompts(self) -> Throughput | None:
        """Throughput of prompts alone; None if one pass exceeds the target for the first token."""
        return self.server.rates.prompts if self.server.rates else None

    @property
    def answers(self) -> Throughput | None:
        """Throughput of answers alone; None if a single sequence exceeds the target between tokens."""
        return self.server.rates.answers if self.server.rates else None

    @property
    def label(self) -> str:
        return self.sizing.row.label

    def value(self, throughput: Throughput, terms: Terms) -> float | None:
        """Return a lower bound of the objective per month, for enough servers with this throughput; None without a
        price.
        """
        row, station, demand = self.sizing.row, self.sizing.station, terms.demand
        if demand.objective != "cost":
            mean = sum(level.rate_per_s * level.share for level in demand.levels)
            return mean * throughput.joules * station.pue_ratio * HOURS / MONTHS / 1e3
        devices = math.ceil(demand.peak_per_s / throughput.per_s) * row.server_device_count
        rent, price = station.price_cloud_usd_per_hour, station.price_purchase_usd
        ways = []
        more = max(devices - demand.owned.get(row.chip, 0), 0)
        if not more:
            return 0.0
        if terms.pay in ("rented", "both") and rent is not None:
            ways.append(more * rent * HOURS / MONTHS)
        if terms.pay in ("bought", "both") and price is not None:
            ways.append(more * price / (MONTHS * station.lifetime_years))
        return min(ways, default=None)


def pair_servers(
    question: Question, servers: Sequence[tuple[Server, Sizing]], terms: Terms, best: FleetRow | None
) -> list[MixedRow]:
    """Return the pairs of kinds that meet the targets, best first by the objective, then the surest.

    `best` is the best fleet of one kind. A pair is not tried if its lower bound is worse than the best fleet so far,
    except the first pair. Devices are all powered at every rate. There is no pair for one output token, because the
    second pool would do nothing.
    """
    if question.serving.output < 2:
        return []
    least_alone = None if best is None else terms.value(best)
    kinds = [_Kind(server=server, sizing=sizing) for server, sizing in servers if terms.is_counted(sizing.row)]
    bounds = []
    for first in (one for one in kinds if one.prompts):
        for second in (one for one in kinds if one.answers):
            if first.server.case.precision != second.server.case.precision:
                continue  # both pools must store the KV cache in the same precision
            assert first.prompts is not None
            assert second.answers is not None
            parts = first.value(first.prompts, terms), second.value(second.answers, terms)
            if parts[0] is not None and parts[1] is not None:
                bounds.append((parts[0] + parts[1], first, second))
    bounds.sort(key=lambda one: (one[0], one[1].label, one[2].label))
    pairs: list[MixedRow] = []
    for least, first, second in bounds[:TRIED]:
        if pairs and least > min(least_alone or math.inf, terms.value(pairs[0]) or 0.0):
            break
        row = _place(question, (first, second), terms, best)
        pairs = terms.rank_together([*pairs, *([] if row is None else [row])], best)
    return pairs[:MOST_REPORTED]


def _place(question: Question, kinds: tuple[_Kind, _Kind], terms: Terms, best: FleetRow | None) -> MixedRow | None:
    """Return the fewest servers of two kinds that meet the targets, as a row with its costs; None if no number does."""
    (first, second), demand = kinds, terms.demand
    assert first.prompts is not None
    assert second.answers is not None
    cells = math.ceil(demand.peak_per_s / min(first.prompts.per_s, second.answers.per_s) / CELL)
    servers = first.server, second.server
    load = question.serving.form_load(demand.peak_per_s / cells)
    pools = size_pools(servers, load, demand.peak_per_s / cells)
    if pools is None:
        return None
    counts, served, windows, handover = pools.counts, pools.served, pools.windows, pools.handover
    loads: tuple[list[DeviceLoad], list[DeviceLoad]] = ([], [])
    for index, level in enumerate(demand.levels):
        if index and level.rate_per_s:
            part = attrs.evolve(load, rate_per_s=level.rate_per_s / cells)
            _, windows, _, _ = run_pools(part, (servers[0].case, servers[1].case), counts)
        for kind, count, window, some in zip(kinds, counts, windows, loads, strict=True):
            some.append(_form_load(level, kind.sizing.row.server_device_count, count, window, cells, demand))
    loads[1][:] = [attrs.evolve(one, batch_w=one.batch_w + handover.joules * one.level.rate_per_s) for one in loads[1]]
    parts = [
        MixturePart(sizing=kind.sizing, servers=count * cells, loads=some)
        for kind, count, some in zip(kinds, counts, loads, strict=True)
    ]
    return form_row(
        parts,
        terms,
        best,
        label=" > ".join(part.label for part in parts),
        form=BY_PHASE,
        first_token_p99_s=served.first_token.p99,
        between_p99_s=served.token_time.p99,
        promise_fraction=first.server.targets.miss(served),
        handover_s=handover.seconds,
    )


def _form_load(level: Level, world: int, count: int, window: Window, cells: int, demand: Demand) -> DeviceLoad:
    """Return the load of a pool at a rate, with `count` servers of `world` devices in each of its equal cells."""
    devices = demand.round_up(count * cells * world)
    if not level.rate_per_s:
        return DeviceLoad(level=level, devices=devices, busy_devices=0.0, batch_w=0.0)
    busy = count - window.idle_s / window.duration_s
    return DeviceLoad(level=level, devices=devices, busy_devices=busy * cells * world, batch_w=window.busy_w * cells)
