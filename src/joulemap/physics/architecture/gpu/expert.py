"""Time of a mixture of experts in one call: choices sorted by expert, two GEMMs of all experts, a gate, and a sum.

    q, U, f    MACs of a unit per clock; units; the highest clock
    i          instructions of a unit per clock, relative to the units that were timed (128)
    h, r       experts that are hit; rows on this device
    n, K       outputs and inputs of a GEMM
    w, p       bytes of a weight; bytes of an activation

    blocks  = h ceil(r / h / b_m) ceil(n / b_n)                          of 16 x 64, 64 x 128 or 128 x 128 outputs
    step    = max(b_m b_n / (share q), (b_m + b_n) p / (i unit_bytes))   clocks for one of K, weights made wide;
                                                                         share q is at most `packed_macs` in Marlin
    compute = ceil(blocks / U) (K step + tile) / f
    memory  = h n K w / (dram_share rate of a copy) + r (K + write_ratio n) p / rate
    GEMM    = least over blocks of ‖compute, memory‖

    start   = (start + [tokens > 1] sort + choices choice / (i U)) / f   choice: to place one choice and add its result
    passes  = rows (hidden + columns + inner) p / stream rate            data that one kernel writes and the next reads

The rows of each expert are padded to a block, which dominates the cost of few tokens. In kernels that stream weights,
b_m is at most r / h. Weights and activations that the last cache holds arrive at its rate. Some families (PASSING) also
process choices of experts on other devices in the gate and the sum; others omit them. Activations take two bytes
between kernels, at any precision of GEMMs. Kernels differ more between designs than between GPUs, so all numbers are
coefficients of the kernel family and the weight format. If no kernel is named, the tensor cores determine the engine's
choice, because kernels are written for their instructions.

Source: fitted on mixtures that others measured on A100, H100, H200, B200 and GB200 (aiconfigurator); blocks as
Triton's.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.physics.architecture.gpu.device import Engine, find_last_level, find_near_rate, stream_seconds
from joulemap.physics.architecture.gpu.product import smooth_max
from joulemap.physics.column import before_points, decide, drop_axes
from joulemap.physics.kernel import KernelColumns
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.weight import STORED
from joulemap.physics.traffic import ceil_divide, held_share
from joulemap.physics.workload import Booleans, Floats, Integers, put
from joulemap.system.record import frozen

BLOCKS: Final = ((16.0, 64.0), (64.0, 128.0), (128.0, 128.0))
"""Sizes of the outputs of a thread block: (rows, columns)."""

K_BLOCK: Final = 32.0
"""Elements along K that a thread block processes at a time. Source: vLLM, fused_moe.py, smallest default BLOCK_SIZE_K.
"""

BETWEEN_BYTES: Final = 2.0
"""Bytes of an activation element that one kernel writes and the next reads, at any precision of GEMMs."""

ACTIVATION_SHARE: Final = 0.5
"""Share of the last cache for activations; weights take the rest. An even split, assumed."""

NAMES: Final = (
    (("mul_mat_id",), "mul_mat_id"),
    (("gather_qmm",), "gather_qmm"),
    (("marlin",), "marlin"),
    (("cutlass", "fp8_block"), "cutlass_block"),
    (("cutlass",), "cutlass"),
    (("torch_flow", "mxfp4"), "trtllm"),
    (("torch_flow",), "trtllm_cutlass"),
    (("trtllm", "fp8_block"), "trtllm_block"),
    (("trtllm", "mxfp4_bf16"), "trtllm_wide"),
    (("trtllm",), "trtllm"),
    (("unquantized", "triton"), "triton_wide"),
    (("oaitriton", "mxfp4"), "triton_mxfp4"),
    (("oaitriton",), "triton_wide"),
    (("triton",), "triton"),
    (("int4",), "marlin"),
    (("awq",), "marlin"),
    (("gptq",), "marlin"),
    (("",), "triton"),
)
"""Words in the names of a kernel and of its weight format -> family; the first match applies. Engines choose Marlin for
4-bit integers. Source: vLLM `CompressedTensorsWNA16MarlinMoEMethod`, SGLang `sglang_marlin_moe` (names of the measured
kernels)."""

SHARED_BYTES: Final = 0.5
"""Maximum register bytes read per tensor core MAC if operands come from shared memory (wgmma, tcgen05)."""

TENSOR_EDGE: Final = 128.0
"""Rows per instruction from which tensor cores count as having their own memory (tcgen05)."""

TENSOR_STORED: Final = frozenset({"", "fp8_block", "mxfp8", "mxfp4", "nvfp4"})
"""Weight formats that the kernels for tensor cores with their own memory support. Source: vLLM 0.24 and SGLang 0.5.14
run all of them by FlashInfer's TensorRT-LLM kernels on a B200, and none on an H100 (names of the measured kernels)."""

