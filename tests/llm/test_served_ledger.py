"""Passes under an engine: overhead by hand, and one ledger for `llm` and for a run of the same pass."""

from __future__ import annotations

import contextlib
from functools import cache
from pathlib import Path

import attrs
import duckdb
import pytest

from compare import assert_close
from deployed import known_decoder
from joulemap.catalog.load import find_hardware
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import AWAKE_ACTION, OVERHEAD, STATIC_ACTION, WAIT_ACTION, ActionKey
from joulemap.physics.run import RunColumns
from joulemap.plan.calibration import use_calibration
from joulemap.wing.decoder.engine.stack import find_engine, find_stack
from joulemap.wing.decoder.network.column import pass_columns
from joulemap.wing.decoder.network.decoder_pass import DecoderPass, list_overhead
from joulemap.wing.llm.audit import RULE, find_faults
from joulemap.wing.llm.serving.deployment import Deployment, PassWorkloads
from joulemap.wing.llm.serving.surface import Passes
from joulemap.workspace import Workspace
from sample import thin

FJ_PER_J = FS_PER_S = 1e15
VLLM = find_engine("vllm@2025").id
LLAMA = find_engine("llamacpp@2026").id


@cache
def bind(name: str) -> Hardware:
    """Return a chip with its anchor, at its board."""
    own = find_hardware(name)
    return use_calibration("none").target(own, "default", "board").bind(own)


def deploy(model: str, chip: str, engine: str, **more: object) -> Deployment:
    decoder = known_decoder(model)
    fields = {"precision": "bf16", "hardware": bind(chip), "stack": find_engine(engine), **more}
    return Deployment(workloads=PassWorkloads(decoder), **fields)  # type: ignore[arg-type]


def run_of(deployment: Deployment, **sizes: float) -> RunColumns:
    """Return the run of a pass of one device with all of its layers, whereas a deployment folds them."""
    (asked,) = deployment.ask(Passes.of([sizes.pop("sequences")], **{name: [one] for name, one in sizes.items()}))
    chip = deployment.put_under(asked).apply(deployment.hardware)
    work = pass_columns(deployment.decoder, [asked])[asked]
    setting = Configuration(
        hardware=chip.id, precision=deployment.precision, runtime=deployment.stack.runtime, batch=asked[1],
        weight_precision=deployment.weight_precision or deployment.precision,
    )  # fmt: skip
    return evaluate(work, chip, setting)


def line_fj(run: RunColumns, key: ActionKey) -> int:
    row = run.hardware.reference.position(key)
    return int(run.ledger.energy_fj[run.ledger.action_index == row].sum())


def count(run: RunColumns, key: ActionKey) -> float:
    row = run.hardware.reference.position(key)
    return float(run.ledger.action_count[run.ledger.action_index == row].sum())


