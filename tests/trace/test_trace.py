"""A module to a workload: what is counted, what is moved, what depends on what."""

from __future__ import annotations

import inspect
import resource
from collections import Counter
from collections.abc import Callable

import attrs
import pytest
import torch
from torch import Tensor, nn

from blank import open_blank
from joulemap.physics.record.workload import READS_DATA, Workload
from joulemap.physics.width import Widths
from joulemap.store.workload import read_workload
from joulemap.system.errors import ModelError
from models import (
    Attention,
    Chain,
    Embedded,
    Expanded,
    Failing,
    Fourier,
    Function,
    Masked,
    Mlp,
    Residual,
    SelfAttention,
    Shared,
    SliceWrite,
    Views,
    accesses_of,
    columns,
    image,
    meta,
    operator,
    trace,
    trace_zoo,
)
from tools.zoo import write_workload


def reads(workload: Workload, name: str) -> list[int]:
    return [access.byte_count for access in accesses_of(workload, name, "input")]


def dependences(workload: Workload) -> set[tuple[str, str]]:
    names = [one.name for one in workload.operators]
    return {(names[edge.producer_index], names[edge.consumer_index]) for edge in workload.edges}


def test_operators_are_named_by_their_module_path() -> None:
    workload = trace_zoo("resnet18")
    assert operator(workload, "layer4.0.conv2").module_path == "layer4.0.conv2"
    # 512 channels in, nine taps, 512 channels of 7 x 7 out
    assert operator(workload, "layer4.0.conv2").mac_count == 512 * 9 * 512 * 49
    names = [one.name for one in workload.operators]
    assert len(set(names)) == len(names)


def test_tracing_does_not_take_the_memory_of_the_weights() -> None:
    trace_zoo("resnet18")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    workload = trace_zoo("vit_l_16")
    grown_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert workload.weight_bytes > 1_200_000_000
    assert grown_bytes < 0.2 * workload.weight_bytes


def test_a_module_with_weights_is_left_as_it_was() -> None:
    module = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    trace(module, torch.ones(2, 8))
    assert module.training
    assert {str(tensor.device) for tensor in module.state_dict().values()} == {"cpu"}
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())


def test_a_module_without_weights_is_left_in_its_mode() -> None:
    module = nn.Sequential(nn.ReLU(), nn.Dropout())
    trace(module, meta(2, 8))
    assert all(part.training for part in module.modules())


def test_real_and_absent_weights_give_the_same_workload() -> None:
    real = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
    absent = nn.Sequential(nn.Linear(8, 4, device="meta"), nn.ReLU())
    assert trace(real, torch.ones(2, 8)) == trace(absent, meta(2, 8))


def test_shared_weights_are_counted_once_and_read_twice() -> None:
    workload = trace(Shared(), meta(2, 8))
    assert workload.parameter_count == 64
    assert workload.weight_bytes == 256
    assert workload.mac_count == 2 * 128
    read = [access for access in workload.accesses if access.role == "weight"]
    assert [access.byte_count for access in read] == [256, 256]
    assert len({access.tensor_index for access in read}) == 1


def test_the_bytes_of_a_linear_layer() -> None:
    workload = trace(Mlp(), meta(2, 8))
    assert reads(workload, "first") == [2 * 8 * 4]
    assert [access.byte_count for access in accesses_of(workload, "first", "weight")] == [16 * 8 * 4, 16 * 4]
    assert [access.byte_count for access in accesses_of(workload, "first", "output")] == [2 * 16 * 4]
    assert workload.weight_bytes == (16 * 8 + 16 + 4 * 16 + 4) * 4


def test_views_move_nothing() -> None:
    workload = trace(Views(), meta(2, 4, 3))
    views = {index for index, one in enumerate(workload.operators) if one.is_view}
    assert len(views) == 4
    assert not [access for access in workload.accesses if access.operator_index in views]
    assert sum(access.byte_count for access in workload.accesses) == 2 * 96


def test_a_residual_addition_in_place_reads_both_sides() -> None:
    workload = trace(Residual(), image(1, 4, 8))
    assert reads(workload, "add") == [1024, 1024]
    assert ("bn2", "add") in dependences(workload)
    # the relu in place reads the sum, not the batch norm's value that it overwrote
    assert {pair for pair in dependences(workload) if pair[1] == "relu:2"} == {("add", "relu:2")}


