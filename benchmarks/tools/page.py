"""Parts of the documentation that repeat code or data, generated from these (`make pages`).

A page holds a part between two comments, `<!-- NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from joulemap.catalog.chip import list_architectures, load_class
from joulemap.catalog.sheet import load_scenarios
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.spread import BASIS_SPREAD
from joulemap.trace.formula import MODULES
from joulemap.trace.formula.registry import FORMULAS, Call, Cost, Formula
from scoreboard_page import CSV, percent, read_lines
from tools import ROOT
from tools.count import write_counts

DOCS: Final = ROOT / "docs"

MARKED: Final = re.compile(r"(<!-- ([a-z ]+) -->)\n.*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Rewrite the pages that hold generated parts, and the counts of the catalogue."""
    write_counts()
    for path in (ROOT / "README.md", *sorted(DOCS.glob("*.md"))):
        text = path.read_text(encoding="utf-8")
        if (written := write_parts(text, IN_DOCS)) != text:
            path.write_text(written, encoding="utf-8")
            print(path.name)


def write_parts(text: str, names: Collection[str]) -> str:
    """Return a page with the parts of these names regenerated."""
    return MARKED.sub(lambda it: "\n".join((it[1], *PARTS[it[2]](), it[3])) if it[2] in names else it[0], text)


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    headings = tuple(headings)
    yield f"| {' | '.join(headings)} |"
    yield "|" + "---|" * len(headings)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |"


def list_scales() -> Iterator[str]:
    """Yield the table of the energy scales that a calibration may fit, by class."""
    yield from _table(
        ("class", "energy scales"),
        (
            (f"`{name}`", " ".join(f"`{scale.name}`" for scale in load_class(name, "make pages").energy_scales))
            for name in list_architectures()
        ),
    )


def list_operators() -> Iterator[str]:
    """Yield the table of operators whose formula has a docstring, for the kinds that most models have."""
    rows = []
    for formula, names in _by_formula().items():
        kind = _MODULES.get(formula.__module__)
        if formula.__doc__ and kind in COMMON:
            rows.append((kind, _quote(names), formula.__doc__.split("\n")[0]))
    yield from _table(("kind", "operators", "counts"), rows)


def list_elements() -> Iterator[str]:
    """Yield the table of operators with a fixed cost per output, in the order of their costs."""
    costs: dict[tuple[int, int], list[str]] = {}
    for formula, names in _by_formula().items():
        if formula.__doc__ or "movement" in formula.__module__:
            continue
        try:
            cost: Cost = formula(_One())
        except (AttributeError, TypeError):
            continue
        costs.setdefault((cost.elementwise_count, cost.special_count), []).extend(names)
    yield from _table(
        ("EW", "SF", "operators"),
        ((str(simple), str(special), _quote(names)) for (simple, special), names in sorted(costs.items())),
    )


class _One(Call):
    """Stand-in for a call whose output has one element."""

    def __init__(self) -> None:
        super().__init__((), {}, ())

    @property
    def output_count(self) -> int:
        return 1


COMMON: Final = frozenset({"elementwise", "gemm", "normalization", "pooling"})
"""Kinds whose formulas a page lists; all others are documented only in their modules."""

_MODULES: Final = {module.__name__: module.__name__.rsplit(".", 1)[1] for module in MODULES}


def _by_formula() -> dict[Formula, list[str]]:
    by_formula: dict[Formula, list[str]] = {}
    for name, formula in FORMULAS.items():
        by_formula.setdefault(formula, []).append(name)
    return by_formula


def _quote(names: Iterable[str]) -> str:
    """Return names as a page shows them, without in-place operators, variants and special functions."""
    plain = dict.fromkeys(name.rstrip("_") for name in names if not name.startswith(("_", "special_")))
    return " ".join(f"`{name}`" for name in plain or names)


def list_scenarios() -> Iterator[str]:
    """Yield the table of scenarios, with the power that a chip has in each."""
    yield from _table(
        ("scenario", "hardware for", "kinds", "power budget", "basis"),
        (
            (f"`{one.name}`", ", ".join(one.deployment), ", ".join(one.kinds), *_format_budget(one.power_budget))
            for one in load_scenarios().values()
        ),
    )


def list_spreads() -> Iterator[str]:
    """Yield the table of bases, with the factor that corresponds to one spread of each basis."""
    yield from _table(("basis", "one spread"), ((f"`{name}`", f"x{one:g}") for name, one in BASIS_SPREAD.items()))


def _format_budget(budget: Quantity | None) -> tuple[str, str]:
    return ("none", "") if budget is None else (f"{budget.value:g} W", budget.basis)


PEERS: Final = {
    "PipeWeave": "[PipeWeave](docs/accuracy.md#where-are-other-predictors-closer)",
    "NeuSight": "[NeuSight](docs/accuracy.md#where-is-joulemap-closer)",
    "aiconfigurator": "aiconfigurator",
    "LLM-Viewer": "LLM-Viewer",
}
"""Other predictor in README -> its name with a link."""


def list_peers() -> Iterator[str]:
    """Yield the table of other predictors, each by the quantity with the most rows, and of several by its best one."""
    lines = [one for one in read_lines(CSV) if one.part == "peer"]
    rows = []
    for peer, name in PEERS.items():
        line = max((one for one in lines if one.peer == peer), key=lambda one: (one.row_count, -one.peer_mean))
        means = [percent(line.peer_mean), percent(line.mean)]
        bold = means.index(min(means, key=lambda text: float(text.split()[0])))
        means[bold] = f"**{means[bold]}**"
        rows.append((f"{name}, {QUANTITIES.get(line.quantity, line.of)}", f"{line.row_count:,}", *means))
    yield from _table(("other predictor", "rows", "its error", "joulemap's"), rows)


QUANTITIES: Final = {"request_latency_s": "time of a request", "output_tokens_per_s": "output tokens per second"}
"""Quantity -> its name in README."""

PARTS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "elements": list_elements,
    "operators": list_operators,
    "other predictors": list_peers,
    "scales": list_scales,
    "scenarios": list_scenarios,
    "spreads": list_spreads,
}

IN_DOCS: Final = frozenset({"other predictors", "scenarios", "spreads"})
"""Parts that are short enough for README and docs/; all other parts are only on the site."""


if __name__ == "__main__":
    main()
