"""Cost of an operator as a separate kernel and fused into another, by operator and architecture class.

python benchmarks/fusion.py [--inductor]      --inductor prints how many kernels torch's compiler needs instead
                                              (`kernel_count.py`)

Covers one target of each class, seven models, and batches 1 and 8. For each operator type, sums over its occurrences
that are fused into the kernel of another operator:

    arithmetic   energy of its additions, multiplications and special functions alone
    separate     its energy as a separate kernel (runtime `graph`), static energy included
    hidden       energy that a run in `fused` needs more than the same run without the operator: its arithmetic and the
                 data that only it reads; the kernel writes its result in both runs

Operators that are never fused in these models (layer_norm) have no hidden cost. A bias has no separate cost, because it
is part of its convolution or GEMM in every runtime. The softmax of a fused attention is not counted for the same
reason; the softmax of an unfused attention is. Targets run without a power cap, because a cap is shared by all kernels
of a run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

import attrs
import numpy as np

from joulemap.catalog.digest import ZOO
from joulemap.catalog.load import load_catalogue
from joulemap.physics.kernel import form_kernels
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.run import RunColumns
from joulemap.physics.workload import ROLE_CODE, Booleans, Floats, WorkloadColumns, sum_by
from joulemap.store.connection import open_in_memory
from joulemap.store.workload import read_columns
from joulemap.store.zoo import Shipped, read_shipped
from joulemap.system.errors import UnsupportedError

MODELS: Final = ("resnet50", "mobilenet_v2", "vit_b_16", "densenet121", "efficientnet_b0", "convnext_tiny", "swin_t")
BATCHES: Final = (1, 8)
TARGETS: Final = {
    "cpu": ("xeon_8490h", "fp32"),
    "gpu": ("h100_sxm5", "fp16"),
    "tpu": ("tpu_v4", "bf16"),
    "kpu": ("kpu_t256", "bf16"),
    "dsp": ("tda4vm_c7x_mma", "int8"),
    "npu": ("cloud_ai_100_pro", "int8"),
    "dpu": ("dpu_b4096_kv260", "int8"),
    "cgra": ("plasticine", "fp16"),
}
"""class -> (hardware, precision)."""

BIAS: Final = "bias"
OPERATIONS: Final = (
    "relu",
    "clamp",
    "silu",
    "gelu",
    "sigmoid",
    "batch_norm",
    "add",
    "mul",
    "softmax",
    "layer_norm",
    BIAS,
)
RULES: Final = {
    BIAS: (3.0, 0.05),
    "relu": (3.0, 0.05),
    "batch_norm": (1.5, 0.1),
    "add": (3.0, 0.2),
    "softmax": (1.2, 1.5),
}
"""operation -> (separate, hidden) multipliers of rules of thumb."""

ARITHMETIC: Final = ("elementwise", "special_function", "special_function_unit.operation", "processor.operation")
"""Actions behind `elementwise_count` and `special_count`, by action or by component and action; MAC actions end in
`_mac`.
"""

UNCAPPED_W: Final = 1e9


@attrs.frozen(kw_only=True)
class Model:
    """Built-in workload, with the types of its operators."""

    work: WorkloadColumns
    operations: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Cost:
    """Energies of one operator type on one class, summed over its occurrences. Joules."""

    operator_count: int
    operation_count: float
    """Number of additions, multiplications and special functions."""
    arithmetic_j: float
    separate_j: float | None
    hidden_j: float | None
    product_j: float
    """Cost of as many operations in the GEMMs (conv2d, linear, matmul) of the same fused runs."""

    @property
    def separate_ratio(self) -> float | None:
        """Separate cost divided by that of the arithmetic alone."""
        return None if self.separate_j is None else self.separate_j / self.arithmetic_j

    @property
    def hidden_ratio(self) -> float | None:
        """Hidden cost divided by that of the arithmetic alone."""
        return None if self.hidden_j is None else self.hidden_j / self.arithmetic_j

    @property
    def kept_fraction(self) -> float | None:
        """Hidden cost divided by separate cost."""
        return None if self.hidden_j is None or self.separate_j is None else self.hidden_j / self.separate_j

    @property
    def separate_multiplier(self) -> float | None:
        """Separate cost divided by that of as many operations in GEMMs."""
        return None if self.separate_j is None else self.separate_j / self.product_j

    @property
    def hidden_multiplier(self) -> float | None:
        """Hidden cost divided by that of as many operations in GEMMs."""
        return None if self.hidden_j is None else self.hidden_j / self.product_j


@cache
def load_model(name: str, batch: int) -> Model:
    """Return a built-in workload, without tracing."""
    connection = open_in_memory()
    (number,) = read_shipped(connection, ZOO, [Shipped(name, batch, workload_key=f"{name}:{batch}")])
    rows = connection.execute(
        "SELECT operation FROM internal.workload_operator WHERE workload_id = $workload_id ORDER BY operator_index",
        {"workload_id": number},
    ).fetchall()
    return Model(work=read_columns(connection, number), operations=tuple(row[0] for row in rows))


def evaluate_fused(work: WorkloadColumns, hardware: Hardware, precision: str) -> RunColumns:
    """Return the run of a workload with one kernel per subgraph."""
    return evaluate(work, hardware, Configuration(hardware=hardware.id, precision=precision, runtime="fused"))


def arithmetic_fj(found: RunColumns, operator_count: int) -> Floats:
    """Return the energy of each operator's arithmetic alone."""
    rows = [
        row
        for row, one in enumerate(found.hardware.reference)
        if one.action in ARITHMETIC or f"{one.component}.{one.action}" in ARITHMETIC or one.action.endswith("_mac")
    ]
    lines = np.isin(found.ledger.action_index, rows)
    energy = found.ledger.energy_fj[lines].astype(np.float64)
    return sum_by(found.ledger.operator_index[lines], energy, operator_count)


