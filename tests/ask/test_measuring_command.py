"""Commands of tools that measure a prediction: the settings that it assumed are those of the command."""

from __future__ import annotations

import json
import shlex
from typing import Any

import attrs
import pytest

from conftest import Run
from joulemap.ask.check import PairedRun, check_runs
from joulemap.catalog.check import LANGUAGE, CheckedRun, list_checks, list_lacking
from joulemap.domain.catalogue import HardwareEntry
from joulemap.domain.settings import Settings
from joulemap.plan.model_name import find_names
from joulemap.plan.selection import select_hardware


def find_entry(name: str) -> HardwareEntry:
    ((entry, _),) = select_hardware(Settings(hardware=(name,))).pairs
    return entry


SERVED = CheckedRun(model="my model.gguf", kind=LANGUAGE, engine="llamacpp@2025", prompt=512, output=128, cached=2048)


def test_a_decode_step_is_measured_at_its_context_and_a_request_in_two_parts() -> None:
    (step,) = list_checks(find_entry("l4"), attrs.evolve(SERVED, phase="decode"))
    words = shlex.split(step.command)
    options = dict(zip(words[1::2], words[2::2], strict=True))
    assert options == {
        "-m": "my model.gguf", "-p": "0", "-n": "64", "-d": "2048", "-ngl": "99", "-fa": "1", "-o": "json",
    }  # fmt: skip
    request = [one.command for one in list_checks(find_entry("xeon_8490h"), SERVED)]
    assert [("-p 512 -n 0" in one, "-n 128 -d 512" in one) for one in request] == [(True, False), (False, True)]
    assert all("-ngl 0" in one for one in request)


def test_a_batch_of_sequences_fills_its_context() -> None:
    (one,) = list_checks(find_entry("l4"), attrs.evolve(SERVED, batch=8))
    assert one.tool == "llama-batched-bench"
    assert f"-c {8 * (2048 + 128)} " in one.command


@pytest.mark.parametrize(
    ("hardware", "given", "tools"),
    [
        ("l4", {"precision": "fp16"}, ["trtexec"]),
        ("l4", {"runtime": "fused", "shape": (3, 224, 224)}, ["torch.utils.benchmark"]),
        ("xeon_8490h", {}, ["benchmark_app"]),
        ("xeon_8490h", {"runtime": "fused", "shape": (3, 224, 224)}, ["torch.utils.benchmark"]),
        ("apple_m4_neural_engine", {"precision": "fp16"}, ["onnxruntime_perf_test"]),
        ("rk3588_npu", {"precision": "int8"}, ["rknn_benchmark"]),
        ("hailo_8", {"precision": "int8"}, ["hailortcli benchmark"]),
        ("coral_edge_tpu", {"precision": "int8"}, ["benchmark_model"]),
        ("raspberry_pi_5", {"model": "net.tflite", "runtime": "eager"}, ["benchmark_model"]),
        ("raspberry_pi_5", {"precision": "fp32"}, ["onnxruntime_perf_test"]),
        ("ryzen_ai_max_395_npu", {"precision": "int8"}, ["onnxruntime_perf_test"]),
        ("kpu_t256", {"precision": "int8"}, []),  # no device exists
        ("l4", {"precision": "fp16", "weights": "int4"}, []),  # no tool stores weights so
    ],
)
def test_a_chip_has_the_tools_of_its_maker(hardware: str, given: dict[str, Any], tools: list[str]) -> None:
    run = attrs.evolve(CheckedRun(model="resnet18"), **given)
    assert [one.tool for one in list_checks(find_entry(hardware), run)] == tools


def test_tf32_is_switched_off_at_the_highest_matmul_precision() -> None:
    (one,) = list_checks(find_entry("l4"), CheckedRun(model="net.onnx", matmul_precision="highest"))
    (other,) = list_checks(find_entry("l4"), CheckedRun(model="net.onnx"))
    assert set(shlex.split(one.command)) - set(shlex.split(other.command)) == {"--noTF32"}


