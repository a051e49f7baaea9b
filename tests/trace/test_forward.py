"""Forward passes as people write them: counted, or refused in one line that says what to do."""

from __future__ import annotations

import cProfile
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune

from joulemap.physics.record.workload import Workload
from joulemap.system.errors import ExitCode, ModelError, UsageError
from joulemap.trace import limit, record
from joulemap.trace.limit import OPERATORS, SECONDS
from joulemap.trace.module import trace_module
from models import KEY

TORCH = tuple(map(int, torch.__version__.split(".")[:2]))

Forward = Callable[..., Any]
MACS = 2 * 16 * 16
"""Of a linear layer of 16 features on two rows."""


class Net(nn.Module):
    """A linear layer, and a forward pass that is handed over."""

    def __init__(self, function: Forward) -> None:
        super().__init__()
        self.lin = nn.Linear(16, 16)
        self.function = function

    def forward(self, *inputs: Any, **named: Any) -> Any:
        return self.function(self.lin, *inputs, **named)


def traced(forward: Forward, *inputs: Any) -> Workload:
    given = inputs or (torch.zeros(2, 16),)
    return trace_module(Net(forward), given, key=KEY, model="net", batch=2)


def macs(workload: Workload) -> int:
    return sum(one.mac_count for one in workload.operators)


def refusal(forward: Forward, *inputs: Any) -> str:
    with pytest.raises(ModelError) as caught:
        traced(forward, *inputs)
    text = str(caught.value)
    assert "\n" not in text
    return text


def synchronize(lin: nn.Module, x: Tensor) -> Any:
    torch.cuda.synchronize()
    return lin(x)


def fill(lin: nn.Module, x: Tensor) -> Any:
    return lin(x) + torch.arange(16, device="cuda") + torch.tensor([1.0], device="cuda")


DEVICES: dict[str, Forward] = {
    "to cpu": lambda lin, x: lin(x).to("cpu").relu(),
    "cpu": lambda lin, x: lin(x).cpu().relu(),
    "cuda": lambda lin, x: lin(x).cuda().relu(),
    "to cuda": lambda lin, x: lin(x).to("cuda") + torch.zeros(16, device="cuda"),
    "made there": fill,
    "the module moves": lambda lin, x: lin.to("cpu")(x),
    "waits": synchronize,
}


@pytest.mark.parametrize("name", DEVICES)
def test_a_transfer_stays_where_it_is(name: str) -> None:
    if torch.cuda.is_available() and name == "waits":
        pytest.skip("a GPU waits for itself")
    workload = traced(DEVICES[name])
    assert macs(workload) == MACS
    assert not any(one.kind == "uncounted" for one in workload.operators)


def test_a_window_of_this_machine_meets_a_signal_of_the_trace() -> None:
    workload = traced(
        lambda _, x: torch.stft(x, 512, window=torch.ones(512), return_complex=True), torch.zeros(2, 16000)
    )
    (fft,) = (one for one in workload.operators if one.operation == "fft")
    frames = 16000 // 128 + 1
    assert fft.elementwise_count == 2 * frames * 512 * 9 * 5 // 2  # 2.5 N log2 N each


def test_numbers_that_leave_torch_are_zeros_and_told() -> None:
    workload = traced(lambda lin, x: [lin(x)[index] for index in lin(x).sum(-1).long().tolist()])
    assert macs(workload) == 3 * MACS
    assert [(one.kind, one.operator) for one in workload.findings] == [("read", "tolist")]
    assert macs(traced(lambda lin, x: (f"{x.mean():.3f}", lin(x))[1])) == MACS


@pytest.mark.parametrize(
    "leave",
    [
        lambda x: torch.from_numpy(x.detach().cpu().numpy() * 2),
        lambda x: torch.as_tensor(__import__("numpy").tanh(x)),
    ],
)
def test_what_comes_back_from_numpy_is_an_input(leave: Callable[[Tensor], Tensor]) -> None:
    workload = traced(lambda lin, x: lin(leave(lin(x))))
    assert macs(workload) == 2 * MACS
    assert not any(one.is_foldable for one in workload.operators if one.kind == "linear")
    assert "what numpy computes is not counted" in workload.notes[0]


def test_an_encoder_with_padding_computes_all_of_it() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)
    inputs = {"src": torch.zeros(2, 10, 64), "src_key_padding_mask": torch.zeros(2, 10, dtype=torch.bool)}
    workload = trace_module(encoder, (), inputs, key=KEY, model="encoder", batch=2)
    # a layer: four projections and two of the MLP for 20 tokens, scores and sums of 4 heads of 16 over 10 x 10
    assert macs(workload) == 2 * (20 * (4 * 64 * 64 + 2 * 64 * 128) + 2 * 2 * 4 * 10 * 10 * 16)
    assert [(one.operator, one.assumed) for one in workload.findings] == [("is_left_aligned", "False")]


