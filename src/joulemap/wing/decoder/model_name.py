"""Names of language models for the core: passes of decoders by name, configuration or trace."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

import attrs

from joulemap.catalog import load_models
from joulemap.domain import SETTINGS, ModelEntry, Settings, ShippedWorkload, find_model_name
from joulemap.domain.operator.name import find_kind
from joulemap.plan import ModelNames
from joulemap.system import UsageError
from joulemap.wing.decoder.network import pass_name

if TYPE_CHECKING:
    from joulemap.physics import Precision, RuntimeName, Workload
    from joulemap.plan import Model, Talk
    from joulemap.wing.decoder.network.pass_name import NamedPass

CACHED: Final = 2048
"""Tokens in the KV cache before the decode step of a weight file named without a pass, as with `--phase decode`."""


class DecoderNames(ModelNames):
    """Passes of language models: `llama-3.1-8b(cached=2048)`, `./config.json(tokens=512)`, `hf:NAME(tokens=8)`."""

    def claims(self, name: str, settings: Settings) -> bool:
        """Return True for a pass of a model that is traced: from a file, a hub or a module of this program."""
        return pass_name.is_traced_pass(name, settings)

    def find_claimed(self, name: str, settings: Settings, batch: int | None) -> Model:
        """Return the pass of a traced model at the sizes in its name."""
        from joulemap.wing.decoder.source import find_traced_pass

        return find_traced_pass(name, settings, batch)

    def find(self, name: str, settings: Settings, batch: int | None) -> Model | None:
        """Return the pass of a decoder by name or configuration; an unknown family is traced if possible."""
        before, models = name.partition("(")[0], load_models()
        if find_kind(before) or find_model_name(before, models) in models:
            return None
        from joulemap.wing.decoder.source import find_closed_pass

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
        from joulemap.wing.decoder.network.layer import describe_step

        del talk  # too fast for a progress message
        asked = pass_name.find_pass(model.request.model)
        assert asked is not None
        return describe_step(asked.decoder, asked.step, model.request.batch or 1, model.request.key)

    def list_precisions(self, model: str) -> tuple[tuple[Precision, ...], tuple[str, ...]] | None:
        """Return the precisions that a checkpoint is published for, and the precisions of its weights.

        None for checkpoints of 16 bits, unless a file of weights states which 16 bits.
        """
        asked = _find_pass(model)
        published = None if asked is None else asked.decoder.published
        if asked is None or published is None or not (published.weights or published.precision):
            return None
        return asked.decoder.list_precisions()

    def apply_published(
        self, models: tuple[str, ...], settings: Settings, shared: Collection[str]
    ) -> tuple[tuple[str, ...], Settings]:
        """Return the models with weight files as decode steps, and the settings with the files' precisions.

        Precisions that the user stated are kept. Raise UsageError for files with different weights in one question.
        """
        named = tuple(map(_name_step, models))
        files = [one for one in named if pass_name.find_file_engine(one)]
        if not files or settings.states_precision or settings.precision != SETTINGS.precision:
            return named, settings
        if settings.weight_precision:
            return named, settings
        from joulemap.wing.decoder.engine.stack import find_engine
        from joulemap.wing.decoder.network.config import WIDE
        from joulemap.wing.decoder.source import find_published

        stored = {one: find_published(pass_name.drop_arguments(one)) for one in files}
        if len(files) < len(named) or len(set(stored.values())) > 1:
            listed = ", ".join(f"{one.partition('(')[0]} has {kind or '16-bit'}" for one, kind in stored.items())
            raise UsageError(
                f"{listed} weights: ask about one file at a time, or state --weight-precision for all models"
            )
        decoder = pass_name.find_decoder(pass_name.drop_arguments(files[0]))
        assert decoder is not None
        precisions = (*decoder.list_precisions()[0], WIDE)
        precision = next((one for one in precisions if one in shared), precisions[0])
        weights, engine = stored[files[0]], pass_name.find_file_engine(files[0])
        runtime = settings.runtime
        if runtime == SETTINGS.runtime and all(f"engine={engine}" in one for one in files):
            runtime = (cast("RuntimeName", find_engine(engine).runtime),)
        return named, attrs.evolve(
            settings, precision=(precision,), weight_precision=(weights,) if weights else (), runtime=runtime
        )

    def count_in(self, model: str) -> str:
        """Return "output token" or "prompts of N token" for a pass."""
        asked = _find_pass(model)
        if asked is None:
            return ""
        from joulemap.wing.decoder.show.word import COUNTED

        return "output token" if asked.step.tokens == 1 else COUNTED(asked.step)

    def find_checkpoint(self, model: str) -> str:
        """Return the hub name (owner/name) of a built-in language model or of one of its passes."""
        return pass_name.find_checkpoint(pass_name.drop_arguments(model))

    def find_phase(self, model: str) -> str:
        """Return the phase of a pass, such as decode."""
        from joulemap.wing.decoder.phase import find_phase

        asked = _find_pass(model)
        return "" if asked is None else find_phase(asked.step.tokens).name

    def describe_evaluation(self, models: Sequence[str], hardware: Sequence[str]) -> tuple[tuple[str, str] | None, str]:
        """Return the evaluation of a language model named without a pass, and a note with the `llm` command for
        requests.
        """
        passes = (one for one in models if pass_name.is_pass(one))
        name = next((one for one in passes if "(" not in one or pass_name.find_file_engine(one)), "")
        plain = pass_name.drop_arguments(name)
        asked = _find_pass(name) if plain != name else None
        if not name or (asked is not None and asked.step.tokens != 1):
            return None, ""
        from joulemap.wing.decoder.show.word import EVALUATION, INSTEAD, STEP

        noun = EVALUATION if asked is None else STEP(asked.step)
        return (name, noun), INSTEAD(command=shlex.join(["joulemap", "llm", plain, *dict.fromkeys(hardware)]))

    def describe_unread(self, models: Sequence[str]) -> list[str]:
        """Return notes on checkpoint quantization that the predictions of `models` ignore."""
        passes = filter(None, map(_find_pass, models))
        published = (one.decoder.published for one in passes)
        return list(dict.fromkeys(one.doubt for one in published if one and one.doubt and not one.weights))


def _find_pass(name: str) -> NamedPass | None:
    """Return the pass of a name; None for the name of another kind of model, of which no file is read."""
    return pass_name.find_pass(name) if pass_name.is_pass(name) else None


def _name_step(model: str) -> str:
    """Return a weight file as the decode step after `CACHED` tokens, or at the end of a shorter context; any other name
    unchanged.
    """
    if not pass_name.find_file_engine(model) or pass_name.drop_arguments(model) != model:
        return model
    decoder = pass_name.find_decoder(model)
    most = decoder.context_length if decoder is not None else 0
    return f"{model}(cached={min(CACHED, most - 1) if most else CACHED},engine={pass_name.find_file_engine(model)})"


NAMES: Final = DecoderNames()
