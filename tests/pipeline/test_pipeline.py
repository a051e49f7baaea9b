"""Pipelines: what a name states, the frame that it describes, and its figures at the frame rate."""

from __future__ import annotations

import pytest

import chip
from compare import assert_close
from conftest import Run
from joulemap.ask.compare import CompareAnswer
from joulemap.ask.recommend import RecommendAnswer
from joulemap.catalog.sheet import load_shipped
from joulemap.domain.operator.name import find_operator
from joulemap.domain.settings import Limits, Settings
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.runtime import RuntimeName
from joulemap.physics.record.workload import Workload
from joulemap.physics.workload import columns_of
from joulemap.system.errors import UnknownNameError, UsageError
from joulemap.trace.single import describe
from joulemap.wing.pipeline.ask.pace import find_paced
from joulemap.wing.pipeline.ask.recommend import PipelineRecommendAnswer
from joulemap.wing.pipeline.merge import merge_workloads
from joulemap.wing.pipeline.pipeline_name import NAMES
from joulemap.wing.pipeline.stage import list_named, read_pipeline
from joulemap.workspace import Workspace
from models import KEY

PIPELINE = "mobilenet_v2:30fps + resnet18:2/frame"


@pytest.mark.parametrize(
    ("name", "rate", "counts"),
    [
        ("a:30fps + b:5/frame", 30.0, [1, 5]),
        ("a:30fps+b:5/frame", 30.0, [1, 5]),
        ("a: 12.5 /s + b:25fps + b:50FPS", 12.5, [1, 2, 4]),
        ("path/to/a.onnx:15fps", 15.0, [1]),
        ("hf:org/name:10fps + file.py:make:2/frame", 10.0, [1, 2]),
        # two frames of 30/s with three runs; three with one; two of the same model are one stage
        ("a:30fps + b:1.5/frame", 15.0, [2, 3]),
        ("a:30fps + b:10fps", 10.0, [3, 1]),
        ("a:30fps + a:1/frame + b:0.25/frame", 7.5, [8, 1]),
        ("a + b x 30 + a", 0.0, [1, 30, 1]),
        ("a x2 + path/to/b.onnx", 0.0, [2, 1]),
    ],
)
def test_a_name_states_a_rate_and_the_runs_of_each_stage_per_frame(name: str, rate: float, counts: list[int]) -> None:
    found = read_pipeline(name)
    assert (found.frames_per_s, [stage.count for stage in found.stages]) == (rate, counts)
    assert read_pipeline(str(found)) == found


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("a:30fps + b", "no rate"),
        ("a:30fps + b x 3", "no rate"),
        ("a + b:30fps", "no rate"),
        ("a:30fps + ", "no rate"),
        ("a x 0 + b", "1 to 1,000"),
        ("a x 1001 + b", "1 to 1,000"),
        ("a + b:5", "unknown unit"),
        ("a:30fps + b:5kps", "unknown unit"),
        ("a:30fps + b:5", "unknown unit"),
        ("a:5/frame + b:30fps", "frame rate"),
        ("a:30fps + b:0/frame", "more than 0"),
        ("a:30fps + b:7.31fps", "round its rate"),
        ("a:30fps + b:1001/frame", "round its rate"),
    ],
)
def test_a_pipeline_that_cannot_be_read_says_why(name: str, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        read_pipeline(name)


def work_of(name: str) -> Workload:
    operator = find_operator(name)
    assert operator is not None
    return describe(operator, 1, KEY)


def test_a_frame_is_the_sum_of_the_runs_of_its_stages() -> None:
    """Runs of a stage share its weights and operators; times, energies and counts add up."""
    one, other = work_of("elementwise(kind=relu,elements=1048576)"), work_of("gemm(m=64,n=256,k=512)")
    frame = merge_workloads([(one, 1), (other, 3)], "frame", KEY)
    assert frame.mac_count == one.mac_count + 3 * other.mac_count == 3 * 64 * 256 * 512
    assert [operator.run_count for operator in frame.operators] == [1] * len(one.operators) + [3] * len(other.operators)
    assert len({operator.name for operator in frame.operators}) == len(frame.operators)
    assert frame.weight_bytes == one.weight_bytes + other.weight_bytes
    weights = [tensor for tensor in frame.tensors if tensor.role == "parameter"]
    assert len(weights) == sum(tensor.role == "parameter" for work in (one, other) for tensor in work.tensors)

    def run(work: Workload) -> tuple[int, int]:
        found = evaluate(columns_of(work), chip.cpu(), Configuration(hardware="toy", precision="fp32", runtime="graph"))
        return found.latency_fs, found.energy_fj

    parts, whole = (run(one), run(other)), run(frame)
    for index in range(2):
        assert_close(whole[index], parts[0][index] + 3 * parts[1][index])


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["eager", "fused", "engine"])
def test_counted_runs_take_what_separate_stages_take(runtime: RuntimeName, workspace: Workspace) -> None:
    asked = Settings(hardware=("l4",), precision="fp16", runtime=runtime)
    (once,), (counted,), (apart,) = (
        workspace.compare(name, asked).rows
        for name in ("mobilenet_v2 x 1 + resnet18", "mobilenet_v2 x 3 + resnet18", "mobilenet_v2 + " * 3 + "resnet18")
    )
    assert counted.peak_memory_bytes == once.peak_memory_bytes  # runs share weights
    for name in ("latency_s", "energy_j"):
        assert_close(getattr(counted, name), getattr(apart, name), rel=1e-3)
    assert [row for table in workspace.check().tables for row in table] == []


