"""Mutated outputs of system tools: whatever a tool prints, it is read, or refused with one line, within seconds."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import attrs

from joulemap.system.errors import JoulemapError
from joulemap.wing.here.match import match_machine
from joulemap.wing.here.reader import read_machine

MACHINES: Final = Path(__file__).parents[1] / "here" / "machine"

MOST_S: Final = 10.0
"""Processor time in seconds in which an output is read or refused; other processes may slow the clock on the wall."""

NUMBERS: Final = (
    "0", "-1", "1e999", "9" * 400, "1" + "0" * 25, "NaN", "inf", "0x10", "1,5", "\u0664", "\u00b2", "1.5.2", "",
    "null", "true", "[]", "{}", "[1, 2]", '"N/A"', "[N/A]", "4 PB", "3 kB", "-8 GB", "1" + "0" * 12,
)  # fmt: skip
"""Texts that stand for a number."""

ODD: Final = ("\0", "\ufffd", "\ud800", "\u202e", "\r", "\t", "\x1b[2J", '"', "{", "[", ":", ",", "%", "]", "}")


@attrs.frozen(kw_only=True)
class Fault:
    """Recording that ended the reader with anything but an answer or one line."""

    seed: int
    text: str


def _find_numbers(text: str) -> list[tuple[int, int]]:
    spans, begin = [], None
    for place, letter in enumerate(f"{text} "):
        if letter.isdigit():
            begin = place if begin is None else begin
        elif begin is not None:
            spans.append((begin, place))
            begin = None
    return spans


def change_number(text: str, chance: random.Random) -> str:
    """Replace a number by a text that is none, or by one that no machine has."""
    spans = _find_numbers(text)
    if not spans:
        return text
    begin, end = chance.choice(spans)
    return text[:begin] + chance.choice(NUMBERS) + text[end:]


def swap_numbers(text: str, chance: random.Random) -> str:
    """Exchange two numbers."""
    spans = _find_numbers(text)
    if len(spans) < 2:
        return text
    first, second = sorted(chance.sample(spans, 2))
    parts = text[: first[0]], text[slice(*first)], text[first[1] : second[0]], text[slice(*second)], text[second[1] :]
    return "".join((parts[0], parts[3], parts[2], parts[1], parts[4]))


def cut_text(text: str, chance: random.Random) -> str:
    """End a text early, or drop its beginning."""
    place = chance.randrange(len(text) + 1)
    return text[:place] if chance.random() < 0.5 else text[place:]


def change_lines(text: str, chance: random.Random) -> str:
    """Drop, repeat or exchange lines."""
    lines = text.splitlines(keepends=True) or [""]
    place = chance.randrange(len(lines))
    kind = chance.randrange(4)
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines[place:place] = lines * chance.choice((1, 2, 30))
    elif kind == 2:
        chance.shuffle(lines)
    else:
        lines[place] = lines[place][: chance.randrange(len(lines[place]) + 1)] + "\n"
    return "".join(lines)


def add_odd(text: str, chance: random.Random) -> str:
    """Insert a character that tools do not print."""
    place = chance.randrange(len(text) + 1)
    return text[:place] + chance.choice(ODD) * chance.choice((1, 1, 2000)) + text[place:]


def change_json(text: str, chance: random.Random) -> str:
    """Replace a value anywhere in a JSON text by one of another type; a text that is no JSON is cut."""
    begin = text.find("{")
    try:
        whole = json.loads(text[begin:])
    except ValueError:
        return cut_text(text, chance)
    places: list[tuple[dict[str, object] | list[object], object]] = []
    stack: list[object] = [whole]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            places += [(one, key) for key in one]
            stack += one.values()
        elif isinstance(one, list):
            places += [(one, place) for place in range(len(one))]
            stack += one
    if places:
        holder, key = chance.choice(places)
        values: tuple[object, ...] = (
            None, True, -1, 0, 1e308, 10**400, "", "N/A", [], {}, [[]], [None], {"Name": None}, "9" * 400, 1.5, "-3 GB",
        )  # fmt: skip
        holder[key] = chance.choice(values)  # type: ignore[index,call-overload]
    return json.dumps(whole)


KINDS: Final[tuple[Callable[[str, random.Random], str], ...]] = (
    change_number, change_number, swap_numbers, cut_text, change_lines, add_odd, change_json, change_json,
)  # fmt: skip


def list_mutants(count: int, first_seed: int = 0) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (seed, recording): a recorded machine with one to four changes in the output of one of its tools."""
    samples = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(MACHINES.glob("*.json"))]
    for seed in range(first_seed, first_seed + count):
        chance = random.Random(seed)
        recording = dict(samples[seed % len(samples)])
        for _ in range(chance.choice((1, 1, 2, 4))):
            name = chance.choice(sorted(recording))
            if name != "system" or chance.random() < 0.1:
                recording[name] = chance.choice(KINDS)(recording[name], chance)
        yield seed, recording


def find_faults(count: int, first_seed: int = 0, *, matches: bool = True) -> list[Fault]:
    """Return the recordings of `list_mutants` that are neither read nor refused with one line in `MOST_S` seconds.

    Without `matches`, their chips are not looked up, which takes most of the time.
    """
    faults = []
    for seed, recording in list_mutants(count, first_seed):
        begin = time.process_time()
        try:
            machine = read_machine(recording)
            if matches:
                match_machine(machine)
        except JoulemapError as error:
            if "\n" in str(error) or len(str(error)) > 500:
                faults.append(Fault(seed=seed, text=f"long refusal: {str(error)[:200]!r}"))
        except Exception as error:
            faults.append(Fault(seed=seed, text=f"{type(error).__name__}: {error}"[:300]))
        if time.process_time() - begin > MOST_S:
            faults.append(Fault(seed=seed, text="too slow"))
    return faults
