"""Names of language models for the core: passes of decoders by name, configuration or trace."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.catalog.sheet import load_models
from joulemap.domain.catalogue import find_model_name
from joulemap.domain.operator.name import find_kind
from joulemap.plan.model_name import ModelNames
from joulemap.wing.llm.decoder import pass_name

if TYPE_CHECKING:
    from joulemap.domain.catalogue import HardwareEntry, ModelEntry, ShippedWorkload
    from joulemap.domain.settings import Settings
    from joulemap.physics.record.configuration import Precision
    from joulemap.physics.record.workload import Workload
    from joulemap.plan.model import Model
    from joulemap.plan.source import Talk
    from joulemap.plan.target import Modifier


class DecoderNames(ModelNames):
    """Passes of language models: `llama-3.1-8b(cached=2048)`, `./config.json(tokens=512)`, `hf:NAME(tokens=8)`."""

    def claims(self, name: str, settings: Settings) -> bool:
        """Return True for a pass of a model that is traced: from a file, a hub or a module of this program."""
        return pass_name.is_traced_pass(name, settings)

    def find_claimed(self, name: str, settings: Settings, batch: int | None) -> Model:
        """Return the pass of a traced model at the sizes in its name."""
        from joulemap.wing.llm.source import find_traced_pass

        return find_traced_pass(name, settings, batch)

    def find(self, name: str, settings: Settings, batch: int | None) -> Model | None:
        """Return the pass of a decoder by name or configuration; an unknown family is traced if possible."""
        before, models = name.partition("(")[0], load_models()
        if find_kind(before) or find_model_name(before, models) in models:
            return None
        from joulemap.wing.llm.source import find_closed_pass

        return find_closed_pass(name, settings, batch, self)

    def is_name(self, word: str) -> bool:
        """Return True for a built-in decoder, or the path of a configuration."""
        return pass_name.is_pass(word)

    def list_names(self) -> Sequence[str]:
        """Return the names of the built-in decoders."""
        return pass_name.list_decoders()

    def complete(self, typed: str) -> Sequence[str]:
        """Return the completions of a partly typed name."""
        return pass_name.complete(typed)

    def list_shipped(self) -> Mapping[str, tuple[ModelEntry, ShippedWorkload]]:
        """Return each built-in decoder as a pass of one token with an empty cache."""
        return pass_name.describe_shipped()

    def describe(self, model: Model, talk: Talk) -> Workload:
        """Return the workload of a pass; UsageError for a pass with too many operations to sum."""
        from joulemap.wing.llm.decoder.layer import describe_step

        del talk  # too fast for a progress message
        asked = pass_name.find_pass(model.request.model)
        assert asked is not None
        return describe_step(asked.decoder, asked.step, model.request.batch or 1, model.request.key)

    def list_precisions(self, model: str) -> tuple[tuple[Precision, ...], tuple[str, ...]] | None:
        """Return the precisions that a checkpoint is published for, and the precisions of its weights.

        None for checkpoints of 16 bits, unless a file of weights states which 16 bits.
        """
        asked = pass_name.find_pass(model) if pass_name.is_pass(model) else None
        published = None if asked is None else asked.decoder.published
        if asked is None or published is None or not (published.weights or published.precision):
            return None
        from joulemap.wing.llm.capacity.question import list_precisions

        return list_precisions(asked.decoder)

    def apply_published(
        self, models: tuple[str, ...], settings: Settings, shared: Collection[str]
    ) -> tuple[tuple[str, ...], Settings]:
        """Return the models with weight files as decode steps, and the settings with the files' precisions.

        Raise UsageError for files with different weights in one question.
        """
        if not any(pass_name.is_weight_file(one) for one in models):
            return models, settings
        from joulemap.wing.llm.engine import apply_file

        return apply_file(models, settings, shared)

    def count_in(self, model: str) -> str:
        """Return "output tokens" or "prompts of N tokens" for a pass."""
        from joulemap.wing.llm.engine import count_in

        return count_in(model)

    def find_checkpoint(self, model: str) -> str:
        """Return the hub name (owner/name) of a built-in language model or of one of its passes."""
        from joulemap.wing.llm.answer.check import find_checkpoint
        from joulemap.wing.llm.decoder.pass_name import drop_arguments

        return find_checkpoint(drop_arguments(model))

    def find_phase(self, model: str) -> str:
        """Return the phase of a pass, such as decode."""
        from joulemap.wing.llm.phase import find_phase

        asked = pass_name.find_pass(model) if pass_name.is_pass(model) else None
        return "" if asked is None else find_phase(asked.step.tokens).name

    def describe_evaluation(self, models: Sequence[str], hardware: Sequence[str]) -> tuple[tuple[str, str] | None, str]:
        """Return the evaluation of a language model named without a pass, and a note with the `llm` command for
        requests.
        """
        if not any(pass_name.is_pass(one) and ("(" not in one or pass_name.is_weight_file(one)) for one in models):
            return None, ""
        from joulemap.wing.llm.engine import describe_evaluation

        return describe_evaluation(models, hardware)

    def describe_unread(self, models: Sequence[str]) -> list[str]:
        """Return notes on checkpoint quantization that the predictions of `models` ignore."""
        if not any(pass_name.is_pass(one) for one in models):
            return []
        from joulemap.wing.llm.engine import describe_unread

        return describe_unread(models)

    def modify(self, model: Model, entry: HardwareEntry, point: Mapping[str, str]) -> tuple[Modifier, ...]:
        """Return the engine that a pass names, as a change of the chip; empty for other models."""
        del entry
        name = model.request.model
        if "engine=" not in name:
            return ()
        from joulemap.wing.llm.engine import put_under

        return put_under(name, model.request.batch or 1, point)


NAMES: Final = DecoderNames()
