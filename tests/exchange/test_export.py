"""Runs as files of other programs, each read by a reader of its own."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from compare import assert_close
from conftest import Run
from joulemap.exchange.pprof import write_profile
from joulemap.exchange.subject import Subject
from joulemap.generated.export import Sample
from joulemap.system.errors import ExitCode, UsageError
from joulemap.workspace import Workspace
from pprof import read_profile, read_stacks
from sample import thin

HARDWARE = ("xeon_8490h", "h100_sxm5", "tpu_v4", "kpu_t256")
ENERGY, TIME, MOVED, OFF_CHIP, MACS = range(5)


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved program with attention, a gate, views and an operator of two results."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = torch.nn.Conv2d(3, 8, 3)
            self.body = torch.nn.Sequential(torch.nn.BatchNorm2d(8), torch.nn.ReLU())
            self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
            self.head = torch.nn.Linear(8, 4)

        def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            tokens = self.body(self.stem(x)).flatten(2).transpose(1, 2)
            tokens = torch.nn.functional.scaled_dot_product_attention(tokens, tokens, tokens * scale)
            tokens = self.attention(tokens, tokens, tokens)[0]
            one, other = tokens.chunk(2, -1)
            return self.head(tokens.mean(1)), one * other

    inputs = (torch.zeros(2, 3, 12, 12),), {"scale": torch.zeros(8)}
    path = tmp_path_factory.mktemp("program") / "net.pt2"
    torch.export.save(torch.export.export(Net().eval(), *inputs), path)
    return path


def export(workspace: Workspace, path: Path, *asked: Any, **keywords: Any) -> Path:
    with workspace.export(*asked, **keywords) as pieces:
        path.write_bytes(b"".join(pieces))
    return path


def sum_values(path: Path) -> list[int]:
    return [sum(column) for column in zip(*(stack.values for stack in read_stacks(path)), strict=True)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("hardware", thin(HARDWARE, 2))
@pytest.mark.parametrize("runtime", ["fused", "eager"])
def test_the_samples_of_a_profile_are_the_run_to_the_femtojoule(
    hardware: str, runtime: Any, database: Path, tmp_path: Path
) -> None:
    workspace = Workspace(database)
    total = workspace.analyze("resnet18", hardware, runtime=runtime).total
    sums = sum_values(export(workspace, tmp_path / "x.pb.gz", "resnet18", hardware, runtime=runtime))
    assert (sums[ENERGY], sums[TIME], sums[MACS]) == (total.energy_fj, total.latency_fs, total.mac_count)
    assert sums[OFF_CHIP] == round(total.dram_bytes)
    moved = workspace.sql(f"SELECT sum(moved_bytes) FROM operator_results WHERE run_id = {total.run_id}").rows[0][0]
    assert sums[MOVED] == round(moved)


def test_stacks_lead_from_the_model_over_modules_and_operators_to_actions(database: Path, tmp_path: Path) -> None:
    workspace = Workspace(database)
    answer = workspace.analyze("resnet18", "tpu_v4")
    stacks = read_stacks(export(workspace, tmp_path / "x.pb.gz", "resnet18", "tpu_v4"))
    energy, operators = Counter[str](), Counter[str]()
    for stack in stacks:
        assert stack.frames[0] == "resnet18" and stack.kinds[0] == "model"
        ends = 1 if stack.labels.get("basis") else 0
        for before, after in itertools.pairwise(stack.frames[1 : len(stack.frames) - 1 - ends]):
            assert after.startswith(f"{before}.")
        energy[stack.frames[-1]] += stack.values[ENERGY]
        operators[stack.frames[len(stack.frames) - 1 - ends]] += stack.values[ENERGY]
    by_action = Counter[str]()
    for row in answer.actions:
        by_action[f"{row.component}.{row.action}"] += row.energy_fj
    assert +energy == +by_action
    assert operators == {f"{row.name} [{row.operation}]": row.energy_fj for row in answer.operators}
    deepest = max(stacks, key=lambda stack: len(stack.frames)).frames
    assert deepest[:5] == ("resnet18", "layer2", "layer2.0", "layer2.0.downsample", "layer2.0.downsample.0")


def test_a_profile_says_what_it_is_of(database: Path, tmp_path: Path) -> None:
    profile = read_profile(export(Workspace(database), tmp_path / "x.pb.gz", "resnet18", "h100_sxm5"))
    text = profile.string_table
    assert [(text[one.type], text[one.unit]) for one in profile.sample_type] == [
        ("energy", "femtojoules"),
        ("time", "femtoseconds"),
        ("moved", "bytes"),
        ("off_chip", "bytes"),
        ("macs", "count"),
    ]
    assert text[profile.default_sample_type] == "energy"
    assert [text[one] for one in profile.comment] == [
        "resnet18 on h100_sxm5 (gpu), batch 1, fp32 (TF32 convolutions, PyTorch's default), fused, board"
    ]


@pytest.mark.slow
def test_a_difference_is_what_explain_says(database: Path, tmp_path: Path) -> None:
    workspace = Workspace(database)
    answer = workspace.explain("resnet18", "h100_sxm5", "tpu_v4")
    path = export(workspace, tmp_path / "d.pb.gz", "resnet18", "tpu_v4", against="h100_sxm5")
    assert sum_values(path)[ENERGY] == answer.total.difference_fj
    by_action = Counter[str]()
    for stack in read_stacks(path):
        assert ("pprof::base" in stack.labels) == (stack.labels["hardware"] == "h100_sxm5")
        by_action[stack.frames[-1]] += stack.values[ENERGY]
    terms = Counter[str]()
    for row in answer.terms:
        terms[f"{row.component}.{row.action}"] += row.difference_fj
    assert {name: value for name, value in by_action.items() if value} == {
        name: value for name, value in terms.items() if value
    }


def test_pprof_itself_reads_and_subtracts_profiles(database: Path, tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("no `go`, whose tool pprof is the reader of record (Debian: golang-go)")
    workspace, totals = Workspace(database), {}
    for hardware in ("h100_sxm5", "tpu_v4"):
        export(workspace, tmp_path / f"{hardware}.pb.gz", "resnet18", hardware)
        totals[hardware] = workspace.analyze("resnet18", hardware).total.energy_fj
    whole = draw(tmp_path, "-top", "-nodefraction=0", "tpu_v4.pb.gz")
    assert f"Total samples = {totals['tpu_v4']}femtojoules" in whole
    by_kind = draw(tmp_path, "-top", "-files", "tpu_v4.pb.gz")
    assert " static" in by_kind
    two = draw(tmp_path, "-top", "-nodefraction=0", "-diff_base=h100_sxm5.pb.gz", "tpu_v4.pb.gz")
    export(workspace, tmp_path / "one.pb.gz", "resnet18", "tpu_v4", against="h100_sxm5")
    one = draw(tmp_path, "-top", "-nodefraction=0", "one.pb.gz")
    difference = totals["tpu_v4"] - totals["h100_sxm5"]
    for shown in (two, one):
        assert f"accounting for {difference}femtojoules" in shown
        assert f"of {totals['h100_sxm5']}femtojoules total" in shown


def draw(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["go", "tool", "pprof", *arguments], capture_output=True, text=True, cwd=folder, timeout=60, check=True
    )
    return done.stdout


@pytest.mark.slow
def test_a_profile_of_any_length_takes_little_memory() -> None:
    subject = Subject(model="m", hardware="h", title="m on h", energy_fj=1, latency_fs=1, weight_bytes=1)

    def samples(count: int) -> Iterator[Sample]:
        for index in range(count):
            yield Sample.of((index, "a.b", "a.b", "conv2d", "a.b", "dram", "read", "c", "c", "b", 7, 0, 0.5, 0.5, 0))

    def peak(count: int) -> int:
        tracemalloc.start()
        size = sum(map(len, write_profile(subject, samples(count))))
        assert size < count
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak_bytes

    assert peak(60_000) < 1.5 * peak(6_000)


def test_halves_of_bytes_add_up(tmp_path: Path) -> None:
    subject = Subject(model="m", hardware="h", title="m on h", energy_fj=0, latency_fs=0, weight_bytes=0)
    rows = [Sample.of((i, "a", "", "conv2d", "a", "", "", "", "", "", 0, 0, 0.5, 1.5, 2**62)) for i in range(2)]
    path = tmp_path / "x.pb.gz"
    path.write_bytes(b"".join(write_profile(subject, rows)))
    assert sum_values(path) == [0, 0, 1, 3, 2**63]


def read_trace(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what a trace says of itself and its events, checked by the rules of the Trace Event Format."""
    trace = json.loads(path.read_bytes())
    assert trace["displayTimeUnit"] in ("ms", "ns")
    for event in trace["traceEvents"]:
        assert {"X": {"ts", "dur", "tid"}, "C": {"ts"}, "M": set(), "i": {"ts", "s"}}[event["ph"]] <= event.keys()
        assert event["name"] and isinstance(event["pid"], int) and event.get("ts", 0) >= 0
        if event["ph"] == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())
    return trace["otherData"], trace["traceEvents"]


