"""Language models on the chips of a machine: on one chip, on several equal chips, and divided between two GPUs or a
GPU and the processor.

All times and energies are those of `llm` and of its `offload`, with llama.cpp and one user.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from joulemap.domain import SERVED, Settings, find_unknown
from joulemap.plan import AtLink
from joulemap.system import JoulemapError, UnsupportedError, frozen
from joulemap.wing.decoder import LOCAL_ENGINE, read_decoder
from joulemap.wing.here.generated.row import DeviceRow, ServedHere
from joulemap.wing.here.match import CPU, GPU, Device, MatchedChips
from joulemap.wing.here.show.word import JOINED, SEVERAL_LABEL, SPLIT, SPLIT_EXPERTS, SPLIT_LABEL
from joulemap.wing.llm.serve import (
    OK,
    READING_RATE,
    Case,
    Question,
    ServedModel,
    ServedRow,
    Serving,
    ServingRow,
    Way,
    divide_between,
    list_rows,
    serve,
)

if TYPE_CHECKING:
    from joulemap.physics import Hardware
    from joulemap.plan import Source

Labelled = TypeVar("Labelled", Device, DeviceRow)

FITS: Final = "yes"
FITS_NOT: Final = "no"

WEIGHTS: Final = ("q8_0", "q6_k", "q5_k_m", "q4_k_m", "q3_k_m")
"""Weight formats to try for a model that is published in 16 bits, the most precise first."""

USUAL_WEIGHTS: Final = "q4_k_m"
"""Most common weight format of GGUF files, and Ollama's default."""

SMALL: Final = "llama-3.2-1b"
"""Model that fits almost every machine.

Its interval widths stand in for those of other models, because they depend mainly on the chip.
"""

POPULAR: Final = (
    "llama-3.2-1b", "llama-3.2-3b", "gemma-3-4b", "mistral-7b", "llama-3.1-8b", "qwen3-8b", "gemma-3-12b", "qwen3-14b",
    "gpt-oss-20b", "mistral-small-3.1-24b", "gemma-3-27b", "qwen3-30b-a3b", "qwen3-32b", "qwen3.6-35b-a3b",
    "llama-3.1-70b", "glm-4.5-air", "gpt-oss-120b",
)  # fmt: skip
"""Language models that people run at home, by size."""

ENOUGH: Final = 0.5
"""Share of the highest decode speed above which more precise weights are preferred to faster weights."""

J_PER_KWH: Final = 3.6e6


@frozen(kw_only=True)
class Asked:
    """Question about language models on a machine."""

    prompt: int = 512
    output: int = 128
    weights: str = ""
    """Weight format; empty for the format of the model's files, or for `WEIGHTS` if the files have none."""
    usd_per_kwh: float = 0.3
    link: str = ""
    """Link of dedicated GPUs to their host, such as `pcie3x4`; empty for the one in their descriptions."""

    @property
    def serving(self) -> Serving:
        """Serving settings of the question: its lengths, llama.cpp, and one device."""
        return Serving(prompt=self.prompt, output=self.output, engine=LOCAL_ENGINE, devices=(1,))

    def price(self, joules: float | None) -> float | None:
        """Return the electricity cost in USD of a million tokens at an energy per token; None if it is unknown."""
        return None if joules is None else joules * 1e6 / J_PER_KWH * self.usd_per_kwh


def name_device(device: Device) -> str:
    """Return the name of a chip in the rows of answers."""
    assert device.hardware is not None
    return device.hardware if isinstance(device.hardware, str) else device.hardware.id


def list_chips(devices: Iterable[Device]) -> tuple[str | Hardware, ...]:
    """Return the distinct hardware of chips, in the form that `Settings.hardware` takes."""
    return tuple({name_device(one): one.hardware for one in devices if one.hardware is not None}.values())


