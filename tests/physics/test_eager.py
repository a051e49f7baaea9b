"""What eager mode adds on a CPU, worked out by hand for four cores at 1 GHz with eight lanes each."""

from __future__ import annotations

import attrs
import torch
from torch import nn

import chip
from compare import assert_close
from convolution import INPUT, OUTPUT, WEIGHT, convolution, run
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.workload import WorkloadColumns
from models import columns, image

CLOCKS_PER_S = 4 * chip.CLOCK_HZ
SETUP_S = 2e-6


def cpu(**coefficients: float) -> Hardware:
    """Return the toy CPU without the costs of this module's formulas, except those given."""
    own = chip.cpu()
    given = {"framework_gain": 1.0, "copied_element_clocks": 0.0, "fault_clocks": 0.0, "convolution_setup": 0.0}
    values = {
        name: attrs.evolve(own.coefficients[name], value=value) for name, value in {**given, **coefficients}.items()
    }
    return attrs.evolve(own, coefficients={**own.coefficients, **values})


def added_s(hardware: Hardware, work: WorkloadColumns, runtime: str = "eager") -> float:
    """Return the fixed costs of all kernels beyond those without copies, set-up and new memory."""
    mine, without = (run(one, "fp32", work, runtime).subgraphs.launch_s for one in (hardware, cpu()))
    return float((mine - without).sum())


def test_a_convolution_copies_its_tensors_between_layouts_and_is_set_up() -> None:
    found = run(cpu(copied_element_clocks=3.0, convolution_setup=SETUP_S), "fp32", convolution(), "eager")
    copied = INPUT + WEIGHT + OUTPUT
    fixed_s = chip.LAUNCH_S + chip.HOST_S
    assert_close(float(found.subgraphs.launch_s[0]), fixed_s + SETUP_S + 3.0 * copied / CLOCKS_PER_S)
    assert float(found.subgraphs.pass_bytes[0]) == 2 * 4 * copied
    plain = run(cpu(), "fp32", convolution(), "eager")
    assert_close(float(plain.subgraphs.launch_s[0]), fixed_s)
    for runtime in ("graph", "fused", "engine"):
        assert added_s(cpu(copied_element_clocks=3.0), convolution(), runtime) == 0.0


def test_a_small_convolution_of_one_sample_is_a_plain_gemm() -> None:
    # 32 x 25 x 25 = 20,000 elements; two samples, two groups, or a window of 5 x 5 take the library of convolutions
    board = cpu(copied_element_clocks=1.0)

    def work(batch: int, *, groups: int = 1, kernel: int = 3, size: int = 25) -> WorkloadColumns:
        module = nn.Conv2d(32, 32, kernel, padding=kernel // 2, groups=groups, bias=False, device="meta")
        return columns(module, image(batch, 32, size))

    assert added_s(board, work(1)) == 0.0
    for other in (work(2), work(1, groups=2), work(1, kernel=5), work(1, size=26)):
        assert added_s(board, other) > 0.0


def test_a_linear_layer_packs_its_weights_for_several_rows_and_writes_its_bias_first() -> None:
    board = cpu(copied_element_clocks=2.0)
    for rows, copied in ((1, 512), (7, 257 * 512 + 7 * 512)):
        work = columns(nn.Linear(256, 512, device="meta"), torch.empty(rows, 256, device="meta"))
        assert_close(added_s(board, work), 2.0 * copied / CLOCKS_PER_S)


def test_convolutions_of_all_kinds_run_at_the_gained_rate() -> None:
    # 98 x 2 tiles of 8 rows and 8 lanes, 49 waves of four cores at half the peak times 1.6, or at 0.9 of it
    for gain, efficiency in ((1.6, 0.8), (3.0, 0.9)):
        for runtime in ("eager", "graph", "fused"):
            dense = run(cpu(framework_gain=gain), "fp32", convolution(outputs=16), runtime)
            expected = 49 * 8 * 8 * 576 / (8 * efficiency * chip.CLOCK_HZ)
            assert_close(float(dense.subgraphs.compute_s[0]), expected)
    for groups in (2, 64):
        work = convolution(outputs=64, groups=groups)
        slow, fast = (run(cpu(framework_gain=gain), "fp32", work, "eager") for gain in (1.0, 1.6))
        assert_close(float(slow.subgraphs.compute_s[0]) / float(fast.subgraphs.compute_s[0]), 1.6)
    # an engine pads to 16 columns and saves multiplications by Winograd's algorithm
    own = run(cpu(framework_gain=1.6), "fp32", convolution(outputs=16), "engine")
    assert_close(float(own.subgraphs.compute_s[0]), 25 * 8 * 16 * 576 / (8 * 0.5 * 1.75 * chip.CLOCK_HZ))


def test_new_memory_is_paid_page_by_page() -> None:
    board = cpu(fault_clocks=1000.0, fresh_share=0.25)
    page_s = 1000.0 / CLOCKS_PER_S

    def add(elements: int) -> WorkloadColumns:
        return columns(Chain(), torch.empty(elements, device="meta"))

    # results of 16 MiB and of 2 MiB come from the heap, of which the larger lies at its end
    assert_close(added_s(board, add(4 * 2**20)), 2 * 0.25 * 4096 * page_s)
    # 64 MiB always come from the system, and the halves of 32 MiB are the largest blocks of the heap
    assert_close(added_s(board, add(16 * 2**20)), 2 * 16384 * page_s)


class Chain(nn.Module):
    """Two results of the size of the input, with an operator in place between them."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x + 1, clamped in place, times 2."""
        return torch.relu_(x + 1.0) * 2.0
