"""Models run here: the window, the weights, and what is stored beside the prediction."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from compare import assert_close
from conftest import Run
from joulemap.ask.measure import HostAnswer
from joulemap.catalog.sheet import load_models
from joulemap.construct.source import parse_input, resolve_model
from joulemap.device.processor import read_cpu
from joulemap.device.trial import Subject, prepare, set_channels_last
from joulemap.device.window import measure_window
from joulemap.domain.computed import make_table
from joulemap.domain.measurement import Timing
from joulemap.generated.measure import HostPace
from joulemap.show.measure import CROWDED, list_reasons
from joulemap.show.present.cell import show_quantity
from joulemap.system.errors import ExitCode, ModelError
from joulemap.workspace import Workspace

SMALL = {"width": 32, "hidden": 64, "tokens": 8}
WIDE = ("--model-arg", "width=32", "--model-arg", "hidden=64", "--model-arg", "tokens=8")
FAST = 0.02


def subject(name: str, precision: str = "fp32", *inputs: str, **arguments: int) -> Subject:
    request = resolve_model(
        name,
        load_models(),
        inputs=[parse_input(text) for text in inputs],
        arguments=[(key, str(value)) for key, value in arguments.items()],
    )
    return prepare(request, precision, torch.device("cpu"))


class Flat(torch.nn.Module):
    """Convolution whose result is viewed as a vector, which channels-last storage does not allow."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        image = self.conv(image)
        return image.view(image.shape[0], -1)


def test_a_gpu_measures_convolutions_channels_last_if_the_model_allows_it() -> None:
    image = torch.rand(2, 3, 8, 8)
    conv = torch.nn.Conv2d(3, 8, 3)
    expected = conv(image)
    changed, layout = set_channels_last(Subject(module=conv, positional=(image,), named={}, batch=2))
    assert layout == "channels-last"
    assert changed.positional[0].stride() == (192, 1, 24, 3)  # 3 x 8 x 8, 1, 8 x 3, 3
    assert conv.weight.stride() == (27, 1, 9, 3)
    assert torch.allclose(changed.call(), expected, atol=1e-5)

    flat = Flat()
    kept, layout = set_channels_last(Subject(module=flat, positional=(image,), named={}, batch=2))
    assert layout.startswith("contiguous")
    assert kept.positional[0].stride() == (192, 64, 8, 1)
    assert flat.conv.weight.stride() == (27, 9, 3, 1)

    linear = Subject(module=torch.nn.Linear(8, 8), positional=(image,), named={}, batch=2)
    assert set_channels_last(linear) == (linear, "")


class Bench:
    """A clock that a call moves on, and a counter of what it costs."""

    scope = "package"
    shortest_s = 0.05

    def __init__(self, latencies: Callable[[int], float]) -> None:
        self.now = 0.0
        self.calls = 0
        self._latencies = latencies
        self._before = 0

    def call(self) -> None:
        self.now += self._latencies(self.calls)
        self.calls += 1

    def start(self) -> None:
        self._before = self.calls

    def stop(self) -> float:
        return 3.0 * (self.calls - self._before)

    def run(self, seconds: float, *, is_alone: bool = False) -> Timing:
        return measure_window(
            self.call,
            lambda: None,
            seconds,
            self,
            is_alone=is_alone,
            clock=lambda: self.now,
            processor=lambda: self.now / 2,
        )


def test_a_steady_call_has_no_spread_and_the_energy_of_one() -> None:
    timing = Bench(lambda _: 0.01).run(1.0)
    assert_close(timing.latency_s, 0.01)
    assert timing.is_steady
    assert timing.is_trusted
    assert timing.spread_fraction < 1e-9
    assert timing.energy_j == 3.0
    assert_close(timing.power_w, 300.0)
    assert timing.processor_fraction is None


