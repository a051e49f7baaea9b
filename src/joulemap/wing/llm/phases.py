"""Prefill and decode of a language model, side by side on several architecture classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from joulemap.answer.answer import RunAnswer
from joulemap.answer.compare.architecture import holding_classes
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.domain.weight import spell_precision
from joulemap.plan.source import Source
from joulemap.present.cell import join_names, show_quantity, show_share
from joulemap.present.document import Document, Grid, Section, show_under
from joulemap.row.architectures import ArchitectureSummary
from joulemap.store.query import fetch
from joulemap.system.record import frozen

MODEL: Final = "llama-3.1-8b"
"""Language model that fits on a chip of each class."""

HARDWARE: Final = ("xeon_8490h", "h100_sxm5", "tpu_v5p", "gaudi3")
"""CPU, GPU, TPU and NPU on which language models are served."""

PHASED: Final = Settings(precision=("bf16",), runtime=("engine",))
"""Default precision and launch mode."""

PROMPT: Final = 2048
"""Tokens of the prompt, and of the KV cache in decode."""

ON_CHIP: Final = ("register", "on_chip_memory", "interconnect")
"""Categories of data that stays on the chip."""


@frozen(kw_only=True)
class PhasesAnswer(RunAnswer):
    """Prefill and decode of a language model on hardware of several classes; categories sum to each run exactly."""

    about = ("model", "prompt")

    model: str
    prompt: int
    rows: Table[ArchitectureSummary]
    """Prefill passes in the order of the hardware, then the decode steps."""

    @property
    def pairs(self) -> list[tuple[ArchitectureSummary, ArchitectureSummary]]:
        """Prefill pass and decode step of each hardware that runs both."""
        half = len(self.rows) // 2
        both = zip(self.rows.rows[:half], self.rows.rows[half:], strict=True)
        return [(one, other) for one, other in both if one.energy_j is not None and other.energy_j is not None]

    def document(self, *, repeated: Sequence[str] = ()) -> Document:
        """Return the document, with one row for each class and phase."""
        shown = attrs.evolve(self.rows, rows=tuple(row for pair in self.pairs for row in pair))
        return self._compose(
            f"{self.model}: a token of a prompt of {self.prompt:,}, and one behind it, batch 1",
            (show_under("Where the joules of a token go", self._figures(shown), *self.scope.say_left_out()),),
            self.rows,
            answer=self._say_gap(),
            insights=[self._say_reuse(), self._say_shares(), self._say_best()],
            heading="What this shows",
            details=(Section("What a MAC takes", self._macs(shown)),),
            notes=[
                "prefill: all tokens of a prompt in one pass; decode: one token behind it, with keys and values of the "
                "prompt in the cache; a token of a prompt takes its share of the pass",
                "on chip: registers, caches, scratchpads and the wires between; board: voltage regulators, and what a "
                "power limit says beyond all prices",
                *self.scope.describe_refusals(),
                *self.scope.describe(),
            ],
            steps=self._steps(repeated),
        )

    def _count(self, row: ArchitectureSummary) -> int:
        """Return the number of tokens of a run's pass."""
        return self.prompt if row in [one for one, _ in self.pairs] else 1

    def _each(self, row: ArchitectureSummary) -> float:
        """Return the joules per token of a run."""
        return (row.energy_j or 0.0) / self._count(row)

    def _figures(self, shown: Table[ArchitectureSummary]) -> Grid:
        return self._lay(
            shown,
            "class architecture | phase | J/token each | time/token time | compute compute_fraction | on chip chip | "
            "off chip off_chip_memory_fraction | control control_fraction | board board_fraction | "
            "static static_fraction | of its peak compute_utilization_fraction | hardware | precision",
            keep="phase | J/token | compute | on chip | off chip | static | control",
            phase=self._name_phase,
            each=lambda row: show_quantity(self._each(row), "J"),
            time=lambda row: show_quantity((row.latency_s or 0.0) / self._count(row), "s"),
            chip=lambda row: show_share(sum(getattr(row, f"{name}_fraction") or 0.0 for name in ON_CHIP)),
        )

    def _macs(self, shown: Table[ArchitectureSummary]) -> Grid:
        return self._lay(
            shown,
            "class architecture | *phase | *energy energy_per_mac_j | *arithmetic compute_per_mac_j | "
            "*bytes off chip bytes | MACs per order macs_per_order | order order_name | "
            "time for memory memory_time_fraction",
            phase=self._name_phase,
            bytes=lambda row: f"{row.off_chip_bytes_per_mac or 0.0:.2g} B",
            macs_per_order=lambda row: f"{row.macs_per_order:,.0f}" if row.macs_per_order else "",
        )

    def _name_phase(self, row: ArchitectureSummary) -> str:
        return "prefill" if self._count(row) > 1 else "decode"

    def _say_gap(self) -> str:
        """Return the ratio of the energy per decode token to the energy per prompt token."""
        ratios = [(one.architecture, self._each(other) / self._each(one)) for one, other in self.pairs]
        told = join_names([f"{ratio:.3g}x ({name})" for name, ratio in ratios])
        return (
            f"a generated token takes {told} the joules of a prompt's token: it reads all weights for itself, a prompt "
            "reads them once for all of its tokens"
        )

    def _say_reuse(self) -> str:
        """Return the off-chip bytes per MAC in both phases."""
        first = [one.off_chip_bytes_per_mac or 0.0 for one, _ in self.pairs]
        then = [other.off_chip_bytes_per_mac or 0.0 for _, other in self.pairs]
        return (
            f"a MAC of the prompt needs {_span(first)} B from off chip, one of a generated token {_span(then)} B: a "
            "weight that is read is used once"
        )

    def _say_shares(self) -> str:
        """Return the energy shares of both phases."""

        def span(place: int, *names: str) -> str:
            rows = [pair[place] for pair in self.pairs]
            shares = [sum(getattr(row, f"{name}_fraction") or 0.0 for name in names) for row in rows]
            return " to ".join(dict.fromkeys(f"{share * 100:.0f}" for share in (min(shares), max(shares)))) + " %"

        return (
            f"arithmetic takes {span(0, 'compute')} of the prompt's joules and {span(1, 'compute')} of a generated "
            f"token's; off-chip memory and static power take {span(1, 'off_chip_memory', 'static')} of those"
        )

    def _say_best(self) -> str:
        """Return the class with the lowest energy in each phase."""
        first = min((one for one, _ in self.pairs), key=self._each)
        then = min((other for _, other in self.pairs), key=self._each)
        if first.architecture == then.architecture:
            return f"the {first.architecture} needs the least joules in both phases"
        return f"the {first.architecture} needs the least joules for a prompt, the {then.architecture} for what follows"

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        (_, first), *_, (_, last) = self.pairs
        beside = [*spell_precision(first.precision), "--runtime", first.runtime, *repeated]
        names = map(self.scope.spell, (first.hardware, last.hardware))
        return [["explain", first.model, *names, *beside], ["llm", self.model, *repeated]]