def test_an_engine_counts_layers_sequences_and_logits() -> None:
    # Llama 3.1 8B: 32 layers and 128,256 words; a step of 4 sequences on two devices, each of which has half the words
    decoder = known_decoder("llama-3.1-8b")
    found = {
        one.variant: one.gemm_m for one in list_overhead(decoder, DecoderPass(cached=100, devices=2, engine=VLLM), 4)
    }
    wanted = {"layer": 32, "score_answer": 32 * 32 * 4 * 101 // 2, "launch_layer": 32, "sequence": 4}
    assert found == wanted | {"logit": 4 * 128_256 // 2}
    assert list_overhead(decoder, DecoderPass(cached=100), 4) == []
    inner = list_overhead(decoder, DecoderPass(cached=9, pipeline_devices=4, logits="none", engine=VLLM), 4)
    assert "sequence" not in {one.variant for one in inner}


def test_host_and_device_wait_for_each_other_and_sequences_come_after() -> None:
    # a step takes its kernels, 32 gaps and 8 x sequence, for which its device waits
    one = deploy("llama-3.1-8b", "h100_sxm5", VLLM)
    stack = one.stack
    bare = attrs.evolve(one, stack=attrs.evolve(stack, coefficients={}))
    device_s = run_of(bare, sequences=8.0, context=512.0).latency_fs / FS_PER_S
    found = run_of(one, sequences=8.0, context=512.0)
    gap_s, after_s = 32 * 3e-5, 8 * stack.value("host_sequence")
    whole_s = device_s + gap_s + after_s
    assert_close(found.latency_fs / FS_PER_S, whole_s, rel=1e-6)
    assert_close(count(found, WAIT_ACTION), after_s, rel=1e-4)
    # gaps and waits draw 0.2 of 700 W above static power, which the whole step draws; 128,256 logits a sequence 50 nJ
    assert_close(line_fj(found, WAIT_ACTION) / FJ_PER_J, 0.2 * 700.0 * after_s, rel=1e-4)
    assert_close(line_fj(found, (OVERHEAD, "layer")) / FJ_PER_J, 0.2 * 700.0 * gap_s, rel=1e-6)
    assert_close(line_fj(found, (OVERHEAD, "logit")) / FJ_PER_J, 8 * 128_256 * 5e-8)
    assert_close(count(found, STATIC_ACTION), whole_s, rel=1e-6)


def test_what_overhead_is_no_kernel_has_no_kernels_actions() -> None:
    run = run_of(deploy("llama-3.1-8b", "h100_sxm5", VLLM), sequences=8.0, context=512.0)
    decoder = known_decoder("llama-3.1-8b")
    rows = set(
        run.operators.operator_index[-len(list_overhead(decoder, DecoderPass(cached=512, engine=VLLM), 8)) :].tolist()
    )
    lines = [
        run.hardware.reference.keys[action]
        for operator, action in zip(run.ledger.operator_index.tolist(), run.ledger.action_index.tolist(), strict=True)
        if operator in rows
    ]
    assert set(lines) == {STATIC_ACTION, WAIT_ACTION, (OVERHEAD, "layer"), (OVERHEAD, "logit")}


def test_links_of_a_board_with_peers_are_awake_through_a_pass() -> None:
    run = run_of(deploy("llama-3.1-8b", "h100_sxm5", VLLM, devices=2), sequences=8.0, context=512.0)
    assert_close(count(run, AWAKE_ACTION), run.latency_fs / FS_PER_S)
    assert_close(line_fj(run, AWAKE_ACTION) / FJ_PER_J, 36.0 * run.latency_fs / FS_PER_S)
    alone = run_of(deploy("llama-3.1-8b", "h100_sxm5", VLLM), sequences=8.0, context=512.0)
    assert alone.hardware.reference.position(AWAKE_ACTION) is None


def test_power_of_links_follows_their_rate() -> None:
    # 36 W at 300 GB/s of an A100; a bridge of two RTX 3090 is sold apart, so that they have PCIe as others do
    for chip, devices, watts in (
        ("a100_sxm4_80gb", 4, 36.0), ("rtx_3090", 2, 0.0), ("rtx_3090", 4, 0.0), ("rtx_5090", 2, 0.0),
    ):  # fmt: skip
        assert_close(deploy("llama-3.1-8b", chip, VLLM, devices=devices).links_w, watts)


CASES = [
    ("llama-3.1-8b", "rtx_5090", LLAMA, "q4_k_m"),
    ("llama-3.1-8b", "rx_7900_xtx", LLAMA, "q4_k_m"),
    ("llama-3.1-8b", "mi300x", VLLM, ""),
    ("qwen3-30b-a3b", "h100_sxm5", VLLM, ""),
    ("llama-3.1-8b", "xeon_8490h", LLAMA, "q4_k_m"),
    ("llama-3.1-8b", "jetson_agx_orin_64gb_gpu", LLAMA, "q4_k_m"),
    ("gemma-3-27b", "b200_sxm", find_stack("sglang").id, ""),
    ("mixtral-8x7b", "h200_sxm", find_stack("trtllm").id, "fp8"),
]


SIZES: list[dict[str, float]] = [
    {"sequences": 1.0},
    {"sequences": 4.0},
    {"sequences": 64.0},
    {"sequences": 0.0, "chunk": 512.0},
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("case", thin(CASES, 3), ids=str)
def test_llm_and_a_run_agree_to_the_femtojoule(case: tuple[str, str, str, str], sizes: dict[str, float]) -> None:
    model, chip, engine, weights = case
    one = deploy(model, chip, engine, weight_precision=weights)
    passes = Passes.of([sizes["sequences"]], context=[700.0], chunk=[sizes.get("chunk", 0.0)])
    (asked,) = one.ask(passes)
    (total,) = one.evaluate([asked])
    cost = one.price(passes)
    under = one.put_under(asked)
    chips = [under.take(way, one.hardware) for way in under.list_ways(one.hardware)]
    work = pass_columns(one.decoder, [asked])[asked]
    setting = Configuration(
        hardware=chip, precision=one.precision, runtime=one.stack.runtime, batch=asked[1],
        weight_precision=weights or one.precision,
    )  # fmt: skip
    runs = [evaluate(work, each, setting) for each in chips]
    run = min(runs, key=lambda each: each.latency_fs)
    assert (run.latency_fs, run.energy_fj) == (total.latency_fs, total.energy_fj)
    assert float(cost.joules[0]) == run.energy_fj / FJ_PER_J


@pytest.mark.slow
def test_a_database_is_audited_for_what_llm_says_of_its_passes(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    workspace.llm("llama-3.2-1b", hardware=("rtx_4090", "h100_sxm5"), batch=(1, 8))
    assert len(workspace.check().findings.rows) == 0
    with contextlib.closing(duckdb.connect(str(tmp_path / "own.duckdb"))) as connection:
        connection.execute("UPDATE internal.run_total SET energy_fj = energy_fj + 1 WHERE run_id = 1")
        (fault,) = find_faults(connection)
    assert fault[:2] == (RULE, 1)
