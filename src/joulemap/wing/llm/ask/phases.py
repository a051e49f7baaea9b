"""Prefill and decode of a language model, side by side on several architecture classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from joulemap.ask import Change, Entry, Fact, Facts, Quantity, RunAnswer, Scope, Share, Subject, choose, find_caveats
from joulemap.ask.architecture import opening_classes
from joulemap.domain import Settings, Table
from joulemap.generated.architectures import ArchitectureSummary
from joulemap.plan import Source
from joulemap.store import fetch
from joulemap.system import UnsupportedError, frozen
from joulemap.wing.decoder import PHASE_NAMES, DecoderPass, read_decoder

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
engine's passes (`step_tokens` in `wing/decoder/engine/stack.py`).
"""

SHARES: Final = {"compute": ("compute",), "memory": ("off_chip_memory", "static")}
"""Name of a share -> common categories that it joins."""


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

    @property
    def shown(self) -> Table[ArchitectureSummary]:
        """Both passes of each chip that runs both."""
        return self.rows.with_rows(row for pair in self.pairs for row in pair)

    def count_tokens(self, row: ArchitectureSummary) -> int:
        """Return the number of tokens in the pass of a row."""
        return min(self.prompt, CHUNK) if row in [one for one, _ in self.pairs] else 1


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


def find_facts(scope: Scope, pairs: Sequence[tuple[ArchitectureSummary, ArchitectureSummary]], tokens: int) -> Facts:
    """Return the facts of pairs of a prefill pass of `tokens` tokens and a decode step of one token."""
    runs = {
        row.run_id: Subject(hardware=row.architecture, settings=(phase,))
        for pair in pairs
        for phase, row in zip(PHASE_NAMES, pair, strict=True)
    }
    facts: list[Fact] = []
    for count, rows in zip((tokens, 1), zip(*pairs, strict=True), strict=True):
        values = {
            row.run_id: Quantity((row.energy_j or 0.0) / count, "J", scope.outlines[row.run_id].energy_half_width)
            for row in rows
        }
        facts.append(choose("energy", values, per="token"))
        facts += [Entry(runs=(run_id,), values={"energy": value}) for run_id, value in values.items()]
    for pair in pairs:
        facts += _contrast(pair, tokens)
    first = [pair[0].run_id for pair in pairs]
    caveats = find_caveats(scope.part(first), (), metric="energy")
    return Facts(asked=("energy",), runs=runs, facts=(*facts, *caveats))


def _contrast(pair: tuple[ArchitectureSummary, ArchitectureSummary], tokens: int) -> Iterator[Fact]:
    """Yield energy per token and traffic per MAC in both phases, and shares of the energy of each."""
    prefill, decode = pair
    runs = (prefill.run_id, decode.run_id)
    before, after = (prefill.energy_j or 0.0) / tokens, decode.energy_j or 0.0
    yield Change(runs=runs, metric="energy", before=Quantity(before, "J"), after=Quantity(after, "J"))
    moved = [Quantity(row.off_chip_bytes_per_mac or 0.0, "B") for row in pair]
    yield Change(runs=runs, metric="traffic", before=moved[0], after=moved[1])
    for row in pair:
        for name, categories in SHARES.items():
            share = sum(getattr(row, f"{one}_fraction") or 0.0 for one in categories)
            yield Share(runs=(row.run_id,), metric="energy", level="category", name=name, share=share)


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
