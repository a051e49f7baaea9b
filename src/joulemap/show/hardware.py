"""Words and tables of one chip: its main figures, rooflines, links, numbers and compiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from joulemap.ask.hardware import HardwareAnswer
from joulemap.ask.setting import find_calibrations
from joulemap.domain.host import suggest_host
from joulemap.generated.hardware import HardwareFact, HardwareLink, RidgePoint
from joulemap.physics.record.compiler import EVERYTHING, HOST_OPERATIONS, UNLISTED_NAME
from joulemap.show.caveat import describe_values
from joulemap.show.column import alter, show_table
from joulemap.show.layout import lay_lines
from joulemap.show.page import Asked, Page, compose, fill_steps
from joulemap.show.present.cell import Number, number, show_count, show_quantity
from joulemap.show.present.document import Document, Lines, Section
from joulemap.show.present.template import Template
from joulemap.system.name import PROJECTED
from joulemap.system.package import list_packages

PREFIXED: Final = ("Hz", "B/s", "ops/s", "W", "s", "T/s", "USD", "USD/h")
"""Units that are shown with an SI prefix or as an amount of money; bytes also get one, from 1000 B."""

KILO: Final = 1000.0

TITLE: Final = Template("{mark}{hardware}: {name}, {vendor}, {microarchitecture}")
SUMMARY: Final = Template(
    "{kind} with {units}: {peak_ops_per_s:ops/s} peak ({precision}), {memory_capacity} at {memory_bandwidth} "
    "({memory_type}), {tdp}[, deployment: {deployment:and}][; needs a host: {needs_host}]"
    "[; not available: {unavailable}]."
)

MAIN: Final[Mapping[str, str]] = {
    "clock": "clock",
    "memory_capacity": "memory",
    "memory_bandwidth": "memory bandwidth",
    "tdp": "power cap",
    "power_limit_lowest": "lowest power limit",
    "power_limit_highest": "highest power limit",
    "idle_power": "idle power",
    "static_power": "static power",
    "context_power": "idle power with an open context",
    "loaded_power": "idle power with a loaded model",
    "process_node": "process node",
    "launch_year": "launch year",
    "price_purchase": "purchase price",
    "price_cloud": "cloud price",
}
"""Main quantity of a chip -> its label."""
PEAK: Final = Template("peak {precision}")
OFFER: Final = Template("{basis}: {price_text}")

SURE: Final = Template("of {count} {noun}, {some:and}")
SURE_SOME: Final = Template("{count:n is|are} {basis}")
SURE_NONE: Final = "none is recalled or assumed"

OPERATORS: Final = Template("{hardware}: operators of {compiler}")
OPERATOR_COUNTS: Final = Template(
    "It runs {runs}[, and refuses a model that contains any of {refused}][; {host} computes all others]. "
    "Source ({basis}): {source}"
)
ALL_BUT: Final = Template("all operators but {count}")
LISTED: Final = Template("{count} kinds and operations")
EVERY_OPERATOR: Final = Template("{hardware} runs every operator.")
UNLISTED: Final = Template("Unknown: no list of its operators exists. Assumed to need a host: {operators:list}.")

POWER: Final = Template("power limit {tdp_w:W}, static power {static_power_w:W}")
POWER_WITHOUT_HOST: Final = Template(
    "power limit {tdp_w:W}, static power {static_power_w:W}, excluding its host ({needs_host}); --site host={host}, "
    "for example, adds it"
)
ALIASES: Final = Template("aliases: {aliases:list}")
MODES: Final = Template("power modes: {modes:list}; without one, the clock is {clock} and the power cap {tdp}")
PROJECTION: Final = Template("key numbers: {projection}")
UNAVAILABLE: Final = Template("{mark} not available: {unavailable}")
PACKAGED: Final = Template("described by the installed package {package}[; its page: {page}]")
MEANING: Final = Template(
    "{name} means {hardware}, the default of its class; `{architecture}s` means all chips of the class"
)

PRICES: Final = {"rented": "price_cloud", "bought": "price_purchase"}
"""Way of paying -> quantity of a chip that holds its price."""


LINKS: Final = "Links, in one direction"
COMPILER: Final = "Operators that its compiler supports"
STEPS: Final = (Template("evidence {asked}"), Template("hardware show {asked} --energy"))


def describe_chip(answer: HardwareAnswer) -> str:
    """Return class, units, peak, memory and power limit in a line."""
    one, amounts = answer.summary, _show_amounts(answer)
    fastest = max(answer.ridge, key=lambda row: row.peak_ops_per_s)
    return SUMMARY(
        one,
        kind=one.architecture.upper(),
        units=show_count(one.units_total_count, one.unit_name),
        peak_ops_per_s=fastest.peak_ops_per_s,
        precision=fastest.precision,
        **{name: amounts[name] for name in ("memory_capacity", "memory_bandwidth", "tdp")},
    )


def describe_bases(answer: HardwareAnswer) -> str:
    """Return a line that counts the recalled and the assumed ones among the numbers and the energies per action."""
    one, lines = answer.summary, []
    for noun, kind in (("numbers", "fact"), ("energies per action", "action")):
        counts = {basis: getattr(one, f"{basis}_{kind}_count") for basis in ("recalled", "assumed")}
        some = [SURE_SOME(count=count, basis=basis) for basis, count in counts.items() if count] or [SURE_NONE]
        lines.append(SURE(count=getattr(one, f"{kind}_count"), noun=noun, some=some))
    return "; ".join(lines)


def describe_operators(answer: HardwareAnswer) -> str:
    """Return a sentence on the compiler: how many operators it runs or refuses, and the source of its list."""
    hardware = answer.summary.hardware
    if not answer.compilers:
        return EVERY_OPERATOR(hardware=hardware)
    one, rows = answer.compilers[0], answer.list_operators()
    if one.compiler == UNLISTED_NAME:
        return UNLISTED(operators=HOST_OPERATIONS)
    counts = Counter(row.support for row in rows)
    is_open = any(row.operator == EVERYTHING for row in rows)
    runs = ALL_BUT(count=counts["host"] + counts["refused"]) if is_open else LISTED(count=counts["runs"])
    line = OPERATOR_COUNTS(one, runs=runs, refused=counts["refused"] or None, host=one.host or None)
    return f"{OPERATORS(one, hardware=hardware)}. {line}"


def _list_figures(answer: HardwareAnswer) -> Iterator[tuple[str, str, str]]:
    for row in answer.ridge:
        yield PEAK(row), show_quantity(row.peak_ops_per_s, "ops/s"), row.basis
    facts = {row.quantity: row for row in answer.facts}
    prices: dict[str, list[tuple[str, str, str]]] = {}
    for one in answer.offers:
        name = PRICES[one.way]
        prices.setdefault(name, []).append((MAIN[name], _show_amount(one.usd, facts[name].unit), OFFER(one)))
    for name, label in MAIN.items():
        if name in facts:
            fact = facts[name]
            yield from prices.get(name) or [(label, _show_amount(fact.value, fact.unit), fact.basis)]


def list_notes(answer: HardwareAnswer) -> Iterator[str]:
    """Yield notes on power, names, modes, estimated numbers and the calibration."""
    one, amounts = answer.summary, _show_amounts(answer)
    yield POWER_WITHOUT_HOST(one, host=suggest_host(one.needs_host)) if one.needs_host else POWER(one)
    if one.aliases:
        yield ALIASES(one)
    if one.power_modes:
        modes = [f"{one.hardware}@{mode}" for mode in one.power_modes]
        yield MODES(modes=modes, clock=amounts["clock"], tdp=amounts["tdp"])
    if one.package:
        packages = {known.label: known.page for known in list_packages()}
        yield PACKAGED(one, page=packages.get(one.package))
    if one.projection:
        yield PROJECTION(one)
    if one.unavailable:
        yield UNAVAILABLE(one, mark=PROJECTED)
    applied = [*find_calibrations(answer.calibrations, [one.hardware])]
    yield from [describe_values(each.kind, each.values) for each in applied] or ["not calibrated: uses class defaults"]
    for name, hardware in answer.meanings.items():
        yield MEANING(name=name, hardware=hardware, architecture=one.architecture)


def _show_amounts(answer: HardwareAnswer) -> dict[str, str]:
    return {row.quantity: _show_amount(row.value, row.unit) for row in answer.facts}


@number
def _show_amount(value: float, unit: str) -> str:
    """Format a number of the catalogue with its unit."""
    if unit in PREFIXED or (unit == "B" and value >= KILO):
        return show_quantity(value, unit)
    return f"{value:.6g}" if unit in ("1", "year") else f"{value:.6g} {unit}"


def list_details(answer: HardwareAnswer) -> Iterator[Section]:
    """Yield the tables behind that of the main figures: rooflines, links, numbers, compiler and doubts."""
    yield from show_table(answer, "Roofline", answer.ridge, RidgePoint.table)
    generation = HardwareLink.generation.by(lambda row: Number(row.generation or ""))
    yield from show_table(answer, LINKS, answer.links, alter(HardwareLink.table, generation))
    amount = HardwareFact.value.by(lambda row: _show_amount(row.value, row.unit)).kept
    yield from show_table(answer, "Numbers", answer.facts, alter(HardwareFact.table, amount))
    if answer.compilers:
        yield Section(COMPILER, Lines((describe_operators(answer),)))
    yield Section("Doubts", Lines(answer.summary.doubts))


def draw_hardware(answer: HardwareAnswer, asked: Asked) -> Document:
    """Return the document of a chip."""
    return compose(
        answer,
        [Section("Main figures", lay_lines("quantity | value | basis", _list_figures(answer)))],
        answer.facts,
        title=TITLE(answer.summary, mark=PROJECTED if answer.summary.unavailable else ""),
        headline=describe_chip(answer),
        details=list_details(answer),
        notes=list_notes(answer),
        trust=describe_bases(answer),
        steps=fill_steps(STEPS, answer, asked.repeated),
    )


PAGES: Final = {HardwareAnswer: Page[HardwareAnswer](draw=draw_hardware)}
