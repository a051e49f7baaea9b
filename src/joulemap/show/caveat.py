"""Words for caveats: a template for each kind, the line on trust, and notes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from joulemap.ask.cause import find_lack
from joulemap.ask.decision import find_decision
from joulemap.ask.fact import Caveat, Choice, Entry, Facts, Limit, Quantity, Refusal, Subject, Value
from joulemap.show.present.cell import show_interval, show_plain, show_quantity, show_span
from joulemap.show.present.template import Template
from joulemap.show.refusal import list_excluded_notes, list_refusal_notes
from joulemap.show.run_name import drop_settings, join_names, name_all
from joulemap.show.word import read_words

UNPRICED: Final = ("unpriced", "elsewhere", "unoffered")
"""Kinds of caveats on hardware that a missing price leaves out."""

MOST_CAVEATS: Final = 2
"""Maximum caveats in the line on trust."""

MOST_OF_KIND: Final = 4
"""Maximum notes of one kind; more are counted."""

LEAST_MOVE: Final = 0.25
"""Minimum weight of a further caveat in the line on trust, as a share of the logarithm of the deciding ratio."""

LEAST_WEIGHT: Final = 0.05
"""Minimum weight of a caveat in the line on trust: a factor of 1.05."""

MONEY: Final = ("USD", "USD/h")
"""Units whose values have cents; the ends of their intervals have two digits."""


DECIDING: Final = math.log(1.5)
"""Known bias from which a caveat is said to decide a tie, a factor of 1.5; chosen, not fitted."""

RANGES: Final = "80 % ranges"
MORE_OF_KIND: Final = Template("{count} more notes of the kind `{kind}`: --format json")
FIT: Final = (
    "fitted to {measurement_count:n measurement} of {family_count:n family|families}[, median error "
    "{latency_error_fraction:%} of latency][, median error {energy_error_fraction:%} of energy]"
    "[, each of the {held_out_count} families held out]"
)
"""Words on the measurements behind a calibration."""

ROWS: Final = "{count:n row} of {models:list}[ and {more} more]"
"""Words on measurements and their models."""

CAVEAT: Final[Mapping[str, Template]] = {
    "absent": Template("not in this database: {tables:and}: `joulemap measurements import NAME` adds their energies"),
    "assumed": Template("{energy_fraction:%} of the energy of {chips} is assumed[, mostly {mostly:category}]"),
    "borrowed": Template("the range of {chips} is from other kinds of work"),
    "branched": Template(
        "Python code reads data[ at {places:few}], so other inputs may run other code[; {modules:n module} with "
        "weights never ran: {idle:few}]"
    ),
    "broken": Template("the numbers of {chips} break a law ({laws}), so that nothing about them is sure"),
    "calibrated": Template(
        "{hardware} uses the calibration {calibration} ({origin}), " + FIT + "; `--calibration none` disables it"
    ),
    "changed": Template("{chips}: {number}"),
    "compiler": Template("fused means {engine} on {chips}, and the framework's compiler on other chips"),
    "copied": Template(
        "traced: {operators} x cat appends new rows to given keys and values, which copies all rows; `--runtime "
        "engine` writes the new rows in place"
    ),
    "counted": Template(
        "[{host} as ]the assumed host of {chips}[, the rest of its {whole},][ adds {share:%} to its {quantity}]"
        "[ multiplies its {quantity} by {factor:plain}]"
    ),
    "deployed": Template("`--runtime engine` predicts {engine}, which deployments on {chips} use"),
    "engine": Template("engine means {engine} on {chips}; `--runtime fused` uses the framework's compiler"),
    "elsewhere": Template("only sellers of another kind offer {chips} (`--site seller` chooses)"),
    "fitted_to": Template(
        "intervals were fitted to these measurements; those of the scoreboard leave out the board or source"
    ),
    "fallback": Template("{helper} computes {operations:few} of {chips}: {latency_fraction:%} of the time"),
    "few_measured": Template(
        "the fit combines class defaults with {measurement_count:n measurement} of {hardware}[, weight "
        "{latency_weight_fraction:%} in time][, weight {energy_weight_fraction:%} in energy]; coefficients change by "
        "at most {farthest_fraction:%} ({most_moved}); {moved_count} change[, {determined_count} of them as the "
        "measurements alone would have it]"
    ),
    "gained": Template("only the new version runs on {chips}"),
    "given": Template("the price of {chips} is given, and taken as exact"),
    "host": Template(
        "the energy of {chips} excludes a host ([about +{host_ratio:set %}; ]`--site host=NAME` adds one)"
    ),
    "default_mode": Template("{chips} runs in its power mode {mode}, at most {cap}; others: {others:list}"),
    "hosted": Template(
        "energy and power of {chips} include the host {host}[, which is assumed to have a {slot} for them]"
    ),
    "inherited": Template(
        "the calibration of {hardware}, of the same generation ({generation}), applies to {inheritors:few}: "
        "{calibration} ({origin}), " + FIT + "; `--calibration own` disables this"
    ),
    "in_place": Template("traced: {operators} x cat appends new rows to given keys and values, written in place"),
    "kept": Template("{chips} meets the limits with {probability:chance} probability"),
    "launched": Template("eager: {host} launches kernels of {chips} in {time} each"),
    "launched_beside": Template("eager: a core on the same chip launches kernels of {chips} in {time} each"),
    "launched_by_default": Template(
        "eager: {host} launches kernels of {chips} in {time} each; `--site host=NAME` selects another, `joulemap "
        "measure host` times this machine"
    ),
    "lost": Template("the new version does not run on {chips}"),
    "limited": Template("{compiler} of {chips} leaves {operations:and} to {helper}"),
    "mean_power_budget": Template("every power mode whose average power is within {limit}[ ({origin})]"),
    "meant": Template("{name} means {hardware}[; others: {others:few}]"),
    "metered": Template(
        "the power of {chips} is wall-plug power, because its energies were fitted to measurements at the wall"
    ),
    "narrow": Template("fp32 products of {chips} run in {precision} (`--matmul-precision highest` is true fp32)"),
    "old_paces": Template(
        "dropped {paces:n factor} on the passes of serving engines, fitted with other formulas: fit them again to the "
        "measurements that they came from"
    ),
    "omitted": Template("{chips} leaves {operations:few} to a host, uncounted[ ({mac_fraction:%} of the MACs)]"),
    "overlapping": Template("{chips} starts a batch every {interval_s}, before the last one ends ({throughput_limit})"),
    "own": Template("your assumed numbers alone make {chips} uncertain: [energy {energy:±}][, latency {latency:±}]"),
    "packaged": Template("the installed package {package} describes {chips}"),
    "placed": Template("placement of {chips}: {placement}"),
    "power_budget": Template("each chip at its largest power mode within {limit}[ ({origin})]"),
    "priced": Template("the price of {chips} is uncertain: {price}"),
    "recalled": Template("{energy_fraction:%} of the energy of {chips} uses published numbers that were not checked"),
    "shared": Template(
        "the calibration of {hardware}, of the same generation ({generation}), applies to {inheritors:few}, too; "
        "`--calibration own` disables this"
    ),
    "slowed": Template("the power cap slows {chips} to {clock_hz} ({clock_fraction:%} of the full clock)"),
    "sold": Template("the price of {chips} is a {seller} price (`--site seller` compares one kind)"),
    "stored": Template(
        "GEMM weights are stored as {format}; the GEMM kernel dequantizes them; norms, biases and tables keep the "
        "precision of activations"
    ),
    "suppressed": Template(
        "{latency_fraction:%} of the time of {chips} is non-maximum suppression, whose number of boxes depends on data "
        "(`--model-arg nms_candidates=N` states it)"
    ),
    "traced": Template("traced: {text}"),
    "unattributed": Template("{energy_fraction:%} of the energy of {chips} is unattributed: no counter explains it"),
    "uncalibrated": Template("no calibration for {chips}, so the gap may be smaller"),
    "uncounted": Template(
        'operations of {operators} x {name} are not counted, only bytes; @joulemap.formula("{name}") adds them'
    ),
    "unfitted": Template(ROWS + ": {reason}"),
    "unlisted": Template("it is unknown whether {chips} can run every operator"),
    "unnamed": Template(
        "[{share:%} of the gap][{excess} more] is unattributed: measured energy that no counter explains"
    ),
    "unoffered": Template("left out, because no {price} is known: {chips}"),
    "unpredicted": Template("stored, but `validate` cannot predict rows with unknown names: {names:list}"),
    "unpriced": Template("{reason} for {chips}[ (the best of them: {value})]"),
    "unread": Template("factors of the earlier calibration are dropped: {reason}"),
    "unscored": Template("not scored: " + ROWS + ": {reason}"),
    "unserved": Template("not predicted, of {count:n row} of served models: {reasons}[; and {more:n other reason}]"),
    "untrusted": Template("left out: " + ROWS + ", code that rows of a file name: JOULEMAP_TRUST=1 runs it"),
    "unwalled": Template("the energy of {chips} is that of the {boundary}, without host and power supply ({reason})"),
    "walled": Template(
        "the wall-plug power of {chips} is {growth_ratio:plain} times the power of the board[, plus {host} for the "
        "host][, which {board_count:#} boards share]"
    ),
}
"""Kind of caveat -> its sentence, in the line on trust and among the notes; wings bring those of their rules."""


def format_value(value: Any) -> Any:
    """Return a value of a fact for a template."""
    return show_range(value) if isinstance(value, Quantity) else value or None


def show_middle(value: Quantity) -> str:
    """Return a quantity without its interval."""
    return show_quantity(value.value, value.unit)


def show_range(value: Quantity) -> str:
    """Return a quantity with its interval: `36 mJ (22-58)`, the ends joined by a dash."""
    if value.unit in MONEY and value.half_width:
        ends = (value.value * math.exp(sign * value.half_width) for sign in (-1.0, 1.0))
        span = show_span(*(show_plain(float(f"{end:.2g}")) for end in ends))
        return f"{show_middle(value)} ({span})"
    return show_interval(value.value, value.unit, value.half_width)


def tell_ranges(spans: Sequence[str]) -> str:
    """Return the line on ranges; empty without any."""
    return f"{RANGES}: {', '.join(spans)}" if spans else ""


def describe_caveat(caveat: Caveat, runs: Mapping[int, Subject], among: Sequence[int] = ()) -> str:
    """Return the sentence on a caveat; `among` restricts it to these runs."""
    ids = [one for one in caveat.runs if one in among] or caveat.runs
    return describe_values(caveat.kind, caveat.values, join_names(name_all(runs, ids)))


def describe_values(kind: str, values: Mapping[str, Value], chips: str = "") -> str:
    """Return the sentence of a kind of caveat with these values."""
    template = CAVEAT.get(kind) or read_words().caveats[kind]
    # A zero leaves out an optional part; a slot that is always shown needs it, because None has no format.
    shown = {
        name: 0 if value == 0 and name in template.required else format_value(value) for name, value in values.items()
    }
    return template(chips=chips, **shown)


def find_unpriced(facts: Facts) -> dict[str, str]:
    """Return named chip -> sentence on the price that it lacks, without which it is in no decision."""
    priced = {facts.runs[run].hardware for one in (*facts.of(Choice), *facts.of(Entry)) for run in one.runs}
    lost = [one for one in facts.of(Caveat) if facts.is_named and one.kind in UNPRICED]
    chips = {facts.runs[run].hardware: one for one in lost for run in one.runs}
    return {name: describe_caveat(one, facts.runs) for name, one in chips.items() if name not in priced}


def describe_trust(facts: Facts, head: str = "", *, is_drawn: bool = False) -> str:
    """Return one line: `head` or, unless a drawing says it, what ranges mean, and the caveats that could move this
    decision most.
    """
    asked = [one.values.get(name) for one in facts.of(Entry) for name in facts.asked]
    has_ranges = not is_drawn and any(one is not None and one.half_width for one in asked)
    parts = [head] if head else [RANGES] if has_ranges else []
    decided = _find_decided(facts)
    runs = drop_settings(facts.runs, decided or facts.runs)
    decision = find_decision(facts)
    is_tie = decision is not None and decision.leads[0].is_tied
    word = " (could decide it)" if is_tie else " (could reverse it)"
    for caveat, could_move in rank_caveats(facts)[:MOST_CAVEATS]:
        parts.append(describe_caveat(caveat, runs, decided) + (word if could_move else ""))
    return "; ".join(parts)


def _find_decided(facts: Facts) -> tuple[int, ...]:
    """Return the winner and its rival; empty without a decision."""
    decision = find_decision(facts)
    return decision.runs if decision is not None else next((one.runs[:2] for one in facts.of(Limit)), ())


def rank_caveats(facts: Facts) -> list[tuple[Caveat, bool]]:
    """Return the caveats that could move the decision, heaviest first, one per kind, and if each could reverse it, or
    decide a tie.

    Without a decision, they are those that could move the values most. The heaviest is among them even if it moves the
    decision little, so that a reader sees how little.
    """
    decision = find_decision(facts)
    lead = decision.leads[0] if decision is not None else None
    margin = math.log(lead.ratio) if lead is not None and lead.ratio else 0.0
    if lead is None:
        margin = next((one.miss or 0.0 for one in facts.of(Limit)), 0.0)

    def weigh(one: Caveat) -> float:
        return one.move if lead is None else one.weight

    by_kind: dict[str, Caveat] = {}
    for one in facts.of(Caveat):
        known = by_kind.get(one.kind)
        if weigh(one) >= LEAST_WEIGHT and (known is None or (one.weight, one.move) > (known.weight, known.move)):
            by_kind[one.kind] = one
    is_close = lead is not None and lead.is_tied
    ranked = sorted(by_kind.values(), key=weigh, reverse=True)
    heavy = [one for one in ranked if weigh(one) >= LEAST_MOVE * margin] or ranked[:1]
    for lack in find_lack(facts):  # it stands beside the heaviest, because no cause says it
        heavy.insert(min(sum(weigh(one) > weigh(lack) for one in heavy), MOST_CAVEATS - 1), lack)
    return [
        (one, abs(one.bias) >= DECIDING if is_close else one.bias >= 0.0 and one.weight >= margin > 0.0)
        for one in heavy
    ]


def list_notes(facts: Facts, *, is_beyond_trust: bool = False) -> list[str]:
    """Return refusals and caveats as notes, heaviest first; many of one kind are counted.

    With `is_beyond_trust`, caveats of the line on trust are left out, except for chips that it does not name.
    """
    notes, counts = [], dict[str, int]()
    told = [one for one, _ in rank_caveats(facts)[:MOST_CAVEATS]] if is_beyond_trust else []
    decided = _find_decided(facts)
    refusals = facts.of(Refusal)
    notes += list_refusal_notes(refusals)
    for one in facts.of(Caveat):
        rest = [run for run in one.runs if run not in decided] if one in told else one.runs
        if one in told and len(rest) in (0, len(one.runs)):
            continue
        counts[one.kind] = counts.get(one.kind, 0) + 1
        if counts[one.kind] <= MOST_OF_KIND:
            notes.append(describe_caveat(one, facts.runs, rest))
    many = ((kind, count - MOST_OF_KIND) for kind, count in counts.items() if count > MOST_OF_KIND)
    notes += [MORE_OF_KIND(kind=kind, count=count) for kind, count in many]
    return notes + list_excluded_notes(refusals)
