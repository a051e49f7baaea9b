"""Simulation of a load on one server, with a prefix cache if its requests share prefixes."""

from __future__ import annotations

from joulemap.wing.llm.serving.grid import Pass
from joulemap.wing.llm.serving.load import Limits, Load, Served
from joulemap.wing.llm.serving.log import Log
from joulemap.wing.llm.serving.queue import Server, accept
from joulemap.wing.llm.serving.request import draw_requests
from joulemap.wing.llm.serving.reuse import ReusingServer, forget_prefixes
from joulemap.wing.llm.serving.summary import summarize
from joulemap.wing.llm.serving.warm_up import ServerPool, add_warm_up


def simulate(surface: Pass, load: Load, limits: Limits, seed: int = 0) -> Served:
    """Simulate a load on one server; the result is the same for the same seed.

    A request that exceeds the KV cache or the context is refused and counted; UnsupportedError if all are.
    """
    if load.is_steady:
        load = add_warm_up(load, ServerPool(surface=surface, limits=limits), seed)
    requests = draw_requests(load, seed)
    accepted = accept(requests, limits)
    log = Log.of(len(requests.prompt_tokens))
    if requests.prefixes is None:
        server = Server(surface, requests, limits, load, log)
    else:
        requests = requests if load.reuses else forget_prefixes(requests)
        server = ReusingServer(surface, requests, limits, load, log)
    server.expect(accepted)
    while server.advance():
        pass
    return summarize(log, [server.spells], requests, load, limits, server.list_hits())
