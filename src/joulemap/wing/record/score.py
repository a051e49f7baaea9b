"""Scores of records: results against the recorded numbers of the newest record that is older.

    error      |recorded / measured - 1|, in the median
    coverage   share of results inside the recorded 80 % interval
    pair       two results for the same model and work: right if the record puts the same one ahead

Nothing is predicted again. Results that are older than every record may have been seen when the model was made: they
are scored `in view`, which shows how the model fits and is never a win.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any, Final

import attrs

from joulemap.bundle import load_chips
from joulemap.domain import HardwareRef, check_day
from joulemap.system import (
    CatalogueError,
    FileError,
    JoulemapError,
    UsageError,
    frozen,
    read_bytes,
    read_real,
    read_text,
    read_whole,
)
from joulemap.system.handle import holding
from joulemap.wing.llm.serve import ServingRow
from joulemap.wing.record.chain import INDEX, Chain, Entry, digest, read_chain, read_lines, replace_file
from joulemap.wing.record.generated.row import ScoreRow
from joulemap.wing.record.match import QUANTITY, RecordIndex, list_values
from joulemap.wing.record.result import Result, Row, list_shipped, read_results
from joulemap.wing.record.row import read_rows, write_lines
from joulemap.wing.verify import MOST_BYTES, measured_of

FILE: Final = "record.csv"
"""Name of the table of scores, in the folder above the records."""

COUNTED: Final = "counted.txt"
"""Name of the list of results that are scored, beside the records: one digest a line."""

LATER: Final = "later"
IN_VIEW: Final = "in view"

ALL: Final = "all"
"""Vendor and class of the sum of all groups."""

SHIPPED: Final = "built-in measurements"
"""Source of the measurements that ship with joulemap."""

UNKNOWN: Final = "unknown"

SAME: Final = 1.01
"""Factor within which a number is at the end of its interval: both are rounded to three digits."""

UNUSED: Final = ("peak_memory_bytes",)
"""Measured quantities that no record is about."""


COLUMNS: Final = tuple(field.name for field in attrs.fields(ScoreRow))


@frozen
class Judged:
    """Measured number with its recorded prediction, or with the reason for none."""

    group: tuple[str, str]
    """Vendor and class."""
    quantity: str
    measured: float
    work: tuple[object, ...]
    """Properties that two results share whose order is compared."""
    predicted: float = math.nan
    """Recorded number; NaN without one."""
    factor: float = math.nan
    """Factor of its interval; NaN without one."""
    reason: str = ""
    """Reason for no recorded number."""

    @property
    def kind(self) -> str:
        """`energy` or `time`."""
        return "energy" if self.quantity.endswith("_j") else "time"

    @property
    def is_inside(self) -> bool:
        """True if the measured number is inside the recorded interval."""
        ratio = self.measured / self.predicted
        return max(ratio, 1.0 / ratio) <= self.factor * SAME


def score_results(
    folder: Path,
    files: Sequence[Path],
    stated: Mapping[str, Any],
    *,
    date: str,
    shipped: bool,
    say: Callable[[str], None],
) -> list[ScoreRow]:
    """Score files of results against the records of a folder, append the scores to its table, and return them.

    Each result is compared with the newest record that is older. `shipped` adds the built-in measurements, of which
    those that are older than every record are scored in view of the newest one. `say` gets a line for each record,
    file and result that is left out. Raises UsageError without a record, CatalogueError without a usable one or for a
    file that cannot be read; then nothing is scored.
    """
    keyed = [(path, _digest_file(path)) for path in files]
    chain = read_chain(folder)
    if not chain.usable:
        chain.check_faults(f"{folder} has no record that may be used: ")
        raise UsageError(f"{folder} has no record: make one with `joulemap record make`")
    for fault in chain.faults.values():
        say(fault)
    table = folder.parent / FILE
    with holding(folder / INDEX):  # a table that two change at once would lose rows
        before = read_scores(table)
        counted = _read_counted(folder)
        new = set(counted)
        indices: dict[str, RecordIndex] = {}
        rows = _score_files(chain, keyed, indices, before, new, stated, date=date, say=say)
        if shipped:
            rows += _score_shipped(chain, indices, before, new)
        if rows:
            _write_scores(table, [*before, *rows])
            if new != counted:
                replace_file(folder / COUNTED, "".join(f"{one}\n" for one in sorted(new)).encode())
    return rows


def _score_files(
    chain: Chain,
    keyed: Iterable[tuple[Path, str]],
    indices: dict[str, RecordIndex],
    before: Iterable[ScoreRow],
    counted: set[str],
    stated: Mapping[str, Any],
    *,
    date: str,
    say: Callable[[str], None],
) -> list[ScoreRow]:
    """Return the scores of files that are not scored before. `keyed` has each with its SHA-256.

    Adds the results to those that are `counted`.
    """
    known = {one.sha256 for one in before}
    rows: list[ScoreRow] = []
    met: dict[str, str] = dict.fromkeys(counted, "a file scored before")
    for path, key in keyed:
        if key in known:
            say(f"{path} is scored already: the same file counts once")
            continue
        lost: list[str] = []
        try:
            results = read_results(path, stated, date, lost.append)
        except JoulemapError as error:
            results, lost = [], lost or [str(error)]
        for text, count in Counter(lost).items():
            say(text if count == 1 else f"{text} ({count} runs)")
        if not results:
            continue
        known.add(key)
        timely = _sort_timely(path, _list_fresh(path, results, met, say), chain, say)
        counted |= {identify(one) for some in timely.values() for one in some}
        rows += _score_groups(chain, timely, indices, source=path.name, sha256=key)
    return rows


def _digest_file(path: Path) -> str:
    try:
        return digest(read_bytes(path, MOST_BYTES))
    except FileError as error:
        raise CatalogueError(f"{path}: cannot be read: {error}") from error


def identify(result: Result) -> str:
    """Return sixteen hexadecimal digits of the digest of a result's day and all that its row states but its source."""
    row = result.row
    stated = [
        (field.name, value)
        for field in attrs.fields(type(row))
        if field.name != "source" and (value := getattr(row, field.name)) != field.default
    ]
    return digest(repr((result.date, stated)).encode())[:16]


