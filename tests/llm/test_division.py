"""Numbers of devices of a server: what is looked at, what is left out, and what an answer says of it."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import attrs
import numpy as np
import pytest

from compare import assert_close
from joulemap.catalog.load import load_catalogue
from joulemap.domain.settings import Settings
from joulemap.plan.source import Source
from joulemap.wing.fleet.capacity.served import ROUNDS, Division, _choose
from joulemap.wing.fleet.demand import Demand
from joulemap.wing.llm.capacity.case import count_node
from joulemap.wing.llm.capacity.search import NEAR, Server, keep_better
from joulemap.wing.llm.serving.load import Load
from joulemap.wing.llm.serving.serve import SaturatedRates, Throughput, find_saturated_rates
from joulemap.wing.llm.setting import Serving
from joulemap.workspace import Workspace
from pass_surface import StraightPass

COST = Demand(rate_per_s=10.0, first_token_s=1.0)
ENERGY = Demand(rate_per_s=10.0, first_token_s=1.0, objective="energy")


def server(world: int, prompts: float, answers: float, joules: float = 1.0, experts: int = 1) -> Server:
    """Server of so many devices that does so many prompts, or answers, a second."""
    case: Any = SimpleNamespace(world=world, devices=world, experts=experts)
    one = Server(case=case, load=Load(rate_per_s=10.0), targets=COST.tails)
    one.__dict__["rates"] = SaturatedRates(
        alone_s=0.1,
        prompts=Throughput(per_s=prompts, joules=joules),
        answers=Throughput(per_s=answers, joules=joules),
        beside_s=0.0,
        most=1.0,
        counts=np.ones(1),
        between_s=np.ones(1),
    )
    return one


def division(
    world: int, prompts: float, answers: float, joules: float = 1.0, *, demand: Demand = COST, most_per_s: float = 0.0
) -> Division:
    own = server(world, prompts, answers, joules)
    return Division(plan=cast("Any", None), server=own, demand=demand, most_per_s=most_per_s)


def test_servers_take_no_fewer_devices_than_their_slower_part_needs() -> None:
    """Ten a second: 4 prompts and 12 answers a second of two devices are 3 servers at least, and 10 / 3 in turn."""
    one, other = (division(2, 4.0, 12.0, 5.0, demand=demand) for demand in (COST, ENERGY))
    assert (one.bound, one.estimate) == (6.0, 8.0)
    assert (other.bound, other.estimate) == (10.0, 10.0)
    assert division(2, 4.0, 12.0, demand=attrs.evolve(COST, node=8)).bound == 8.0
    assert division(1, 4.0, 12.0, demand=attrs.evolve(COST, rate_per_s=1000.0)).bound == 250.0


def test_what_cannot_be_near_the_best_is_not_stepped() -> None:
    """With 6 devices found, 7 are within 20 % and 8 are not."""
    opened = division(6, 20.0, 20.0, most_per_s=10.0)
    tried = _choose([opened, division(7, 20.0, 20.0), division(8, 20.0, 20.0)])
    assert [one.case.world for one in tried] == [6, 7]
    assert len([*_choose([opened, *[division(1, 20.0, 20.0)] * 9])]) == ROUNDS
    late = division(1, 1.0, 1.0)
    late.server.__dict__["rates"] = None
    assert [*_choose([opened, late])] == [opened]
    assert [*_choose([late])] == [late]


def test_of_experts_divided_or_not_the_better_is_kept() -> None:
    whole, apart = server(8, 10.0, 5.0), server(8, 9.0, 9.0, experts=8)
    assert keep_better([whole, apart, server(4, 1.0, 1.0)])[0] is apart
    assert [one.case.world for one in keep_better([whole, apart, server(4, 1.0, 1.0)])] == [8, 4]


@pytest.mark.parametrize("least", [1, 2, 3, 5, 7, 12, 30, 63])
def test_the_fewest_servers_are_found_from_any_guess(least: int) -> None:
    """Law: a search ends at the fewest whole numbers, and at a rate within 6 % of the fewest."""
    one = attrs.evolve(server(1, 1.0, 1.0), load=Load(in_flight=64))
    for guess in range(1, least + 1):
        assert one.find_fewest(guess, guess, 64, lambda count: count >= least) == least
    assert one.find_fewest(1, 1, least - 1, lambda count: count >= least) == math.inf
    for start in (0.1, 1.0, 20.0):
        found = server(1, 1.0, 1.0).find_fewest(start, 1 / 16, 1e4, lambda count: count >= 0.9 * least)
        assert 0.9 * least <= found <= NEAR * 0.9 * least
    assert server(1, 1.0, 1.0).find_fewest(1.0, 1 / 16, 1e4, lambda _: True) == 1 / 16


def test_a_node_is_what_a_switch_or_a_server_joins() -> None:
    nodes = {"h100_sxm5": 8, "gb200": 72, "l4": 8, "tpu_v6e": 8, "jetson_thor_t5000": 1}
    assert {name: count_node(load_catalogue().find(name)) for name in nodes} == nodes


@pytest.mark.parametrize(
    ("model", "hardware", "precision", "numbers"),
    [
        ("llama-3.1-8b", "h100_sxm5", "bf16", {1, 2, 4, 8}),
        ("llama-3.1-70b", "h100_sxm5", "bf16", {2, 4, 8}),
        ("qwen2-0.5b", "h100_sxm5", "bf16", {1, 2}),  # 14 heads
    ],
)
def test_devices_divide_the_heads_and_hold_the_model(
    tmp_path: Path, model: str, hardware: str, precision: str, numbers: set[int]
) -> None:
    from joulemap.wing.llm.capacity.model import ServedModel

    workspace = Workspace(tmp_path / "a.duckdb")
    settings = Settings(hardware=(hardware,), precision=(precision,), batch=(1,))  # type: ignore[arg-type]
    asked = ServedModel(name=model, settings=settings, serving=Serving(prompt=1000, output=100))
    _, _, (case,) = asked.list_cases(Source(path=workspace.path))
    assert {one.devices for one in case.list_divisions()} == numbers


@pytest.mark.parametrize(
    ("serving", "is_possible"),
    [
        (Serving(devices=(8,), pipeline_devices=2), True),
        (Serving(devices=(16,)), False),
        (Serving(devices=(8,), data_devices=2, pipeline_devices=2), False),
    ],
)
def test_stages_reach_beyond_a_link_and_the_devices_of_a_stage_do_not(
    tmp_path: Path, serving: Serving, *, is_possible: bool
) -> None:
    from joulemap.wing.llm.capacity.case import OK
    from joulemap.wing.llm.capacity.model import ServedModel

    settings = Settings(hardware=("h100_sxm5",), precision=("bf16",), batch=(1,))
    asked = ServedModel(name="llama-3.1-8b", settings=settings, serving=serving)
    _, _, (case,) = asked.list_cases(Source(path=tmp_path / "a.duckdb"))
    assert (case.status == OK) == is_possible


def test_what_a_server_can_do_follows_from_its_passes() -> None:
    """A deployment's stand-in: prompts of 1,000 tokens take 110 ms; steps 10 ms and 0.1 ms for each sequence."""
    surface = StraightPass(sequence_s=1e-4)
    stack = SimpleNamespace(value=lambda _: 0.02, reserves_output=True)
    deployment = SimpleNamespace(stack=stack, price=surface.price, sequence_limit=64, step_tokens=1000)
    room = SimpleNamespace(sequences=lambda *_: 1e9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("joulemap.wing.llm.serving.serve.Room", lambda **_: room)
        rates = find_saturated_rates(cast("Any", deployment), 1000.0, 101.0)
        tight = find_saturated_rates(cast("Any", deployment), 1000.0, 101.0, most_s=0.012)
        late = find_saturated_rates(cast("Any", deployment), 1000.0, 101.0, most_s=0.001)
        few = find_saturated_rates(cast("Any", deployment), 1000.0, 101.0, in_flight=8)
    assert rates.prompts is not None
    assert rates.answers is not None
    assert tight.answers is not None
    assert_close(rates.alone_s, 0.130, rel=0.01)
    assert_close(rates.beside_s, 0.110 - 0.0101, rel=0.01)
    assert_close(rates.prompts.per_s, 1.0 / 0.110, rel=0.01)
    assert_close(rates.answers.per_s, 64.0 / (100 * 0.0164), rel=1e-6)
    assert_close(tight.answers.per_s, 20.0 / (100 * 0.012), rel=1e-6)
    assert late.answers is None
    assert few.most == few.counts[-1] == 8
