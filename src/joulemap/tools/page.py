"""Parts of the documentation that restate code or data, written from them (`make pages`).

A page holds a part between two comments, `<!-- NAME -->` or `<!-- NAME: ARGUMENT -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from joulemap.catalog.event import load_events
from joulemap.catalog.load import list_architectures, load_class
from joulemap.catalog.sheet import load_scenarios
from joulemap.domain.configuration import PRECISION_BYTES
from joulemap.domain.metric import METRICS
from joulemap.domain.quantity import Quantity
from joulemap.domain.spread import BASIS_SPREAD
from joulemap.model.architecture.gpu.sort import PRODUCTS, SORTS, Sort
from joulemap.tools.count import find_formula, read_counts, write_counts
from joulemap.trace.formula import MODULES
from joulemap.trace.formula.registry import FORMULAS, Call, Cost, Formula

DOCS: Final = Path(__file__).parents[3] / "docs"

MARKED: Final = re.compile(r"(<!-- ([a-z ]+?)(?:: ([a-z]+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Rewrite the pages that hold such parts, and the counts of the catalogue."""
    write_counts()
    for path in sorted(DOCS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if (written := write_parts(text)) != text:
            path.write_text(written, encoding="utf-8")
            print(path.name)


def write_parts(text: str) -> str:
    """Return a page with each of its parts as code and data are now."""
    return MARKED.sub(lambda part: f"{part[1]}{_part(part[2], part[3])}\n{part[4]}", text)


def _part(name: str, argument: str | None) -> str:
    return "\n".join(PARTS[name](argument) if argument else PARTS[name]())


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    headings = tuple(headings)
    yield f"| {' | '.join(headings)} |"
    yield "|" + "---|" * len(headings)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |"


def list_actions(architecture: str) -> Iterator[str]:
    """Yield the actions of a class with how they are counted, those that differ in precision alone as one."""
    rows = {}
    for action in load_class(architecture, "make pages").actions:
        name = re.sub(rf"^({'|'.join(PRECISION_BYTES)})_mac$", "*_mac", action.action)
        rows[action.component, name] = (
            f"`{action.category}`",
            f"`{action.common_category}`",
            f"`{action.component}.{name}`",
            f"`{find_formula(architecture, action.component, action.action)}`",
        )
    yield from _table(("category", "common category", "action", "count"), rows.values())
    yield ""
    for name, formula in read_counts(architecture)[1].items():
        yield f"- {name} = `{formula}`"


def list_events(architecture: str) -> Iterator[str]:
    """Yield the events of a class with how they are counted."""
    yield from _table(
        ("component", "event", "one is", "count", "what it is"),
        (
            (f"`{one.component}`", f"`{one.event}`", one.per, f"`{one.formula}`", one.meaning)
            for one in load_events()
            if one.architecture == architecture
        ),
    )


def list_scales() -> Iterator[str]:
    """Yield the factors on energies that a calibration may move, by class."""
    yield from _table(
        ("class", "energy scales"),
        (
            (f"`{name}`", " ".join(f"`{scale.name}`" for scale in load_class(name, "make pages").energy_scales))
            for name in list_architectures()
        ),
    )


def list_metrics() -> Iterator[str]:
    """Yield every metric."""
    yield from _table(
        ("metric", "is", "unit", "of one", "better"),
        (
            (f"`{one.name}`", one.label, one.unit, one.per, "higher" if one.is_higher_better else "lower")
            for one in METRICS
        ),
    )


def list_operators() -> Iterator[str]:
    """Yield the operators whose formula has a docstring, with what it says."""
    rows = []
    for formula, names in _by_formula().items():
        if formula.__doc__ and formula.__module__ in _MODULES:
            rows.append((_MODULES[formula.__module__], _quote(names), formula.__doc__.split("\n")[0]))
    yield from _table(("kind", "operators", "counts"), rows)


def list_elements() -> Iterator[str]:
    """Yield the operators that cost a fixed count for each output, in the order of their costs."""
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
    """A call with one output element."""

    def __init__(self) -> None:
        super().__init__((), {}, ())

    @property
    def output_count(self) -> int:
        return 1


_MODULES: Final = {module.__name__: module.__name__.rsplit(".", 1)[1] for module in MODULES}


def _by_formula() -> dict[Formula, list[str]]:
    found: dict[Formula, list[str]] = {}
    for name, formula in FORMULAS.items():
        found.setdefault(formula, []).append(name)
    return found


def _quote(names: Iterable[str]) -> str:
    """Return names as a page shows them; one that works in place, or is a variant of another, is left out."""
    plain = dict.fromkeys(name.rstrip("_") for name in names if not name.startswith("_"))
    return " ".join(f"`{name}`" for name in plain or names)


def list_scenarios() -> Iterator[str]:
    """Yield the scenarios with the power that a chip gets there."""
    yield from _table(
        ("scenario", "hardware for", "power budget", "basis", "source"),
        (
            (f"`{one.name}`", ", ".join(one.deployment), *_tell_budget(one.power_budget))
            for one in load_scenarios().values()
        ),
    )


def list_spreads() -> Iterator[str]:
    """Yield what a basis is worth, as the factor that one spread is."""
    yield from _table(("basis", "one spread"), ((f"`{name}`", f"x{one:g}") for name, one in BASIS_SPREAD.items()))


def _tell_budget(budget: Quantity | None) -> tuple[str, str, str]:
    return ("none", "", "") if budget is None else (f"{budget.value:g} W", budget.basis, budget.source)


_SORTS: Final[Mapping[str, str]] = {
    "attention": "scores and weighted sum of a fused attention: see below",
    "recurrence": "product of a recurrent layer's steps, or of two activations in a step of a loop: no kernel tiles it",
    "few_rows": "product of at most 4 rows, vector lanes: bytes alone bound it",
    "product": "linear layer, batched product; alone its K may be split",
    "patch": "convolution of fewer than 8 channels whose windows do not overlap, tensor cores",
    "image": "other convolution of several taps and fewer than 8 channels, tensor cores",
    "winograd": "3 x 3 convolution of stride 1 from 128 channels in and out, vector lanes",
    "conv": "other convolution of several taps",
    "pointwise": "convolution of one tap",
    "native_groups": "groups of 2ⁿ ≤ 32 channels, together a multiple of 64, tensor cores: padded to 32 channels",
    "padded_groups": "the same, together no multiple of 64",
    "plain_groups": "other groups of at most 48 channels, tensor cores",
    "looped_groups": "all other groups: one product after the other",
    "depthwise": "one channel a group",
    "max_pool": "pooling by maximum",
    "average_pool": "other pooling",
    "softmax": "rows padded to 2ⁿ; above 1,024 elements bytes alone",
    "normalization": "layer norm and its relatives, rows padded to 512",
    "narrow_batch_norm": "batch norm that is a kernel of its own, below four bytes an element",
    "batch_norm": "batch norm that is a kernel of its own",
    "reduction": "sum, mean, maximum over dimensions",
    "copy": "whole rows: embedding, index, update of a cache, fill",
    "indexed": "other movement, elementwise with an operand smaller than the result: an address for each element",
    "activation": "elementwise of 4 operations or a special function",
    "elementwise": "all else",
}
"""Sort of kernel -> which operators are of it."""


def list_sorts() -> Iterator[str]:
    """Yield the sorts of kernels of the GPU model, with the values that the class has for what their rows name."""
    values = {one.name: one.value for one in load_class("gpu", "make pages").coefficients}

    def tell(name: str, qualifier: str) -> str:
        full = f"{name}.{qualifier}"
        found = {one: value for one, value in values.items() if one == full or one.startswith(f"{full}.")}
        shown = (f"{one[len(full) + 1 :]} {value:,g}".strip() for one, value in found.items() if value)
        return f"`{full}` {', '.join(shown)}"

    def rate(sort: Sort) -> str:
        if sort.name in PRODUCTS:
            return tell("peak_share", sort.share) if sort.share else "`peak_share`"
        return tell("issue_slots", sort.slots) if sort.slots else ""

    rows = []
    for sort in SORTS:
        waits = [tell("chain_clocks", sort.chain)] if sort.chain else []
        waits += [tell("traffic_ratio", sort.traffic)] if sort.traffic else []
        start = tell("start_clocks", sort.start)
        rows.append((f"`{sort.name}`", _SORTS[sort.name], rate(sort), start, "; ".join(waits)))
    yield from _table(("sort", "operators", "rate", "start", "chain, bytes"), rows)


PARTS: Final[Mapping[str, Callable[..., Iterator[str]]]] = {
    "actions": list_actions,
    "elements": list_elements,
    "events": list_events,
    "metrics": list_metrics,
    "operators": list_operators,
    "scales": list_scales,
    "scenarios": list_scenarios,
    "sorts": list_sorts,
    "spreads": list_spreads,
}


if __name__ == "__main__":
    main()
