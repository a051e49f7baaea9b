"""Options for one pass of a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from joulemap.cli import offer, precisions, repeat_options
from joulemap.cli.command import advanced, option
from joulemap.cli.option.run import WholeRunOptions
from joulemap.system import UsageError, frozen, join_choices
from joulemap.wing.decoder.engine import ENGINE
from joulemap.wing.decoder.phase import ANSWER, PHASE, PHASE_NAMES, PHASES, PROMPT, PhaseName

if TYPE_CHECKING:
    from joulemap.domain.settings import SettingsKeywords

PRECISION: Final = "bf16"
"""Default precision of a language model."""

complete_engines: Final = offer("joulemap.wing.decoder.engine.stack:stack_names")

PASS: Final = ("prompt", "cached", "devices", "expert_devices", "engine")
"""Options that describe one pass of a model."""


@frozen(kw_only=True)
class PassRunOptions(WholeRunOptions):
    """Options for running a model, or one pass of a served language model."""

    phase: PhaseName | None = option(
        None,
        f"One pass of a language model: {join_choices([f'{one.label} (--{one.option})' for one in PHASES])}.",
        metavar="|".join(PHASE_NAMES),
        shown="whole model",
    )
    prompt: int = advanced(2048, f"Prompt length in tokens, for {PROMPT.label}.", metavar="TOKENS", min=1)
    cached: int = advanced(2048, f"Tokens in the KV cache before {ANSWER.label}.", metavar="TOKENS", min=0)
    devices: int = advanced(1, "Tensor-parallel devices of the pass.", min=1)
    expert_devices: int = advanced(1, "Expert-parallel devices, out of --devices.", min=1)
    engine: str = advanced(
        "",
        "Serving engine whose kernels run the pass.",
        metavar="NAME",
        shown=ENGINE,
        complete=complete_engines,
    )
    precision: str = precisions("", shown="fp32; bf16 with --phase")

    def name(self, model: str) -> str:
        """Return the name of the pass, or of the model if no phase is given."""
        if self.phase is None:
            if given := repeat_options(self, PASS):
                raise UsageError(
                    f"{given[0]} needs a pass: add {join_choices([f'--phase {one}' for one in PHASE_NAMES])}"
                )
            return model
        phase = PHASE[self.phase]
        sizes: dict[str, int | str] = {phase.size: getattr(self, phase.option)}
        sizes |= {name: getattr(self, name) for name in ("devices", "expert_devices") if getattr(self, name) > 1}
        sizes["engine"] = self.engine or ENGINE
        return f"{model}({','.join(f'{name}={size}' for name, size in sizes.items())})"

    def of_checkpoint(self, model: str) -> PassRunOptions:
        """Return the options; a pass without a stated precision gets the weight format of the checkpoint."""
        if self.phase is None:
            return self
        from joulemap.wing.decoder.network.pass_name import find_file_engine
        from joulemap.wing.decoder.source import find_published

        engine = self.engine or find_file_engine(model)
        weights = self.weight_precision
        if weights or not self.precision:
            weights = find_published(model, engine, weights)
        return attrs.evolve(self, engine=engine, weight_precision=weights)

    def keywords(self) -> SettingsKeywords:
        """Return the settings of these options as keywords."""
        return super(PassRunOptions, self._with_usual()).keywords()

    def repeat(self) -> tuple[str, ...]:
        """Return these options as the words that a follow-up command on the named pass repeats."""
        return repeat_options(self if self.phase is None else self._with_usual(), self.repeated)

    def _with_usual(self) -> PassRunOptions:
        """Return the options with default precision and, for a pass, the engine's runtime filled in."""
        if self.phase is None:
            return self
        from joulemap.wing.decoder.engine.stack import find_engine

        runtime = self.runtime or find_engine(self.engine).runtime
        return attrs.evolve(self, precision=self.precision or PRECISION, runtime=runtime)
