"""Loops over time: recurrent layers as products and scans, loops written by hand as one kernel, and what steps cost."""

from __future__ import annotations

import itertools
from functools import cache

import attrs
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils.flop_counter import FlopCounterMode

import chips
from compare import assert_close
from joulemap.physics.fuse.loop import LEAST_STEPS
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import FLOPS_PER_MAC, Configuration
from joulemap.physics.record.workload import Subgraph, Workload
from joulemap.physics.run import RunColumns
from joulemap.physics.step import find_private
from joulemap.physics.workload import columns_of
from joulemap.system.units import FS_PER_S
from models import Function, meta, trace

STEPS, WIDTH = 12, 16
ONE_OF_EACH_CLASS = tuple({one.architecture: one.id for one in reversed(chips.ROOMY)}.values())


class Selective(nn.Module):
    """A selective scan over time, as state-space models write it."""

    def __init__(self, width: int = WIDTH, state: int = 4) -> None:
        super().__init__()
        self.decay = nn.Parameter(torch.ones(width, state))
        self.enter = nn.Linear(width, width)
        self.leave = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        driven = self.enter(x)
        decay = torch.exp(driven[..., None] * self.decay)
        state = x.new_zeros(x.shape[0], x.shape[2], self.decay.shape[1])
        outputs = []
        for step in range(x.shape[1]):
            state = decay[:, step] * state + driven[:, step, :, None]
            outputs.append((state * driven[:, step, :, None]).sum(-1))
        left: Tensor = self.leave(torch.stack(outputs, 1))
        return left


class Stepped(nn.Module):
    """A cell that is called step by step, in a module of its own, and writes into its output."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(width, width)

    def forward(self, x: Tensor) -> Tensor:
        hidden = x.new_zeros(x.shape[1], x.shape[2])
        cell = hidden
        output = torch.empty_like(x)
        for step in range(x.shape[0]):
            hidden, cell = self.cell(x[step], (hidden, cell))
            output[step] = hidden
        return output


class Shared(nn.Module):
    """The same layer several times, one behind the other."""

    def __init__(self, layer: nn.Module, times: int) -> None:
        super().__init__()
        self.layer, self.times = layer, times

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.times):
            x = self.layer(x)
        return x


class Packed(nn.Module):
    """A recurrent layer over sequences of unequal length."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        packed = PackedSequence(x, torch.tensor([3, 2, 2]))
        output: Tensor = self.layer(packed)[0].data
        return output


def scans(workload: Workload) -> list[Subgraph]:
    return [one for one in workload.subgraphs if one.pattern == "scan"]


@cache
def evaluator(kind: str) -> Evaluator:
    modules: dict[str, tuple[nn.Module, Tensor]] = {
        "lstm": (nn.LSTM(WIDTH, WIDTH, num_layers=2, bidirectional=True), meta(STEPS, 2, WIDTH)),
        "large": (nn.LSTM(4096, 4096, device="meta"), meta(STEPS, 1, 4096)),
        "selective": (Selective(), meta(2, STEPS, WIDTH)),
    }
    module, source = modules[kind]
    return Evaluator(columns_of(trace(module, source)))


@cache
def run(kind: str, hardware: str, runtime: str) -> RunColumns:
    return evaluate(evaluator(kind), hardware, runtime)


def evaluate(workload: Evaluator, hardware: str, runtime: str = "fused") -> RunColumns:
    found = chips.find(hardware)
    precision = "fp32" if "fp32" in found.peaks else next(iter(found.peaks))
    return workload.evaluate(found, Configuration(hardware=hardware, precision=precision, runtime=runtime))


RECURRENT = pytest.mark.parametrize(
    "layer",
    [
        nn.LSTM(6, WIDTH, num_layers=2),
        nn.LSTM(6, WIDTH, num_layers=2, bidirectional=True, proj_size=5),
        nn.LSTM(6, WIDTH, bias=False),
        nn.GRU(6, WIDTH, num_layers=3, bidirectional=True),
        nn.RNN(6, WIDTH, nonlinearity="relu"),
        nn.RNN(6, WIDTH, bidirectional=True),
    ],
    ids=["lstm", "projected", "unbiased", "gru", "relu", "tanh"],
)


@pytest.mark.slow
@RECURRENT
def test_a_recurrent_layer_has_the_macs_that_torch_counts(layer: nn.RNNBase) -> None:
    with FlopCounterMode(display=False) as counter, torch.backends.mkldnn.flags(enabled=False):
        layer(torch.ones(STEPS, 3, 6))
    assert trace(layer, meta(STEPS, 3, 6)).mac_count == counter.get_total_flops() // FLOPS_PER_MAC


