"""Calls of a module of this program, and tables of modules: what is timed, what is predicted, that it adds up."""

from __future__ import annotations

import copy
import io
import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest
import torch

from compare import assert_close
from conftest import Run
from joulemap.show.present.cell import show_quantity
from joulemap.show.view import draw
from joulemap.store.engine import connect
from joulemap.system.errors import ExitCode, UnknownNameError, UsageError
from joulemap.wing.verify.ask.watch import WatchAnswer
from joulemap.wing.verify.call import CallRecorder
from joulemap.wing.verify.show.watch import NO_PREDICTION
from joulemap.workspace import Workspace


class Clock:
    """Seconds that modules move on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("joulemap.wing.verify.call.time.perf_counter", lambda: self.now)


class Worker(torch.nn.Module):
    """Takes a second, after what it calls."""

    def __init__(self, clock: Clock, *inner: torch.nn.Module) -> None:
        super().__init__()
        self.clock = clock
        self.inner = torch.nn.ModuleList(inner)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        for one in self.inner:
            value = one(value)
        self.clock.now += 1.0
        return value


def test_the_time_of_a_module_is_its_own_and_that_of_what_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model takes 1 s, `inner.0` 1 s and its shared part 1 s in each of two calls: 4 s in all."""
    clock = Clock(monkeypatch)
    shared = Worker(clock)
    model = Worker(clock, Worker(clock, shared), shared)
    recorder = CallRecorder(model)
    shared_before = dict(vars(shared))
    with recorder.record():
        shared(torch.zeros(1))  # not in a call of the model
        model(torch.zeros(1))
    (call,) = recorder.list_calls()
    assert call.own_s == {"": 1.0, "inner.0": 1.0, "inner.0.inner.0": 2.0}
    assert call.counts == {"": 1, "inner.0": 1, "inner.0.inner.0": 2}
    assert_close(call.latency_s, 4.0)
    assert_close(recorder.window_s, 5.0)
    assert vars(shared) == shared_before


def test_on_a_gpu_the_stream_of_the_models_device_tells_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same model, by events of the second device while the first is the current one; its clock lags the host's."""
    clock, second = Clock(monkeypatch), torch.device("cuda:1")
    waited: list[torch.device] = []

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self, stream: torch.device) -> None:
            assert stream == second
            self.at_ms = clock.now * 2e3

        def elapsed_time(self, later: Event) -> float:
            assert waited == [second]
            return later.at_ms - self.at_ms

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: device)
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    model = Worker(clock, Worker(clock))
    recorder = CallRecorder(model)
    monkeypatch.setattr(recorder, "device", "cuda")
    monkeypatch.setattr(recorder, "_place", second)
    with recorder.record():
        model(torch.zeros(1))
    (call,) = recorder.list_calls()
    assert call.own_s == {"": 2.0, "inner.0": 2.0}


def test_what_fails_is_no_call_and_leaves_the_modules_as_they_were() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(5, 5))
    recorder = CallRecorder(model)
    with pytest.raises(RuntimeError, match="shapes"), recorder.record():
        model(torch.zeros(1, 4))
    assert recorder.list_calls() == ()
    assert not any("forward" in vars(one) for one in model.modules())


def test_what_has_no_weights_before_its_first_call_is_watched(workspace: Workspace) -> None:
    rows = watch(workspace, torch.nn.Sequential(torch.nn.LazyLinear(3)), (torch.zeros(2, 4),)).rows
    assert rows[1].weight_count == 3 * 4 + 3


def test_a_copy_that_is_made_meanwhile_is_a_module_of_its_own() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 1, bias=False))
    recorder = CallRecorder(model)
    with recorder.record():
        other = copy.deepcopy(model)
    torch.nn.init.constant_(next(other.parameters()), 3.0)
    assert other(torch.ones(1, 2)).item() == 6.0
    assert recorder.list_calls() == ()


def test_what_is_saved_meanwhile_is_the_module_alone() -> None:
    model: Any = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU())
    model[1].forward = torch.abs
    kept = io.BytesIO()
    with CallRecorder(model).record():
        torch.save(model, kept)
        assert list(model.state_dict()) == ["0.weight", "0.bias"]
    kept.seek(0)
    read = torch.load(kept, weights_only=False)
    assert b"joulemap" not in kept.getvalue()
    assert torch.equal(read(torch.ones(1, 2)), model(torch.ones(1, 2)))
    assert read[0].forward.__self__ is read[0]


def test_watches_end_in_any_order() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 1))
    first, second = CallRecorder(model), CallRecorder(model)
    outer, inner = first.record(), second.record()
    with outer:
        inner.__enter__()
        model(torch.zeros(1, 2))
    model(torch.zeros(1, 2))
    inner.__exit__(None, None, None)
    assert (len(first.list_calls()), len(second.list_calls())) == (1, 2)
    assert not any("forward" in vars(one) for one in model.modules())


