"""Facts of prefill and decode on several classes: energy of a token in both, what it goes to, and traffic per MAC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from joulemap.ask.fact import Change, Choice, Entry, Fact, Facts, Quantity, Share, Subject
from joulemap.ask.rule import find_caveats
from joulemap.ask.scope import Scope
from joulemap.generated.architectures import ArchitectureSummary
from joulemap.wing.llm.phase import PHASE_NAMES

SHARES: Final = {"compute": ("compute",), "memory": ("off_chip_memory", "static")}
"""Name of a share -> common categories that it joins."""


def find_facts(scope: Scope, pairs: Sequence[tuple[ArchitectureSummary, ArchitectureSummary]], tokens: int) -> Facts:
    """Return the facts of pairs of a prefill pass of `tokens` tokens and a decode step of one token."""
    runs = {
        row.run_id: Subject(hardware=row.architecture, settings=(phase,))
        for pair in pairs
        for phase, row in zip(PHASE_NAMES, pair, strict=True)
    }
    facts: list[Fact] = []
    counts = dict(zip(PHASE_NAMES, (tokens, 1), strict=True))
    for phase, rows in zip(PHASE_NAMES, zip(*pairs, strict=True), strict=True):
        count = counts[phase]
        least = sorted(rows, key=lambda row: row.energy_j or 0.0)
        each = [(row.energy_j or 0.0) / count for row in least[:2]]
        facts.append(
            Choice(
                runs=tuple(row.run_id for row in least),
                metric="energy",
                value=Quantity(each[0], "J"),
                ratio=each[1] / each[0] if len(each) > 1 and each[0] else None,
                per="token",
            )
        )
        for row in rows:
            each_j = Quantity((row.energy_j or 0.0) / count, "J", scope.outlines[row.run_id].energy_half_width)
            facts.append(Entry(runs=(row.run_id,), values={"energy": each_j}))
    for pair in pairs:
        facts += _contrast(pair, tokens)
    first = [pair[0].run_id for pair in pairs]
    caveats = find_caveats(scope.part(first), (), metric="energy")
    return Facts(asked=("energy",), runs=runs, facts=(*facts, *caveats))


def _contrast(pair: tuple[ArchitectureSummary, ArchitectureSummary], tokens: int) -> Iterator[Fact]:
    """Yield energy per token and traffic per MAC in both phases, and shares of the energy of each."""
    prefill, decode = pair
    runs = (prefill.run_id, decode.run_id)
    before, after = (prefill.energy_j or 0.0) / tokens, decode.energy_j or 0.0
    yield Change(runs=runs, metric="energy", before=Quantity(before, "J"), after=Quantity(after, "J"))
    moved = [Quantity(row.off_chip_bytes_per_mac or 0.0, "B") for row in pair]
    yield Change(runs=runs, metric="traffic", before=moved[0], after=moved[1])
    for row in pair:
        for name, categories in SHARES.items():
            share = sum(getattr(row, f"{one}_fraction") or 0.0 for one in categories)
            yield Share(runs=(row.run_id,), metric="energy", level="category", name=name, share=share)