GATES: Final = ("gated", "relu")
"""Gate operations between the two GEMMs of a complete call of experts; their rows count the choices on all devices."""

UNPACKING: Final = "marlin"
"""Kernel family that dequantizes weights in registers, which limits a unit's MACs as in a single GEMM. It is written
for NVIDIA's instructions; on other GPUs engines run Triton's kernels (vLLM, `moe_wna16`).
"""

UNPACKING_UNIT: Final = "SM"
"""Units that have kernels of this family."""

PASSING: Final = frozenset({"triton", "triton_wide", "triton_mxfp4", "marlin", "trtllm_block"})
"""Kernel families whose gate and sum also process choices of experts on other devices."""


def find_family(name: str) -> str:
    """Return the kernel family of a name that `_name_kernels` returned."""
    return next(family for words, family in NAMES if all(word in name for word in words))


@frozen(kw_only=True, eq=False)
class Experts:
    """Times and traffic of the two GEMMs of a mixture of experts; 0 for all other operators."""

    start_s: Floats
    """Seconds to start the kernel, at the operator that leads it."""
    busy_s: Floats
    memory_s: Floats
    blocks: Floats
    pass_bytes: Floats
    """Bytes that kernels outside the GEMMs write and read, at the operator that leads the call."""


def time_experts(kernels: KernelColumns, engine: Engine, products: Booleans) -> Experts:
    """Return the times of calls of a mixture of experts. `products` marks the two GEMMs of each call."""
    work = kernels.work
    start, busy, memory, blocks, passed = (np.zeros(work.operator_count) for _ in range(5))
    rows = np.flatnonzero(products)
    if not len(rows):
        return Experts(start_s=start, busy_s=busy, memory_s=memory, blocks=blocks, pass_bytes=passed)
    ups = rows[np.unique(kernels.kernel_index[rows], return_index=True)[1]]
    downs = np.zeros(kernels.kernel_count, dtype=np.int64)
    downs[kernels.kernel_index[rows]] = rows  # the last of each kernel stays
    stored = work.stored_as(kernels.weight_precision)[ups]
    names = _name_kernels(kernels, engine, work.kernel_family[ups].tolist(), stored.tolist())
    families = np.array([find_family(name) for name in names], dtype=np.str_)
    members = [(one, *part) for one in set(families.tolist()) for part in engine.split(ups[families == one])]
    for family, first, own in members:
        owner = kernels.kernel_index[first]
        call = _Call.read(kernels, first, downs[owner])
        leaders = kernels.leader[owner]
        begin, between = _time_outside_gemms(call, own, family)
        start, passed = put(start, leaders, begin), put(passed, leaders, between)
        for mine in (first, downs[owner]):
            compute, moved, count = _tile(kernels, call, own, family, mine)
            busy, memory, blocks = put(busy, mine, compute), put(memory, mine, moved), put(blocks, mine, count)
    return Experts(start_s=start, busy_s=busy, memory_s=memory, blocks=blocks, pass_bytes=passed)


def find_supply(hardware: Hardware) -> tuple[Booleans, Booleans]:
    """Return whether tensor cores have their own memory, and whether they read operands from shared memory."""
    edge = hardware.coefficient("instruction_edge")
    return np.greater_equal(edge, TENSOR_EDGE), np.less_equal(
        hardware.coefficient("tensor_register_bytes_per_mac"), SHARED_BYTES
    )


def _name_kernels(kernels: KernelColumns, engine: Engine, names: list[str], formats: list[str]) -> list[str]:
    """Return the kernel name of each call of experts, followed by its weight format.

    `formats` contains the weight format of each call, empty for weights as wide as activations. An engine chooses the
    kernel of a call that names none. Its Triton kernels for 16 bits and MXFP4 have another design if tensor cores read
    shared memory. On other tensor cores, MXFP4 with wider activations runs on Marlin, and so do fp8 and NVFP4 that they
    do not multiply.
    """
    hardware = engine.hardware
    has_own, reads_shared = map(decide, find_supply(hardware))

    def name(call: str, own: str) -> str:
        stored = call or own
        if not kernels.runtime.is_built or (call and call not in STORED):
            return f"{call} {own}"
        is_wide = kernels.item_bytes >= BETWEEN_BYTES
        if has_own and stored in TENSOR_STORED:
            return f"flashinfer_trtllm {stored}{'_bf16' if stored == 'mxfp4' and is_wide else ''}"
        if reads_shared and (stored == "mxfp4" or (not stored and is_wide)):
            return f"oaitriton {stored}"
        narrow = stored == "mxfp4" and kernels.item_bytes >= 1.0
        narrow = narrow or (is_wide and (stored == "nvfp4" or (stored.startswith("fp8") and not reads_shared)))
        return f"marlin {stored}" if narrow else stored

    known = map(name, names, formats)
    has_all = hardware.unit_name == UNPACKING_UNIT
    return [one if has_all or find_family(one) != UNPACKING else "triton" for one in known]