@RECURRENT
def test_a_recurrent_layer_uses_each_weight_for_each_token(layer: nn.RNNBase) -> None:
    workload = trace(layer, meta(STEPS, 3, 6))
    matrices = sum(weight.numel() for weight in layer.parameters() if weight.dim() == 2)
    assert workload.mac_count == STEPS * 3 * matrices
    assert workload.weight_bytes == sum(weight.numel() * 4 for weight in layer.parameters())
    directions = 2 if layer.bidirectional else 1
    steps = [one.step_count for one in workload.operators if one.mac_count]
    assert steps == [1, STEPS] * layer.num_layers * directions
    for one in workload.operators:
        assert one.mac_count == one.gemm_m * one.gemm_n * one.gemm_k * one.gemm_groups


def test_gates_are_counted_as_cells_compute_them() -> None:
    def written(x: Tensor) -> Tensor:
        hidden: Tensor = cell(x, (x, x))[0]
        return hidden

    cell, layer = nn.LSTMCell(WIDTH, WIDTH), nn.LSTM(WIDTH, WIDTH)
    single, whole = (
        trace(one, meta(*shape)) for one, shape in ((Function(written), (3, WIDTH)), (layer, (1, 3, WIDTH)))
    )
    for name in ("mac_count", "elementwise_count", "special_count"):
        assert sum(getattr(one, name) for one in single.operators) == sum(getattr(one, name) for one in whole.operators)


def test_a_recurrent_layer_moves_its_values_once() -> None:
    workload = trace(nn.LSTM(6, WIDTH, num_layers=2, bidirectional=True), meta(STEPS, 3, 6))
    written: dict[int, int] = {}
    for access in workload.accesses:
        if access.role == "output":
            written[access.tensor_index] = written.get(access.tensor_index, 0) + access.byte_count
    for index, byte_count in written.items():
        assert byte_count == workload.tensors[index].byte_count
    for edge in workload.edges:
        assert edge.producer_index < edge.consumer_index


def test_a_packed_batch_has_its_own_rows() -> None:
    workload = trace(Packed(), meta(7, WIDTH))
    scan = next(one for one in workload.operators if one.step_count > 1)
    assert (scan.step_count, scan.gemm_m, scan.mac_count) == (3, 7, 7 * 3 * WIDTH * WIDTH)


def test_a_layer_reads_both_directions_of_the_one_before() -> None:
    workload = trace(nn.GRU(6, WIDTH, num_layers=2, bidirectional=True), meta(STEPS, 3, 6))
    names = [one.name for one in workload.operators]
    second = names.index("input_l1")
    producers = {names[edge.producer_index] for edge in workload.edges if edge.consumer_index == second}
    assert producers == {"scan_l0", "scan_l0_reverse"}


def test_a_loop_over_time_is_one_kernel() -> None:
    workload = trace(Selective(), meta(2, STEPS, WIDTH))
    (scan,) = scans(workload)
    assert scan.step_count == STEPS
    members = set(scan.operator_indices)
    outside = [one for index, one in enumerate(workload.operators) if index not in members]
    assert len(members) >= STEPS * 5
    assert len(outside) < 12
    moved = [one for one in workload.accesses if one.operator_index in members]
    elements = STEPS * 2 * WIDTH
    assert sum(one.fused_byte_count for one in moved if one.role == "output") == elements * 4
    weights = {one.tensor_index for one in moved if one.role == "weight"}
    assert sum(one.fused_byte_count for one in moved if one.role == "weight") == sum(
        workload.tensors[index].byte_count for index in weights
    )


def test_a_module_that_repeats_a_small_layer_is_a_loop() -> None:
    layer = nn.Sequential(nn.Tanh(), nn.Softmax(-1))
    assert [one.step_count for one in scans(trace(Shared(layer, STEPS), meta(2, WIDTH)))] == [STEPS]
    assert not scans(trace(Shared(layer, LEAST_STEPS - 1), meta(2, WIDTH)))


@pytest.mark.parametrize("layer", [Stepped(), Shared(nn.Linear(WIDTH, WIDTH), STEPS)], ids=["cell", "linear"])
def test_a_compiler_leaves_the_products_of_a_loop_to_a_library(layer: nn.Module) -> None:
    workload = trace(layer, meta(STEPS, 2, WIDTH))
    assert not scans(workload)
    products = [one for one in workload.subgraphs if any(workload.operators[i].mac_count for i in one.operator_indices)]
    assert len(products) == sum(one.mac_count > 0 for one in workload.operators)
    each = {one.operator_index: one.fused_byte_count for one in workload.accesses if one.role == "weight"}
    assert min(each.values()) > 0, "each step reads its weights"


