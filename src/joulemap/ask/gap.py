"""Gap between two energies per inference: the part that makes most of it, as a product of power and time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from joulemap.ask.fact import Quantity, Term


def explain_gap(
    runs: tuple[int, int], parts: Mapping[str, tuple[float, float]], times_s: tuple[float, float]
) -> Iterator[Term]:
    """Yield the part with most of what the first run saves, with its powers and the times per inference; none if the
    second run uses less.

    `parts` maps parts to their energies per inference, in joules.
    """
    gap = sum(rival - own for own, rival in parts.values())
    name, amounts = max(parts.items(), key=lambda one: one[1][1] - one[1][0])
    if gap > 0.0:
        saved = amounts[1] - amounts[0]
        yield Term(
            runs=runs,
            level="part",
            quantity="energy",
            name=name,
            amounts=(Quantity(amounts[0], "J"), Quantity(amounts[1], "J")),
            difference=Quantity(saved, "J"),
            share=saved / gap,
            counts=tuple(Quantity(one, "s") for one in times_s),
            prices=tuple(Quantity(one / time, "W") for one, time in zip(amounts, times_s, strict=True)),
        )