def test_short_calls_are_repeated_until_a_clock_can_tell_them() -> None:
    timing = Bench(lambda _: 1e-5).run(0.1)
    assert timing.calls_per_repetition >= 100
    assert_close(timing.latency_s, 1e-5)


def test_the_warm_up_goes_on_until_calls_agree() -> None:
    timing = Bench(lambda call: 0.1 if call < 9 else 0.01).run(1.0)
    assert timing.is_steady and list_reasons(timing) == []
    assert timing.warm_up_s > 0.9
    assert_close(timing.latency_s, 0.01)


def test_calls_that_never_agree_are_not_trusted() -> None:
    timing = Bench(lambda call: 0.01 * 1.5 ** (call % 11)).run(1.0)
    assert timing.spread_fraction > 0.2
    assert not timing.is_trusted and len(list_reasons(timing)) == 1


def test_a_thread_that_others_interrupt_is_not_trusted() -> None:
    timing = Bench(lambda _: 0.01).run(1.0, is_alone=True)
    assert_close(timing.processor_fraction, 0.5, rel=1e-6)
    assert_close(timing.processor_s, 0.005, rel=1e-6)
    assert timing.is_crowded
    assert not timing.is_trusted and list_reasons(timing) == [CROWDED]


def test_a_window_too_short_for_its_counter_has_no_energy() -> None:
    timing = Bench(lambda _: 0.001).run(0.02)
    assert timing.energy_j is None
    assert timing.power_w is None


def test_weights_are_real_and_the_same_each_time() -> None:
    first, second = subject("mlp", width=32, hidden=64, tokens=8), subject("mlp", width=32, hidden=64, tokens=8)
    weights = list(first.module.parameters())
    assert all(not weight.is_meta and float(weight.detach().abs().max()) > 0.0 for weight in weights)
    assert all(torch.equal(one, other) for one, other in zip(weights, second.module.parameters(), strict=True))
    with torch.inference_mode():
        assert first.call().shape == (1, 8, 32)
        assert torch.equal(first.call(), second.call())


def test_a_precision_is_that_of_weights_and_inputs() -> None:
    half = subject("mlp", "bf16", width=32, hidden=64, tokens=8)
    with torch.inference_mode():
        assert half.call().dtype == torch.bfloat16


@pytest.mark.slow
def test_detection_gets_images_and_integers_stay_integers(tmp_path: Path) -> None:
    images = subject("ssdlite320_mobilenet_v3_large", "fp32", "1,3,64,64")
    assert [tuple(image.shape) for image in images.positional[0]] == [(3, 64, 64)]
    path = tmp_path / "own.py"
    path.write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.table = torch.nn.Embedding(7, 4)\n"
        "        self.scale = torch.nn.Parameter(torch.empty(4))\n"
        "    def forward(self, ids):\n        return self.table(ids) * self.scale\n"
    )
    own = subject(f"{path}:Net", "fp32", "ids=2,5:int64")
    assert own.batch == 2
    with torch.inference_mode():
        assert bool((own.call() == 0.0).all())  # what no constructor fills is zero, not what memory held


def test_a_saved_program_runs_with_its_weights(tmp_path: Path) -> None:
    path = tmp_path / "saved.pt2"
    module = torch.nn.Linear(4, 2).eval()
    torch.export.save(torch.export.export(module, (torch.zeros(3, 4),)), path)
    saved = subject(str(path))
    assert saved.batch == 3
    with torch.inference_mode():
        result = saved.call()
        assert torch.allclose(result, module(saved.positional[0]))


def test_weights_on_meta_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(
        "import torch\n\nnet = torch.nn.Linear(4, 2, device='meta')\nnet.example_inputs = torch.zeros(1, 4)\n"
    )
    with pytest.raises(ModelError, match="no storage for weight"):
        subject(f"{path}:net")


