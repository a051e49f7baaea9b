"""Language models served by two pools: one kind reads prompts, another answers, and the cache crosses a link.

    every pair of kinds ─► its lower bound ─► the few that may win ─► fewest servers of each, simulated together

The lower bound of a pair follows from the prompts, and the answers within their target, that a server of each kind can
serve. A pair is not simulated if its bound exceeds the best fleet of one kind or the best pair so far.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

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


Kind = tuple["Server", Sizing]
"""Kind of server that may form the prompt pool or the answer pool, and its own fleet."""


def _bound(sizing: Sizing, throughput: Throughput, terms: Terms) -> float | None:
    """Return a lower bound of the objective per month of enough servers with this throughput; None without a price."""
    row, station, demand = sizing.row, sizing.station, terms.demand
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
    kinds = [(server, sizing) for server, sizing in servers if terms.is_counted(sizing.row)]
    bounds = []
    for first, second in itertools.product(kinds, repeat=2):
        prompts, answers = first[0].prompts, second[0].answers
        # both pools must store the KV cache in the same precision
        if prompts is None or answers is None or first[0].case.precision != second[0].case.precision:
            continue
        parts = _bound(first[1], prompts, terms), _bound(second[1], answers, terms)
        if parts[0] is not None and parts[1] is not None:
            per_s = min(prompts.per_s, answers.per_s)
            bounds.append((parts[0] + parts[1], first[1].row.label, second[1].row.label, per_s, (first, second)))
    bounds.sort(key=lambda one: one[:3])
    pairs: list[MixedRow] = []
    for least, _, _, per_s, both in bounds[:TRIED]:
        if pairs and least > min(least_alone or math.inf, terms.value(pairs[0]) or 0.0):
            break
        row = _place(question, both, per_s, terms, best)
        pairs = terms.rank_together([*pairs, *([] if row is None else [row])], best)
    return pairs[:MOST_REPORTED]


def _place(
    question: Question, kinds: tuple[Kind, Kind], per_s: float, terms: Terms, best: FleetRow | None
) -> MixedRow | None:
    """Return the fewest servers of two kinds that meet the targets, as a row with its costs; None if no number does.

    `per_s` is the lower one of the rates of their servers.
    """
    demand, servers = terms.demand, (kinds[0][0], kinds[1][0])
    cells = math.ceil(demand.peak_per_s / per_s / CELL)
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
        for (_, sizing), count, window, some in zip(kinds, counts, windows, loads, strict=True):
            some.append(_form_load(level, sizing.row.server_device_count, count, window, cells, demand))
    loads[1][:] = [attrs.evolve(one, batch_w=one.batch_w + handover.joules * one.level.rate_per_s) for one in loads[1]]
    parts = [
        MixturePart(sizing=sizing, servers=count * cells, loads=some)
        for (_, sizing), count, some in zip(kinds, counts, loads, strict=True)
    ]
    return form_row(
        parts,
        terms,
        best,
        label=" > ".join(part.label for part in parts),
        form=BY_PHASE,
        first_token_p99_s=served.first_token.p99,
        between_p99_s=served.token_time.p99,
        promise_fraction=servers[0].targets.miss(served),
        handover_s=handover.seconds,
    )


def _form_load(level: Level, world: int, count: int, window: Window, cells: int, demand: Demand) -> DeviceLoad:
    """Return the load of a pool at a rate, with `count` servers of `world` devices in each of its equal cells."""
    devices = demand.round_up(count * cells * world)
    if not level.rate_per_s:
        return DeviceLoad(level=level, devices=devices, busy_devices=0.0, batch_w=0.0)
    busy = count - window.idle_s / window.duration_s
    return DeviceLoad(level=level, devices=devices, busy_devices=busy * cells * world, batch_w=window.busy_w * cells)
