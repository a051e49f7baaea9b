"""Language models as they are served: what a token takes, who serves it best, what fits, what is refused."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import attrs
import pytest

from command import run_here
from compare import assert_close
from joulemap.ask.fact import Caveat, Choice, Entry, Quantity, Share
from joulemap.ask.rule import find_bias, weigh
from joulemap.catalog.error_scale import load_doubt
from joulemap.domain.assumed import AssumedEnergy
from joulemap.domain.default import SERVED
from joulemap.domain.settings import Price, Site
from joulemap.plan.source import Source
from joulemap.store.catalogue import write_doubt, write_scales
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.system.errors import ExitCode, UnsupportedError, UsageError
from joulemap.wing.decoder.engine.stack import Stack, find_stack
from joulemap.wing.decoder.option import PassRunOptions
from joulemap.wing.llm.ask.llm import LlmAnswer
from joulemap.wing.llm.ask.served import ExaminedDeployment, find_served
from joulemap.wing.llm.capacity.model import ServedModel
from joulemap.wing.llm.capacity.row import NOT_STORED, StoredCase, share_assumed
from joulemap.wing.llm.error_scale import TABLE, load_served_doubt
from joulemap.wing.llm.generated.row import ServedRow
from joulemap.wing.llm.setting import Serving
from joulemap.workspace import Workspace
from ledger import Book, Part

MODEL: Final = "llama-3.1-8b"


@pytest.fixture
def served() -> tuple[Book, dict[str, Any]]:
    """Two chips: prompts of 100 tokens, two at a time, and 10 decode steps; b on two devices, with a host's time."""
    book = Book()
    prefill: dict[str, Any] = {"model": "net(tokens=100)", "batch": 2}
    decode: dict[str, Any] = {"model": "net(cached=105)", "batch": 2}
    ids = [
        book.add_run([Part(time_s=2.0, compute_j=200.0)], hardware="a", **prefill),
        book.add_run([Part(time_s=0.1, memory_s=0.1, compute_s=0.05, memory_j=4.0)], hardware="a", **decode),
        book.add_run([Part(time_s=1.0, compute_j=300.0)], hardware="b", **prefill),
        book.add_run([Part(time_s=0.05, memory_s=0.05, compute_s=0.02, memory_j=1.5)], hardware="b", **decode),
    ]
    return book, {
        "prefill_ids": ids[::2],
        "decode_ids": ids[1::2],
        "run_ids": ids,
        "device_counts": [1, 2],
        "batches": [2, 2],
        "prefill_passes": [1, 1],
        "engine": "vllm",
        "prompt": 100,
        "steps": 10,
        "prefill_s": [2.0, 1.0],
        "decode_s": [1.0, 2.0],
        "prefill_j": [200.0, 600.0],
        "decode_j": [40.0, 30.0],
    }


def ask(served: tuple[Book, dict[str, Any]], name: str, **parameters: object) -> list[dict[str, Any]]:
    book, given = served
    return run_query(book.connection, find_query(name), {**given, **parameters}).records()


def test_a_token_worked_out_by_hand(served: tuple[Book, dict[str, Any]]) -> None:
    rows = {(row["label"], row["phase"]): row for row in ask(served, "llm.phase")}
    assert [*rows] == [("a", "prefill"), ("a", "decode"), ("b x2", "prefill"), ("b x2", "decode")]
    prompt, step = rows["a", "prefill"], rows["a", "decode"]
    # 2 prompts of 100 tokens in 2 s with 200 J; 2 sequences of 10 steps in 1 s with 40 J
    assert (prompt["token_count"], prompt["tokens_per_s"], prompt["energy_per_token_j"]) == (200, 100.0, 1.0)
    assert (step["token_count"], step["tokens_per_s"], step["energy_per_token_j"]) == (20, 20.0, 2.0)
    assert (prompt["bound"], prompt["bound_fraction"]) == ("compute", 1.0)
    assert (step["bound"], step["bound_fraction"]) == ("memory", 1.0)
    # two devices share what they make; 10 steps of 50 ms are a quarter of 2 s, the rest is the engine's
    shared = rows["b x2", "decode"]
    assert (shared["tokens_per_s"], shared["tokens_per_s_per_device"]) == (10.0, 5.0)
    assert (shared["bound"], shared["bound_fraction"]) == ("engine", 0.75)
    assert shared["device_power_w"] == 7.5