def test_a_function_that_is_put_there_meanwhile_stays() -> None:
    model: Any = torch.nn.Sequential(torch.nn.Linear(2, 1))
    recorder = CallRecorder(model)
    with recorder.record():
        below = model[0].forward
        model[0].forward = lambda value: below(value) * 0.0 + 7.0
    assert model(torch.ones(1, 2)).item() == 7.0
    assert recorder.list_calls() == ()


def test_what_is_compiled_or_exported_meanwhile_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = torch.nn.Linear(2, 1)
    recorder = CallRecorder(model)
    with recorder.record(), monkeypatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        model(torch.zeros(1, 2))
        forward: Any = model.forward
        assert forward.__code__ is torch.nn.Linear.forward.__code__
    assert recorder.list_calls() == ()


def test_calls_with_other_numbers_are_of_another_kind() -> None:
    model = Odd()
    recorder = CallRecorder(model)
    with recorder.record():
        for scale in (1.0, 2.0, 2.0):
            model({"x": torch.zeros(1, 8)}, scale=scale)
    assert sorted(recorder.counts.values()) == [1, 2]


def test_what_is_compiled_is_timed_as_a_whole() -> None:
    model: Any = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()))
    model[0]._compiled_call_impl = model[0]._call_impl  # as `compile()` leaves it
    before = model[0]._compiled_call_impl
    recorder = CallRecorder(model)
    with recorder.record():
        model(torch.zeros(1, 4))
    (call,) = recorder.list_calls()
    assert set(call.own_s) == {"", "0"}
    assert model[0]._compiled_call_impl == before
    assert CallRecorder(model[0]).is_compiled


@pytest.mark.slow
def test_a_compiled_model_is_predicted_as_its_compiler_fuses_it(workspace: Workspace) -> None:
    inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    compiled: Any = torch.compile(torch.nn.Sequential(inner), backend="eager")
    answer = watch(workspace, compiled, (torch.zeros(1, 4),))
    assert [row.module for row in answer.rows] == ["", "0", "0.0", "0.1"]
    assert answer.rows[0].measured_latency_s > 0.0 == answer.rows[1].measured_latency_s
    assert answer.prediction is not None
    assert answer.prediction.total.runtime == "fused"


@pytest.mark.parametrize(
    ("dtype", "context", "precision"),
    [(torch.float32, None, "fp32"), (torch.float64, None, "fp64"), (torch.float32, torch.bfloat16, "bf16")],
)
def test_a_call_tells_its_precision(dtype: torch.dtype, context: torch.dtype | None, precision: str) -> None:
    model = torch.nn.Linear(4, 4).to(dtype)
    recorder = CallRecorder(model)
    with recorder.record(), torch.autocast("cpu", dtype=context, enabled=context is not None):
        model(torch.zeros(1, 4, dtype=dtype))
    assert [kind.precision for kind in recorder.kinds.values()] == [precision]


