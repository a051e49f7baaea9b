"""What a run of the laws says: a table on the console, and docs/laws.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from laws.court import Court, Violation
from laws.exempt import EXEMPT
from laws.shrink import shrink
from laws.table import LAWS

PAGE: Final = Path(__file__).parents[2] / "docs" / "laws.md"

HEAD: Final = """# Laws: what no answer may say

A measurement shows by how much a number is wrong, for one chip and one model. A law shows that a number cannot be
right, for any chip, model and setting, and needs no measurement: more cycles than exist, a smaller batch that is
slower, two commands that answer one question differently.

joulemap checks the laws of one evaluation whenever it evaluates. A run that breaks one is stored with the names of the
laws (`broken_laws` in `runs`). Its ranges are a thousandfold wide and Trust begins with it, so that no decision on it
is sure. `make laws` tries all laws on random networks, chips, settings and commands. It fails if a comparison breaks a
law without a reason that stands below. A comparison obeys a law if its left value is at most the tolerance times the
right one.

"""


def describe(court: Court, *, seed: int, seconds: float, most: int) -> str:
    """Return the tally: each law that was broken, its worst violations as commands, and the totals."""
    lines = []
    for law in LAWS:
        mine = sorted((one for one in court.open if one.law == law.name), key=lambda one: -one.ratio)
        if mine:
            lines.append(f"{len(mine):6} of {court.compared[law.name]:9,} break: {law.name}: {law.sentence}")
            lines += [f"        {text}" for one in mine[:most] for text in _describe_violation(shrink(one))]
    for exempt, count in sorted(court.explained.items(), key=lambda pair: -pair[1]):
        lines.append(f"{count:6} explained: {exempt.law}, {exempt.chip}, {exempt.model}: {exempt.why}")
    refused = ", ".join(f"{count} {reason}" for reason, count in court.refused.most_common(5))
    lines.append(f"not answered: {refused or 'none'}")
    total, explained = sum(court.compared.values()), sum(court.explained.values())
    tried = sum(court.compared[law.name] > 0 for law in LAWS)
    lines.append(
        f"{total:,} comparisons by {tried} of {len(LAWS)} laws in {seconds:.0f} s, seed {seed}: {explained} explained, "
        f"{len(court.open)} unexplained"
    )
    return "\n".join(lines)


def _describe_violation(one: Violation) -> Iterator[str]:
    yield f"{one.ratio:.4g}x: {one.left:.6g} against {one.right:.6g}"
    yield from (f"    {question.command()}" for question in one.questions)


def write_page(court: Court, *, seed: int, seconds: float) -> None:
    """Write docs/laws.md with the counts of a run."""
    PAGE.write_text(HEAD + "\n".join(_list_lines(court, seed, seconds)) + "\n")


def _list_lines(court: Court, seed: int, seconds: float) -> Iterator[str]:
    total = sum(court.compared.values())
    command = f"`python -m laws --seed {seed} --write`, in tests"
    yield f"The last run made {total:,} comparisons in {seconds:.0f} s, with seed {seed} ({command}).\n"
    for group in dict.fromkeys(law.group for law in LAWS):
        yield f"## {group[0].upper()}{group[1:]}\n"
        yield "| law | tolerance | because | compared | explained | unexplained |"
        yield "|---|---|---|---|---|---|"
        for law in (one for one in LAWS if one.group == group):
            explained = sum(count for one, count in court.explained.items() if one.law == law.name)
            broken = sum(one.law == law.name for one in court.open)
            tolerance = (
                ""
                if law.tolerance == 1.0
                else f"{law.tolerance - 1.0:.2g}"
                if law.tolerance < 2.0
                else f"{law.tolerance:g}x"
            )
            counts = f"{court.compared[law.name]:,} | {explained} | {broken}"
            yield f"| **{law.name}**: {law.sentence} | {tolerance} | {law.reason} | {counts} |"
        yield ""
    yield "## Exceptions\n"
    yield "| law | chip | model | up to | why | source |"
    yield "|---|---|---|---|---|---|"
    for one in EXEMPT:
        why = f"known fault: {one.why}" if one.is_fault else one.why
        yield f"| {one.law} | `{one.chip}` | `{one.model}` | {one.most:g}x | {why} | {one.source} |"