def test_doubt_is_that_of_served_models(served: tuple[Book, dict[str, Any]]) -> None:
    """Of an engine and a vendor that nobody measured, the errors of all, beside what a chip's own numbers leave."""
    connection = served[0].connection
    said: dict[str, Any] = {"vendor": "none", "engine": "none", "hardware": "none"}
    write_scales(connection, TABLE, load_served_doubt().scales)
    write_doubt(connection, load_doubt())

    def widen(name: str) -> float:
        return load_served_doubt().half_width(name, **said) or 0.0

    for row in ask(served, "llm.phase", engine="none"):
        own = connection.execute(
            "SELECT latency_own_half_width, energy_own_half_width FROM internal.run_total WHERE run_id = ?",
            [row["run_id"]],
        ).fetchall()[0]
        time = widen("inter_token_latency_s" if row["phase"] == "decode" else "time_to_first_token_s")
        assert_close(row["latency_half_width"], math.hypot(time, own[0]))
        power = widen("power_w")
        both = math.sqrt(time**2 + power**2 - 0.8 * time * power)  # their errors have a correlation of -0.4
        assert_close(row["energy_half_width"], math.hypot(both, own[1]))
    rows = {row["goal"]: row for row in ask(served, "llm.winner", engine="none")}
    # twice as quick to the first token, with an error of a factor of 1.4 each: less sure than runs alone would have it
    assert 0.5 < rows["first_token"]["probability_best"] < 0.98
    # slow hosts of the winner widen its time between tokens alone, and make it less sure
    slow = {row["goal"]: row for row in ask(served, "llm.winner", engine="none", slow_half_widths=[0.5, 0.0])}
    before, after = rows.pop("between_tokens"), slow.pop("between_tokens")
    assert slow == rows
    assert_close(after["half_width"], math.hypot(before["half_width"], 0.5))
    assert 0.5 < after["probability_best"] < before["probability_best"]


@contextlib.contextmanager
def without_host() -> Iterator[None]:
    """Let engines have no time of their own, so that requests are their passes alone."""

    def find_bare(name: str = "", date: str = "") -> Stack:
        return attrs.evolve(find_stack(name, date), coefficients={})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("joulemap.wing.decoder.engine.stack.find_stack", find_bare)
        yield


@pytest.fixture(scope="module")
def answer(workspace: Workspace) -> LlmAnswer:
    """Two chips and one that is too small for the larger batch, without an engine's own time."""
    with without_host():
        return workspace.llm(MODEL, hardware=("h100_sxm5", "h200_sxm", "l4"), batch=(1, 64))


def find(answer: LlmAnswer, hardware: str, batch: int) -> ServedRow:
    return next(row for row in answer.rows if (row.hardware, row.batch) == (hardware, batch))


def test_an_unmeasured_chip_has_wider_intervals_and_is_named(answer: LlmAnswer) -> None:
    """Servers with vLLM were measured on H100, with 0.1 for a new server; H200 and L4 have 0.15 for a new chip."""
    known, new = (find(answer, name, 1).between_half_width or 0.0 for name in ("h100_sxm5", "l4"))
    assert_close(new**2 - known**2, 0.15**2 - 0.1**2)
    facts = answer.facts
    named = {facts.runs[key].hardware for one in facts.of(Caveat) if one.kind == "unmeasured" for key in one.runs}
    assert named == {"h200_sxm", "l4"}


