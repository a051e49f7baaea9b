"""Commands of tools that measure a prediction: the settings that it assumed are those of the command."""

from __future__ import annotations

import json
import shlex
from typing import Any

import attrs
import pytest

from conftest import Run
from joulemap.answer.engine import find_checkpoint
from joulemap.catalog.check import LANGUAGE, CheckedRun, list_checks
from joulemap.domain.catalogue import HardwareEntry
from joulemap.domain.settings import Settings
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
        ("rk3588_npu", {"precision": "int8"}, ["rknn_benchmark"]),
        ("hailo_8", {"precision": "int8"}, ["hailortcli benchmark"]),
        ("coral_edge_tpu", {"precision": "int8"}, ["benchmark_model"]),
        ("raspberry_pi_5", {"model": "net.tflite", "runtime": "eager"}, ["benchmark_model"]),
        ("kpu_t256", {"precision": "int8"}, []),  # no device exists
        ("l4", {"precision": "fp16", "weights": "int4"}, []),  # no tool stores weights so
    ],
)
def test_a_chip_has_the_tools_of_its_maker(hardware: str, given: dict[str, Any], tools: list[str]) -> None:
    run = attrs.evolve(CheckedRun(model="resnet18"), **given)
    assert [one.tool for one in list_checks(find_entry(hardware), run)] == tools


def test_tf32_is_switched_off_if_the_prediction_forbids_it() -> None:
    (one,) = list_checks(find_entry("l4"), CheckedRun(model="net.onnx", allows_tf32=False))
    (other,) = list_checks(find_entry("l4"), CheckedRun(model="net.onnx"))
    assert set(shlex.split(one.command)) - set(shlex.split(other.command)) == {"--noTF32"}


@pytest.mark.wings
def test_a_checkpoint_is_its_publishers_and_no_fine_tuned_one() -> None:
    assert find_checkpoint("llama-3.1-8b") == "meta-llama/llama-3.1-8b"
    assert find_checkpoint("qwen2.5-7b(cached=512)") == "qwen/qwen2.5-7b"
    assert find_checkpoint("resnet18") == ""


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("words", "chips"),
    [
        (("analyze", "resnet18", "l4"), ["l4"]),
        (("edp", "resnet18", "l4"), ["l4"]),
        (("explain", "resnet18", "l4", "tpu_v4"), ["l4"]),
        (("recommend", "resnet18", "--hardware", "l4", "--precision", "fp16"), ["l4"]),
        (("utilization", "resnet18", "tpu_v4", "l4"), ["l4"]),
    ],
    ids=lambda words: words[0],
)
def test_each_answer_about_a_run_names_the_command_that_measures_it(
    joulemap: Run, words: tuple[str, ...], chips: list[str]
) -> None:
    done = joulemap(*words, "--check", "--format", "json")
    checks = json.loads(done.stdout)["checks"]
    assert [one["hardware"] for one in checks] == chips
    assert all("resnet18" in one["command"] for one in checks)
