"""Program of a user of the library, type-checked by `mypy --strict` and run by the tests."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import attrs

import joulemap
from joulemap import records
from joulemap.catalog import Quantity


def cheapest(path: str, model: str) -> tuple[str, float]:
    """Return the built hardware with the lowest energy and that energy in joules."""
    answer: records.CompareAnswer = joulemap.Workspace(path).compare(model)
    rows: list[records.Comparison] = [row for row in answer.rows if row.status == "ok" and not row.is_projection]
    best = rows[0]
    assert best.energy_j is not None
    return best.hardware, best.energy_j


def why(path: str, model: str, a: str, b: str) -> int:
    """Return the sum of all terms in femtojoules."""
    explanation: records.ExplainAnswer = joulemap.Workspace(path).explain(model, a, b)
    terms: Sequence[records.EnergyTerm] = explanation.terms.rows
    total: int = explanation.total.difference_fj
    assert sum(term.difference_fj for term in terms) == total
    return total


def what_if(path: str, model: str) -> float:
    """Return the speedup of TPU v4 with twice its memory bandwidth."""
    known: joulemap.Hardware = joulemap.hardware("tpu_v4")
    bandwidth = Quantity(
        value=2.0 * known.memory_bandwidth.value, unit="B/s", basis="assumed", source="what if: twice the bandwidth"
    )
    faster = attrs.evolve(known, id="tpu_v4_fast", aliases=(), memory_bandwidth=bandwidth)
    answer = joulemap.Workspace(path).compare(model, hardware=[faster, known], precision="bf16")
    latency = {row.hardware: row.latency_s for row in answer.rows}
    fast, slow = latency["tpu_v4_fast"], latency["tpu_v4"]
    assert fast is not None
    assert slow is not None
    return slow / fast


def add_up(path: str, model: str, hardware: str) -> tuple[str, float]:
    """Return (name, share of architectural overhead) of the subgraph with the most energy."""
    workspace = joulemap.Workspace(path)
    answer: records.AnalyzeAnswer = workspace.analyze(model, hardware)
    run: joulemap.Run = workspace.run(answer.total.run_id)
    whole = 0
    for part in run.subgraphs:
        placed: records.Allocation = part.allocation
        fused: joulemap.Subgraph = part.subgraph
        energy: records.EnergyBreakdown = part.energy
        assert placed.units_used_count <= placed.units_total_count
        assert len(part.operators) <= len(fused.operator_indices)
        lines: list[records.LedgerLine] = [line for one in part.operators for line in one.energy]
        assert sum(line.energy_fj for line in lines) == energy.energy_fj
        assert sum(group.energy_fj for group in energy.by("category").values()) == energy.energy_fj
        whole += energy.energy_fj
    assert whole == run.energy.energy_fj == answer.total.energy_fj
    operators: tuple[joulemap.Operator, ...] = run.workload.operators
    assert sum(operator.mac_count for operator in operators) == answer.total.mac_count
    largest = max(run.subgraphs, key=lambda part: part.energy.energy_fj)
    return largest.subgraph.name, largest.energy.overhead.energy_fj / largest.energy.energy_fj


def inside(path: str, model: str, hardware: str) -> dict[str, int]:
    """Return category -> energy of the first subgraph in femtojoules."""
    parts: records.PartAnswer = joulemap.Workspace(path).break_down(model, hardware, by="category")
    assert parts.categories is not None
    return {row.category: row.energy_fj for row in parts.categories if row.part_index == 0}


def misspell(path: str) -> None:
    """Use names that do not exist; mypy must reject each line, because it also rejects unused ignore comments."""
    workspace = joulemap.Workspace(path)
    workspace.compare("resnet18", precision="fp17")  # type: ignore[arg-type]
    workspace.compare("resnet18", runtime="fast")  # type: ignore[arg-type]
    workspace.compare("resnet18", batch="8")  # type: ignore[arg-type]
    workspace.explain("resnet18", "h100_sxm5", "tpu_v4", metric="enrgy")  # type: ignore[call-overload]
    joulemap.Settings(precision="fp17")  # type: ignore[arg-type]


if __name__ == "__main__":
    hardware, energy_j = cheapest(sys.argv[1], "resnet18")
    name, overhead = add_up(sys.argv[1], "resnet18", hardware)
    assert 0.0 < overhead < 1.0, name
    assert inside(sys.argv[1], "resnet18", hardware)
    print(hardware, energy_j, why(sys.argv[1], "resnet18", "h100_sxm5", "tpu_v4"), what_if(sys.argv[1], "vit_b_16"))
