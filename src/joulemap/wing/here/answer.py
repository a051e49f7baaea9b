"""Answer about this machine: its chips, and models on each of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import attrs

from joulemap.answer.base import Answer
from joulemap.ask.fact import Choice, Facts
from joulemap.domain.computed import make_table, take
from joulemap.domain.default import SETTINGS
from joulemap.domain.table import Table
from joulemap.show.caveat import describe_trust
from joulemap.show.plain import list_facts
from joulemap.show.present.cell import join_names, show_ends, show_quantity
from joulemap.show.present.document import Document, Grid, Section, Text, show_under
from joulemap.show.present.template import Template
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen
from joulemap.wing.here.ask import find_facts
from joulemap.wing.here.check import list_run_checks, list_served_checks
from joulemap.wing.here.generated.row import DeviceRow, RunHere, ServedHere
from joulemap.wing.here.match import APPLE, CPU, GPU, NPU, Device, MatchedChips, match_machine
from joulemap.wing.here.recording import Recording, load_recording, record
from joulemap.wing.here.run import POPULAR, run_model
from joulemap.wing.here.serve import (
    SHOWN,
    SMALL,
    SPLIT_LABEL,
    Asked,
    choose_row,
    serve_model,
    serve_popular,
)
from joulemap.wing.here.show import METAL, RESERVE, SHARED, TARIFF, WORKS, describe_answer, describe_refused
from joulemap.wing.llm.serve import READING_RATE

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings
    from joulemap.plan.source import Source
    from joulemap.wing.here.machine import Machine

HERE_TITLE: Final = Template("This machine: {parts:and}[, {memory}][; {asked:list}]")
TITLE_OF_MODEL: Final = Template("{model} on this machine: {parts:and}[, {memory}][; {asked:list}]")
LENGTHS: Final = Template("prompt {prompt:#}")
OUTPUT_LENGTH: Final = Template("output {output:#}")
MEMORY_LINE: Final = Template("{capacity:B} of memory[ at {rate:B/s}][ ({kind})]")
DEVICE_COLUMNS: Final = (
    "*chip printed | *known as label | class kind | *count count | memory memory_bytes | *usable usable_bytes | "
    "bandwidth memory_bytes_per_s | power limit power_w | *source origin"
)
SERVED_COLUMNS: Final = Template(
    "weights weights= | on label{same} | fits! | tokens/s tokens_per_s | "
    "range between_half_width | J/token output_token_j | TTFT first_token_s | power power_w= | "
    "largest context #context_tokens= | electricity, USD/M tokens #usd_per_million | "
    "memory, with reserve memory_fraction"
)
POPULAR_COLUMNS: Final = Template(
    "model | weights weights= | on label{same} | fits! | tokens/s tokens_per_s | J/token output_token_j | "
    "TTFT first_token_s | power power_w= | electricity, USD/M tokens #usd_per_million | "
    "memory, with reserve memory_fraction"
)
RATE: Final = "tokens/s"
MODEL: Final = "model"
WEIGHTS: Final = "weights"
WITH_CPU: Final = Template("{device}+CPU")
SAME: Final = "="
"""Sign of the column of chips; if the machine has one chip, the subject names it and the column is dropped (`!`)."""

EVERY_COLUMNS: Final = (
    "*model model | weights weights | *on label | *fits fits | largest context context_tokens | "
    "TTFT first_token_s:first_token_half_width | *tokens/s tokens_per_s | *power power_w | "
    "J/token output_token_j:output_token_half_width | memory, with reserve memory_fraction | refused reason?"
)
RUN: Final = Template("{models}, batch {batch}, {precision}")
RUN_COLUMNS: Final = (
    "model model! | on label | precision precision! | latency latency_s | range -latency_s:latency_half_width | "
    "energy energy_j:energy_half_width | throughput per_s | power power_w | memory memory_bytes | refused reason?"
)

Labelled = TypeVar("Labelled", Device, DeviceRow)

ASKED: Final = Asked()

ENGINE_NAME: Final = "llama.cpp"

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

    def document(self, *, limit: int = SHOWN) -> Document:
        """Return the answer as a document with at most `limit` rows in its table."""
        shown = self._lay_served(limit) if self.served else self._lay_runs(self.runs) if self.runs else None
        refused = describe_refused(self.facts)
        sections = [show_under("", shown, *([Text(refused)] if refused else []))] if shown is not None else []
        details = [Section("Chips", self._lay(self.devices, DEVICE_COLUMNS, noun="chips"))]
        if self.served and not self.model:
            every = self._lay(self.served, EVERY_COLUMNS, noun="rows", tokens_per_s=_show_rate)
            details.append(Section("Language models on every chip", every))
            details += [self._describe_others()] if self.runs else []
        headline = describe_answer(self.facts, self.model, self.runs[0].batch or 1 if self.runs else 1)
        sure, facts = describe_trust(self.facts), list_facts(self.facts)
        titled = TITLE_OF_MODEL if self.model else HERE_TITLE
        asked = [LENGTHS(self), OUTPUT_LENGTH(self), ENGINE_NAME] if self.served else []
        return Document(
            title=titled(
                self,
                parts=list(self.parts) or ["no chip that joulemap knows"],
                memory=self.memory or None,
                asked=[*asked, *(shown.common if shown is not None else ())],
            ),
            answer=headline,
            sections=tuple(sections),
            is_decision=True,
            sure=sure,
            details=tuple(details),
            notes=(*self.gaps, *self.assumptions),
            steps=self.checks,
            data={
                "answer": headline,
                "how_sure": sure,
                **self.data(),
                "asked": facts["asked"],
                "facts": facts["facts"],
                "configurations": facts["runs"],  # `runs` is a table
                "notes": self.assumptions,
                "next_steps": self.checks,
            },
            table=self.served if self.served else self.runs if self.runs else self.devices,
            tables=self.tables,
        )

    def _lay_served(self, limit: int) -> Grid:
        """Return the table of language models that run: of one model, or the popular models near the decision."""
        running = [row for row in self.served if row.tokens_per_s]
        rows = running if self.model else _keep_fastest(running)
        best = next((self.served[one.runs[0] - 1] for one in self.facts.of(Choice)), None)
        window = _choose_window(rows, best, limit)
        columns = SERVED_COLUMNS if self.model else POPULAR_COLUMNS
        laid = self._lay(
            make_table("here", ServedHere, window),
            columns(same=SAME if len(self.parts) > 1 else "!"),
            keep="on | weights | range | TTFT",
            ranked="tokens/s | J/token",
            pictures=RATE,
            tokens_per_s=_show_rate,
            between_half_width=lambda row: show_ends(row.tokens_per_s, "", row.between_half_width),
            label=self._shorten,
        )
        places = [index for index, row in enumerate(window) if row is best]
        chosen = WEIGHTS if WEIGHTS in laid.headings else RATE  # precise weights win over faster ones
        marked_column = laid.headings.index(chosen if self.model else MODEL)
        marked = frozenset((index, marked_column) for index in places if len(window) > 1)
        noun = "rows" if self.model else "models"
        return attrs.evolve(laid.out_of(len(rows), len(window), noun), best=marked)

    def _shorten(self, row: ServedHere) -> str:
        """Return the chips of a row; the only processor of the machine takes no name beside a GPU."""
        processors = [one for one in self.devices if one.kind == CPU]
        device = find_device(row, self.devices, processors) if len(processors) == 1 else None
        return row.label if device is None or device.label == row.label else WITH_CPU(device=device.label)

    def _lay_runs(self, runs: Table[RunHere]) -> Grid:
        return self._lay(
            runs,
            RUN_COLUMNS,
            keep="model | latency | energy | range | refused",
            ranked="latency",
            pictures="range",
            noun="rows",
        )

    def _describe_others(self) -> Section:
        """Return the table of models other than language models, beside these."""
        precisions = join_names(list(dict.fromkeys(row.precision for row in self.runs)))
        title = RUN(models="Other models", batch=self.runs[0].batch or 1, precision=precisions)
        return Section(title, self._lay_runs(self.runs))

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
    probe: bool = False,
) -> HereAnswer:
    """Return the chips of this machine, or of a recorded one, and a model or the popular models on each.

    `recorded` is a folder or file of recorded tool outputs; without it, the tools of this machine run. `memory` states
    the memory configuration, such as DDR5-5600x2. `inputs` sets the open sizes of a model file, such as
    ids=1,128:int64. With `probe`, this machine's memory bandwidth is measured.

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
    served, runs = _answer(source, model, chips, asked, attrs.evolve(SETTINGS, inputs=tuple(inputs)), precision)
    usable = chips.list_kind(GPU, CPU, NPU)
    cut, whole = _read_file_notes(model) if served else ((), ())
    notes += whole
    notes += [TARIFF(usd=asked.usd_per_kwh)] if served else []
    notes += _describe_reserve(usable)
    notes += [SHARED(label=one.label) for one in usable if one.shares_memory and one.kind == GPU]
    notes += [METAL] if any(one.kind == GPU and one.printed.startswith(APPLE) for one in usable) else []
    if served and (left := [one.label for one in chips.list_kind(NPU)]):
        notes.append(WORKS(names=left))
    gaps = (*cut, *machine.gaps, *chips.notes)
    return HereAnswer(
        model=model,
        prompt=asked.prompt,
        output=asked.output,
        usd_per_kwh=asked.usd_per_kwh,
        parts=tuple(f"{one.count} x {one.label}" if one.count > 1 else one.label for one in usable),
        memory=_describe_memory(machine),
        devices=make_table("here devices", DeviceRow, [DeviceRow(**take(DeviceRow, one)) for one in chips.devices]),
        served=make_table("here served", ServedHere, served),
        runs=make_table("here runs", RunHere, runs),
        checks=tuple(_list_checks(model, usable, served, runs, asked, machine.system, inputs)),
        gaps=gaps,
        facts=find_facts(model, served, runs, gaps),
        assumptions=tuple(notes),
    )