def test_choices_are_the_winners_of_the_table(answer: LlmAnswer) -> None:
    facts, rows = answer.facts, dict(enumerate(answer.rows, 1))
    entries = {one.runs[0] for one in facts.of(Entry)}
    assert entries == {key for key, row in rows.items() if row.status == "ok"}
    fields = {
        "decode_energy_per_token": "output_token_j",
        "time_per_token": "between_s",
        "first_token": "first_token_s",
    }
    choices = [one for one in facts.of(Choice) if one.metric in fields]
    assert [one.metric for one in choices] == ["time_per_token", "decode_energy_per_token", "first_token"]
    for one in choices:
        values = {key: getattr(rows[key], fields[one.metric]) for key in entries}
        own, rival = one.runs[:2]
        assert values[own] == min(values.values())
        assert rows[own].hardware != rows[rival].hardware
        assert values[rival] == min(value for key, value in values.items() if rows[key].hardware != rows[own].hardware)
        assert_close(one.ratio or 0.0, values[rival] / values[own])
        assert {rows[key].hardware for key in one.runs} == {"h100_sxm5", "h200_sxm", "l4"}


def test_limits_of_memory_are_facts(answer: LlmAnswer) -> None:
    facts, rows = answer.facts, dict(enumerate(answer.rows, 1))
    (short,) = (one for one in facts.of(Caveat) if one.kind == "memory")
    assert [(rows[key].hardware, rows[key].batch) for key in short.runs] == [("l4", 64)]
    short_of = {
        rows[key].hardware: one.values["tokens"]
        for one in facts.of(Caveat)
        if one.kind == "context"
        for key in one.runs
        if rows[key].batch == 1
    }
    assert short_of == {"l4": find(answer, "l4", 1).largest_context}  # the others hold the model's 131,072


def test_a_precision_that_only_some_chips_have_weighs_as_much_as_its_bytes() -> None:
    """Weights of 8 GB against 16 GB: their reads, and so the energy of a step, differ by a factor of two."""
    made = [
        ExaminedDeployment(key=key, hardware=name, device_count=1, precision=precision, run_id=None, weight_bytes=size)
        for key, name, precision, size in ((1, "a", "fp8", 8e9), (2, "b", "bf16", 16e9))
    ]
    found = {one.run_id: one for one in find_served(made, "vllm")}
    assert {key: (one.kind, one.values["precision"]) for key, one in found.items()} == {
        1: ("precision", "fp8"),
        2: ("precision", "bf16"),
    }
    choice = Choice(runs=(1, 2), metric="energy_per_token", value=Quantity(1.0, "J"), ratio=1.5)
    assert_close(weigh([choice], [1, 2], found), math.log(2.0))
    assert_close(find_bias([choice], [1, 2], found), math.log(2.0))  # the winner leads by its precision
    assert not list(find_served([made[0], attrs.evolve(made[1], precision="fp8")], "vllm"))