def test_layers_are_no_loop() -> None:
    layers = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(STEPS)))
    assert not scans(trace(layers, meta(2, WIDTH)))


def test_weights_of_their_own_are_no_loop() -> None:
    class Many(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.ParameterList(torch.ones(WIDTH, WIDTH) for _ in range(STEPS))

        def forward(self, x: Tensor) -> Tensor:
            for weight in self.weights:
                x = torch.tanh(x @ weight)
            return x

    assert not scans(trace(Many(), meta(2, WIDTH)))


def test_a_state_that_no_chip_holds_ends_a_loop() -> None:
    def balance(x: Tensor) -> Tensor:
        for _ in range(STEPS):
            x = x - torch.logsumexp(x, 0, keepdim=True)
        return x

    assert scans(trace(Function(balance), meta(300, 300)))
    assert not scans(trace(Function(balance), meta(3000, 3000)))


def test_what_hands_nothing_on_is_no_loop() -> None:
    def apart(x: Tensor) -> list[Tensor]:
        return [torch.tanh(x[step]) for step in range(STEPS)]

    assert not scans(trace(Function(apart), meta(STEPS, 4)))


def test_every_operator_is_in_one_subgraph() -> None:
    for module, shape in ((Selective(), (2, STEPS, WIDTH)), (Stepped(), (STEPS, 2, WIDTH))):
        workload = trace(module, meta(*shape))
        members = [index for one in workload.subgraphs for index in one.operator_indices]
        assert sorted(members) == list(range(len(workload.operators)))


@pytest.mark.parametrize("hardware", ONE_OF_EACH_CLASS)
def test_steps_cost_no_launches(hardware: str) -> None:
    fused, separate = run("selective", hardware, "fused"), run("selective", hardware, "graph")
    # a request to an Edge TPU takes longer than all of its launches; one core of a CPU starts no threads at all
    least = {"coral_edge_tpu": 1.05, "altra_max_m128_30": 0.85}.get(hardware, 1.5)
    assert fused.latency_fs < separate.latency_fs / least
    local = chips.find(hardware).coefficient("step_cost.local")
    scan = int(np.argmax(fused.subgraphs.launch_s))
    others = np.delete(fused.subgraphs.launch_s, scan)
    assert fused.subgraphs.launch_s[scan] >= others.min() + 0.99 * STEPS * local


def test_more_steps_cost_as_many_times_the_step() -> None:
    seconds = {}
    for steps in (50, 100, 200):
        work = columns_of(trace(nn.LSTM(512, 512, num_layers=2, device="meta"), meta(steps, 1, 512)))
        found = evaluate(Evaluator(work), "h100_sxm5")
        seconds[steps] = found.latency_fs / FS_PER_S
    assert 0.4e-3 < seconds[100] < 0.6e-3
    assert_close(seconds[200] - seconds[100], 2 * (seconds[100] - seconds[50]), rel=0.05)


def test_weights_that_the_chip_does_not_hold_are_read_in_every_step() -> None:
    large = run("large", "h100_sxm5", "fused")
    weights = 4 * 4096 * 4096 * 4
    scan = int(np.argmax(large.operators.dram_bytes))
    held = float(find_private(chips.find("h100_sxm5")))
    assert_close(large.operators.dram_bytes[scan], weights + (STEPS - 1) * (weights - held), rel=0.01)
    small = run("lstm", "h100_sxm5", "fused")
    assert small.operators.dram_bytes.sum() < small.operators.moved_bytes.sum()


def test_a_cache_serves_the_weights_that_the_units_do_not_hold() -> None:
    seconds = []
    for width in (896, 960, 1024, 1088):
        work = columns_of(trace(nn.LSTM(width, width, device="meta"), meta(50, 1, width)))
        found = Evaluator(work).evaluate(chips.find("l4"), Configuration(hardware="l4", precision="fp16"))
        seconds.append(found.latency_fs / FS_PER_S)
    for width, (shorter, longer) in enumerate(itertools.pairwise(seconds)):
        assert longer < 1.5 * shorter, width


def test_operators_and_subgraphs_of_other_models_have_one_step() -> None:
    workload = trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), meta(2, 4))
    assert {one.step_count for one in workload.operators} | {one.step_count for one in workload.subgraphs} == {1}
    assert attrs.fields(Subgraph).step_count.default == 1