def _read_counted(folder: Path) -> frozenset[str]:
    path = folder / COUNTED
    try:
        return frozenset(read_text(path).split()) if path.exists() else frozenset()
    except FileError as error:
        raise CatalogueError(f"{path}: cannot be read: {error}") from error


def _list_fresh(path: Path, results: Sequence[Result], met: dict[str, str], say: Callable[[str], None]) -> list[Result]:
    """Return the results that no file before had; the others are said to be left out. `met` has the file of each."""
    left: Counter[str] = Counter()
    fresh = []
    for result in results:
        first = met.setdefault(identify(result), str(path))
        if first == str(path):
            fresh.append(result)
        else:
            left[first] += 1
    for other, count in left.items():
        say(f"{path}: {count} result{'' if count == 1 else 's'} that {other} has too, which count once")
    return fresh


def _sort_timely(
    path: Path, results: Sequence[Result], chain: Chain, say: Callable[[str], None]
) -> dict[Entry, list[Result]]:
    """Return record -> the results that it is the newest older record of; the others are said to be left out."""
    left: Counter[str] = Counter()
    timely: dict[Entry, list[Result]] = defaultdict(list)
    first = min(one.date for one in chain.usable)
    for result in results:
        entry = chain.find_before(result.date)
        try:
            if result.date:
                check_day("date", result.date)
        except UsageError as error:
            left[f"whose {error}"] += 1
            continue
        if not result.date:
            left["without a date: add --date"] += 1
        elif entry is None:
            left[f"not after the first record, {first}: it may have been known when the record was made"] += 1
        else:
            timely[entry].append(result)
    for reason, count in left.items():
        say(f"{path}: {count} result{'' if count == 1 else 's'} {reason}")
    return timely


def _score_groups(
    chain: Chain,
    timely: Mapping[Entry, Sequence[Result]],
    indices: dict[str, RecordIndex],
    *,
    source: str,
    sha256: str,
    standing: str = LATER,
) -> list[ScoreRow]:
    scores: list[ScoreRow] = []
    for entry, results in timely.items():
        if entry.file not in indices:
            indices[entry.file] = RecordIndex(read_rows(chain.folder / entry.file))
        judged = [one for result in results for one in judge(result.row, indices[entry.file])]
        head: dict[str, Any] = {"record": entry.date, "standing": standing, "source": source, "sha256": sha256}
        scores += [ScoreRow(**head, **one) for one in sum_up(judged)]
    return scores


def _score_shipped(
    chain: Chain, indices: dict[str, RecordIndex], before: Iterable[ScoreRow], counted: set[str]
) -> list[ScoreRow]:
    """Return the scores of the built-in measurements that are not scored yet; adds the later ones to the `counted`."""
    newest = max(chain.usable, key=lambda one: one.date)
    is_viewed = any((one.record, one.standing, one.source) == (newest.date, IN_VIEW, SHIPPED) for one in before)
    later: dict[Entry, list[Result]] = defaultdict(list)
    seen: list[Result] = []
    for result in list_shipped():
        entry = chain.find_before(result.date)
        if entry is None:
            seen.append(result)
        elif identify(result) not in counted:
            later[entry].append(result)
    counted |= {identify(one) for some in later.values() for one in some}
    return [
        *_score_groups(chain, later, indices, source=SHIPPED, sha256=""),
        *_score_groups(
            chain, {} if is_viewed else {newest: seen}, indices, source=SHIPPED, sha256="", standing=IN_VIEW
        ),
    ]