@frozen(kw_only=True, eq=False)
class _Call:
    """Dimensions and weights of each call of a mixture of experts."""

    tokens: Floats
    """Tokens of the call. If only its GEMMs were traced, rows per hit expert stand in for tokens; both are 1 for one
    token.
    """
    choices: Floats
    """Number of (token, expert) pairs on all devices."""
    rows: Floats
    """Number of (token, expert) pairs on this device."""
    hidden: Floats
    columns: Floats
    """Columns of the first GEMM."""
    inner: Floats
    weight_bytes: Floats
    """Weight bytes of the experts that are hit, over all calls of a workload."""

    @staticmethod
    def read(kernels: KernelColumns, ups: Integers, downs: Integers) -> _Call:
        """Return the calls whose first GEMMs are the operators `ups` and whose second GEMMs are `downs`."""
        work = kernels.work
        hidden, columns, inner = work.gemm_k[ups], work.gemm_n[ups], work.gemm_k[downs]
        rows, whole = work.mac_count[ups] / (columns * hidden), work.of_operation(*GATES)[ups + 1]
        return _Call(
            tokens=np.where(whole, work.output_element_count[downs] / hidden, rows / work.gemm_groups[ups]),
            choices=np.where(whole, work.output_element_count[ups + 1] / inner, rows),
            rows=rows,
            hidden=hidden,
            columns=columns,
            inner=inner,
            weight_bytes=kernels.each(kernels.of_workload(kernels.sum_workload(kernels.weight_bytes)))[..., ups],
        )


def _number(engine: Engine, name: str, family: str) -> Floats | float:
    return engine.hardware.coefficient(f"experts_{name}", family)


def _tile(
    kernels: KernelColumns, call: _Call, engine: Engine, family: str, mine: Integers
) -> tuple[Floats, Floats, Floats]:
    """Return (compute seconds, memory seconds, thread blocks) per call of its GEMM in `mine`, at the fastest block
    size.
    """
    work, capacity, rows = kernels.work, find_last_level(engine.hardware).capacity.value, call.rows
    n, k, hit = work.gemm_n[mine], work.gemm_k[mine], work.gemm_groups[mine]
    weights = kernels.weight_bytes[..., mine]
    wide = np.maximum(engine.item_bytes, BETWEEN_BYTES)
    far = engine.stream_rate * _number(engine, "dram_share", family)
    near = np.maximum(far, find_near_rate(engine))
    moved = rows * (k + n) * wide
    held, kept = held_share(call.weight_bytes, capacity), held_share(moved, ACTIVATION_SHARE * capacity)
    memory = weights * (held / near + (1.0 - held) / far)
    written = rows * (k + engine.value("write_ratio") * n) * wide
    memory = memory + written * (kept / near + (1.0 - kept) / far)
    edges = np.array(BLOCKS)
    tile_m, tile_n = map(before_points, edges.T)
    count = hit * ceil_divide(rows / hit, tile_m) * ceil_divide(n, tile_n)
    height = np.where(work.is_streamed[mine], np.minimum(tile_m, rows / hit), tile_m)
    supplied = (height + tile_n) * engine.item_bytes / (_number(engine, "unit_bytes", family) * engine.issue_share)
    unit_macs = _number(engine, "share", family) * engine.macs_per_clock
    if family == UNPACKING:
        unit_macs = np.minimum(unit_macs, engine.value("packed_macs"))
    step = np.maximum(height * tile_n / unit_macs, supplied)
    clocks = ceil_divide(k, K_BLOCK) * K_BLOCK * step + _number(engine, "tile_clocks", family)
    compute = ceil_divide(count, engine.units) * clocks / engine.clock_hz
    seconds = smooth_max(compute, memory)
    best = np.argmin(seconds, axis=0)[None]

    def chosen(values: Floats) -> Floats:
        return drop_axes(np.take_along_axis(np.broadcast_to(values, seconds.shape), best, axis=0)[0])

    return chosen(compute), memory, chosen(count)


def _time_outside_gemms(call: _Call, engine: Engine, family: str) -> tuple[Floats, Floats]:
    """Return (seconds outside GEMMs, bytes between kernels) of each call."""
    clocks = _number(engine, "start_clocks", family) + call.choices * _number(engine, "choice_clocks", family) / (
        engine.units * engine.issue_share
    )
    clocks = clocks + np.where(call.tokens > 1.0, _number(engine, "sort_clocks", family), 0.0)
    passing = call.choices if family in PASSING else call.rows
    moved = passing * (call.hidden + call.columns + call.inner) * BETWEEN_BYTES
    return clocks / engine.clock_hz + stream_seconds(engine, moved), moved