def test_both_branches_are_told_and_the_costlier_is_counted() -> None:
    workload = traced(lambda lin, x: torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: lin(y), (x,)))
    assert macs(workload) == MACS
    assert [one.operation for one in workload.operators if one.kind != "view"] == ["reduce", "gt", "linear"]
    (note,) = workload.notes
    assert "false is counted (true: 0 MACs and 32 other operations; false: 512 MACs and 32 other operations)" in note


def test_a_predicate_that_is_known_chooses() -> None:
    workload = traced(lambda lin, x: torch.cond(torch.ones(()).sum() > 2, lin, torch.sin, (x,)))
    assert macs(workload) == 0
    assert [(one.kind, one.module_path) for one in workload.findings] == [("idle", "lin")]


def repeat(lin: nn.Module, x: Tensor, most: Any) -> Any:
    from torch._higher_order_ops.while_loop import while_loop

    return while_loop(lambda step, _: step < most, lambda step, y: (step + 1, lin(y)), (torch.tensor(0), x))


def test_loops_run_as_often_as_they_would() -> None:
    from torch._higher_order_ops.map import map as run_each
    from torch._higher_order_ops.scan import scan

    rows = torch.zeros(7, 2, 16)
    assert macs(traced(lambda lin, x: run_each(lin, x), rows)) == 7 * MACS
    assert (
        macs(traced(lambda lin, x: scan(lambda c, y: (lin(c) + y, c.relu()), torch.zeros(2, 16), x), rows)) == 7 * MACS
    )
    assert macs(traced(lambda lin, x: repeat(lin, x, 5))) == 5 * MACS
    workload = traced(lambda lin, x: repeat(lin, x, x.sum()))
    assert macs(workload) == MACS
    assert "its condition depends on data; the body is assumed to run once" in workload.notes[0]


@pytest.mark.skipif(TORCH < (2, 14), reason="needs a GPU before 2.14 (docs/models.md)")
def test_an_associative_scan_is_counted() -> None:
    from torch._higher_order_ops.associative_scan import associative_scan

    workload = traced(lambda _, x: associative_scan(lambda a, b: a * b, x, dim=0), torch.zeros(8, 2, 16))
    assert any(one.operation == "mul" for one in workload.operators)


@pytest.mark.skipif(TORCH < (2, 12), reason="a trace has only the forward pass before 2.12 (docs/models.md)")
def test_a_gradient_of_a_function_is_counted() -> None:
    # forward, and the gradient of the input
    assert macs(traced(lambda lin, x: torch.func.grad(lambda y: lin(y).sum())(x))) == 2 * MACS


def test_a_gradient_by_the_input_is_counted() -> None:
    def force(lin: nn.Module, x: Tensor) -> Tensor:
        with torch.enable_grad():
            place = x.detach().requires_grad_(True)
            return torch.autograd.grad(lin(place).sum(), place)[0]

    assert macs(traced(force)) == 2 * MACS


