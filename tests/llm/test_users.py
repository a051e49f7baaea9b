"""A target to a number of users: fewest devices that keep it, cost of a token and of a request, and who is nearest."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest

from compare import assert_close
from conftest import Run
from joulemap.ask.fact import Choice, Limit
from joulemap.domain.default import SERVED
from joulemap.domain.settings import Price, Site
from joulemap.plan.source import Source
from joulemap.system.errors import ExitCode, UnsupportedError, UsageError
from joulemap.wing.decoder.engine.stack import find_stack
from joulemap.wing.llm.ask.target import LIKELY, choose_row, list_choices
from joulemap.wing.llm.ask.users import UsersAnswer
from joulemap.wing.llm.capacity.case import QUALITIES, Case
from joulemap.wing.llm.capacity.load import count_kept, read_load, run_pools, serve_one, serve_pools
from joulemap.wing.llm.capacity.model import ServedModel
from joulemap.wing.llm.capacity.search import LEAST, Server
from joulemap.wing.llm.capacity.slow import SlowHost
from joulemap.wing.llm.capacity.users import (
    MOST_DEVICES,
    LatencyTarget,
    Paid,
    SharedServers,
    _find_chance,
    _form,
    _share,
    find_deployment,
    open_load,
    rank_rows,
)
from joulemap.wing.llm.error_scale import AT_ONCE
from joulemap.wing.llm.generated.row import UserRow
from joulemap.wing.llm.serving.load import CLIENT_S
from joulemap.wing.llm.setting import Serving, load_tables
from joulemap.wing.llm.show.users import MET
from joulemap.wing.llm.show.word import TOO_MANY
from joulemap.workspace import Workspace

SERVING = Serving(prompt=500, output=100)
MODEL = "llama-3.1-8b"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> UsersAnswer:
    """Eight users of an L4, as published, in fp8 and in int4."""
    target, prices = (
        LatencyTarget(users=8, first_token_s=2.0, between_s=0.060),
        (Price(hardware="l4", usd_per_hour=3.6),),
    )
    return ask(tmp_path_factory.mktemp("kept"), target, site=Site(pay="rented", prices=prices))


def ask(path: Path, target: LatencyTarget, **changes: Any) -> UsersAnswer:
    workspace = Workspace(path / "own.duckdb")
    found: UsersAnswer = workspace.serve_users(MODEL, hardware=("l4",), target=target, serving=SERVING, **changes)
    return found


def test_a_target_is_met_by_the_fewest_devices_and_costs_what_its_parts_cost(kept: UsersAnswer) -> None:
    answer = kept
    rows = {row.precision: row for row in answer.rows}
    assert list(rows) == [row.precision for row in answer.rows]
    assert set(rows) == {"bf16", "fp8", "bf16/int4"}
    for row in answer.rows:
        assert row.is_met and row.target_ratio <= 1.0
        assert row.target_ratio == max(row.first_token_s / 2.0, row.between_s / 0.060)
        assert_close(row.request_s, row.first_token_s + 99 * row.between_s)
        # eight users send their next request soon after the last one ends
        cycle_s = row.request_s + CLIENT_S
        assert_close(row.tokens_per_s, 8 * 600 / cycle_s)
        assert_close(row.million_j, row.request_j / 600 * 1e6)
        assert row.usd_per_million is not None and row.request_usd is not None
        assert_close(row.usd_per_million, row.request_usd / 600 * 1e6)
        # a tenth of a cent per second and device for the hours of the load alone, shared by eight requests
        assert_close(row.request_usd, row.total_device_count * 0.001 * cycle_s / 8)
        assert row.users_per_server * row.server_count >= 8
        assert row.met_probability is not None and 0.5 <= row.met_probability <= 1.0
        # one scale for both times; admission adds 0.3 to a first token under load, and users who ask at once 2.1
        first, between = row.first_token_half_width or 0.0, row.between_half_width or 0.0
        assert_close(first**2 - between**2, 0.3**2 + AT_ONCE**2)
    # 16 GB of weights at 300 GB/s take 54 ms on one board, and more than 60 ms with the cache; narrower ones fit
    assert rows["fp8"].total_device_count == rows["bf16/int4"].total_device_count == 1 < rows["bf16"].total_device_count
    assert rows["bf16"].quality == "" and rows["fp8"].quality == load_tables(QUALITIES)["fp8"]["value"]
    costs = [row.usd_per_million for row in answer.rows if row.usd_per_million is not None]
    assert costs == sorted(costs)


def test_a_checkpoint_in_its_own_format_loses_nothing_if_the_format_is_named(tmp_path: Path) -> None:
    workspace, target = Workspace(tmp_path / "own.duckdb"), LatencyTarget(users=2, first_token_s=1.0)
    answer = workspace.serve_users("gpt-oss-20b", hardware=("h100_sxm5",), target=target, weight_precision=("mxfp4",))
    assert [(row.precision, row.is_published, row.quality) for row in answer.rows] == [("bf16/mxfp4", True, "")]


def test_the_best_servers_without_pools_are_named_beside_pools(kept: UsersAnswer) -> None:
    first, second, third = (row.replace(met_probability=0.9) for row in kept.rows)
    pools, unsure = first.replace(prefill_server_count=1), second.replace(met_probability=0.7)
    rows = (pools, unsure, third)
    assert {one.metric: one.run for one in list_choices(dict(enumerate(rows)))}["simpler"] == 2
    assert "simpler" not in {one.metric for one in list_choices({0: unsure, 1: third})}


def test_a_target_of_unknown_width_leaves_the_probability_of_both_unknown() -> None:
    """A time of half its target with a half-width of ln 2 is met in 90 % of cases."""
    target = LatencyTarget(users=1, first_token_s=2.0)
    found: Any = SimpleNamespace(first_token_s=1.0, between_s=0.03, target=target, server_count=1)
    known = Paid(first_token_half_width=math.log(2.0))
    assert_close(_find_chance(found, known), 0.9)
    found.target = LatencyTarget(users=1, first_token_s=2.0, between_s=0.06)
    assert _find_chance(found, known) is None


@pytest.mark.slow
def test_more_devices_are_named_where_the_fewest_are_not_a_safe_choice(tmp_path: Path) -> None:
    """One board takes 33 ms per token or little less; two take less, and their time costs less than twice as much."""
    answer = ask(
        tmp_path,
        LatencyTarget(users=8, first_token_s=2.0, between_s=0.033),
        site=Site(pay="rented", prices=(Price(hardware="l4", usd_per_hour=3.6),)),
        precision="bf16",
        weight_precision="int4",
    )
    few, more = answer.rows
    assert (few.total_device_count, more.total_device_count) == (1, 2)
    assert few.met_probability is not None and more.met_probability is not None
    assert few.met_probability < LIKELY <= more.met_probability
    assert few.usd_per_million is not None and more.usd_per_million is not None
    cycle_s, longer_s = more.request_s + CLIENT_S, few.request_s + CLIENT_S
    assert_close(more.usd_per_million / few.usd_per_million, 2.0 * cycle_s / longer_s)
    assert answer.chosen == more
    assert MET(chance=few.met_probability) != MET(chance=more.met_probability)
    best, cheaper = answer.facts.of(Choice)[:2]
    assert (best.runs[0], cheaper.metric, cheaper.runs) == (2, "cheaper", (1, 2))


@pytest.mark.slow
def test_a_local_chip_tries_formats_of_llama_cpp_and_none_is_the_published_one(tmp_path: Path) -> None:
    target = LatencyTarget(users=1, between_s=1.0)
    answer = Workspace(tmp_path / "own.duckdb").serve_users(
        "llama-3.2-3b", hardware=("raspberry_pi_5",), target=target, serving=SERVING
    )
    assert answer.serving.engine == "llamacpp"
    assert "llama.cpp" in answer.engine
    losses = {row.precision: row.quality for row in answer.rows}
    assert losses == {f"fp16/{name}": load_tables(QUALITIES)[name]["value"] for name in ("q4_k_m", "q8_0")}
    assert not any(row.is_published for row in answer.rows)
    assert "published" not in {one.metric for one in answer.facts.of(Choice)}
    assert str(answer.document().steps[0]).count("--engine") == 1


@pytest.mark.slow
def test_users_that_a_node_holds_but_all_devices_do_not_are_too_many(tmp_path: Path) -> None:
    """Of 600 tokens at 131 kB each, 64 boards of 24 GB hold fewer than 64 x 24 GB / 79 MB = 19,500 requests."""
    with pytest.raises(UnsupportedError) as error:
        ask(tmp_path, LatencyTarget(users=20_000, between_s=0.060), precision=("bf16",))
    assert str(error.value) == TOO_MANY(users=20_000, most=MOST_DEVICES, hardware="l4")


@pytest.mark.slow
def test_a_target_that_nobody_keeps_has_a_nearest(tmp_path: Path) -> None:
    answer = ask(tmp_path, LatencyTarget(users=8, between_s=0.002), precision=("bf16",))
    assert not answer.is_met
    ratios = [row.target_ratio for row in answer.rows]
    assert ratios == sorted(ratios) and ratios[0] > 1.0
    assert_close(ratios[0], answer.rows[0].between_s / 0.002)
    assert f"{ratios[0]:.3g}x" in str(answer.document().answer)
    (miss,) = (one.miss for one in answer.facts.of(Limit) if one.runs == (1,))
    assert_close(miss, math.log(ratios[0]))


def test_those_that_keep_a_target_come_first_and_by_cost(kept: UsersAnswer) -> None:
    row = kept.rows[0]

    def form(label: str, is_met: bool, ratio: float, usd: float | None, joules: float) -> UserRow:
        return row.replace(label=label, is_met=is_met, target_ratio=ratio, usd_per_million=usd, million_j=joules)

    rows = [
        form("late", False, 2.0, 1.0, 1.0),
        form("near", False, 1.1, 9.0, 1.0),
        form("unpriced", True, 0.5, None, 1.0),
        form("dear", True, 0.2, 3.0, 1.0),
        form("cheap", True, 0.9, 2.0, 9.0),
    ]
    assert [one.label for one in rank_rows(rows)] == ["cheap", "dear", "unpriced", "near", "late"]


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ([(1.0, 0.61), (2.0, 0.88), (2.5, 0.99)], 1),  # the cheapest with at least 80 %
        ([(1.0, 0.61), (3.1, 0.88)], 0),  # more than three times as dear
        ([(1.0, 0.61), (2.0, 0.7)], 0),
    ],
)
def test_the_chosen_deployment_is_the_cheapest_that_is_likely(rows: list[tuple[float, float]], place: int) -> None:
    made = [SimpleNamespace(is_met=True, usd_per_million=usd, met_probability=chance) for usd, chance in rows]
    assert choose_row(cast("Any", made)) is cast("Any", made[place])


def test_the_next_other_chip_meets_the_target_as_surely(kept: UsersAnswer) -> None:
    row = kept.rows[0]
    told = ((1.0, "risky", 0.6), (1.1, "doubtful", 0.7), (1.2, "best", 0.9), (1.3, "next", 0.95))

    def choose(*names: str) -> list[UserRow]:
        return [
            row.replace(label=name, hardware=name, usd_per_million=usd, is_met=True, met_probability=chance)
            for usd, name, chance in told
            if name in names
        ]

    every, few = choose("risky", "doubtful", "best", "next"), choose("risky", "doubtful")
    assert choose_row(every).label == "best"
    following = [rows[next(list_choices(dict(enumerate(rows)))).runs[1]] for rows in (every, few)]
    assert [one.label for one in following] == ["next", "doubtful"]


@pytest.mark.parametrize(
    ("engine", "weights", "names"),
    [("llamacpp", "awq", ("llama.cpp", "gguf")), ("tensorrt_llm", "nf4", ("bitsandbytes", "awq", "gptq"))],
)
def test_weights_that_an_engine_does_not_run_are_refused_in_a_line(
    tmp_path: Path, engine: str, weights: str, names: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError) as caught:
        Workspace(tmp_path / "own.duckdb").llm(
            MODEL, hardware=("l4",), weight_precision=(weights,), serving=Serving(engine=engine)
        )
    assert "\n" not in str(caught.value)
    assert all(name in str(caught.value) for name in (weights, *names)), str(caught.value)


def test_a_target_without_users_or_times_is_refused(tmp_path: Path) -> None:
    for wrong in ({"users": 0, "between_s": 1.0}, {"users": 5}):
        with pytest.raises(UsageError):
            LatencyTarget(**wrong)
    with pytest.raises(UsageError):
        Workspace(tmp_path / "own.duckdb").serve_users(
            MODEL, hardware=("l4",), target=LatencyTarget(users=5, between_s=1.0), serving=Serving(rate_per_s=2.0)
        )


def test_slow_hosts_widen_a_step_and_halve_the_chance_of_a_target() -> None:
    """A third of the hosts add 20 ms: a target of 30 ms holds for steps of 20 ms, and for those of 40 ms does not."""
    host = SlowHost(0.020, 1.0 / 3.0)
    assert_close(host.find_chance(0.030, 0.020, 1e-9), 2.0 / 3.0)
    assert_close(host.find_chance(0.050, 0.020, 1e-9), 1.0)
    # a factor of 2 with probability 1/3: its logarithm spreads by sqrt(2)/3 x ln 2; 80 % end at 1.2114 spreads
    assert_close(host.widen(0.0, 0.020), 1.2113936 * 2**0.5 / 3 * math.log(2.0), rel=1e-6)
    assert SlowHost().widen(0.3, 0.020) == 0.3 and host.widen(None, 0.020) is None
    assert SlowHost().find_chance(0.030, 0.020, 0.3) > 0.9


def test_hosts_are_slow_on_the_chip_where_they_were_measured() -> None:
    newest = find_stack("vllm")
    assert newest.value("slow_host", "GB100", "Blackwell") == 0.02
    assert newest.value("slow_host", "GH100", "Hopper") == find_stack("sglang").value("slow_host", "GB100") == 0.0


def list_servers(path: Path, serving: Serving, hardware: str = "l4", model: str = MODEL) -> list[Case]:
    settings = attrs.evolve(SERVED, hardware=(hardware,), precision=("bf16",), batch=(1,))
    return ServedModel(name=model, settings=settings, serving=serving).list_cases(Source(path=path / "own.duckdb"))[2]


@pytest.mark.parametrize(
    ("serving", "users"), [(SERVING, 8), (Serving(prompt=256, output=100, turns=3, pause_s=2.0, devices=(1,)), 12)]
)
def test_users_and_as_many_requests_in_flight_have_one_answer(tmp_path: Path, serving: Serving, users: int) -> None:
    """Two servers of nine users have five each; the sum of all joules is that of the simulated requests."""
    (case,) = list_servers(tmp_path, attrs.evolve(serving, devices=(1,)))
    load = read_load(attrs.evolve(case.question, serving=attrs.evolve(serving, in_flight=users)))
    assert load is not None
    served, _ = serve_one(case, load)
    targets = (LatencyTarget(users=each, first_token_s=1.0) for each in (users, 2 * users - 1))
    one, two = (
        _form(Server.of(case, open_load(case, target.users), target.means), target, count)
        for count, target in enumerate(targets, 1)
    )
    for deployed in (one, two):
        assert deployed.first_token_s == served.first_token.mean
        assert deployed.between_s == served.token_time.mean
        assert_close(deployed.request_j, served.energy_per_output_token_j * serving.output)
        assert sum(deployed.hits) == served.hit_fraction
    # requests in flight = requests per second x time of a request (Little's law)
    mean_s = served.duration_s / served.requests
    assert_close(one.per_s, 1.0 / mean_s, rel=0.1)


def test_bounds_of_servers_are_below_their_simulated_times(tmp_path: Path) -> None:
    """Where prompts are few, decode passes at the number of users are nearly all that there is."""
    for prompt, output, users in ((500, 100, 8), (4000, 50, 16), (50, 400, 4)):
        target = LatencyTarget(users=users, first_token_s=1.0)
        (case,) = list_servers(tmp_path, Serving(prompt=prompt, output=output, devices=(1,)))
        server = Server.of(case, open_load(case, users), target.means)
        found, rates = _form(server, target, 1), server.rates
        assert rates is not None
        bound_s = LEAST * rates.find_between(users)
        assert bound_s <= found.between_s
        assert server.bound_per_s(1) >= found.per_s
        tight = Server.of(case, open_load(case, users), attrs.evolve(target.means, between_s=found.between_s))
        assert tight.least == math.ceil(users / case.most)
    assert_close(bound_s / LEAST, found.between_s, rel=0.1)


@pytest.mark.slow
def test_the_fewest_devices_are_the_fewest_that_a_simulation_finds(tmp_path: Path) -> None:
    (case,) = list_servers(tmp_path, Serving(prompt=1000, output=100))
    for users, between_s in ((30, 0.070), (60, 0.050), (60, 0.100)):
        target = LatencyTarget(users=users, first_token_s=2.0, between_s=between_s)
        found = find_deployment(case, target)
        assert isinstance(found, SharedServers)
        every = [
            _form(server, target, count).total_device_count
            for server in found.divisions
            for count in range(1, found.total_device_count // server.case.world + 1)
            if count * server.case.most >= users and server.miss(count) <= 1.0
        ]
        assert bool(every) != bool(found.prefill_server_count)  # pools only if they take fewer devices
        assert min(every, default=found.total_device_count) == found.total_device_count


@pytest.mark.slow
def test_pools_for_users_are_those_of_requests_in_flight(tmp_path: Path) -> None:
    """Prompts of 56, 256 and 456 tokens, 144 answered: a prefill server keeps 0, 56 and 256 of them."""
    serving = Serving(prompt=56, output=144, turns=3, pause_s=2.0, devices=(1,), prefill_on="l4", decode_on="l4")
    assert_close(count_kept(256.0, 56, 144, 3), (0 + 56 + 256) / 3)
    (case,) = list_servers(tmp_path, attrs.evolve(serving, prefill_on="", decode_on=""))
    target = LatencyTarget(users=12, first_token_s=1.0)
    together = open_load(case, target.users)
    served, _, handover, _ = run_pools(together, (case, case), (1, 1))
    pools = _share(case, target, 1, served, together)
    load = attrs.evolve(case.question, serving=attrs.evolve(serving, in_flight=12))
    (prompts, answers), (found,) = serve_pools(load, [case], ("l4", "l4"), {})
    assert prompts.server_count == answers.server_count == 1
    assert_close(sum(pools.hits), found.prefix_hit_fraction)
    assert_close(pools.between_s, found.between_s, rel=0.1)
    assert_close(pools.request_j + handover.joules, found.request_j, rel=0.02)
    # 32 layers of 8 heads of 128, keys and values: 16 bits in the cache of GEMMs in fp8 too, unless it is given
    narrow = attrs.evolve(case, deployment=attrs.evolve(case.server, precision="fp8"))
    for cache, item_bytes in (("", 2), ("fp8", 1)):
        own = attrs.evolve(narrow, deployment=attrs.evolve(narrow.server, cache=cache))
        assert own.hand_over(own, 256).joules == 256 * 32 * 8 * 128 * 2 * item_bytes * 1e-9


def test_a_batch_for_users_is_refused(joulemap: Run) -> None:
    refused = joulemap("llm", MODEL, "l4", "--users", 5, "--first-token", "1s", "--batch", 8)
    assert refused.returncode == ExitCode.USAGE
    assert "--batch" in refused.stderr


def test_a_request_for_one_token_ends_with_it() -> None:
    case: Any = SimpleNamespace(question=SimpleNamespace(serving=Serving(prompt=100, output=1)))
    target = LatencyTarget(users=2, first_token_s=1.0)
    one = SharedServers(
        case=case, target=target, server_count=1, first_token_s=0.5, between_s=0.1,
        target_ratio=0.5, request_j=1.0,
    )  # fmt: skip
    assert one.request_s == 0.5
    assert_close(one.per_s, 2 / (0.5 + CLIENT_S))
