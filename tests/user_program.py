"""What a user of the library writes; type-checked with the tests under `mypy --strict`, and run by them."""

from __future__ import annotations

import sys

import joulemap


def cheapest(path: str, model: str) -> tuple[str, float]:
    """Return the hardware with the lowest energy and that energy in joules."""
    answer: joulemap.CompareAnswer = joulemap.Workspace(path).compare(model)
    rows: list[joulemap.Comparison] = [row for row in answer.rows if row.status == "ok"]
    best = rows[0]
    assert best.energy_j is not None
    return best.hardware, best.energy_j


def why(path: str, model: str, a: str, b: str) -> int:
    """Return the sum of all terms in femtojoules."""
    explanation: joulemap.ExplainAnswer = joulemap.Workspace(path).explain(model, a, b)
    terms: tuple[joulemap.EnergyTerm, ...] = explanation.terms
    total: int = explanation.total.difference_fj
    assert sum(term.difference_fj for term in terms) == total
    return total


if __name__ == "__main__":
    hardware, energy_j = cheapest(sys.argv[1], "resnet18")
    print(hardware, energy_j, why(sys.argv[1], "resnet18", "h100_sxm5", "tpu_v4"))
