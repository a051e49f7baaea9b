"""Chips of the machine that runs joulemap, and a model or the popular models on each of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.ask import (
    UNKNOWN,
    Answer,
    Choice,
    Entry,
    Facts,
    Finding,
    Limit,
    Quantity,
    Refusal,
    Subject,
    choose,
    weigh_findings,
)
from joulemap.domain import SETTINGS, Settings, Table, make_table, take
from joulemap.physics import probability_better
from joulemap.plan import Source
from joulemap.system import UsageError, frozen
from joulemap.wing.decoder import find_decoder
from joulemap.wing.here.check import EXPERTS, list_run_checks, list_served_checks
from joulemap.wing.here.generated.row import DeviceRow, RunHere, ServedHere
from joulemap.wing.here.match import CPU, GPU, NPU, Device, MatchedChips, match_machine
from joulemap.wing.here.note import describe_memory, list_assumptions, read_file_notes
from joulemap.wing.here.recording import Recording, load_recording, record
from joulemap.wing.here.run import POPULAR, run_model
from joulemap.wing.here.serve import (
    SMALL,
    Asked,
    choose_largest,
    choose_row,
    find_device,
    serve_model,
    serve_popular,
)
from joulemap.wing.llm.serve import READING_RATE, ServingRow

RATE: Final = "tokens_per_s"
LARGEST: Final = "largest_model"
SURE: Final = "sure_model"
"""Metric of the choice of the largest model that surely reaches reading speed, if the first choice may not."""

FASTEST: Final = "fastest"
"""Metric of the choice of the fastest weights, which are less precise than those of the first choice."""

SERVED_VALUES: Final[Mapping[str, tuple[str, str, str]]] = {
    RATE: ("tokens_per_s", "1/s", "between_half_width"),
    "energy_per_token": ("output_token_j", "J", "output_token_half_width"),
    "first_token": ("first_token_s", "s", "first_token_half_width"),
    "power": ("power_w", "W", ""),
}
"""Metric of a language model -> field of a row, unit, and field with the half-width."""

RUN_VALUES: Final[Mapping[str, tuple[str, str, str]]] = {
    "latency": ("latency_s", "s", "latency_half_width"),
    "energy": ("energy_j", "J", "energy_half_width"),
    "power": ("power_w", "W", ""),
}
"""Metric of another model -> field of a row, unit, and field with the half-width."""


ASKED: Final = Asked()

SERVED_OPTIONS: Final = {"--prompt": "prompt", "--output": "output", "--tariff": "usd_per_kwh"}
"""Option that only language models use -> field of `Asked`."""


@frozen(kw_only=True)
class HereAnswer(Answer):
    """Answer about a machine: its chips, and the models that run on them."""

    model: str
    prompt: int
    output: int
    usd_per_kwh: float
    parts: tuple[str, ...]
    memory: str
    devices: Table[DeviceRow]
    served: Table[ServedHere]
    """One row per language model, weight format and chip, or per GPU and CPU that divide the layers."""
    runs: Table[RunHere]
    """One row per model and chip, for models other than language models."""
    checks: tuple[str, ...]
    """Commands that measure the predicted values."""
    gaps: tuple[str, ...]
    """One line for each chip that is unknown and each value that could not be read."""
    assumptions: tuple[str, ...]

    about = ("model", "prompt", "output", "usd_per_kwh", "parts", "memory", "checks", "gaps", "assumptions")

    facts: Facts
    """Decision, rows, refusals and what could not be read, from which all sentences are made."""

    @property
    def shown(self) -> Table[ServedHere] | Table[RunHere]:
        """Table of the language models, or of other models if there are none."""
        return self.served if self.served else self.runs

    @property
    def main(self) -> Table[Any]:
        """Table for csv: the models, or the chips if no model runs on any."""
        return self.shown if self.shown else self.devices

    @property
    def every(self) -> Table[ServedHere] | None:
        """Language models on every chip; None if one model was named."""
        return None if self.model else self.served

    @property
    def others(self) -> Table[RunHere] | None:
        """Models other than language models beside these; None if one model was named."""
        return None if self.model or not self.served else self.runs

    @property
    def runs_model(self) -> bool:
        """True if a chip runs the named model, or if no model was named."""
        return not self.model or any(row.tokens_per_s for row in self.served) or any(row.latency_s for row in self.runs)


def here(
    source: Source,
    model: str = "",
    *,
    recorded: str | Path | Recording = "",
    memory: str = "",
    asked: Asked = ASKED,
    precision: str = "",
    inputs: Sequence[str] = (),
    link: str = "",
    probe: bool = False,
) -> HereAnswer:
    """Return the chips of this machine, or of a recorded one, and a model or the popular models on each.

    `recorded` is a folder or file of recorded tool outputs; without it, the tools of this machine run. `memory` states
    the memory configuration, such as DDR5-5600x2, and `link` the link of dedicated chips to the host, such as pcie3x4.
    `inputs` sets the open sizes of a model file, such as ids=1,128:int64. With `probe`, this machine's memory bandwidth
    is measured.

    Raise UnknownNameError or ModelError for an unknown model, UsageError for a recording that cannot be read.
    """
    from joulemap.wing.here.reader import read_machine

    recording = recorded if not isinstance(recorded, str | Path) else _read(recorded)
    machine = read_machine(recording, memory)
    notes: list[str] = []
    if probe:
        from joulemap.wing.here.probe import apply_probe, check_probe

        check_probe(recorded)
        machine, line = apply_probe(machine)
        notes.append(line)
    chips = match_machine(machine)
    usable = chips.list_kind(GPU, CPU, NPU)
    if link and not any(one.has_link for one in usable):
        raise UsageError(f"--link {link}: no chip of this machine has a link of its own to the host: leave it out")
    settings = attrs.evolve(SETTINGS, inputs=tuple(inputs), link=link)
    served, runs = _answer(source, model, chips, attrs.evolve(asked, link=link), settings, precision)
    cut, whole = read_file_notes(model) if served else ((), ())
    notes += [*whole, *list_assumptions(usable, asked.usd_per_kwh if served else None)]
    gaps = (*cut, *machine.gaps, *chips.notes)
    return HereAnswer(
        model=model,
        prompt=asked.prompt,
        output=asked.output,
        usd_per_kwh=asked.usd_per_kwh,
        parts=tuple(f"{one.count} x {one.label}" if one.count > 1 else one.label for one in usable),
        memory=describe_memory(machine),
        devices=make_table(
            "here devices",
            DeviceRow,
            [DeviceRow(**take(DeviceRow, one), chip_count=one.count) for one in chips.devices],
        ),
        served=make_table("here served", ServedHere, served),
        runs=make_table("here runs", RunHere, runs),
        checks=tuple(_list_checks(model, usable, served, runs, asked, machine.system, inputs)),
        gaps=gaps,
        facts=find_facts(model, served, runs, gaps),
        assumptions=tuple(notes),
    )


def _read(recorded: str | Path) -> Recording:
    return load_recording(Path(recorded).expanduser()) if str(recorded) else record()


def _answer(
    source: Source, model: str, chips: MatchedChips, asked: Asked, settings: Settings, precision: str
) -> tuple[list[ServedHere], list[RunHere]]:
    is_served = bool(model) and is_language_model(model)
    if model and asked.weights and not is_served:
        raise UsageError("--weight-precision is for a language model: name one, or use --precision")
    unused = [word for word, name in SERVED_OPTIONS.items() if getattr(asked, name) != getattr(ASKED, name)]
    if model and unused and not is_served:
        raise UsageError(f"{unused[0]} is for a language model, and {model} is none: leave it out")
    if precision and is_served:
        raise UsageError("--precision is for other models: use --weight-precision for a language model")
    if settings.inputs and is_served:
        raise UsageError("--input is for other models: use --prompt and --output for a language model")
    if not chips.list_kind(GPU, CPU, NPU):
        return [], []
    if not model:
        return serve_popular(source, chips, asked), run_model(source, POPULAR, chips, precision, settings)
    if is_served:
        return serve_model(source, model, chips, asked), []
    return [], run_model(source, (model,), chips, precision, settings)


def is_language_model(model: str) -> bool:
    """Return True for the name or the file of a language model; ModelError for a file that cannot be read."""
    return not model.lower().endswith((".onnx", ".py")) and ".py:" not in model and find_decoder(model) is not None


def _list_checks(
    model: str,
    usable: Sequence[Device],
    served: Sequence[ServedHere],
    runs: Sequence[RunHere],
    asked: Asked,
    system: str,
    inputs: Sequence[str],
) -> Iterator[str]:
    """Yield shell commands that measure the predictions; none if nothing fits.

    For language models, they measure the best chip. For another model, they measure every chip that runs it.
    """
    if not usable:
        return
    if not model or served:
        best = choose_row(served if model else [row for row in served if row.model == SMALL])
        if best is None and served:
            return
        device = (best is not None and find_device(best, usable)) or usable[0]
        host = next((one for one in usable if one.kind == CPU), device)
        yield from list_served_checks(model or SMALL, device, host, asked, best, system)
        return
    labels = {one.label: one for one in reversed(usable)}
    for row in sorted((one for one in runs if not one.reason), key=lambda row: row.latency_s or math.inf):
        if row.label in labels:
            yield from list_run_checks(row, labels[row.label], system, inputs)


def find_facts(model: str, served: Sequence[ServedHere], runs: Sequence[RunHere], gaps: Iterable[str]) -> Facts:
    """Return the facts of the models on the chips of a machine; a run of the facts is a row of `served` or `runs`.

    `gaps` are sentences on what could not be read from the machine.
    """
    is_served = not model or bool(served)
    rows: Sequence[ServedHere | RunHere] = served if is_served else runs
    values = SERVED_VALUES if is_served else RUN_VALUES
    known = dict(enumerate(rows, 1))
    choices = list(_choose_served(model, served) if is_served else _choose_run(runs))
    unread = [Finding(kind="gap", values={"text": gap}, doubt=UNKNOWN) for gap in gaps]
    lent = {row.label: (key, row.setting) for key, row in enumerate(served, 1) if row.setting}
    unread += [
        Finding(kind="setting", run_id=key, values={"setting": one}, doubt=UNKNOWN) for key, one in lent.values()
    ]
    away = ServingRow.doubt_split(ServingRow.split_experts(""))
    unread += [
        Finding(kind="experts_away", run_id=key, values={"ratio": math.exp(away)}, doubt=away)
        for key, row in enumerate(served, 1)
        if EXPERTS.match(row.fits)
    ]
    entries = [one for key, row in known.items() if (one := Entry.read(key, row, values)).values]
    refusals = [Refusal(runs=(key,), reason=row.reason) for key, row in known.items() if row.reason]
    least = Quantity(READING_RATE, "1/s")
    limits = [
        Limit(
            runs=one.runs[:1],
            metric=RATE,
            bound=least,
            value=one.value,
            miss=math.log(max(1.0, READING_RATE / one.value.value)),
        )
        for one in choices
        if one.metric == LARGEST
    ]
    return Facts(
        asked=(RATE,) if is_served else ("latency", "energy"),
        runs={key: Subject(hardware=row.label, settings=_list_settings(row)) for key, row in known.items()},
        facts=(*choices, *limits, *refusals, *entries, *weigh_findings(unread, choices)),
    )


def _list_settings(row: ServedHere | RunHere) -> tuple[str, ...]:
    weights = getattr(row, "weights", "")
    return (row.model, weights) if weights else (row.model,)


def _choose_served(model: str, served: Sequence[ServedHere]) -> Iterator[Choice]:
    """Yield the largest model that is read as it comes; of one model, its most precise fast weights and the fastest."""
    best = choose_row(served) if model else choose_largest(served)
    if best is None or best.tokens_per_s is None:
        return
    keys = {id(row): key for key, row in enumerate(served, 1)}
    own, width = Quantity(best.tokens_per_s, "1/s", best.between_half_width), best.between_half_width or 0.0
    ratio = best.tokens_per_s / READING_RATE
    chance = probability_better(ratio, width) if width else None
    given = {"metric": RATE} if model else {"metric": LARGEST, "ratio": ratio, "probability": chance}
    yield Choice(runs=(keys[id(best)],), value=own, **given)
    least = READING_RATE * math.exp(width)
    sure = None if model else choose_largest(served, least)
    if sure is not None and (sure.tokens_per_s or 0.0) >= least > best.tokens_per_s:
        yield Choice(runs=(keys[id(sure)],), metric=SURE, value=Quantity(sure.tokens_per_s or 0.0, "1/s"))
    fastest = max(served, key=lambda row: row.tokens_per_s or 0.0)
    if model and fastest.weights != best.weights and fastest.tokens_per_s:
        value = Quantity(fastest.tokens_per_s, "1/s", fastest.between_half_width)
        ratio = fastest.tokens_per_s / best.tokens_per_s
        yield Choice(runs=(keys[id(fastest)], keys[id(best)]), metric=FASTEST, value=value, ratio=ratio)


def _choose_run(runs: Sequence[RunHere]) -> Iterator[Choice]:
    """Yield the chip with the lowest latency; errors of two chips count as independent."""
    timed = {
        key: Quantity(row.latency_s, "s", row.latency_half_width) for key, row in enumerate(runs, 1) if row.latency_s
    }
    if timed:
        yield choose("latency", timed)