def test_an_apple_gpu_has_its_own_devices_in_each_tool() -> None:
    chip = find_entry("apple_m3_max")
    metal, _ = list_checks(chip, SERVED)
    (mlx,) = list_checks(chip, attrs.evolve(SERVED, engine="vllm@2025", checkpoint="org/net"))
    words = shlex.split(mlx.command)
    assert (metal.tool, mlx.tool) == ("llama-bench", "mlx_lm.benchmark")
    assert dict(zip(words[1::2], words[2::2], strict=True)) == {
        "--model": "org/net", "--prompt-tokens": "512", "--generation-tokens": "128", "--batch-size": "1",
    }  # fmt: skip
    (network,) = list_checks(chip, CheckedRun(model="resnet18", runtime="fused", shape=(3, 224, 224)))
    assert "'mps'" in network.command


@pytest.mark.parametrize(("chip", "begin"), [
    ("xeon_8490h", "benchmark_app -m net.tflite"), ("epyc_9654", "benchmark_model --graph=net.tflite"),
    ("apple_m4", "python -m tf2onnx.convert --tflite net.tflite --output net.onnx && onnxruntime_perf_test"),
    ("l4", "python -m tf2onnx.convert --tflite net.tflite --output net.onnx && trtexec --onnx=net.onnx"),
    ("rk3588_npu", "rknn_benchmark net.rknn"),
])  # fmt: skip
def test_a_tool_reads_a_tflite_file_or_has_it_converted(chip: str, begin: str) -> None:
    for check in list_checks(find_entry(chip), CheckedRun(model="net.tflite", precision="int8")):
        assert check.command.startswith(begin)
        assert "ONNX" not in check.needs
        break
    else:
        pytest.fail(f"{chip} has no tool")


def test_a_model_in_code_has_files_named_after_it() -> None:
    (one,) = list_checks(find_entry("xeon_8490h"), CheckedRun(model="a/net.py:Net"))
    assert "-m net.onnx " in one.command


def test_open_sizes_of_inputs_are_those_of_the_prediction() -> None:
    run = CheckedRun(model="net.onnx", inputs=(("x", (1, 3, 64, 64)), ("mask", (1, 8))))
    for chip, told in (("l4", "--shapes=x:1x3x64x64,mask:1x8"), ("xeon_8490h", "x[1,3,64,64],mask[1,8]")):
        (one,) = list_checks(find_entry(chip), run)
        assert told in shlex.split(one.command)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16", "int8", "fp8"])
def test_the_file_alone_sets_the_types_of_tensorrt(precision: str) -> None:
    (one,) = list_checks(find_entry("h100_sxm5"), CheckedRun(model="net.onnx", precision=precision))
    assert not {"--fp16", "--bf16", "--int8", "--fp8", "--best"} & set(shlex.split(one.command))
    assert (precision in one.needs) is (precision != "fp32")


def test_a_load_is_made_at_the_rate_of_one_server() -> None:
    run = attrs.evolve(SERVED, engine="vllm", rate_per_s=5.0)
    (one,) = list_checks(find_entry("l4"), run)
    words = shlex.split(one.command)
    assert words[:3] == ["vllm", "bench", "serve"]
    assert words[words.index("--request-rate") + 1] == "5"
    assert words[words.index("--num-prompts") + 1] == "300"  # a minute
    assert words[words.index("--percentile-metrics") + 1].split(",")[:3] == ["ttft", "tpot", "itl"]
    assert "{" not in one.prints
    (closed,) = list_checks(find_entry("l4"), attrs.evolve(run, rate_per_s=0.0, in_flight=32, devices=2))
    words = shlex.split(closed.command)
    assert "--request-rate" not in words and words[words.index("--max-concurrency") + 1] == "32"
    assert words[words.index("--num-prompts") + 1] == "320"  # ten of each
    assert "--tensor-parallel-size 2" in closed.prints
    (batch,) = list_checks(find_entry("l4"), attrs.evolve(run, engine="llamacpp", batch=8))
    assert batch.tool == "llama-batched-bench"  # it makes no load