def _describe_reserve(devices: Sequence[Device]) -> Iterator[str]:
    """Yield a note on the memory that the operating system keeps, for the chip that may use most of the rest."""
    sharing = [one for one in devices if one.reserve_bytes and one.memory_bytes]
    most = max(sharing, key=lambda one: one.usable_bytes or 0.0, default=None)
    if most is not None:
        yield RESERVE(most, reserve=most.reserve_bytes, memory=most.memory_bytes, usable=most.usable_bytes)


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
    from joulemap.wing.llm.serve import find_decoder

    return not model.lower().endswith((".onnx", ".py")) and ".py:" not in model and find_decoder(model) is not None


def find_device(row: ServedHere, devices: Iterable[Labelled], hosts: Sequence[Labelled]) -> Labelled | None:
    """Return the device of a row, which may share the work with one of the hosts; None if it is none of these."""
    by_label: dict[str, Labelled] = {}
    for one in devices:
        by_label |= {one.label: one, **{SPLIT_LABEL(device=one.label, host=host.label): one for host in hosts}}
    return by_label.get(row.label)


def _read_file_notes(model: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return (notes on missing weights of a model file, its other notes)."""
    from joulemap.wing.llm.serve import find_decoder

    decoder = find_decoder(model) if model else None
    if decoder is None:
        return (), ()
    missing = decoder.missing_note
    return [missing] if missing else [], [one for one in decoder.file_notes if one != missing]


def _keep_fastest(rows: Iterable[ServedHere]) -> list[ServedHere]:
    """Return one row per model: the fastest or, if no chip runs the model, the one with the least memory shortage."""
    groups: dict[str, list[ServedHere]] = {}
    for row in rows:
        groups.setdefault(row.model, []).append(row)
    return [
        max(some, key=lambda row: (row.tokens_per_s or 0.0, -(row.memory_fraction or 0.0))) for some in groups.values()
    ]


def _choose_window(rows: Sequence[ServedHere], best: ServedHere | None, most: int) -> Sequence[ServedHere]:
    """Return at most `most` rows in their order: the best, others at reading speed, then those nearest to the best."""
    own = next((index for index, row in enumerate(rows) if row is best), 0)

    def rank(index: int) -> tuple[bool, bool, int]:
        is_slow = (rows[index].tokens_per_s or 0.0) < READING_RATE
        return index != own, is_slow, abs(index - own)

    return [rows[index] for index in sorted(sorted(range(len(rows)), key=rank)[:most])]


def _show_rate(row: ServedHere) -> str:
    """Return the tokens per second of a row, without a unit."""
    return "" if row.tokens_per_s is None else show_quantity(row.tokens_per_s, "")


def _describe_memory(machine: Machine) -> str:
    memory = machine.memory
    if memory.capacity_bytes is None:
        return ""
    return MEMORY_LINE(capacity=memory.capacity_bytes, rate=memory.bytes_per_s, kind=memory.kind or None)


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
        device = (best is not None and find_device(best, usable, usable)) or usable[0]
        yield from list_served_checks(model or SMALL, device, asked, best, system)
        return
    labels = {one.label: one for one in reversed(usable)}
    for row in sorted((one for one in runs if not one.reason), key=lambda row: row.latency_s or math.inf):
        if row.label in labels:
            yield from list_run_checks(row, labels[row.label], system, inputs)