def test_memory_worked_out_by_hand(answer: LlmAnswer) -> None:
    row = find(answer, "h100_sxm5", 64)
    # 8.03 G parameters of 2 B; 32 layers of 8 heads of 128, keys and values, 2 B each
    assert_close(row.weight_bytes, 2 * 8.03e9, rel=0.002)
    assert row.cache_bytes == 64 * (2048 + 256) * 32 * 8 * 128 * 2 * 2
    held = row.weight_bytes + row.cache_bytes + row.activation_bytes + row.reserved_bytes
    assert_close(row.memory_fraction, held / 80e9)
    free = 80e9 - row.weight_bytes - row.activation_bytes - row.reserved_bytes
    assert row.largest_batch == int(free // (row.cache_bytes / 64))
    assert row.largest_context == min(131_072, int(free // (row.cache_bytes / 2304)))


def test_what_does_not_fit_is_a_row_that_says_what_would(answer: LlmAnswer) -> None:
    row = find(answer, "l4", 64)
    assert (row.status, row.first_token_s, row.decode_run_id) == ("does not fit", None, None)
    assert row.memory_fraction > 1.0
    assert row.largest_batch < 64
    assert f"batch {row.largest_batch}" in row.reason
    assert row.needed_device_count == 2
    assert find(answer, "l4", 1).status == "ok"


@pytest.mark.sample(1)
@pytest.mark.parametrize("asked", ["--devices 8", "--devices 16", "--data-devices 16"])
@pytest.mark.slow
def test_a_refusal_names_a_division_that_holds_the_model(asked: str, tmp_path: Path) -> None:
    words = ["llm", "deepseek-r1", "h100_sxm5", "--batch", "1"]
    refused = run_here([*words, *asked.split()], tmp_path, {})
    assert refused.returncode == ExitCode.UNSUPPORTED, refused.stdout
    found = re.search(r"(--devices \d+ )?--(pipeline|expert)-devices \d+", refused.stderr)
    assert found, refused.stderr
    kept = [] if found[1] else asked.split()
    done = run_here([*words, *kept, *found[0].split()], tmp_path, {})
    assert done.returncode == 0, done.stderr


def test_costs_follow_from_rates_and_prices(workspace: Workspace) -> None:
    answer = workspace.llm(
        MODEL,
        hardware="h100_sxm5",
        batch=8,
        site=Site(
            pay="rented",
            utilization=0.5,
            gco2_per_kwh=100.0,
            pue=1.0,
            prices=(Price(hardware="h100_sxm5", usd_per_hour=3.6),),
        ),
    )
    (row,) = answer.rows
    phases = {one.phase: one for one in answer.phases}
    for phase, cost in (("prefill", row.prompt_usd_per_million), ("decode", row.output_usd_per_million)):
        # 3.6 USD an hour are 1 mUSD a second, paid for twice as long as it works
        assert_close(cost, 1e6 * 2e-3 / phases[phase].tokens_per_s)
    assert row.output_gco2_per_million > 1e6 * row.output_token_j * 100.0 / 3.6e6  # type: ignore[operator]


def test_a_board_computer_runs_llama_cpp_and_its_weights(workspace: Workspace) -> None:
    answer = workspace.llm("llama-3.2-3b", hardware="raspberry_pi_5", batch=1, serving=Serving(prompt=128))
    (row,) = answer.rows
    assert (answer.serving.engine, row.precision) == ("llamacpp", "fp16/q4_k_m")
    (caveat,) = (one for one in answer.facts.of(Caveat) if one.kind == "unmeasured")
    assert "Broadcom" in str(caveat.values["vendor"])  # no chip of the vendor was measured
    # 4.53 and 4.58 tokens a second are measured (github.com/geerlingguy/sbc-reviews, commit 968b675)
    assert_close(1.0 / (row.between_s or 0.0), 4.55, rel=0.1)


def test_only_a_metric_of_both_chips_decides_between_them(workspace: Workspace) -> None:
    """A chip without a price has no cost, so that the other one cannot be said to cost less."""
    chips = ("jetson_agx_orin", "l4")
    answer = workspace.llm(
        "llama-3.1-8b", hardware=chips, batch=1, weight_precision="int4", serving=Serving(prompt=128)
    )
    assert {row.label for row in answer.rows if row.output_usd_per_million is not None} == {"l4"}
    assert {one.metric for one in answer.facts.of(Choice)[:2]} == {"time_per_token", "decode_energy_per_token"}


@pytest.mark.slow
def test_devices_of_a_model_that_one_cannot_store_hold_all_requests_in_flight(workspace: Workspace) -> None:
    serving = Serving(prompt=2048, output=16, in_flight=64)
    few, many = (
        workspace.llm("llama-3.1-70b", hardware="h100_sxm5", batch=1, serving=attrs.evolve(serving, in_flight=count))
        for count in (1, 64)
    )
    devices = [{row.device_count for row in answer.loads} for answer in (few, many)]
    assert devices == [{2}, {4}]  # 141 GB of weights; 64 x 2,064 tokens x 328 kB are 43 GB more than 151 GB hold


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("chips", "asked", "engine", "precision"),
    [
        (("apple_m3_max",), "", "llamacpp", "fp16/q4_k_m"),
        (("apple_m3_max", "raspberry_pi_5"), "", "llamacpp", "fp16/q4_k_m"),
        (("apple_m3_max", "l4"), "", "llamacpp", "fp16/q4_k_m"),
        (("rtx_3090", "apple_m3_max"), "", "llamacpp", "bf16/q4_k_m"),
        (("apple_m3_max",), "vllm", "vllm", "fp16"),
    ],
)
def test_chips_beside_an_apple_gpu_run_llama_cpp_unless_an_engine_is_named(
    workspace: Workspace, chips: tuple[str, ...], asked: str, engine: str, precision: str
) -> None:
    serving = Serving(prompt=128, engine=asked)
    answer = workspace.llm("llama-3.2-3b", hardware=chips, batch=1, serving=serving)
    assert answer.serving.engine == engine
    assert {row.precision for row in answer.rows if row.label.startswith(chips[0])} == {precision}


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((MODEL, "l4", "--batch", "64", "--devices", "1"), 4, ("64", "2 devices")),
        ((MODEL, "l4", "--devices", "3"), 4, ("32", "3")),
        ((MODEL, "l4", "--prompt", "200000"), 2, ("200,000", "131,072")),
        ((MODEL, "h100_sxm5", "--precision", "fp4"), 4, ("fp4", "fp8")),
        (("llama-31-8b",), 3, (MODEL,)),
        ((MODEL, "l4", "--engine", "vlm"), 3, ("vllm",)),
        ((MODEL, "l4", "--cache", "int3"), 2, ("int3", "int8")),
        ((MODEL, "l4", "--output", "x.json"), 2, ("x.json", "-o")),
        ((MODEL, "l4", "--output", "0"), 2, ("0",)),
        (("mixtral-8x7b-v0.1", "h200_sxm", "--expert-devices", "3", "--devices", "2"), 4, ("3", "2")),
        ((MODEL, "l4", "--engine", "vllm@2019"), 2, ("vllm@2019", "vllm@2024")),
        ((MODEL, "a100_sxm4_80gb", "--pipeline-devices", "64"), 4, ("32", "64")),
        ((MODEL, "l4", "--ttft", "1s", "--tpot", "9ms"), 2, ("--first-token", "--between-tokens")),
        ((MODEL, "l4", "--speculate", "3"), 2, ("--acceptance",)),
        ((MODEL, "l4", "--speculate", "99", "--acceptance", "0.5"), 2, ("99", "15")),
        ((MODEL, "l4", "--speculate", "3", "--acceptance", "0.5", "--draft", "llama-2-7b"), 2, ("32,000", "128,256")),
        ((MODEL, "--prefill-on", "l4", "--rate", "1/s"), 2, ("--decode-on",)),
        ((MODEL, "l4", "--handover", "10GB/s"), 2, ("--prefill-on",)),
        pytest.param((MODEL, "--prefill-on", "l4", "--decode-on", "l4"), 2, ("--rate",), marks=pytest.mark.slow),
        ((MODEL, "t4", "--prefill-on", "l4", "--decode-on", "l4", "--rate", "1/s"), 2, ("leave out",)),
        ((MODEL, "--prefill-on", "l4", "--decode-on", "l4", "--rate", "1/s", "--handover", "3"), 2, ("3B/s",)),
        pytest.param(
            (MODEL, "--prefill-on", "l4", "--decode-on", "l4", "--rate", "900/s", "--batch", "1"),
            2,
            ("64",),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_cannot_be_served_is_told_in_a_line(
    words: tuple[str, ...], code: int, told: tuple[str, ...], tmp_path: Path
) -> None:
    done = run_here(["llm", *words], tmp_path, {})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1), done.stderr
    assert all(word in done.stderr for word in told), done.stderr


@pytest.mark.slow
def test_a_pass_is_explained_by_what_its_work_is_for(workspace: Workspace) -> None:
    explained = workspace.explain(
        f"{MODEL}(cached=2048)", "h100_sxm5", "h200_sxm", precision="bf16", runtime="engine", batch=8
    )
    rows = {row.purpose: row for row in explained.purposes}
    assert set(rows) == {"weights", "cache", "attention", "logits", "host", "static", "rest"}
    assert sum(row.energy_difference_fj for row in rows.values()) == explained.total.difference_fj
    assert sum(row.latency_difference_fs for row in rows.values()) == explained.total.latency_difference_fs
    # the head is 525 of 7,505 M weights that a step reads
    assert_close(rows["logits"].latency_a_s / rows["weights"].latency_a_s, 525 / 6980, rel=0.1)


@pytest.mark.slow
def test_two_pools_are_as_many_as_the_rate_needs(workspace: Workspace) -> None:
    serving = Serving(prompt=1024, output=64, rate_per_s=4.0, prefill_on="h100_sxm5", decode_on="l4")
    answer = workspace.llm(MODEL, batch=1, serving=serving)
    prompts, answers = answer.pools
    (load,) = answer.loads
    for row in (prompts, answers):
        assert_close(row.use_fraction, 4.0 / (row.server_count * row.each_per_s))
        assert 4.0 / (row.server_count * row.each_per_s) <= 0.8 < 4.0 / ((row.server_count - 1) * row.each_per_s + 1e-9)
    assert_close(prompts.balanced_device_count, answers.each_per_s / prompts.each_per_s)
    assert_close(prompts.balanced_device_count * answers.balanced_device_count, 1.0)
    assert load.device_count == prompts.server_count + answers.server_count
    # 1,024 tokens of 32 layers, 8 heads of 128, keys and values of 2 B: 134 MB at 50 GB/s
    assert_close(load.handover_s, 1024 * 32 * 8 * 128 * 2 * 2 / 50e9)
    told = answer.document().answer
    assert answers.label in told and len(told.split()) <= 25
    used = {one.name: one.share for one in answer.facts.of(Share) if one.metric == "utilization"}
    assert used == {row.pool: row.use_fraction for row in answer.pools}
    guessed = workspace.llm(MODEL, batch=1, serving=attrs.evolve(serving, speculate=3, acceptance=0.7))
    assert guessed.pools[1].each_per_s > 1.5 * answers.each_per_s
    assert (guessed.loads[0].between_s or 0.0) < 0.7 * (load.between_s or 0.0)


def test_an_engine_of_one_vendor_serves_on_no_other_chips(workspace: Workspace) -> None:
    with pytest.raises(UnsupportedError, match="NVIDIA"):
        workspace.llm(MODEL, hardware=("mi300x",), batch=1, serving=Serving(engine="tensorrt_llm"))


@pytest.mark.slow
def test_of_many_configurations_both_ends_are_stored(workspace: Workspace) -> None:
    batches = tuple(range(1, 38))
    answer = workspace.llm(MODEL, hardware="h200_sxm", batch=batches, serving=Serving(prompt=256, output=8))
    assert len(answer.served) == 37
    assert {row.decode_run_id for row in answer.served} == {
        answer.served[0].decode_run_id,
        answer.served[-1].decode_run_id,
    }
    joules = [row.output_token_j or 0.0 for row in answer.served]
    assert all(other < one for one, other in zip(joules, joules[8:], strict=False))  # tiles step in between


def test_a_pass_is_named_with_its_devices_and_those_of_its_experts() -> None:
    asked = PassRunOptions(phase="decode", devices=8, expert_devices=4)
    assert asked.name("qwen3-30b-a3b") == "qwen3-30b-a3b(cached=2048,devices=8,expert_devices=4,engine=vllm)"
    with pytest.raises(UsageError, match="--expert-devices needs a pass: add --phase"):
        PassRunOptions(expert_devices=4).name("qwen3-30b-a3b")


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_a_path_that_is_no_configuration_cannot_be_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "model")
    assert run_here(["llm", "./model", "l4"], tmp_path, {}).returncode == ExitCode.MODEL


def test_the_assumed_share_of_a_load_by_hand() -> None:
    """2 J for an output token: 0.2 J idle, 4 prompt tokens of 0.1 J, and 1.4 J of decode steps.

    Of idling all is assumed, of prompts a quarter, of decode steps a half: 0.2 + 0.1 + 0.7 = 1.0 of 2 J. Of static
    power 0.2 + 0.05 x 0.4 + 0.4 x 1.4 = 0.78 J are assumed.
    """

    def stored(phase: str, batch: int, token_j: float, share: float, static: float) -> Any:
        return SimpleNamespace(phase=phase, batch=batch, energy_per_token_j=token_j), AssumedEnergy(1.0, share, static)

    case = StoredCase(
        usd_per_s=None,
        phases=(
            stored("prefill", 8, 0.1, 0.25, 0.05),
            stored("prefill", 64, 9.0, 1.0, 1.0),
            stored("decode", 8, 1.0, 0.5, 0.4),
            stored("decode", 1, 9.0, 1.0, 1.0),
        ),
    )
    served: Any = SimpleNamespace(
        latency=SimpleNamespace(mean=2.0),
        served_per_s=5.0,  # 10 requests at a time, nearest to batch 8
        computed_tokens=4_000,
        output_tokens=1_000,
        energy_per_output_token_j=2.0,
        window=SimpleNamespace(energy_j=100.0, idle_j=10.0),
    )
    found = share_assumed(served, case, case, assumed_idle=1.0)
    assert found is not None
    assert_close(found[0], 0.5)
    assert_close(found[1], 0.39)
    assert share_assumed(served, NOT_STORED, case, assumed_idle=1.0) is None


@pytest.mark.slow
def test_prompts_of_a_hybrid_leave_a_sound_database(workspace: Workspace, tmp_path: Path) -> None:
    """A scan of a prompt has GEMMs of several shapes: the rule on the view of one of them does not apply."""
    sizes = {
        "model_type": "qwen3_5", "hidden_size": 256, "vocab_size": 1000, "intermediate_size": 512,
        "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32,
        "linear_num_value_heads": 4, "linear_value_head_dim": 32, "linear_key_head_dim": 32,
        "linear_num_key_heads": 2, "max_position_embeddings": 4096,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(sizes))
    answer = workspace.llm(str(tmp_path), hardware="l4", batch=1, serving=Serving(prompt=512, output=8))
    assert answer.rows[0].status == "ok"
    assert workspace.query("audit.conservation").rows == ()


FITTING = [
    ("gemma-3-27b", "h100_sxm5", 131_000, "", ()),
    ("llama-3.1-8b", "rtx_4090", 100_000, "llamacpp", ("q4_k_m",)),
    ("gpt-oss-20b", "l40s", 60_000, "sglang", ()),
    ("deepseek-v2-lite", "a100_sxm4_40gb", 30_000, "tensorrt_llm", ()),
    ("qwen3-30b-a3b", "mi300x", 40_000, "", ()),
    ("phi-3-mini-4k", "apple_m3", 3_000, "llamacpp", ("q4_k_m",)),
]
"""Model, hardware, prompt, engine and weight precision; several prompts are longer than a pass of the engine."""


@pytest.mark.parametrize(
    ("model", "hardware", "prompt", "engine", "weights"),
    [FITTING[0], *(pytest.param(*one, marks=pytest.mark.slow) for one in FITTING[1:])],
)
@pytest.mark.slow
def test_what_fits_is_never_refused_for_memory(
    workspace: Workspace, model: str, hardware: str, prompt: int, engine: str, weights: tuple[str, ...]
) -> None:
    """The largest batch that the memory holds has a prompt and a step with their joules and prices."""
    serving = Serving(prompt=prompt, output=72, engine=engine)
    asked = attrs.evolve(SERVED, hardware=(hardware,), weight_precision=weights)
    most = workspace.llm(model, attrs.evolve(asked, batch=(1,)), serving=serving).rows[0].largest_batch
    found = workspace.llm(model, attrs.evolve(asked, batch=(1, most or 1)), serving=serving)
    assert [row.status for row in found.rows] == ["ok"] * len(found.rows)
    assert found.scope.refusals == ()
    phases = [(row.place, row.phase) for row in found.phases]
    assert len(phases) == 2 * len(found.rows)
    assert all(row.prompt_token_j and row.request_j for row in found.rows)
    assert all((row.memory_fraction or 0.0) <= 1.0 for row in found.rows)


def test_a_long_prompt_is_priced_in_chunks_of_the_engine(tmp_path: Path) -> None:
    """16 chunks of 8,192 tokens; the run of the middle one stands for all."""
    serving, asked = Serving(prompt=131_000, output=72), attrs.evolve(SERVED, hardware=("h200_sxm",))
    question, _ = ServedModel(name="llama-3.1-8b", settings=asked, serving=serving).plan(
        Source(path=tmp_path / "x.duckdb")
    )
    engine = question.stack.id
    assert question.prefill_key(1, 1, 8192) == (f"llama-3.1-8b(tokens=8192,cached=61404,engine={engine})", 1)
    assert [question.count_prefills(batch, 8192) for batch in (1, 4)] == [16, 64]