def without(work: WorkloadColumns, chosen: Booleans) -> WorkloadColumns:
    """Return the workload without the arithmetic and reads of these operators; the writes of their kernels stay."""
    reads = chosen[work.access_operator] & (work.access_role != ROLE_CODE["output"])
    return attrs.evolve(
        work,
        elementwise_count=np.where(chosen, 0.0, work.elementwise_count),
        special_count=np.where(chosen, 0.0, work.special_count),
        access_fused_bytes=np.where(reads, 0.0, work.access_fused_bytes),
    )


def without_bias(work: WorkloadColumns, chosen: Booleans) -> WorkloadColumns:
    """Return the workload without the bias of these GEMMs, which is the smallest weight that each reads."""
    size = work.access_fused_bytes.copy()
    weights = chosen[work.access_operator] & (work.access_role == ROLE_CODE["weight"])
    for operator in np.flatnonzero(chosen):
        own = np.flatnonzero(weights & (work.access_operator == operator))
        size[own[np.argmin(size[own])]] = 0.0
    return attrs.evolve(work, elementwise_count=np.where(chosen, 0.0, work.elementwise_count), access_fused_bytes=size)


def shares_its_call(work: WorkloadColumns) -> Booleans:
    """Return a mask of operators that share an ATen call, and so a kernel in every runtime, with others."""
    mask: Booleans = np.bincount(work.call_index)[work.call_index] > 1
    return mask


def choose(operation: str, model: Model, rides: Booleans, is_active: Booleans) -> tuple[Booleans, bool]:
    """Return a mask of the operators that count for a type, and whether they have a hidden cost.

    For `layer_norm`, operators that lead their own kernels count, as nearly all do, and there is no hidden cost.
    """
    work = model.work
    if operation == BIAS:
        return is_active & work.of_kind("conv", "grouped_conv", "depthwise_conv", "linear") & (
            work.elementwise_count > 0
        ), True
    same = np.array([one == operation for one in model.operations]) & ~shares_its_call(work)
    hidden = same & rides
    return (hidden, True) if operation != "layer_norm" else (same & is_active & ~rides, False)