class Odd(torch.nn.Module):
    """A layer that two modules hold and the model calls three times, a dictionary in and another out."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.parts = torch.nn.ModuleDict({"again": self.first, "last": torch.nn.Linear(8, 2)})
        self.unused = torch.nn.Linear(8, 8)

    def forward(self, batch: dict[str, torch.Tensor], *, scale: float = 1.0) -> dict[str, Any]:
        value = self.first(batch["x"])
        for _ in range(2):
            value = torch.relu(self.parts["again"](value))
        return {"out": self.parts["last"](value) * scale, "count": 3}


def watch(workspace: Workspace, module: torch.nn.Module, *calls: tuple[Any, ...], **keywords: Any) -> WatchAnswer:
    asked: dict[str, Any] = {"hardware": "l4", "quiet": True, **keywords}
    with workspace.watch(module, **asked) as watched:
        for call in calls:
            module(*call)
    check_sums(watched.answer)
    return watched.answer


def check_sums(answer: WatchAnswer) -> None:
    """Own parts of modules add up to the model: energy exactly, measured time up to rounding."""
    assert answer.prediction is not None, answer.refusal
    assert sum(row.own_energy_fj or 0 for row in answer.rows) == answer.prediction.total.energy_fj
    assert sum(row.own_latency_fs for row in answer.prediction.modules) == answer.prediction.total.latency_fs
    assert answer.rows[0].module == ""
    assert_close(answer.rows[0].measured_latency_s, sum(row.own_measured_latency_s for row in answer.rows))


def test_a_convolutional_network_in_three_lines(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    block = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
    model = torch.nn.Sequential(block, torch.nn.Flatten(), torch.nn.Linear(8 * 36, 10)).eval()
    answer = watch(workspace, model, *[(torch.zeros(2, 3, 8, 8),)] * 5, (torch.zeros(1, 3, 8, 8),), quiet=False)
    printed = capsys.readouterr().out
    rows = {row.module: row for row in answer.rows}
    assert list(rows) == ["", "0", "0.0", "0.1", "0.2", "1", "2"]
    assert rows["0.0"].mac_count == 2 * 8 * 36 * 27
    assert rows["0.0"].weight_count == 8 * 27
    assert rows["0"].mac_count == rows["0.0"].mac_count
    assert rows[""].mac_count == 2 * 8 * 36 * 27 + 2 * 288 * 10
    assert (rows["1"].mac_count, rows["1"].predicted_energy_j) == (0, 0.0)  # a view
    assert all(row.call_count == 1.0 for row in answer.rows)
    assert [one.values["count"] for one in answer.calls if one.kind == "other_calls"] == [1]
    assert "l4" in printed


def test_a_measurement_outside_the_interval_is_said_in_place_of_the_interval(workspace: Workspace) -> None:
    """59 times what is predicted is told with the factor; what is predicted exactly, or for another machine, is not."""
    found = watch(workspace, torch.nn.Linear(8, 8), (torch.zeros(4, 8),), hardware="l4")
    assert found.hardware == "l4"  # without the mark of what cannot be bought
    predicted = found.rows[0].predicted_latency_s
    assert predicted is not None
    usual = found.document().sure

    def measured(ratio: float, *, is_here: bool = True) -> str:
        rows = tuple(row.replace(measured_latency_s=ratio * predicted) for row in found.rows)
        told = attrs.evolve(found, is_here=is_here, rows=attrs.evolve(found.rows, rows=rows))
        return draw(told).sure

    assert "59x" in measured(59.0) and "59x" in measured(1.0 / 59.0)
    assert measured(1.0) == measured(59.0, is_here=False) == usual and "59x" not in usual


class Slow(torch.autograd.Function):
    """Twice its input; its gradient takes two seconds."""

    @staticmethod
    def forward(context: Any, value: torch.Tensor, clock: Clock) -> torch.Tensor:
        context.clock = clock
        return value * 2.0

    @staticmethod
    def backward(context: Any, *upstream: torch.Tensor) -> Any:
        context.clock.now += 2.0
        return upstream[0], None


class Learner(Worker):
    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return torch.Tensor(Slow.apply(super().forward(value), self.clock))


def test_gradients_are_of_the_module_that_made_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds for the model and each of its two modules; nothing of what is before it or behind it."""
    clock = Clock(monkeypatch)
    model, before = Learner(clock, Learner(clock), Learner(clock)), Learner(clock)
    value = before(torch.ones(1, requires_grad=True))
    recorder = CallRecorder(model)
    with recorder.record():
        Slow.apply(model(value), clock).sum().backward()
        with torch.no_grad():
            model(value)
    first, second = recorder.list_calls()
    assert {path: seconds for path, seconds in first.backward_s.items() if seconds} == dict.fromkeys(
        ("", "inner.0", "inner.1"), 2.0
    )
    assert second.backward_s == {}
    assert first.own_s == dict.fromkeys(("", "inner.0", "inner.1"), 1.0)


@pytest.mark.slow
def test_a_training_step_is_predicted_module_by_module(workspace: Workspace) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    with workspace.watch(model, hardware="l4", quiet=True) as watched:
        for _ in range(3):
            model(torch.ones(4, 64)).sum().backward()
    whole, *inner = watched.answer.rows
    assert all(row.measured_backward_s > 0.0 and (row.predicted_backward_s or 0.0) > 0.0 for row in inner)
    assert_close(whole.measured_backward_s, sum(row.measured_backward_s for row in inner))
    assert_close(whole.predicted_backward_s, sum(row.predicted_backward_s or 0.0 for row in inner))
    assert_close(whole.predicted_backward_j, sum(row.predicted_backward_j or 0.0 for row in inner))
    assert show_quantity(whole.predicted_backward_s, "s") in watched.answer.document().answer


class Foreign(torch.nn.Module):
    """Computes outside of torch, where no trace follows."""

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(value.numpy() * 2)


def test_without_a_prediction_the_answer_says_why(workspace: Workspace) -> None:
    model = torch.nn.Sequential(Foreign())
    with workspace.watch(model, hardware="l4", quiet=True) as watched:
        assert repr(watched) == "a running watch"
        with pytest.raises(UsageError, match="has not ended"):
            _ = watched.answer
        model(torch.zeros(2, 3))
    answer = watched.answer
    assert [row.module for row in answer.rows] == ["", "0"]
    assert answer.prediction is None
    assert answer.rows[0].predicted_energy_j is None
    assert NO_PREDICTION(answer) in answer.document().answer


class Loose(torch.nn.Module):
    """Takes any number of arguments by place, and one by name."""

    def forward(self, value: torch.Tensor, *_more: Any, scale: float) -> torch.Tensor:
        return value * scale


