"""Prefill and decode of a language model, side by side on several architecture classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from joulemap.answer.base import RunAnswer
from joulemap.ask.architecture import opening_classes
from joulemap.ask.fact import Facts
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.generated.architectures import ArchitectureSummary
from joulemap.physics.record.weight import spell_precision
from joulemap.plan.source import Source
from joulemap.show.choice import MOST_WHY
from joulemap.show.present.cell import show_quantity, show_share
from joulemap.show.present.document import Document, Section, show_under
from joulemap.show.present.template import Template
from joulemap.show.title import Title
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen
from joulemap.wing.llm.ask.phase import find_facts
from joulemap.wing.llm.phase import find_phase
from joulemap.wing.llm.show.phase import describe_phases, list_reasons

TITLE: Final = Template("{model}")
ABOUT: Final = Template("a token of a {prompt:#}-token prompt and the next output token, batch 1")
COLUMNS: Final = (
    "class architecture | phase | J/token each | time/token time | computing compute_fraction | on chip chip | "
    "off-chip memory off_chip_memory_fraction | control control_fraction | unattributed losses board_fraction | "
    "static power static_fraction | compute utilization compute_utilization_fraction | hardware | precision"
)
KEPT: Final = "phase | J/token | computing | on chip | off-chip memory | static power | control"
MACS_HEADING: Final = "Energy per MAC"
MACS: Final = (
    "class architecture | *phase | *energy energy_per_mac_j | *computing compute_per_mac_j | *off-chip bytes bytes | "
    "MACs per instruction #macs_per_order? | instruction order_name? | memory time memory_time_fraction"
)
NOTES: Final = (
    "prefill: one pass over all tokens of a prompt, divided by their number; decode: the next token, with keys and "
    "values of the prompt in the cache",
    "percentages are shares of the energy; on chip: registers, caches, scratchpads and the wires between them; board "
    "losses: voltage regulators, and power under a power limit that no action accounts for",
)
NEXT_EXPLAIN: Final = Template("explain {model} {hardware} {other}")
NEXT_LLM: Final = Template("llm {model}")

MODEL: Final = "llama-3.1-8b"
"""Language model that fits on a chip of each class."""

HARDWARE: Final = ("xeon_8490h", "h100_sxm5", "tpu_v5p", "gaudi3")
"""CPU, GPU, TPU and NPU on which language models are served."""

PHASED: Final = Settings(precision=("bf16",), runtime=("engine",))
"""Default precision and launch mode."""

PROMPT: Final = 2048
"""Tokens of the prompt, and of the KV cache in decode."""

CHUNK: Final = 8192
"""Tokens of a prefill pass; a longer prompt is divided, and its middle chunk stands for all. Source: default of an
engine's passes (`step_tokens` in `wing/llm/stack.py`).
"""

ON_CHIP: Final = ("register", "on_chip_memory", "interconnect")
"""Energy categories of data that stays on the chip."""


@frozen(kw_only=True)
class PhasesAnswer(RunAnswer):
    """Prefill and decode of a language model on hardware of several classes; the categories of a run sum exactly to its
    energy.
    """

    about = ("model", "prompt")

    model: str
    prompt: int
    rows: Table[ArchitectureSummary]
    """Prefill passes in the order of the hardware, then the decode steps."""
    facts: Facts
    """Energy of a token in both phases, its parts and caveats, from which all sentences are made."""

    @property
    def pairs(self) -> list[tuple[ArchitectureSummary, ArchitectureSummary]]:
        """Prefill pass and decode step of each chip that runs both."""
        return _pair(self.rows.rows)

    def document(self, *, repeated: Sequence[str] = ()) -> Document:
        """Return the document, with one row for each class and phase."""
        shown = self.rows.with_rows(row for pair in self.pairs for row in pair)
        energies = self._lay(
            shown,
            COLUMNS,
            keep=KEPT,
            each=lambda row: show_quantity(self._each(row), "J"),
            time=lambda row: show_quantity((row.latency_s or 0.0) / self._count(row), "s"),
            chip=lambda row: show_share(_share(row, ON_CHIP)),
            phase=self._name_phase,
        )
        macs = self._lay(
            shown, MACS, bytes=lambda row: f"{row.off_chip_bytes_per_mac or 0.0:.2g} B", phase=self._name_phase
        )
        return self._compose_facts(
            self.facts,
            (show_under("", energies, *self._count_left_out()),),
            self.rows,
            title=Title(form=TITLE, row=self, about=ABOUT(self)),
            answer=describe_phases(self.facts),
            reasons=list_reasons(self.facts)[:MOST_WHY],
            details=(Section(MACS_HEADING, macs),),
            notes=NOTES,
            steps=self._list_steps(repeated),
        )

    def _count(self, row: ArchitectureSummary) -> int:
        """Return the number of tokens in the pass of a row."""
        return min(self.prompt, CHUNK) if row in [one for one, _ in self.pairs] else 1

    def _name_phase(self, row: ArchitectureSummary) -> str:
        return find_phase(self._count(row)).name

    def _each(self, row: ArchitectureSummary) -> float:
        """Return the energy per token of a row in joules."""
        return (row.energy_j or 0.0) / self._count(row)

    def _list_steps(self, repeated: Sequence[str]) -> list[list[str]]:
        (_, first), (_, last) = self.pairs[0], self.pairs[-1]
        hardware, other = (self.scope.spell(one.hardware) for one in (first, last))
        explain = [*NEXT_EXPLAIN.words(first, hardware=hardware, other=other), *spell_precision(first.precision)]
        steps = [[*explain, "--runtime", first.runtime, *repeated]] if last is not first else []
        return [*steps, [*NEXT_LLM.words(self), *repeated]]


def _share(row: ArchitectureSummary, categories: Sequence[str]) -> float:
    return sum(getattr(row, f"{name}_fraction") or 0.0 for name in categories)


def _pair(rows: Sequence[ArchitectureSummary]) -> list[tuple[ArchitectureSummary, ArchitectureSummary]]:
    half = len(rows) // 2
    both = zip(rows[:half], rows[half:], strict=True)
    return [(one, other) for one, other in both if one.energy_j is not None and other.energy_j is not None]


def contrast_phases(
    source: Source, model: str = MODEL, settings: Settings = PHASED, *, prompt: int = PROMPT
) -> PhasesAnswer:
    """Return the energy of prefill and decode of a language model on each architecture class, with the reasons.

    By default, one CPU, GPU, TPU and NPU that each hold the default model represent their classes. A chip that lacks
    the precision uses the nearest that it has; a chip that cannot run the model is `unsupported`. Raise as `compare`
    does.
    """
    from joulemap.wing.llm.decoder.decoder_pass import DecoderPass
    from joulemap.wing.llm.source import read_decoder

    decoder = read_decoder(source, model, settings, prompt)
    chunk = min(prompt, CHUNK)
    steps = DecoderPass(tokens=chunk, cached=(prompt - chunk) // 2), DecoderPass(cached=prompt)
    passes = tuple(step.spell(decoder.name, is_whole=decoder.is_traced) for step in steps)
    with opening_classes(source, passes, settings, HARDWARE) as scope:
        rows = fetch(scope.connection, ArchitectureSummary, run_ids=list(scope.run_ids))
        if not (pairs := _pair(rows.rows)):
            raise UnsupportedError("no hardware runs both phases: " + "; ".join(scope.refusals))
        facts = find_facts(scope, pairs, chunk)
        return PhasesAnswer(scope=scope, model=decoder.name, prompt=prompt, rows=rows, facts=facts)


class Phases:
    """Contrast `architectures llm`, registered with the core."""

    name: Final = "llm"
    precision: Final = "bf16"
    runtime: Final = "engine"

    def ask(self, workspace: object, settings: Settings) -> PhasesAnswer:
        """Return both phases of the default language model."""
        answer: PhasesAnswer = workspace.contrast_phases(settings=settings)  # type: ignore[attr-defined]
        return answer


PHASES: Final = Phases()