def test_a_picture_is_its_encoders_steps_and_decoder() -> None:
    found = read_pipeline("SDXL-txt2img(steps=7)")
    assert (str(found), found.frames_per_s) == ("sdxl-txt2img(steps=7)", 0.0)
    assert read_pipeline(str(found)) == found
    assert {stage.model: stage.count for stage in found.stages}["sdxl-unet-guided"] == 7
    assert "picture" in found.inference and "frame" in read_pipeline("yolov8n:30fps").inference
    for name in list_named():
        pipeline = read_pipeline(name)
        assert max(stage.count for stage in pipeline.stages) == int(str(pipeline).partition("=")[2].rstrip(")"))
        assert {stage.model for stage in pipeline.stages} <= set(load_shipped())


def test_speech_is_an_encoder_and_a_step_for_each_token() -> None:
    found = read_pipeline("Whisper-tiny")
    assert [(one.model, one.count) for one in found.stages] == [
        ("whisper_tiny_encoder", 1),
        ("whisper_tiny_decoder", 100),
    ]
    assert "30 s of speech" in found.inference and "100 tokens" in found.inference
    short = read_pipeline("openai/whisper-large-v3-turbo(tokens=7)")
    assert (str(short), short.stages[1].count) == ("whisper_turbo(tokens=7)", 7)
    assert NAMES.is_name("whisper_small") and not NAMES.is_name("whisper_small_decoder")
    assert not NAMES.is_name("whisper.py:build") and not NAMES.is_name("./whisper_tiny.onnx")


def test_a_picture_of_an_unknown_model_names_the_known_ones() -> None:
    with pytest.raises(UnknownNameError) as raised:
        read_pipeline("sdx-txt2img")
    assert raised.value.near[0] == "sdxl-txt2img"
    with pytest.raises(UsageError, match="steps"):
        read_pipeline("sdxl-txt2img(size=512)")


@pytest.mark.slow
def test_a_pipeline_is_recommended_by_its_average_power(workspace: Workspace) -> None:
    asked = Settings(hardware=("ax630c_npu", "rk3588_npu"), precision="int8", scenario="camera", power_budget_w=10.0)
    alone = {
        model: {row.hardware: row for row in workspace.recommend(model, asked).rows}
        for model in ("mobilenet_v2", "resnet18")
    }
    found = workspace.recommend(PIPELINE, asked)
    assert (found.rate_per_s, found.limits) == (30.0, Limits(min_throughput_per_s=30.0, max_power_w=10.0))
    assert isinstance(found, PipelineRecommendAnswer)
    # 0.84 W of the idle board; 2 W of an RK3588 around its NPU, whether it works or not
    for row, (idle_w, beside_w, cores) in zip(
        sorted(found.rows, key=lambda row: row.hardware), [(0.84, 0.0, 1), (0.0, 2.0, 3)], strict=True
    ):
        once, twice = (alone[model][row.hardware] for model in alone)
        assert (
            row.latency_s and row.energy_j and once.latency_s and twice.latency_s and once.energy_j and twice.energy_j
        )
        assert_close(row.latency_s, once.latency_s + 2 * twice.latency_s, rel=0.05)
        assert_close(row.energy_j, once.energy_j + 2 * twice.energy_j, rel=0.05)
        assert_close(row.busy_fraction, 30.0 * row.latency_s / cores, rel=0.05)
        mean_w = 30.0 * row.energy_j + idle_w * (1.0 - (row.busy_fraction or 0.0)) + beside_w
        assert_close(row.total_power_w, mean_w)
    shares = {row["hardware"]: (row["busiest_stage"], row["busiest_fraction"]) for row in found.paced.records()}
    one, other = (alone[model]["ax630c_npu"].latency_s or 0.0 for model in alone)
    assert shares["ax630c_npu"][0] == "resnet18"
    assert_close(shares["ax630c_npu"][1], 2 * other / (one + 2 * other))


@pytest.mark.slow
def test_a_chip_that_cannot_keep_the_rate_is_left_out(workspace: Workspace) -> None:
    asked = Settings(hardware=("ax630c_npu", "rk1808_npu"), precision="int8", scenario="camera")
    rows = {row.hardware: row for row in workspace.recommend("yolov8n:30fps + mobilenet_v2:5/frame", asked).rows}
    assert (rows["ax630c_npu"].status, rows["rk1808_npu"].status) == ("feasible", "infeasible")
    assert rows["rk1808_npu"].worst_limit == "throughput"


@pytest.mark.slow
def test_only_a_pipeline_with_a_frame_rate_is_answered_at_its_rate(workspace: Workspace) -> None:
    asked = Settings(hardware=("rk3588_npu",), precision="int8", batch=1)
    name = "mobilenet_v2 x 2 + resnet18"
    assert find_paced(name) is find_paced("prepare(size=224)") is find_paced("mobilenet_v2") is None
    assert type(workspace.compare(name, asked)) is CompareAnswer
    assert type(workspace.recommend(name, asked)) is RecommendAnswer
    plain, paced = (workspace.cost(name, asked) for name in ("mobilenet_v2", "mobilenet_v2:30fps"))
    assert (plain.per, paced.per) == ("inference", "frame")
    assert [row.usd_per_million for row in paced.rows] == [row.usd_per_million for row in plain.rows]


def test_a_figure_of_a_pipelines_cost_counts_frames(workspace: Workspace) -> None:
    assert "frames" in workspace.plot("mobilenet_v2:30fps", "cost", hardware="l4", precision="int8", batch=1).finding


def test_an_unknown_stage_is_an_unknown_model(workspace: Workspace, joulemap: Run) -> None:
    with pytest.raises(UnknownNameError, match="nosuchnet"):
        workspace.compare("yolov8n:30fps + nosuchnet:5/frame", Settings(hardware=("rk3588_npu",)))
    done = joulemap("compare", "yolov8n:30fps + mobilenet_v2:5kps", "rk3588_npu")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "5kps" in done.stderr