def test_a_call_that_cannot_be_written_again_runs_all_the_same(workspace: Workspace) -> None:
    module = Loose()
    with workspace.watch(module, hardware="l4", quiet=True) as watched:
        module(torch.zeros(1), None, scale=2.0)
        with pytest.raises(TypeError, match="scale"):
            module(torch.zeros(1))
    assert "positional and keyword arguments" in watched.answer.refusal
    assert watched.answer.rows[0].call_count == 1.0


def test_what_is_asked_wrongly_is_told_before_anything_runs(workspace: Workspace) -> None:
    model = torch.nn.Linear(3, 3)
    name: Any = "resnet18"
    with pytest.raises(UnknownNameError, match="l5"), workspace.watch(model, hardware="l5"):
        pytest.fail("it ran")
    with pytest.raises(UsageError, match="takes an nn"), workspace.watch(name, hardware="l4"):
        pytest.fail("it ran")
    with pytest.raises(UsageError, match="Linear was not called"), workspace.watch(model, hardware="l4"):
        pass


ASKED = ("model", "show", "resnet18", "--energy", "h100_sxm5")


def test_a_shipped_model_by_modules(joulemap: Run, database: Path) -> None:
    """ResNet-18: a stem of 118 M MACs, 11.69 M parameters and 9,600 numbers of batch norms beside them."""
    data = json.loads(joulemap(*ASKED, "--format", "json", "--db", database).stdout)
    rows = {row["module"]: row for row in data["modules"]}
    assert rows["conv1"]["mac_count"] == 112 * 112 * 64 * 3 * 49
    assert rows[""]["weight_count"] == 11_689_512 + 2 * 4800
    assert rows["layer1.0"]["depth"] == 2
    assert list(rows).index("layer1.0") == list(rows).index("layer1") + 1
    assert sum(row["own_energy_fj"] for row in rows.values()) == data["total"]["energy_fj"]
    assert sum(row["own_mac_count"] for row in rows.values()) == rows[""]["mac_count"]
    for name in ("layer1", "layer1.0", ""):
        inside = [row for module, row in rows.items() if not name or f"{module}.".startswith(f"{name}.")]
        assert_close(rows[name]["energy_j"], sum(row["own_energy_fj"] for row in inside) * 1e-15)


@pytest.mark.slow
def test_modules_are_counted_beside_many_stored_tensors(joulemap: Run, own_database: Path) -> None:
    """221,000 more tensors, some without dimensions: the engine splits every shape that there is."""
    asked = ("model", "show", "resnet18", "--energy", "l4", "--precision", "bf16", "--format", "json")
    expected = json.loads(joulemap(*asked, "--db", own_database).stdout)["modules"]
    with closing(connect(own_database)) as connection:
        columns = [
            name
            for (name,) in connection.execute(
                "SELECT column_name FROM duckdb_columns() WHERE table_name = 'workload_tensor' ORDER BY column_index"
            ).fetchall()
        ]
        given = {
            "workload_id": "100000 + i // 300",
            "tensor_index": "i % 300",
            "shape": "CASE WHEN i % 7 = 0 THEN '' ELSE concat(1 + i % 512, 'x', 1 + i % 64) END",
            "dtype": "'fp32'",
            "byte_count": "4",
            "role": "'parameter'",
            "name": "'w'",
            "is_output": "FALSE",
        }
        picked = ", ".join(given.get(name, "NULL") for name in columns)
        connection.execute(f"INSERT INTO internal.workload_tensor SELECT {picked} FROM range(221000) AS r(i)")
        connection.execute(
            "UPDATE internal.workload_tensor SET shape = '' WHERE workload_id < 100000 AND role = 'activation'"
        )
        connection.execute("CHECKPOINT")
    done = joulemap(*asked, "--db", own_database)
    assert done.returncode == ExitCode.OK, done.stderr
    assert [row["weight_count"] for row in json.loads(done.stdout)["modules"]] == [
        row["weight_count"] for row in expected
    ]


def test_a_table_goes_as_deep_as_is_asked(joulemap: Run, database: Path) -> None:
    """Eight blocks of six modules and three shortcuts of three."""
    shown = joulemap(*ASKED, "--depth", 1, "--show=details", "--db", database).stdout
    assert "  layer4" in shown
    assert not re.search(r"^    0 ", shown, re.MULTILINE)
    assert "--depth 4: 57 more modules" in shown
    assert shown.count(" sum exactly to ") == 1


def test_options_of_a_run_need_a_hardware(joulemap: Run) -> None:
    done = joulemap("model", "show", "resnet18", "--precision", "bf16", "--depth", "2")
    assert done.returncode == ExitCode.USAGE
    assert done.stderr == "joulemap: --precision, --depth: a table of modules needs hardware: name it with --energy\n"
