"""Threads that a forward pass starts: recorded where they are started, or refused."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from joulemap.physics.record.workload import Workload
from joulemap.system.errors import ModelError
from joulemap.trace.module import trace_module
from models import KEY

MACS = 2 * 16 * 16
"""Of a linear layer of 16 features on two rows."""


class Pair(nn.Module):
    def __init__(self, function: Callable[[Pair, Tensor], Any]) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(16, 16), nn.Linear(16, 16)
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def traced(function: Callable[[Pair, Tensor], Any]) -> Workload:
    return trace_module(Pair(function), (torch.zeros(2, 16),), key=KEY, model="pair", batch=2)


def in_threads(net: Pair, x: Tensor) -> Any:
    found: dict[str, Tensor] = {}

    def run(name: str, layer: nn.Module) -> None:
        assert x.is_cuda
        found[name] = layer(x)

    threads = [threading.Thread(target=run, args=one) for one in (("left", net.left), ("right", net.right))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found["left"] + found["right"]


def in_pool(net: Pair, x: Tensor) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(lambda layer: layer(x), (net.left, net.right)), pool.submit(torch.relu, x).result())


@pytest.mark.parametrize(("function", "adds"), [(in_threads, 1), (in_pool, 2)])
def test_what_threads_run_is_counted_in_the_order_of_their_start(function: Any, adds: int) -> None:
    workload = traced(function)
    assert [one.name for one in workload.operators if one.mac_count] == ["left", "right"]
    assert sum(one.mac_count for one in workload.operators) == 2 * MACS
    assert sum(one.operation == "add" for one in workload.operators) == adds
    assert not any(one.is_foldable for one in workload.operators)


def test_a_thread_that_only_waits_may_stay() -> None:
    def run(net: Pair, x: Tensor) -> Any:
        over = threading.Event()
        threading.Thread(target=over.wait, daemon=True).start()
        made = net.left(x)
        over.set()
        return made

    assert sum(one.mac_count for one in traced(run).operators) == MACS


def test_a_thread_that_takes_its_work_from_a_queue_is_refused() -> None:
    def run(net: Pair, x: Tensor) -> Any:
        given: queue.Queue[Tensor] = queue.Queue()
        found: queue.Queue[Tensor] = queue.Queue()
        threading.Thread(target=lambda: found.put(net.left(given.get()))).start()
        given.put(x)
        return found.get()

    with pytest.raises(ModelError, match="pair: a thread runs operators beside the forward pass"):
        traced(run)


def test_what_a_thread_raises_fails_the_pass() -> None:
    def fail() -> None:
        raise ValueError("inside of a thread")

    def run(net: Pair, x: Tensor) -> Any:
        threading.Thread(target=fail).start()
        return net.left(x)

    with pytest.raises(ModelError, match="inside of a thread"):
        traced(run)