def serve_model(source: Source, model: str, chips: MatchedChips, asked: Asked) -> list[ServedHere]:
    """Return the rows of a language model: each weight format on each chip, and divided between GPU and processor.

    If the model fits nowhere, the rows have the reasons. Raise as `llm` does in all other cases.
    """
    devices = chips.list_kind(GPU, CPU)
    weights = _choose_weights(source, model, asked.weights)
    settings = _settings(devices, weights)
    question, _, cases = ServedModel(name=model, settings=settings, serving=asked.serving).list_cases(source)
    widths = _list_widths(devices, _ask(source, model, settings, asked.serving))
    # interval widths depend mainly on the chip, so those of a small model stand in for missing ones
    if any((one.label, "") not in widths for one in devices):
        small = _list_widths(devices, _ask(source, SMALL, _settings(devices, (USUAL_WEIGHTS,)), asked.serving))
        widths = {key: attrs.evolve(one, first=None) for key, one in small.items()} | widths
    served = list(_price(model, question, cases, devices, widths, asked))
    served += _divide(question, cases, devices, served, widths, settings, asked)
    alone = {one.label: name_options(devices, [(one.label, 1)]) for one in devices}
    served = [row.replace(options=row.options or alone.get(row.label, "")) for row in served]
    order = {one: index for index, one in enumerate(dict.fromkeys((*WEIGHTS, *(row.weights for row in served))))}
    return sorted(served, key=lambda row: (order[row.weights], -(row.tokens_per_s or 0.0)))


def choose_row(rows: Sequence[ServedHere]) -> ServedHere | None:
    """Return the fastest row with the most precise weights at which the fastest chip reaches `ENOUGH` of its speed.

    Rows are in the order of `serve_model`. Return None if nothing runs.
    """
    fastest = max(rows, key=lambda row: row.tokens_per_s or 0.0, default=None)
    if fastest is None or not fastest.tokens_per_s:
        return None
    least = ENOUGH * fastest.tokens_per_s
    own = next(row for row in rows if row.label == fastest.label and (row.tokens_per_s or 0.0) >= least)
    return next(row for row in rows if row.weights == own.weights)  # the first is the fastest with these weights


def choose_largest(rows: Sequence[ServedHere], least: float = READING_RATE) -> ServedHere | None:
    """Return the fastest row of the largest model that reaches `least` tokens per second; else the fastest of all.

    Rows are in the order of `POPULAR`. Return None if nothing runs.
    """
    running = [row for row in rows if row.tokens_per_s]
    quick = [row for row in running if (row.tokens_per_s or 0.0) >= least]
    largest = next((row.model for row in reversed(quick)), "")
    return max(
        [row for row in quick if row.model == largest] or running, key=lambda row: row.tokens_per_s or 0.0, default=None
    )


@frozen(kw_only=True)
class Widths:
    """Half-widths of the 80 % intervals of a row."""

    first: float | None = None
    between: float | None = None
    energy: float | None = None


def _list_widths(devices: Sequence[Device], rows: Iterable[ServedRow]) -> dict[tuple[str, str], Widths]:
    """Return (label, weights) -> half-widths; those of a label alone, without weights, are of any of its rows."""
    found: dict[tuple[str, str], Widths] = {}
    for row in rows:
        label = _label(devices, row.hardware)
        one = Widths(
            first=row.first_token_half_width, between=row.between_half_width, energy=row.output_token_half_width
        )
        found |= {(label, _name_weights(row.precision)): one, (label, ""): one}
    return found


def _name_weights(precision: str) -> str:
    return precision.rpartition("/")[2]


def serve_popular(source: Source, chips: MatchedChips, asked: Asked) -> list[ServedHere]:
    """Return the rows of the popular models, one per chip or per division between GPU and processor.

    Intervals take a stored run each, so only `SMALL` and the model of `choose_largest` have them.
    """
    devices = chips.list_kind(GPU, CPU)
    settings = _settings(devices, (USUAL_WEIGHTS,))
    widths = _list_widths(devices, _ask(source, SMALL, settings, asked.serving))
    rows: list[ServedHere] = []
    targets: dict[str, Hardware] = {}
    for model in POPULAR:
        settings = _settings(devices, _choose_weights(source, model, "", (USUAL_WEIGHTS,)))
        try:
            found = ServedModel(name=model, settings=settings, serving=asked.serving)
            question, _, cases = found.list_cases(source, targets)
        except JoulemapError:
            continue
        own = widths if model == SMALL else {}
        served = list(_price(model, question, cases, devices, own, asked))
        rows += [*served, *_divide(question, cases, devices, served, own, settings, asked)]
    largest = choose_largest(rows)
    if largest is None or largest.model == SMALL:
        return rows
    whole = serve_model(source, largest.model, chips, attrs.evolve(asked, weights=largest.weights))
    index = next(number for number, row in enumerate(rows) if row.model == largest.model)
    others = [row for row in rows if row.model != largest.model]
    return [*others[:index], *whole, *others[index:]]


