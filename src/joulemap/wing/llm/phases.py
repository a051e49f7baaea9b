"""Prefill and decode of a language model, side by side on several architecture classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from joulemap.answer.answer import RunAnswer
from joulemap.answer.compare.architecture import holding_classes
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.domain.weight import spell_precision
from joulemap.plan.source import Source
from joulemap.present.cell import show_quantity, show_share, show_span
from joulemap.present.document import Document, Section, show_under
from joulemap.present.template import Template
from joulemap.row.architectures import ArchitectureSummary
from joulemap.store.query import fetch
from joulemap.system.record import frozen

TITLE: Final = Template("{model}: a token of a {prompt:#}-token prompt and the next output token, batch 1")
HEADLINE: Final = Template(
    "An output token uses {ratios:and} the energy of a prompt token: decode reads all weights for each token, prefill "
    "once for all tokens of the prompt"
)
RATIO: Final = Template("{ratio:x} ({architecture})")
HEADING: Final = "Energy per token"
COLUMNS: Final = (
    "class architecture | phase | J/token each | time/token time | computing compute_fraction | on chip chip | "
    "off-chip memory off_chip_memory_fraction | control control_fraction | board losses board_fraction | "
    "static power static_fraction | compute utilization compute_utilization_fraction | hardware | precision"
)
KEPT: Final = "phase | J/token | computing | on chip | off-chip memory | static power | control"
MACS_HEADING: Final = "Energy per MAC"
MACS: Final = (
    "class architecture | *phase | *energy energy_per_mac_j | *computing compute_per_mac_j | *off-chip bytes bytes | "
    "MACs per instruction #macs_per_order? | instruction order_name? | memory time memory_time_fraction"
)
REUSE: Final = Template(
    "a MAC moves {prefill} B off chip in prefill and {decode} B in decode, where each weight is used once per read"
)
SHARES: Final = Template(
    "computing takes {prefill} % of the energy in prefill and {decode} % in decode; off-chip memory and static power "
    "take {rest} % in decode"
)
BEST: Final = Template("the {prefill} uses the least energy in prefill, the {decode} in decode")
BEST_OF_BOTH: Final = Template("the {best} uses the least energy in both phases")
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
engine's passes (`step_tokens` in `catalog/stack.py`).
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

    @property
    def pairs(self) -> list[tuple[ArchitectureSummary, ArchitectureSummary]]:
        """Prefill pass and decode step of each chip that runs both."""
        half = len(self.rows) // 2
        both = zip(self.rows.rows[:half], self.rows.rows[half:], strict=True)
        return [(one, other) for one, other in both if one.energy_j is not None and other.energy_j is not None]

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
        return self._compose(
            TITLE(self),
            (show_under(HEADING, energies, *self.scope.describe_left_out()),),
            self.rows,
            answer=self._find_headline(),
            insights=self._list_insights(),
            details=(Section(MACS_HEADING, macs),),
            notes=[*NOTES, *self.scope.describe_refusals(), *self.scope.describe()],
            steps=self._list_steps(repeated),
        )

    def _count(self, row: ArchitectureSummary) -> int:
        """Return the number of tokens in the pass of a row."""
        return min(self.prompt, CHUNK) if row in [one for one, _ in self.pairs] else 1

    def _name_phase(self, row: ArchitectureSummary) -> str:
        return "prefill" if self._count(row) > 1 else "decode"

    def _each(self, row: ArchitectureSummary) -> float:
        """Return the energy per token of a row in joules."""
        return (row.energy_j or 0.0) / self._count(row)

    def _find_headline(self) -> str:
        ratios = (RATIO(one, ratio=self._each(other) / self._each(one)) for one, other in self.pairs)
        return HEADLINE(ratios=tuple(ratios))

    def _list_insights(self) -> list[str]:
        """Return the off-chip bytes per MAC, the energy shares and the best class of both phases."""
        both = tuple(zip(*self.pairs, strict=True))
        reused = [_format_span([row.off_chip_bytes_per_mac or 0.0 for row in rows], "{:.2g}") for rows in both]
        compute = [_format_span([100.0 * _share(row, ("compute",)) for row in rows], "{:.0f}") for rows in both]
        rest = _format_span([100.0 * _share(row, ("off_chip_memory", "static")) for row in both[1]], "{:.0f}")
        first, then = (min(rows, key=self._each).architecture for rows in both)
        return [
            REUSE(prefill=reused[0], decode=reused[1]),
            SHARES(prefill=compute[0], decode=compute[1], rest=rest),
            BEST_OF_BOTH(best=first) if first == then else BEST(prefill=first, decode=then),
        ]

    def _list_steps(self, repeated: Sequence[str]) -> list[list[str]]:
        (_, first), *_, (_, last) = self.pairs
        hardware, other = (self.scope.spell(one.hardware) for one in (first, last))
        explain = [*NEXT_EXPLAIN.words(first, hardware=hardware, other=other), *spell_precision(first.precision)]
        return [[*explain, "--runtime", first.runtime, *repeated], [*NEXT_LLM.words(self), *repeated]]


def _share(row: ArchitectureSummary, categories: Sequence[str]) -> float:
    return sum(getattr(row, f"{name}_fraction") or 0.0 for name in categories)


def _format_span(values: Sequence[float], form: str) -> str:
    return show_span(*(form.format(value) for value in (min(values), max(values))))


def contrast_phases(
    source: Source, model: str = MODEL, settings: Settings = PHASED, *, prompt: int = PROMPT
) -> PhasesAnswer:
    """Return the energy of prefill and decode of a language model on each architecture class, with the reasons.

    By default, one CPU, GPU, TPU and NPU that each hold the default model represent their classes. A chip that lacks
    the precision uses the nearest that it has; a chip that cannot run the model is `unsupported`. Raise as `compare`
    does.
    """
    from joulemap.wing.llm.decoder.step import Step
    from joulemap.wing.llm.source import read_decoder

    decoder = read_decoder(source, model, settings, prompt)
    chunk = min(prompt, CHUNK)
    steps = Step(tokens=chunk, cached=(prompt - chunk) // 2), Step(cached=prompt)
    passes = tuple(step.spell(decoder.name, is_whole=decoder.is_traced) for step in steps)
    with holding_classes(source, passes, settings, HARDWARE) as (scope, asked):
        rows = fetch(asked.connection, ArchitectureSummary, run_ids=list(asked.ids))
        return PhasesAnswer(scope=scope, model=decoder.name, prompt=prompt, rows=rows)


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