def nest(events: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Return (depth, event) of slices and instants, which nest or follow each other to whoever adds floats."""
    nested, open_ = [], list[float]()
    last = 0.0
    for event in (one for one in events if one["ph"] in "Xi"):
        assert event["ts"] >= last
        last = event["ts"]
        while open_ and open_[-1] <= event["ts"]:
            open_.pop()
        end = event["ts"] + event.get("dur", 0.0)
        assert not open_ or end <= open_[-1]
        nested.append((len(open_), event))
        if event["ph"] == "X":
            open_.append(end)
    return nested


@pytest.mark.sample(1)
@pytest.mark.parametrize("runtime", ["fused", "eager"])
@pytest.mark.parametrize("hardware", ["xeon_8490h", "h100_sxm5"])
def test_a_trace_holds_the_run(hardware: str, runtime: Any, database: Path, tmp_path: Path) -> None:
    workspace = Workspace(database)
    total = workspace.analyze("resnet18", hardware, runtime=runtime).total
    about, events = read_trace(
        export(workspace, tmp_path / "x.json", "resnet18", hardware, "perfetto", runtime=runtime)
    )
    assert about["energy_fj"] == total.energy_fj
    drawn = nest(events)
    operators = [event for _, event in drawn if event["cat"] == "operator"]
    assert sum(event["args"]["energy_fj"] for event in operators) == total.energy_fj
    assert sum(event["args"]["latency_fs"] for event in operators) == total.latency_fs
    assert len(operators) == total.operator_count
    assert_close(max(event["ts"] for event in events if "ts" in event), total.latency_s * 1e6, rel=1e-5)
    kernels = [event for _, event in drawn if event["cat"] == "kernel"]
    assert len(kernels) == (total.subgraph_count if runtime == "fused" else 0)
    assert sum(event["args"]["kernel_count"] for event in operators) == total.kernel_count


@pytest.mark.sample(1)
@pytest.mark.parametrize("runtime", ["fused", "eager"])
def test_the_area_under_the_power_is_the_energy(runtime: Any, database: Path, tmp_path: Path) -> None:
    workspace = Workspace(database)
    total = workspace.analyze("resnet18", "tpu_v4", runtime=runtime).total
    _, events = read_trace(export(workspace, tmp_path / "x.json", "resnet18", "tpu_v4", "perfetto", runtime=runtime))
    for name in ("power (W)", "power by part (W)"):
        told = [event for event in events if event["ph"] == "C" and event["name"] == name]
        area = sum(
            sum(one["args"].values()) * (after["ts"] - one["ts"]) * 1e-6 for one, after in itertools.pairwise(told)
        )
        assert_close(area, total.energy_j, rel=1e-3)
        assert set(told[-1]["args"].values()) == {0.0}


@pytest.mark.slow
@pytest.mark.parametrize("hardware", thin(HARDWARE, 4))
def test_the_highest_memory_of_a_trace_is_the_peak(hardware: str, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    for model, batch, runtime in (("mobilenet_v2", 8, "fused"), ("attention_head", 1, "eager")):
        asked: dict[str, Any] = {"batch": batch, "runtime": runtime}
        total = workspace.analyze(model, hardware, **asked).total
        _, events = read_trace(export(workspace, tmp_path / "x.json", model, hardware, "perfetto", **asked))
        told = [sum(event["args"].values()) for event in events if event["name"] == "memory (B)"]
        assert max(told) == total.peak_memory_bytes


def test_kernels_run_after_those_that_they_read(database: Path, tmp_path: Path) -> None:
    workspace = Workspace(database)
    _, events = read_trace(export(workspace, tmp_path / "x.json", "resnet18", "h100_sxm5", "perfetto"))
    order = [event["args"]["operator_index"] for event in events if event.get("cat") == "operator"]
    place = {operator: index for index, operator in enumerate(order)}
    edges = [
        (edge.producer_index, edge.consumer_index)
        for edge in workspace.workload("resnet18").edges
        if edge.producer_index in place and edge.consumer_index in place
    ]
    assert edges
    assert all(place[before] < place[after] for before, after in edges)
    assert order != sorted(order)


@pytest.mark.slow
def test_model_explorer_finds_every_node(program: Path, tmp_path: Path) -> None:
    adapter = pytest.importorskip(
        "model_explorer.builtin_pytorch_exportedprogram_adapter", reason="ai-edge-model-explorer is not installed"
    ).BuiltinPytorchExportedProgramAdapter()
    builder = pytest.importorskip("model_explorer.node_data_builder")
    (graph,) = adapter.convert(str(program), {"const_element_count_limit": 4})["graphs"]
    labels = {node.id: node.label for node in graph.nodes}
    workspace = Workspace(tmp_path / "own.duckdb")
    answer = workspace.analyze(str(program), "h100_sxm5")
    path = export(workspace, tmp_path / "x.json", str(program), "h100_sxm5", "explorer")
    ((name, data),) = json.loads(path.read_text()).items()
    assert name == graph.id
    results = {node: builder.NodeDataResult(**one) for node, one in data["results"].items()}
    gradient = [builder.GradientItem(**one) for one in data["gradient"]]
    read = builder.GraphNodeData(results=results, name=data["name"], gradient=gradient)
    assert json.loads(builder.ModelNodeData({name: read}).to_json_string())[name]["results"] == data["results"]
    assert set(results) <= set(labels)
    assert_close(sum(one.value for one in results.values()), answer.total.energy_j)
    kinds = {
        "aten.conv2d": "conv",
        "aten.batch_norm": "batch_norm",
        "aten.linear": "linear",
        "aten.scaled_dot_product_attention": "matmul",
    }
    for label, kind in kinds.items():
        total = sum(one.value for node, one in results.items() if labels[node] == label)
        assert total > 0.0
        rows = [row for row in answer.operators if row.kind == kind]
        assert label == "aten.scaled_dot_product_attention" or total == pytest.approx(
            sum(row.energy_j for row in rows), rel=1e-12, abs=0.0
        )


def test_a_module_of_a_program_is_exported(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    module = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
    with workspace.export(module, torch.zeros(2, 8), "h100_sxm5") as pieces:
        assert next(pieces) is not None
    with (
        pytest.raises(UsageError, match="is not a saved program"),
        workspace.export(module, torch.zeros(2, 8), "h100_sxm5", "explorer"),
    ):
        pass


@pytest.mark.parametrize(
    ("asked", "keywords", "message"),
    [
        (("xml",), {}, "unknown export format 'xml'; known: pprof, perfetto, explorer"),
        (("perfetto",), {"against": "tpu_v4"}, "only pprof compares two chips"),
        (("explorer",), {"metric": "cost"}, "unknown metric 'cost'"),
        (("explorer",), {}, "resnet18 is not a saved program"),
        (("pprof",), {"batch": (1, 2)}, "export"),
    ],
)
def test_what_cannot_be_exported_is_said(
    asked: tuple[Any, ...], keywords: dict[str, Any], message: str, database: Path
) -> None:
    with (
        pytest.raises(UsageError, match=message),
        Workspace(database).export("resnet18", "h100_sxm5", *asked, **keywords),
    ):
        pass


def test_commands_write_files(joulemap: Run, database: Path, tmp_path: Path) -> None:
    asked = ("export", "pprof", "resnet18", "tpu_v4", "--db", database, "-o", "x.pb.gz")
    assert joulemap(*asked).stderr == "wrote x.pb.gz\n"
    first = (tmp_path / "x.pb.gz").read_bytes()
    assert joulemap(*asked).returncode == ExitCode.OK
    assert (tmp_path / "x.pb.gz").read_bytes() == first
    joulemap("export", "perfetto", "resnet18", "tpu_v4", "--db", database, "-o", "x.json")
    shown = joulemap("export", "perfetto", "resnet18", "tpu_v4", "--db", database)
    assert shown.stdout == (tmp_path / "x.json").read_text()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("xml", "resnet18", "tpu_v4"), ExitCode.USAGE, "No such command 'xml'"),
        (("pprof", "resnet18"), ExitCode.USAGE, "name a chip"),
        (("pprof", "resnet18", "tpu_v4"), ExitCode.USAGE, "name it with --output"),
        (("pprof", "resnet18", "tpu_v44", "-o", "x.pb.gz"), ExitCode.UNKNOWN_NAME, "did you mean tpu_v4"),
        (
            ("pprof", "resnet18", "tpu_v4", "-o", "x.json"),
            ExitCode.USAGE,
            "x.json would hold a gzipped profile: name it",
        ),
        (("perfetto", "resnet18", "tpu_v4", "-o", "x.csv"), ExitCode.USAGE, "a trace in JSON: name it x.json"),
        (("perfetto", "resnet18", "tpu_v4", "-o", "x.pb.gz"), ExitCode.USAGE, "x.pb.gz would hold a trace in JSON"),
        (("explorer", "resnet18", "tpu_v4", "-o", "x.json"), ExitCode.USAGE, "resnet18 is not a saved program"),
        (("explorer", "resnet18", "tpu_v4", "--metric", "cost"), ExitCode.USAGE, "'cost' is not one of"),
        (("perfetto", "resnet18", "tpu_v4", "-o", "no/x.json"), ExitCode.USAGE, "there is no folder"),
        (("perfetto", "resnet18", "tpu_v4,h100_sxm5"), ExitCode.USAGE, "is 2 chips, expected one"),
        (("pprof", "resnet18", "coral", "-o", "x.pb.gz"), ExitCode.UNSUPPORTED, "fp32"),
    ],
)
def test_a_command_that_cannot_write_says_why(
    arguments: tuple[str, ...], code: ExitCode, message: str, joulemap: Run, tmp_path: Path
) -> None:
    done = joulemap("export", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("x.*"))


def test_a_file_of_a_person_is_kept(joulemap: Run, own_database: Path, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    asked = ("export", "perfetto", "resnet18", "tpu_v4", "--db", own_database, "-o")
    assert "x.json exists" in joulemap(*asked, "x.json").stderr
    (tmp_path / "x.json").unlink()
    assert joulemap(*asked, "x.json").returncode == ExitCode.OK
    assert joulemap(*asked, own_database).returncode == ExitCode.USAGE