def test_a_write_through_a_slice_is_a_dependence_of_the_whole() -> None:
    workload = trace(SliceWrite(), meta(2, 4, 3))
    assert {("add", "mul"), ("relu", "mul")} <= dependences(workload)
    assert reads(workload, "relu") == [2 * 2 * 3 * 4]
    assert reads(workload, "mul") == [2 * 4 * 3 * 4]


def fill_slice(x: Tensor) -> Tensor:
    total = x + 1.0
    total[:, 1:3] = 3
    return total


class FilledSlice(nn.Module):
    """Fills two of six columns with a number that it holds, and returns all six."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0.5

    def forward(self, x: Tensor) -> Tensor:
        total = x + 1.0
        total[:, 1:3] = self.number
        return total * 2.0


def test_a_number_assigned_to_a_slice_is_a_fill_that_only_writes() -> None:
    for module in (Function(fill_slice), FilledSlice()):
        workload = trace(module, meta(4, 6))
        # 4 rows of 2 columns of 4 bytes; the number is an argument of the kernel
        assert [one.operation for one in workload.operators][:3] == ["add", "slice", "fill"]
        assert reads(workload, "fill") == []
        assert [access.byte_count for access in accesses_of(workload, "fill", "output")] == [4 * 2 * 4]
        assert ("slice", "fill") in dependences(workload)
        assert workload.weight_bytes == 0
    assert ("fill", "mul") in dependences(workload)


def test_a_tensor_assigned_to_a_slice_is_a_copy_that_reads_it() -> None:
    def assign(x: Tensor) -> Tensor:
        total = x + 1.0
        total[:, 1:3] = x[:, :1]
        return total

    workload = trace(Function(assign), meta(4, 6))
    # one column of four rows is read and broadcast to two
    assert reads(workload, "copy") == [4 * 4]
    assert [access.byte_count for access in accesses_of(workload, "copy", "output")] == [4 * 2 * 4]


def test_a_number_assigned_by_a_mask_is_a_masked_fill() -> None:
    def assign(x: Tensor) -> Tensor:
        total = x + 1.0
        total[x > 0] = 0
        total[x[:, 0] > 0] = 1.5
        return total

    workload = trace(Function(assign), meta(4, 6))
    # reads and writes all 24 elements; the mask has one byte for each element, then for each row
    assert reads(workload, "masked_fill") == [96, 24]
    assert reads(workload, "masked_fill:2") == [96, 4]
    for name in ("masked_fill", "masked_fill:2"):
        assert [access.byte_count for access in accesses_of(workload, name, "output")] == [96]


def test_assigning_a_tensor_or_by_positions_stays_an_index_put() -> None:
    def assign(x: Tensor) -> Tensor:
        total = x + 1.0
        total[x > 0] = x.flatten()
        total[torch.tensor([0, 2])] = 1.0
        return total

    workload = trace(Function(assign), meta(4, 6))
    assert reads(workload, "index_put") == [24, 96]
    # two rows of six columns
    assert [access.byte_count for access in accesses_of(workload, "index_put:2", "output")] == [2 * 6 * 4]


@pytest.mark.parametrize(
    "make",
    [torch.zeros_like, torch.ones_like, lambda x: torch.full_like(x, 2.0), lambda x: x.new_zeros(4, 6)],
    ids=["zeros_like", "ones_like", "full_like", "new_zeros"],
)
def test_what_is_made_in_the_shape_of_a_tensor_reads_none_of_it(make: Callable[[Tensor], Tensor]) -> None:
    workload = trace(Function(lambda x: make(x) + x), meta(4, 6))
    made = workload.operators[0].name
    assert reads(workload, made) == []
    assert [access.byte_count for access in accesses_of(workload, made, "output")] == [96]


def test_the_masks_of_shifted_windows_are_filled() -> None:
    counts = Counter(one.operation for one in trace_zoo("swin_t").operators)
    # 5 of 12 blocks shift their windows: 3 x 3 regions each, no copy and no tensor of a number
    assert (counts["fill"], counts["new_zeros"], counts["masked_fill"]) == (45, 5, 10)
    assert not counts["copy"] + counts["scalar_tensor"] + counts["expand"]


def test_an_expanded_tensor_is_read_as_stored() -> None:
    workload = trace(Expanded(), meta(4, 8))
    assert [access.byte_count for access in accesses_of(workload, "add", "weight")] == [8 * 4]


def test_an_embedding_reads_the_rows_that_it_returns() -> None:
    workload = trace(Embedded(), torch.empty(2, 5, dtype=torch.int64, device="meta"))
    assert [access.byte_count for access in accesses_of(workload, "table", "weight")] == [10 * 8 * 4]
    assert reads(workload, "table") == [10 * 8]
    assert workload.weight_bytes == 1000 * 8 * 4


def test_both_halves_of_a_chunk_are_read() -> None:
    def gate(x: Tensor) -> Tensor:
        left, right = x.chunk(2, dim=1)
        return left * right

    assert reads(trace(Function(gate), meta(2, 8)), "mul") == [32, 32]


def test_a_matrix_and_its_transpose_are_read_once() -> None:
    workload = trace(Function(lambda x: x @ x.T), meta(4, 8))
    assert reads(workload, "matmul") == [4 * 8 * 4]


def test_attention_is_three_operators() -> None:
    workload = trace(Attention(), meta(2, 3, 5, 8), meta(2, 3, 7, 8), meta(2, 3, 7, 6))
    assert [one.name for one in workload.operators] == ["scores", "softmax", "weighted_sum"]
    scores, soft, total = workload.operators
    # 6 heads, 5 queries, 7 keys
    assert (scores.mac_count, scores.gemm_groups) == (6 * 5 * 7 * 8, 6)
    assert (soft.elementwise_count, soft.special_count) == (4 * 6 * 5 * 7, 6 * 5 * 7)
    assert (total.mac_count, total.output_shape) == (6 * 5 * 7 * 6, (2, 3, 5, 6))
    assert reads(workload, "scores") == [6 * 5 * 8 * 4, 6 * 7 * 8 * 4]
    # what the softmax gives, and the values
    assert sorted(reads(workload, "weighted_sum")) == sorted([6 * 5 * 7 * 4, 6 * 7 * 6 * 4])


def test_self_attention_reads_queries_keys_and_values() -> None:
    workload = trace(SelfAttention(), meta(2, 5, 16))
    one_of_three = 2 * 5 * 16 * 4
    assert reads(workload, "attention.scores") == [one_of_three, one_of_three]
    assert one_of_three in reads(workload, "attention.weighted_sum")


def test_an_operator_without_a_formula_is_a_row_with_its_bytes() -> None:
    workload = trace(Fourier(), meta(2, 8))
    (one,) = workload.operators
    assert (one.kind, one.mac_count, one.elementwise_count) == ("uncounted", 0, 0)
    # 16 real numbers in, 16 complex numbers out
    assert [access.byte_count for access in workload.accesses] == [64, 128]


def test_a_forward_pass_that_fails_names_model_path_and_reason() -> None:
    with pytest.raises(ModelError, match=r"^broken: the forward pass failed: .*inner\.1") as caught:
        trace(Failing(), meta(2, 8), model="broken")
    assert "\n" not in str(caught.value)


def test_a_number_read_from_data_is_told_as_an_assumption() -> None:
    workload = trace(Function(lambda x: x * 2.0 if (x + 1.0).sum().item() > 0 else x), meta(2, 8))
    (finding,) = workload.findings
    line = inspect.currentframe().f_lineno - 2  # type: ignore[union-attr]
    assert (finding.kind, finding.operator, finding.assumed) == ("read", "item", "1.0")
    assert (finding.file, finding.line) == ("test_trace.py", line)
    assert workload.notes == (f"model: {READS_DATA} at test_trace.py:{line} (item): 1.0 is assumed",)
    assert trace(Function(lambda x: x * 2.0), meta(2, 8)).notes == ()


class Early(nn.Module):
    """Twelve layers, and an exit after four of them that depends on data."""

    def __init__(self, read: Callable[[Tensor], bool]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(12))
        self.beside = nn.ModuleDict({"used": nn.Linear(8, 8), "unused": nn.Sequential(nn.Linear(8, 8), nn.ReLU())})
        self.read = read

    def forward(self, x: Tensor) -> Tensor:
        for index, layer in enumerate(self.layers):
            x = layer(x)
            if index == 3 and self.read(x):
                break
        return nn.functional.linear(x, self.beside.get_parameter("used.weight"))


EXITS: dict[str, Callable[[Tensor], bool]] = {
    "item": lambda x: x.sum().item() > 0.9,
    "bool": lambda x: not (x.sum() > 0.9),
    "int": lambda x: int(x.sum()) == 1,
    "tolist": lambda x: x.sum(0).tolist()[0] < 2.0,
    "equal": lambda x: not torch.equal(x, x + 1),
}


@pytest.mark.parametrize("name", EXITS)
def test_an_early_exit_names_its_line_and_the_modules_that_never_ran(name: str) -> None:
    workload = trace(Early(EXITS[name]), meta(2, 8))
    reads = [one for one in workload.findings if one.kind == "read"]
    function = inspect.unwrap(EXITS[name])
    assert {(one.file, one.line) for one in reads} == {("test_trace.py", function.__code__.co_firstlineno)}
    idle = [one.module_path for one in workload.findings if one.kind == "idle"]
    assert idle == [*(f"layers.{index}" for index in range(4, 12)), "beside.unused"]
    place = f"test_trace.py:{function.__code__.co_firstlineno}"
    assert all(place in note for note in workload.notes)
    assert any("9 modules with weights never ran" in note for note in workload.notes)


def test_findings_are_stored_with_their_workload() -> None:
    workload = trace(Early(EXITS["item"]), meta(2, 8))
    connection = open_blank()
    assert read_workload(connection, write_workload(connection, workload)).findings == workload.findings


def test_what_depends_on_data_is_taken_at_its_largest() -> None:
    selected = trace(Function(lambda x: x[x > 0] * 2.0), meta(2, 8))
    assert [operator.output_shape for operator in selected.operators if operator.operation == "mul"] == [(16,)]
    assert len(selected.notes) == 1
    found = trace(Function(lambda x: torch.nonzero(x)), meta(2, 8))
    assert found.operators[-1].output_shape == (16, 2)


@pytest.mark.parametrize(
    ("condition", "is_taken"),
    [
        (lambda x: x.sum() > 0, False),
        (lambda x: not (x > 0).all(), True),
        (lambda x: x.sum().item() > 0, True),
        (lambda x: x.argmax().item() > 0, False),
    ],
)
def test_a_condition_read_from_data_is_false_a_float_1_and_an_integer_0(
    condition: Callable[[torch.Tensor], bool], is_taken: bool
) -> None:
    """docs/own_model.md and docs/models.md say so."""
    workload = trace(Function(lambda x: torch.sin(x) if condition(x) else torch.cos(x)), meta(2, 8))
    assert [one.operation for one in workload.operators if one.operation in ("sin", "cos")] == [
        "sin" if is_taken else "cos"
    ]


def test_tensors_made_from_shapes_keep_their_values() -> None:
    def resize(x: torch.Tensor) -> torch.Tensor:
        scale = float(torch.tensor([x.shape[-1]]).max().item()) / 4.0
        return nn.functional.interpolate(x, scale_factor=scale)

    workload = trace(Function(resize), meta(1, 1, 8, 8))
    assert workload.operators[-1].output_shape == (1, 1, 16, 16)
    assert workload.notes == ()


def test_a_forward_pass_without_operators_is_refused() -> None:
    with pytest.raises(ModelError, match="it gives back its input"):
        trace(nn.Identity(), meta(2, 8))


def test_hooks_are_removed_after_a_failure() -> None:
    with pytest.raises(ModelError):
        trace(Failing(), meta(2, 8))
    assert torch.nn.modules.module._global_forward_pre_hooks == {}
    assert torch.nn.modules.module._global_forward_hooks == {}


def test_the_peak_of_live_activations() -> None:
    work = columns(Chain(), meta(2, 8))
    # at the sum: the first relu 64 (the last addition reads it), the sigmoid 64, the sums 8; the caller holds the input
    assert Widths(work, "fp32").peak_activation_bytes(is_fused=False) == 136.0 + 64.0
    assert Widths(work, "fp16").peak_activation_bytes(is_fused=False) == 68.0 + 32.0
    freed = attrs.evolve(work, buffer_release=work.buffer_death)
    assert Widths(freed, "fp32").peak_activation_bytes(is_fused=False) == 136.0


def test_what_is_passed_to_a_module_is_held_until_it_returns() -> None:
    work = columns(Function(lambda x: torch.relu(torch.sum(torch.relu(x), dim=1))), meta(2, 8))
    # the input and the first relu, 64 each, and the sums of 8; nothing holds the relu when the sums are read
    assert Widths(work, "fp32").peak_activation_bytes(is_fused=False) == 136.0
    # a compiler: the relu and the sums are one kernel's, and the input is gone after it
    assert list(work.buffer_death) == [0, 1, 2, 2]
    assert list(work.buffer_release) == [2, 1, 2, 2]


def test_what_depends_on_no_input_is_foldable() -> None:
    workload = trace(Masked(), meta(2, 8))
    assert {one.name: one.is_foldable for one in workload.operators} == {"mul": True, "add": False}


def test_inputs_and_outputs_are_boundaries() -> None:
    workload = trace(Mlp(), meta(2, 8))
    assert [access.byte_count for access in workload.accesses if access.is_boundary] == [64, 32]