@pytest.mark.slow
def test_a_measurement_is_stored_beside_its_prediction(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "results.duckdb")
    answer = workspace.measure("mlp", arguments=SMALL, threads=1, seconds=FAST)
    score = answer.score
    assert score.model == "mlp(width=32, hidden=64, tokens=8)"
    assert score.hardware.endswith("_1_core")
    assert score.measured_latency_s == answer.timing.latency_s
    assert score.predicted_latency_s is not None
    assert_close(score.latency_ratio, score.predicted_latency_s / score.measured_latency_s)
    assert score.source == f"joulemap measure on {read_cpu().name}"
    for latency_s in (score.measured_latency_s, score.predicted_latency_s):
        assert show_quantity(latency_s, "s") in answer.document().answer
    for word in (
        "torch",
        "Python",
        "threads" if torch.get_num_threads() > 1 else "1 thread",
        "governor",
        "load average",
    ):
        assert word in score.conditions
    stored = workspace.sql(
        "SELECT hardware, model, runtime, latency_s FROM measurements WHERE source LIKE 'joulemap measure on%' "
        "ORDER BY measurement_id"
    )
    assert stored.rows == ((score.hardware, score.model, "eager", score.measured_latency_s),)
    assert workspace.check().findings.rows == ()


@pytest.mark.slow
def test_what_the_hardware_cannot_run_is_measured_without_a_prediction(tmp_path: Path) -> None:
    score = (
        Workspace(tmp_path / "results.duckdb")
        .measure("mlp", hardware="coral_edge_tpu", arguments=SMALL, seconds=FAST)
        .score
    )
    assert score.predicted_latency_s is None
    assert score.refusal
    assert score.measured_latency_s is not None and score.measured_latency_s > 0.0


@pytest.mark.slow
def test_a_detected_file_is_checked_and_measured_against(joulemap: Run, tmp_path: Path) -> None:
    assert joulemap("hardware", "detect", "--threads", 1, "--output", "this.toml").returncode == 0
    assert joulemap("hardware", "check", "this.toml").returncode == 0
    done = joulemap("measure", "mlp", *WIDE, "--seconds", FAST, "--hardware", "./this.toml", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hardware"] in (tmp_path / "this.toml").read_text()


@pytest.mark.slow
def test_a_compiled_model_runs_or_says_in_one_line_what_it_needs(joulemap_process: Run) -> None:
    done = joulemap_process("measure", "mlp", *WIDE, "--seconds", FAST, "--runtime", "fused", "--format", "json")
    if done.returncode:
        assert len(done.stderr.splitlines()) == 1
        assert "C++ compiler" in done.stderr
    else:
        assert json.loads(done.stdout)["runtime"] == "fused"


def test_a_host_is_timed_call_by_call(joulemap: Run) -> None:
    done = joulemap("measure", "host", "--seconds", str(FAST), "--format", "json")
    row = json.loads(done.stdout)
    assert row["is_scaled"]
    # 98,000 clocks of a launch over 4.65 us at 3.79 GHz of a dispatch
    assert_close(row["launch_s"] / row["call_s"], 98_000 / (4.65e-6 * 3.79e9), rel=1e-3)
    assert row["setting"] == f"host_launch={row['launch_s'] * 1e6:.3g}us"


def test_the_next_command_names_the_gpu_of_this_machine() -> None:
    pace = HostPace(device="NVIDIA H100", call_s=2e-5, launch_s=2e-5, is_scaled=False, spread_fraction=0.0)
    answer = HostAnswer(paces=make_table("pace", HostPace, [pace]), chip="h100_sxm5")
    (step,) = answer.document().steps
    assert step.split()[3:] == ["--hardware", "h100_sxm5", "--runtime", "eager", "--set", "h100_sxm5:host_launch=20us"]


def test_a_host_takes_nothing_that_concerns_a_model(joulemap: Run) -> None:
    done = joulemap("measure", "host", "--threads", "2", "--hardware", "l4", "--batch", "4", "--precision", "bf16")
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert done.stderr.endswith("leave out --hardware, --threads, --batch, --precision\n")
