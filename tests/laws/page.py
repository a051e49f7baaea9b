"""What a run of the laws says: a table on the console, and docs/laws.md."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Final

from joulemap.physics.law import LAWS as EVALUATED
from laws.court import Court, Violation
from laws.exempt import EXEMPT
from laws.shrink import shrink
from laws.spelling import Explained, read_explained
from laws.table import LAWS, Exempt

PAGE: Final = Path(__file__).parents[2] / "docs" / "laws.md"

WIDTH: Final = 120
"""Columns of a page."""

NAMES: Final = (("Explained", False), ("Known faults", True))
"""Name of a list of exceptions -> True if it has those without a measurement."""

NAMED: Final = 3
"""Laws of a group that the page names."""

HEAD: Final = """# Laws: what no answer may say

A measurement shows by how much a number is wrong, for one chip and one model. A law shows that a number cannot be
right, for any chip, model and setting, and needs no measurement: more cycles than exist, or a smaller batch that is
slower.

## Which laws does every run obey?
joulemap checks these whenever it evaluates. A run that breaks one is stored with the names of the laws (`broken_laws`
in `runs`). Its ranges are a thousandfold wide and Trust begins with it, so that no decision on it is sure.

"""

TRIED: Final = """\
## Which laws are only tried?
`make laws` tries all laws on random networks, chips, settings and commands, and fails if a comparison breaks one
without a reason that stands below. `tests/laws/laws.toml` states each law with its tolerance, in these groups:
"""

EXCEPTIONS: Final = """\
## Exceptions
`tests/laws/exempt.py` has the reason of each exception, such as copies of a model, contexts of a fabric or joins of
threads, and its source.
"""

KERNELS: Final = """
## Which spellings of a network may differ?
Two spellings may differ by more than a law allows if they have other numbers of kernels, or if a compiler leaves one
of them to a host. `tests/laws/kernels.toml` explains each other difference by a kernel and its source. A
known fault is a difference without a measurement.
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
    yield from (f"- **{law.name}**: {law.sentence}" for law in EVALUATED)
    yield f"\n{TRIED}"
    evaluated = {law.name for law in EVALUATED}
    tried = [law for law in LAWS if law.name not in evaluated]
    for group in dict.fromkeys(law.group for law in tried):
        names = [law.name for law in tried if law.group == group]
        yield _wrap(f"{group[0].upper()}{group[1:]}: {len(names)} laws, such as {', '.join(names[:NAMED])}")
    total = sum(court.compared.values())
    command = f"`python -m laws --seed {seed} --write`, in tests"
    yield "\n" + "\n".join(
        wrap(
            f"The last run made {total:,} comparisons in {seconds:.0f} s, with seed {seed} ({command}), of which "
            f"{len(court.open)} broke a law without a reason.",
            WIDTH,
        )
    )
    yield f"\n{EXCEPTIONS}"
    for name, is_fault in NAMES:
        exempt = groupby(sorted((one for one in EXEMPT if one.is_fault == is_fault), key=_find_reason), _find_reason)
        yield _wrap(f"{name}: {'; '.join(_describe_exempt(list(rows)) for _, rows in exempt)}")
    yield KERNELS
    for name, is_fault in NAMES:
        kernels = (_describe_kernel(one) for one in read_explained() if one.is_fault == is_fault)
        yield _wrap(f"{name}: {'; '.join(kernels)}")


def _describe_exempt(many: list[Exempt]) -> str:
    """Return the laws of the exceptions with one reason, and their subjects."""
    laws = ", ".join(dict.fromkeys(one.law for one in many))
    named = (next(text for text in (one.chip, one.model, one.vendor) if text != "*") for one in many)
    subjects = ", ".join(dict.fromkeys(f"`{text}`" for text in named))
    return f"{laws} ({subjects}, up to {max(one.most for one in many):g}x)"


def _describe_kernel(one: Explained) -> str:
    places = "".join(f"`{name}`, " for name in (one.of_class, one.chip, one.runtime) if name != "*")
    return f"`{one.spelling}` ({places}up to {one.most:g}x)"


def _find_reason(one: Exempt) -> str:
    return one.why


def _wrap(text: str) -> str:
    return "\n".join(wrap(text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False))