def _settings(devices: Sequence[Device], weights: Sequence[str]) -> Settings:
    return attrs.evolve(SERVED, hardware=list_chips(devices), batch=(1,), weight_precision=tuple(weights))


def _choose_weights(source: Source, model: str, asked: str, usual: tuple[str, ...] = WEIGHTS) -> tuple[str, ...]:
    """Return the weight formats to try; empty for a GGUF file, whose format is fixed."""
    from joulemap.physics import GGUF_METHOD

    if asked:
        return (asked,)
    decoder = read_decoder(source, model, SERVED, Asked().prompt)
    if decoder.published is not None and decoder.published.method == GGUF_METHOD:
        return ()
    return (stored,) if (stored := decoder.file_weights) else usual


def _ask(source: Source, model: str, settings: Settings, serving: Serving) -> list[ServedRow]:
    """Return the rows of `llm` for configurations that fit; none if nothing fits."""
    try:
        return [row for row in list_rows(source, model, settings, serving) if row.between_s]
    except UnsupportedError:
        return []


def _label(devices: Iterable[Device], hardware: str) -> str:
    return next((one.label for one in devices if name_device(one) == hardware), hardware)


def _fill_memory(case: Case, used_bytes: float) -> float | None:
    """Return the share of a chip's memory that `used_bytes` and the engine's reserve take; None if unknown."""
    if case.room is None:
        return None
    capacity = max(case.target.memory_capacity.value, case.room.usable)
    return (used_bytes + capacity - case.room.usable) / capacity


def _form(model: str, weights: str, label: str, **known: Any) -> ServedHere:
    """Return the row of a model on a chip, with what is known of it."""
    blank = find_unknown(ServedHere) | dict.fromkeys(("options", "cards", "setting", "reason"), "")
    return ServedHere(**blank | {"model": model, "weights": weights, "label": label, **known})


def _list_figures(between_s: float, joules: float, asked: Asked) -> dict[str, float | None]:
    """Return the fields of a row that follow from the time and the energy of an output token."""
    return {
        "tokens_per_s": 1.0 / between_s,
        "power_w": joules / between_s,
        "output_token_j": joules,
        "usd_per_million": asked.price(joules),
    }


def _price(
    model: str,
    question: Question,
    cases: Sequence[Case],
    devices: Sequence[Device],
    widths: Mapping[tuple[str, str], Widths],
    asked: Asked,
) -> Iterator[ServedHere]:
    """Yield a row for each case. Costs come from the formulas; no run is stored."""
    costs = serve(question, [case for case in cases if case.status == OK])
    for case in cases:
        label, weights, room = _label(devices, case.hardware), _name_weights(case.precision), case.room
        used = 0.0 if room is None else room.weights + room.workspace + room.cache(question.context)
        memory = _fill_memory(case, used)
        if case not in costs:
            yield _form(model, weights, label, fits=FITS_NOT, memory_fraction=memory, reason=case.bare_reason)
            continue
        assert room is not None
        cost, width = costs[case], widths.get((label, weights), widths.get((label, ""), Widths()))
        yield _form(
            model,
            weights,
            label,
            fits=FITS,
            context_tokens=room.tokens(1),
            first_token_s=cost.first_token_s,
            first_token_half_width=width.first,
            between_half_width=width.between,
            output_token_half_width=width.energy,
            memory_fraction=memory,
            setting=room.setting,
            **_list_figures(cost.between_s, cost.between_j, asked),
        )


def _divide(
    question: Question,
    cases: Sequence[Case],
    devices: Sequence[Device],
    served: Sequence[ServedHere],
    widths: Mapping[tuple[str, str], Widths],
    settings: Settings,
    asked: Asked,
) -> Iterator[ServedHere]:
    """Yield the fastest splits of layers: over sets of the dedicated GPUs of a vendor, and with the processor.

    A weight format that fits on the largest GPU alone is skipped, and so is the processor where GPUs suffice.
    """
    hosts = {case.run.point["weight_precision"]: case for case in cases if case.target.architecture == CPU}
    own = {name_device(one): one for one in devices if one.kind == GPU and not one.shares_memory}
    cards = [case for case in cases if case.hardware in own]
    for weights in dict.fromkeys(case.run.point["weight_precision"] for case in cards):
        these = sorted(
            (case for case in cards if case.run.point["weight_precision"] == weights),
            key=lambda case: (-case.target.memory_bandwidth.value, -case.target.memory_capacity.value),
        )
        format_name = _name_weights(these[0].precision)
        if any(row.fits == FITS and row.weights == format_name and row.label in _labels(own) for row in served):
            continue
        kept = attrs.evolve(settings, weight_precision=(weights,), precision=())
        divided = attrs.evolve(question, asked=kept, serving=attrs.evolve(asked.serving, devices=()))
        for vendor in dict.fromkeys(case.target.vendor for case in these):  # one back end runs on the cards of a vendor
            mine = [case for case in these if case.target.vendor == vendor for _ in range(own[case.hardware].count)]
            sets = [(mine[:count], mine[count]) for count in range(1, len(mine))]
            if weights in hosts:
                sets += [(mine[:count], hosts[weights]) for count in range(1, len(mine) + 1)]
            rows = [row for one in sets if (row := _split(divided, *one, devices, widths, asked)) is not None]
            whole = [row for row in rows if row.fits == FITS]
            yield from whole[:1] or rows