@pytest.mark.parametrize(
    ("engine", "given", "options"),
    [
        ("vllm", {}, []),
        ("vllm", {"pipeline_devices": 4}, ["--pipeline-parallel-size", "4"]),
        ("vllm", {"devices": 8, "expert_devices": 8}, ["--tensor-parallel-size", "8", "--enable-expert-parallel"]),
        ("vllm", {"precision": "fp8", "cache": "fp8"}, ["--quantization", "fp8", "--kv-cache-dtype", "fp8"]),
        ("sglang", {"precision": "fp8", "devices": 2}, ["--tp", "2", "--quantization", "fp8"]),
        ("llamacpp", {"cache": "int8"}, ["-ctk", "q8_0", "-ctv", "q8_0"]),
    ],
)
def test_settings_that_differ_from_a_tools_default_are_options(
    engine: str, given: dict[str, Any], options: list[str]
) -> None:
    plain = attrs.evolve(SERVED, engine=engine, precision="bf16")
    (had, *_), (one, *_) = (list(list_checks(find_entry("l4"), run)) for run in (plain, attrs.evolve(plain, **given)))
    added = [word for word in shlex.split(one.command) if word not in shlex.split(had.command) or word in options]
    assert [word for word in added if word != "auto"] == options
    assert "{" not in one.command


@pytest.mark.parametrize(
    "given", [{"speculates": True}, {"data_devices": 2}, {"cache": "int8"}, {"devices": 8, "expert_devices": 4}]
)
def test_a_tool_without_an_option_for_a_setting_measures_nothing(given: dict[str, Any]) -> None:
    run = attrs.evolve(SERVED, engine="vllm", **given)
    assert not list(list_checks(find_entry("l4"), run)) and len(list_lacking(find_entry("l4"), run)) == 1


@pytest.mark.wings
def test_a_pipeline_is_measured_stage_by_stage() -> None:
    run = PairedRun("l4", "fp16", 2, "engine")
    checks = check_runs("prepare(size=640):30fps + mobilenet_v2:2/frame + resnet18:1/frame", [run])
    assert [shlex.split(one.command)[1] for one in checks.commands] == [
        "--onnx=mobilenet_v2.onnx",
        "--onnx=resnet18.onnx",
    ]


@pytest.mark.wings
def test_a_checkpoint_is_its_publishers_and_no_fine_tuned_one() -> None:
    for name, expected in (
        ("llama-3.1-8b", "meta-llama/llama-3.1-8b"),
        ("qwen2.5-7b(cached=512)", "qwen/qwen2.5-7b"),
        ("resnet18", ""),
    ):
        assert find_names(name).find_checkpoint(name) == expected


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("words", "chips"),
    [
        (("analyze", "resnet18", "l4"), ["l4"]),
        (("edp", "resnet18", "l4"), ["l4"]),
        (("explain", "resnet18", "l4", "tpu_v4"), ["l4"]),
        (("recommend", "resnet18", "--hardware", "l4", "--precision", "fp16"), ["l4"]),
        (("utilization", "resnet18", "tpu_v4", "l4"), ["l4"]),
        (("cost", "resnet18", "l4", "--precision", "fp16", "--batch", "1,8"), ["l4"]),
        (("pareto", "resnet18", "--hardware", "l4", "--precision", "fp16", "--batch", "1"), ["l4"]),
        (("sweep", "resnet18", "l4", "--batch", "1,8"), ["l4"]),  # one batch is best in energy and throughput
        (("place", "resnet18", "--on", "l4,xeon_8490h", "--link", "pcie4x16"), ["l4"]),
        (
            ("fleet", "resnet18", "l4", "--rate", "100/s", "--p99", "15ms", "--precision", "int8", "--batch", "8"),
            ["l4"],
        ),
    ],
    ids=lambda words: words[0],
)
def test_each_answer_about_a_run_names_the_command_that_measures_it(
    joulemap: Run, words: tuple[str, ...], chips: list[str]
) -> None:
    done = joulemap(*words, "--show=check", "--format", "json")
    checks = json.loads(done.stdout)["checks"]
    assert [one["hardware"] for one in checks] == chips
    assert all("resnet18" in one["command"] for one in checks)