@pytest.mark.parametrize("is_compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_flex_attention_is_an_attention(is_compiled: bool) -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    attend = torch.compile(flex_attention) if is_compiled else flex_attention
    mask = create_block_mask(lambda _b, _h, q, k: q >= k, None, None, 256, 256, device="cpu")

    def forward(_: nn.Module, x: Tensor) -> Any:
        return attend(x, x, x, score_mod=lambda score, _b, _h, q, k: score + (q - k), block_mask=mask)

    workload = traced(forward, torch.zeros(2, 4, 256, 16))
    assert macs(workload) == 2 * (2 * 4 * 256 * 256 * 16)
    (scores,) = (one for one in workload.operators if one.name.endswith("scores"))
    assert scores.elementwise_count == 2 * 4 * 256 * 256 * 3  # the scale, and what the score function adds
    assert "its mask keeps 3 of 4 blocks of scores, all are counted" in workload.notes[0]


@pytest.mark.parametrize("make", [torch.jit.script, lambda module: torch.jit.trace(module, torch.zeros(2, 16))])
@pytest.mark.parametrize("is_inside", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_torchscript_is_counted(make: Callable[[nn.Module], nn.Module], is_inside: bool) -> None:
    script = make(nn.Sequential(nn.Linear(16, 16), nn.ReLU()))
    module = nn.Sequential(script, nn.Linear(16, 16)) if is_inside else script
    workload = trace_module(module, (torch.zeros(2, 16),), key=KEY, model="script", batch=2)
    assert macs(workload) == (1 + is_inside) * MACS
    assert workload.parameter_count == (1 + is_inside) * 272
    assert next(script.parameters()).device.type == "cpu"


def test_a_check_of_data_is_taken_to_hold() -> None:
    def checked(lin: nn.Module, x: Tensor) -> Any:
        assert torch.isfinite(x).all()
        if not (x < 9).all():
            raise ValueError("too large")
        return lin(x)

    workload = traced(checked)
    assert macs(workload) == MACS
    assert [(one.kind, one.assumed) for one in workload.findings] == [("read", "True")] * 2


def test_a_check_of_sizes_that_fails_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "checked.py"
    path.write_text("def check(lin, x):\n    assert x.shape[0] == 3\n    return lin(x)\n")
    check = runpy.run_path(str(path))["check"]
    assert "its own check does not hold: assert x.shape[0] == 3; checked.py, line 2" in refusal(check)


def test_a_ctc_loss_is_counted() -> None:
    def loss(_: nn.Module, x: Tensor, targets: Tensor, steps: Tensor, lengths: Tensor) -> Any:
        return nn.functional.ctc_loss(x.log_softmax(-1), targets, steps, lengths)

    lengths = torch.full((2,), 50), torch.full((2,), 10)
    workload = traced(loss, torch.zeros(50, 2, 20), torch.ones(2, 10, dtype=torch.int64), *lengths)
    (ctc,) = (one for one in workload.operators if one.operation == "ctc_loss")
    assert (ctc.elementwise_count, ctc.special_count) == (9 * 2 * 50 * 21, 4 * 2 * 50 * 21)


def test_a_jagged_tensor_is_counted_by_what_it_holds() -> None:
    def jag(lin: nn.Module, x: Tensor) -> Any:
        return lin(torch.nested.as_nested_tensor([x[0, :3], x[1, :4]], layout=torch.jagged)).values()

    assert macs(traced(jag, torch.zeros(2, 8, 16))) == 7 * 16 * 16


def test_a_pruned_module_is_counted() -> None:
    module = nn.Linear(16, 16)
    prune.l1_unstructured(module, "weight", 0.5)
    assert macs(trace_module(module, (torch.zeros(2, 16),), key=KEY, model="pruned", batch=2)) == MACS


REFUSED: dict[str, tuple[Forward, str]] = {
    "a sparse tensor": (lambda lin, x: torch.sparse.mm(x.to_sparse(), lin.weight), "only dense tensors and"),
    "a nested tensor": (lambda lin, x: lin(torch.nested.nested_tensor([x[:1], x])), "layout=torch.jagged"),
    "memory": (lambda lin, x: lin(x) + x.untyped_storage()[0], "compute with torch's operators"),
    "a stream": (lambda lin, x: (torch.cuda.Stream(), lin(x))[1], "a GPU are not part of a trace"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_counted_is_refused_with_what_to_do(name: str) -> None:
    if torch.cuda.is_available() and name == "a stream":
        pytest.skip("a GPU has streams")
    forward, advice = REFUSED[name]
    text = refusal(forward)
    assert advice in text
    assert "INTERNAL ASSERT" not in text


def test_an_operator_without_a_rule_for_shapes_says_how_to_register_one() -> None:
    library = torch.library.Library("joulemap_forward", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: 2 * x, "CPU")
    text = refusal(lambda lin, x: torch.ops.joulemap_forward.twice(lin(x)))
    assert 'torch.library.register_fake("joulemap_forward::twice")' in text


def spin(_: nn.Module, x: Tensor) -> Tensor:
    while True:
        x = x + 1


def wait(_: nn.Module, x: Tensor) -> Tensor:
    while True:
        pass


def doze(lin: nn.Module, x: Tensor) -> Any:
    time.sleep(1.5)
    return lin(x)


def test_the_limit_on_time_leaves_nothing_behind() -> None:
    traced(lambda lin, x: lin(x))
    # A profiler waits without end where the interpreter is left looking for what another thread may have raised.
    assert cProfile.Profile().runcall(lambda: 1) == 1


@pytest.mark.slow
def test_a_loop_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPERATORS, "500")
    text = refusal(spin)
    assert "more than 500 operators ran" in text
    assert "; test_forward.py, line " in text
    monkeypatch.setenv(SECONDS, "1")
    text = refusal(wait)
    assert "it took more than 1 s" in text
    assert "; test_forward.py, line " in text
    told: list[tuple[str, int]] = []
    monkeypatch.setattr(limit, "GRACE_S", 0.2)
    monkeypatch.setattr(limit, "ends", [lambda text, code: told.append((text, code))])
    assert "it took more than 1 s" in refusal(doze)
    assert told[0][1] == ExitCode.MODEL  # a command of ours ends where no step of Python comes
    assert told[0][0].startswith("joulemap: net: it took more than 1 s: it may loop without end")
    monkeypatch.setenv(SECONDS, "soon")
    with pytest.raises(UsageError, match="JOULEMAP_TRACE_SECONDS is 'soon', expected a whole number"):
        traced(lambda lin, x: lin(x))


def regulate(lin: nn.Module, x: Tensor) -> Tensor:
    """As text becomes speech: each of its rows as often as it is long."""
    rows = lin(x)
    counts = rows.exp().sum(-1).long()
    spoken = torch.zeros((int(counts.sum()), 16))
    repeated = torch.repeat_interleave(rows, counts, dim=0)
    spoken[: repeated.size(0)] = repeated
    return spoken


def speak(lin: nn.Module, x: Tensor) -> Tensor:
    """As `regulate`, with counts that are no whole numbers by their kind."""
    counts = torch.ceil(torch.exp(lin(x)).sum(-1))
    places = torch.arange(int(counts.sum().clamp_min(1).long()))
    return nn.functional.conv1d((places < counts.cumsum(-1)[:, None]).float()[:, None], torch.ones(1, 1, 2))


def start_first(lin: nn.Module, x: Tensor) -> Tensor:
    """As bytes become patches: those that start one lie before the rest."""
    starts = lin(x) > 0
    places = torch.arange(16).expand(2, -1)
    padded = torch.cat((places, torch.full_like(places, 16)), dim=1)
    chosen = padded[torch.cat((starts, ~starts), dim=1)].reshape(2, 16)
    return torch.nn.functional.one_hot(chosen[:, : starts.sum(dim=1).max()], 17).float()


@pytest.mark.parametrize(
    ("forward", "rows", "note"),
    [
        (regulate, (2, 16), "each element is assumed to be repeated once"),
        (speak, (2, 1, 1), "each element is assumed to be repeated once"),
        (start_first, (2, 16, 17), "every element of a mask is assumed to be selected"),
    ],
)
def test_what_data_decides_twice_is_decided_alike(forward: Forward, rows: tuple[int, ...], note: str) -> None:
    workload = traced(forward)

    assert workload.operators[-1].output_shape == rows
    assert any(one.endswith(note) for one in workload.notes)
    assert macs(workload) >= MACS


def test_a_known_mask_selects_as_many_as_it_does_however_large() -> None:
    mask = torch.zeros(2, 1, dtype=torch.bool)
    mask[1] = True
    workload = traced(
        lambda lin, x, mask: lin(x).repeat(1, 2**14)[mask.expand(2, 2**18)] * 2.0, torch.zeros(2, 16), mask
    )

    assert workload.operators[-1].output_shape == (2**18,)


def test_an_error_without_sizes_is_told_with_them() -> None:
    assert "in conv2d of [1, 2, 1, 16] and [4, 3, 1, 1]" in refusal(
        lambda lin, x: nn.functional.conv2d(lin(x)[None, :, None], torch.ones(4, 3, 1, 1))
    )


def test_what_is_given_nothing_starts_no_kernel_and_its_weights_stay_in_memory() -> None:
    def route(lin: nn.Module, x: Tensor) -> Any:
        rows = lin(x)
        none = torch.zeros(0, dtype=torch.long)
        return rows.index_add_(0, none, nn.functional.gelu(idle(rows[none])))

    idle = nn.Linear(16, 16, bias=False)
    workload = traced(lambda lin, x: route(lin, x), torch.zeros(2, 16))
    assert macs(workload) == MACS
    assert [one.operation for one in workload.operators if one.kind != "view"] == ["linear"]
    assert sum(one.byte_count for one in workload.accesses if one.role == "weight") == 4 * (16 * 16 + 16)
    assert workload.weight_bytes == 4 * (16 * 16 + 16) + 4 * 16 * 16


def adapt(lin: nn.Module, x: Tensor) -> Tensor:
    step, passed = torch.tensor(0.1), 0.0
    while passed < 1.0:
        change = lin(x) * step
        if change.norm() < 1e-3:
            x, passed = x + change, passed + float(step)
        step = step / change.norm()
    return x


def test_a_solver_that_adapts_its_steps_is_refused_where_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MOST_ASKED", 20)
    text = refusal(adapt)
    assert "a fixed number of steps" in text
    assert "; test_forward.py, line " in text


def test_a_triton_kernel_is_refused_by_name() -> None:
    triton = pytest.importorskip("triton")

    def double(source: Any, target: Any) -> None:
        del source, target

    kernel = triton.jit(double)

    def run(lin: nn.Module, x: Tensor) -> Tensor:
        made = lin(x)
        target = torch.empty_like(made)
        kernel[(1,)](made, target)
        return target

    assert "it starts double, a Triton kernel" in refusal(run)
    assert macs(traced(lambda lin, x: run(lin, x) if x.is_cuda else lin(x))) == MACS