def name_options(devices: Sequence[Device], used: Sequence[tuple[str, int]]) -> str:
    """Return the options of llama.cpp that put a number of layers on each used GPU; empty on a machine with one."""
    left, slots = [*used], [one.label for one in devices if one.kind == GPU for _ in range(one.count)]
    layers = []
    for slot in slots:
        at = next((number for number, (label, _) in enumerate(left) if label == slot), None)
        layers.append(0 if at is None else left.pop(at)[1])
    if len(slots) < 2 or left:
        return ""
    return (
        f"-sm layer -ts {'/'.join(map(str, layers))}" if len(used) > 1 else f"-sm none -mg {layers.index(max(layers))}"
    )


def _labels(own: Mapping[str, Device]) -> set[str]:
    return {one.label for one in own.values()}


def _split(
    question: Question,
    cards: Sequence[Case],
    last: Case,
    devices: Sequence[Device],
    widths: Mapping[tuple[str, str], Widths],
    asked: Asked,
) -> ServedHere | None:
    """Return the fastest split over cards and a last device, another card or the processor; None if none fits."""
    has_link = any(name_device(one) == cards[0].hardware and one.has_link for one in devices)
    way = Way.of(AtLink(asked.link).apply(cards[0].target) if asked.link and has_link else cards[0].target)
    try:
        division = divide_between([case.target for case in cards], last.target, way, question)
    except JoulemapError:
        return None
    best = next((row for row in division.rows if row.is_best and (row.layers or division.is_routed)), None)
    if best is None or best.between_s is None or best.output_token_j is None:
        return None
    is_host = last.target.architecture == CPU
    used = [*cards] if is_host else [*cards, last]
    counts = [*map(int, best.split.split("/"))]
    counts += [] if is_host else [question.decoder.layer_count - best.layers]
    named = Counter(_label(devices, case.hardware) for case in used)
    label = JOINED.join(name if many == 1 else SEVERAL_LABEL(count=many, device=name) for name, many in named.items())
    other = _label(devices, last.hardware)
    both = [widths.get((name, ""), Widths()) for name in (*named, other)]
    is_apart = division.is_routed and best.layers < question.decoder.layer_count
    away = ServingRow.doubt_split(ServingRow.split_experts("")) if is_apart else 0.0
    layers = (SPLIT_EXPERTS if division.is_routed else SPLIT)(
        layers=best.layers, layer_count=question.decoder.layer_count
    )
    return _form(
        question.decoder.name,
        _name_weights(cards[0].precision),
        SPLIT_LABEL(device=label, host=other) if is_host else label,
        fits=layers if is_host else FITS,
        first_token_s=best.first_token_s,
        between_half_width=_widest((one.between for one in both), away),
        output_token_half_width=_widest((one.energy for one in both), away),
        memory_fraction=_fill_memory(cards[0], best.device_bytes),
        options=name_options(
            devices, [(_label(devices, one.hardware), n) for one, n in zip(used, counts, strict=True)]
        ),
        cards=label if is_host else "",
        **_list_figures(best.between_s, best.output_token_j, asked),
    )


def _widest(widths: Iterable[float | None], more: float) -> float | None:
    """Return the largest half-width together with another one; None if none is known."""
    known = [one for one in widths if one is not None]
    return math.hypot(max(known), more) if known else None


def find_device(row: ServedHere, devices: Iterable[Labelled]) -> Labelled | None:
    """Return the first device of a row, which may share the work with others; None if it is none of these."""
    return next((one for one in devices if one.label in row.label.split(" ")), None)