def judge(row: Row, index: RecordIndex) -> list[Judged]:
    """Return every measured number of a row with its recorded prediction."""
    found = index.find(row)
    values = {} if isinstance(found, str) else list_values(found, row)
    missing = found if isinstance(found, str) else QUANTITY
    judged = []
    for quantity, measured in measured_of(row).items():
        if quantity in UNUSED:
            continue
        value = values.get(quantity, missing)
        one = Judged(_find_group(row), quantity, measured, _describe_work(row, quantity))
        if isinstance(value, str):
            judged.append(attrs.evolve(one, reason=value))
        else:
            judged.append(attrs.evolve(one, predicted=value[0], factor=value[1] or math.nan))
    return judged


def _find_group(row: Row) -> tuple[str, str]:
    chips, name = load_chips(), HardwareRef.read(row.hardware).label
    if name not in chips.ids:
        return UNKNOWN, UNKNOWN
    chip = chips.find(name)
    return chip.vendor, chip.architecture


def _describe_work(row: Row, quantity: str) -> tuple[object, ...]:
    if isinstance(row, ServingRow):
        lengths = (round(row.prompt_tokens or 0), round(row.output_tokens or 0))
        return quantity, row.model, row.scope, *lengths, round(row.batch)
    return quantity, row.model, row.batch


def sum_up(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """Return the columns of the score of each vendor, class and kind of quantity, and of all together."""
    by_group: dict[tuple[str, str, str], list[Judged]] = defaultdict(list)
    for one in judged:
        for group in (one.group, (ALL, ALL)):
            by_group[*group, one.kind].append(one)
    pairs: Counter[tuple[str, str, str]] = Counter()
    right: Counter[tuple[str, str, str]] = Counter()
    by_work: dict[tuple[object, ...], list[Judged]] = defaultdict(list)
    for one in judged:
        if not one.reason:
            by_work[one.work].append(one)
    for some in by_work.values():
        every = count_pairs(some)
        for group in {*(one.group for one in some), (ALL, ALL)}:
            others = count_pairs([] if group == (ALL, ALL) else [one for one in some if one.group != group])
            for counts, whole, rest in zip((pairs, right), every, others, strict=True):
                counts[*group, some[0].kind] += whole - rest
    return [
        {**_sum_group(key, some), "pair_count": pairs[key], "right_pair_count": right[key]}
        for key, some in sorted(by_group.items())
    ]


def count_pairs(judged: Iterable[Judged]) -> tuple[int, int]:
    """Return the pairs of results with different numbers, and those whose recorded numbers are in the same order.

    A file may have very many results for the same work, so that pairs are counted without visiting each.
    """
    pairs = right = 0
    lower: list[float] = []
    for _, same in groupby(sorted(judged, key=lambda one: one.measured), key=lambda one: one.measured):
        recorded = [one.predicted for one in same]
        pairs += len(lower) * len(recorded)
        right += sum(bisect_left(lower, one) for one in recorded)
        for one in recorded:
            insort(lower, one)
    return pairs, right


def _sum_group(key: tuple[str, str, str], judged: Sequence[Judged]) -> dict[str, Any]:
    predicted = [one for one in judged if not one.reason]
    held = [one for one in predicted if not math.isnan(one.factor)]
    reasons = Counter(one.reason for one in judged if one.reason)
    vendor, architecture, kind = key
    errors = [abs(one.predicted / one.measured - 1.0) for one in predicted]
    return {
        "vendor": vendor,
        "architecture": architecture,
        "quantity": kind,
        "result_count": len(judged),
        "predicted_count": len(predicted),
        "median_error_fraction": median(errors) if errors else None,
        "judged_count": len(held),
        "inside_count": sum(one.is_inside for one in held),
        "unpredicted": "; ".join(f"{name} {count}" for name, count in sorted(reasons.items())),
    }


def rank_losses(rows: Iterable[ScoreRow]) -> list[ScoreRow]:
    """Return scores with those of lowest coverage first, and results after a record before all others."""

    def find_loss(row: ScoreRow) -> tuple[object, ...]:
        share = row.inside_count / row.judged_count if row.judged_count else 2.0
        error = -(row.median_error_fraction or 0.0)
        return row.standing == IN_VIEW, share, error, row.record, row.source, row.vendor, row.architecture, row.quantity

    return sorted(rows, key=find_loss)


def read_scores(path: Path) -> list[ScoreRow]:
    """Return the scores in a table, none if it does not exist; CatalogueError for a file of other columns."""
    if not path.exists():
        return []
    try:
        return [ScoreRow(**dict(map(_read, COLUMNS, line))) for line in read_lines(path, COLUMNS)]
    except ValueError as error:
        raise CatalogueError(f"{path}: cannot be read: {error}") from error


def _read(name: str, cell: str) -> tuple[str, Any]:
    if name.endswith("_count"):
        return name, read_whole(cell)
    if name.endswith("_fraction"):
        return name, read_real(cell) if cell else None
    return name, cell


def _write_scores(path: Path, rows: Iterable[ScoreRow]) -> None:
    cells = (
        ["" if one is None else f"{one:.4g}" if isinstance(one, float) else one for one in attrs.astuple(row)]
        for row in rows
    )
    replace_file(path, write_lines([COLUMNS, *cells]).encode())