def _span(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{value:.2g}" for value in (min(values), max(values))))


def contrast_phases(
    source: Source, model: str = MODEL, settings: Settings = PHASED, *, prompt: int = PROMPT
) -> PhasesAnswer:
    """Return the energy of prefill and decode of a language model on each architecture class, with the reasons.

    By default, one CPU, GPU, TPU and NPU that each hold the default model stand for their classes. A hardware that
    lacks the precision uses the nearest that it has; one that cannot run it is `unsupported`. Raise as `compare` does.
    """
    from joulemap.wing.llm.decoder.step import Step
    from joulemap.wing.llm.source import read_decoder

    decoder = read_decoder(source, model, settings, prompt)
    steps = Step(tokens=prompt), Step(cached=prompt)
    passes = tuple(step.spell(decoder.name, is_whole=decoder.is_traced) for step in steps)
    with holding_classes(source, passes, settings, HARDWARE) as (scope, connection, ids):
        rows = fetch(connection, ArchitectureSummary, run_ids=ids)
        return PhasesAnswer(scope=scope, model=decoder.name, prompt=prompt, rows=rows)


class Phases:
    """Contrast `architectures llm`, in the form that the core asks for."""

    name: Final = "llm"
    precision: Final = "bf16"
    runtime: Final = "engine"

    def ask(self, workspace: object, settings: Settings) -> PhasesAnswer:
        """Return both phases of the default language model."""
        answer: PhasesAnswer = workspace.contrast_phases(settings=settings)  # type: ignore[attr-defined]
        return answer


PHASES: Final = Phases()