def measure(operation: str, architecture: str, batch: int, models: Sequence[str] = MODELS) -> Cost | None:
    """Return the cost of an operator type on a class over the models; None if none of them has it."""
    name, precision = TARGETS[architecture]
    hardware = load_catalogue().find(name)
    hardware = attrs.evolve(hardware, tdp=attrs.evolve(hardware.tdp, value=UNCAPPED_W))
    total = np.zeros(6)
    is_hidden = False
    for model in (load_model(one, batch) for one in models):
        work = model.work
        kernels = form_kernels(work, precision, "fused")
        rides = np.isin(np.arange(work.operator_count), kernels.operator_index[kernels.rides])
        is_active = np.isin(np.arange(work.operator_count), kernels.operator_index)
        chosen, hides = choose(operation, model, rides, is_active)
        if not chosen.any():
            continue
        try:
            found = evaluate_fused(work, hardware, precision)
        except UnsupportedError:  # the compiler does not support every operator of the model
            continue
        energy = sum_by(found.ledger.operator_index, found.ledger.energy_fj.astype(np.float64), work.operator_count)
        separate = sum_by(
            found.operators.operator_index, found.operators.separate_energy_fj.astype(np.float64), work.operator_count
        )
        count = float((work.elementwise_count + work.special_count)[chosen].sum())
        arithmetic = arithmetic_fj(found, work.operator_count)[chosen].sum()
        saved = 0.0
        if hides:
            is_hidden = True
            remove = without_bias if operation == BIAS else without
            other = evaluate_fused(remove(work, chosen), hardware, precision)
            saved = float(found.energy_fj - other.energy_fj)
            if operation == BIAS:
                arithmetic = arithmetic - arithmetic_fj(other, work.operator_count)[chosen].sum()
        products = (work.mac_count > 0) & is_active
        price = energy[products].sum() / (2.0 * work.mac_count[products].sum())
        total += (float(chosen.sum()), count, arithmetic, float(separate[chosen].sum()), saved, count * price)
    if not total[0]:
        return None
    arithmetic, separate_j, hidden, product = total[2:] / 1e15
    return Cost(
        operator_count=int(total[0]),
        operation_count=float(total[1]),
        arithmetic_j=arithmetic,
        separate_j=None if operation == BIAS else separate_j,
        hidden_j=hidden if is_hidden else None,
        product_j=product,
    )


@cache
def measure_all() -> Mapping[tuple[str, str, int], Cost]:
    """Return (operation, class, batch) -> cost."""
    return {
        (operation, architecture, batch): cost
        for operation in OPERATIONS
        for architecture in TARGETS
        for batch in BATCHES
        if (cost := measure(operation, architecture, batch)) is not None
    }


def number(value: float | None) -> str:
    """Return a value with two significant digits and a comma for thousands."""
    if value is None:
        return "-"
    if value < 0.0005:
        return "< 0.0005"
    return f"{float(f'{value:.2g}'):,.0f}" if value >= 9.95 else f"{value:.2g}"


def table(batch: int, cell: Callable[[Cost], str], rule: Callable[[str], str] | None = None) -> Iterator[str]:
    """Yield the lines of a table with a row for each operator type and a column for each class."""
    yield f"| batch {batch} | " + ("" if rule is None else "rule of thumb | ") + " | ".join(TARGETS) + " |"
    yield "|---" * (len(TARGETS) + 1 + (rule is not None)) + "|"
    for operation in OPERATIONS:
        cells = [cell(measure_all()[operation, one, batch]) for one in TARGETS]
        yield f"| `{operation}` | " + ("" if rule is None else rule(operation) + " | ") + " | ".join(cells) + " |"


def pair(separate: float | None, hidden: float | None) -> str:
    """Return the texts of the costs in a separate and in a fused kernel, joined by an arrow."""
    return f"{number(separate)} → {number(hidden)}"


def ruled(operation: str) -> str:
    """Return the multipliers of the rule of thumb for an operator type, in the form of `pair`."""
    return pair(*RULES[operation]) if operation in RULES else "-"


def ruled_kept(operation: str) -> str:
    """Return the share of the separate cost that remains in a fused kernel, by the rule of thumb."""
    return number(RULES[operation][1] / RULES[operation][0]) if operation in RULES else "-"


def render() -> str:
    """Return the tables as markdown."""
    lines = []
    titles = ", ".join(f"{name}: `{hardware}` {precision}" for name, (hardware, precision) in TARGETS.items())
    lines.append(f"{titles}; models: {', '.join(MODELS)}.")
    sections: list[tuple[str, Callable[[Cost], str], Callable[[str], str] | None]] = [
        (
            "### In units of the bare arithmetic: separate → hidden",
            lambda cost: pair(cost.separate_ratio, cost.hidden_ratio),
            None,
        ),
        (
            "### In units of the products' price per operation: separate → hidden",
            lambda cost: pair(cost.separate_multiplier, cost.hidden_multiplier),
            ruled,
        ),
        ("### What fusing leaves: hidden / separate", lambda cost: number(cost.kept_fraction), ruled_kept),
    ]
    for title, cell, rule in sections:
        lines += ["", title]
        for batch in BATCHES:
            lines += ["", *table(batch, cell, rule)]
    return "\n".join(lines)


def main() -> None:
    """Print the tables, or kernel counts compared with torch's compiler."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inductor", action="store_true", help="our kernels beside Inductor's, and nothing else")
    asked = parser.parse_args()
    if asked.inductor:
        from kernel_count import count_all, tell

        tell(count_all(), lambda line: print(line, flush=True))
    else:
        print(render())


if __name__ == "__main__":
    main()
