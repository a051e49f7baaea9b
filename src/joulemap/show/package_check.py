"""Page of a checked package, and a sentence for each kind of fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from joulemap.ask.package_check import Fault, PackageCheck, find_factor, run_checks
from joulemap.generated.validate import ScoredRow
from joulemap.show.page import Asked, Page, compose
from joulemap.show.present.cell import QUANTITY, show
from joulemap.show.present.document import Document, Lines, Section
from joulemap.show.present.template import Template
from joulemap.show.validate import describe_medians
from joulemap.show.view import describe_findings

PLACE: Final = Template("{package} in {folder}")
SOUND: Final = "All checks pass."
UNSOUND: Final = Template("{count:n check} found a fault.")

RUN: Final = "{hardware}: {model} at {precision}"
ROW: Final = RUN + ", batch {batch:plain}, {runtime}"
OFF: Final = ROW + ": {quantity} predicted {factor:plain}x too {side}"

FAULTS: Final[Mapping[str, Template]] = {
    "beyond": Template(RUN + " reaches {share:%} of its {what}"),
    "broken": Template("{hardware}: {rule} ({location}): expected {expected}, found {found}"),
    "cheaper": Template(RUN + " needs less energy at batch {batch} than at batch {least}"),
    "closes": Template("{count} runs of {models:list}: every energy is the sum of its parts"),
    "content": Template(
        "{chips:list}[; {classes:n class|classes}][; {rows:n measurement}]: keys, units, plausible values and names"
    ),
    "far": Template(OFF + ": check the units of the row and the numbers of the chip"),
    "first": Template("the checks above found faults"),
    "long": Template(RUN + " would take {latency}: check clock, peaks and bandwidths"),
    "never": Template(
        "within the power limit, {growth:plain}x clock or bandwidth is never slower, and a larger batch never needs "
        "less energy"
    ),
    "numbers": Template("{count} numbers, each with unit, basis and source: {bases:list}"),
    "odd_clock": Template("{hardware}: clock of {clock} is outside {least} to {most}: check its unit"),
    "refused": Template("{hardware}: no trial model runs: {reason}"),
    "scored": Template(
        "{predicted} of {count:n row} predicted; no number was chosen with {held_out} of them (held out). [{scores} ]"
        "The worst is " + OFF + "."
    ),
    "skipped": Template("no trial model runs on {hardware:list}"),
    "slower": Template(RUN + " is slower with {growth:plain}x {what}"),
    "stable": Template("two readings of each file give the same digest"),
    "text": Template("{text}"),
    "undocumented": Template("{folder}/page.md is missing: say where the numbers come from"),
    "unknown_operator": Template(
        "{hardware}: compiler.operators: no kind or operation is called {name}[; did you mean {near}?]"
    ),
    "unpredicted": Template(ROW + " is not predicted: {reason}"),
    "unreplaced": Template(
        "{file}: {count:n number} of another chip or without a source; replace number, basis and source: {numbers:list}"
    ),
    "unscored": Template("none, so nothing scores the predictions of these chips"),
    "unstable": Template("{file}: two readings give different digests"),
    "unwritten": Template("{page} still has the text of a new package: write what a user of the chip should know"),
    "usual": Template("clocks are {least} to {most}, and no trial model takes over {longest}"),
    "within": Template("no run exceeds the peak of its units or the bandwidth of its memory"),
}
"""Kind of fault, or of a check without a fault -> its sentence."""

UNEVALUATED: Final = "joulemap cannot run its model here"
"""Reason for a row without a prediction, if nothing else explains it."""

HIGH, LOW = "high", "low"


def describe_fault(fault: Fault) -> str:
    """Return the sentence of a fault, or of a check that found none."""
    row, values = fault.row, dict(fault.values)
    if isinstance(row, ScoredRow) and row.quantity is not None:
        side = HIGH if (row.predicted or 0.0) > (row.measured or 0.0) else LOW
        values |= {"quantity": show(row.quantity, QUANTITY), "factor": find_factor(row), "side": side}
        values |= {"scores": _describe_errors(values.get("unseen", ()))}
    elif isinstance(row, ScoredRow):
        values["reason"] = values["reason"] or "; ".join(describe_findings(values["findings"])) or UNEVALUATED
    return FAULTS[fault.kind](row, **values)


def check_package(place: str | Path = ".") -> PackageCheck:
    """Check the package in a folder, or the installed one of this name.

    A folder need not be installed: its `pyproject.toml` says where its data is. Raises CatalogueError for a folder
    without a package of hardware, UnknownNameError for an unknown name.
    """
    return run_checks(place, describe_fault)


def _describe_errors(rows: Sequence[ScoredRow]) -> str | None:
    """Return the median error of the most measured quantities, and the coverage of all; None without rows."""
    by_quantity: dict[str, list[float]] = {}
    for row in rows:
        by_quantity.setdefault(row.quantity or "", []).append(abs((row.predicted or 0.0) / (row.measured or 1.0) - 1.0))
    medians = [(name, median(errors), len(errors)) for name, errors in sorted(by_quantity.items())]
    covered = [row.is_covered for row in rows if row.is_covered is not None]
    return describe_medians(medians, sum(covered) / len(covered) if covered else None, len(covered)) or None


def describe_check(answer: PackageCheck) -> str:
    """Return how many checks found a fault."""
    faulty = {one.check for one in answer.findings if one.state == "wrong"}
    return UNSOUND(count=len(faulty)) if faulty else SOUND


def draw_check(answer: PackageCheck, _asked: Asked) -> Document:
    """Return the document of a checked package: a line of each finding."""
    lines = Section("", Lines(tuple(one.line for one in answer.findings)))
    return compose(answer, [lines], answer.rows, title=PLACE(answer), headline=describe_check(answer))


PAGES: Final = {PackageCheck: Page[PackageCheck](draw=draw_check)}
