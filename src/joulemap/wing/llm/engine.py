"""Engines of language models named as models: the chip under the engine, and the settings of their files."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, cast

import attrs

from joulemap.domain.default import SETTINGS
from joulemap.present.template import Template
from joulemap.system.errors import UsageError

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings
    from joulemap.physics.record.configuration import Precision
    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.record.runtime import RuntimeName
    from joulemap.wing.llm.decoder.pass_name import NamedPass
    from joulemap.wing.llm.serving.chip import UnderEngine

CACHED: Final = 2048
"""Tokens in the KV cache before the decode step of a weight file named without a pass, as with `--phase decode`."""

WIDE: Final[Precision] = "fp32"
"""Precision of activations on hardware without narrower precisions."""

COUNTED: Final = Template("prompts of {tokens:#} tokens")
EVALUATION: Final = "one decode step, nothing cached"
STEP: Final = Template("one decode step after {cached:#} tokens")
INSTEAD: Final = Template(
    "an inference is one output token of one sequence; for whole requests and USD per million tokens: {command}"
)


def count_in(model: str) -> str:
    """Return the plural name of a pass's evaluations: output tokens, or prompts of N tokens; empty for other models."""
    from joulemap.wing.llm.decoder.pass_name import find_pass, is_pass

    asked = find_pass(model) if is_pass(model) else None
    if asked is None:
        return ""
    return "output tokens" if asked.step.tokens == 1 else COUNTED(asked.step)


def describe_evaluation(models: Sequence[str], hardware: Sequence[str]) -> tuple[tuple[str, str] | None, str]:
    """Return ((model, phrase for one evaluation), note with the `llm` command) of a model named without a pass.

    Return (None, "") if `models` include no such language model.
    """
    from joulemap.wing.llm.decoder.pass_name import drop_arguments, is_pass, is_weight_file

    name = next((one for one in models if is_pass(one) and ("(" not in one or is_weight_file(one))), "")
    if not name:
        return None, ""
    asked = shlex.join(["joulemap", "llm", drop_arguments(name), *dict.fromkeys(hardware)])
    noun = EVALUATION if drop_arguments(name) == name else _describe_step(name)
    return ((name, noun), INSTEAD(command=asked)) if noun else (None, "")


def _describe_step(model: str) -> str:
    """Return a phrase for a decode step of a named pass; empty for a prefill pass."""
    from joulemap.wing.llm.decoder.pass_name import find_pass

    asked = find_pass(model)
    return STEP(asked.step) if asked is not None and asked.step.tokens == 1 else ""


def apply_file(
    models: tuple[str, ...], settings: Settings, shared: Collection[str]
) -> tuple[tuple[str, ...], Settings]:
    """Return the models with weight files as decode steps, and the settings with the files' precisions.

    Precisions that the user stated are kept. Raise UsageError for files with different weights in one question.
    """
    from joulemap.wing.llm.decoder.pass_name import drop_arguments, find_file_engine, is_weight_file

    named = tuple(_name_step(one) if _is_bare_file(one) else one for one in models)
    files = [one for one in named if is_weight_file(one)]
    if settings.states_precision or settings.precision != SETTINGS.precision or settings.weight_precision:
        return named, settings
    stored = {one: find_published(drop_arguments(one)) for one in files}
    if len(files) < len(named) or len(set(stored.values())) > 1:
        listed = ", ".join(f"{one.partition('(')[0]} has {kind or '16-bit'}" for one, kind in stored.items())
        raise UsageError(f"{listed} weights: ask about one file at a time, or state --weight-precision for all models")
    precisions = _list_activations(drop_arguments(files[0]))
    precision = next((one for one in precisions if one in shared), precisions[0])
    weights = next(iter(stored.values()))
    runtime = settings.runtime
    engine = find_file_engine(files[0])
    if runtime == SETTINGS.runtime and all(f"engine={engine}" in one for one in files):
        runtime = (cast("RuntimeName", find_runtime(engine)),)
    return named, attrs.evolve(
        settings, precision=(precision,), weight_precision=(weights,) if weights else (), runtime=runtime
    )


def _list_activations(model: str) -> tuple[Precision, ...]:
    """Return the activation precisions in which a file's GEMMs can run, the preferred precision first."""
    from joulemap.wing.llm.capacity.question import list_precisions
    from joulemap.wing.llm.decoder.pass_name import find_decoder

    decoder = find_decoder(model)
    assert decoder is not None
    return (*list_precisions(decoder)[0], WIDE)


def _name_step(file: str) -> str:
    """Return the name of the decode step of a file after `CACHED` tokens, or at the end of a shorter context."""
    from joulemap.wing.llm.decoder.pass_name import find_decoder, find_file_engine

    decoder = find_decoder(file)
    most = decoder.context_length if decoder is not None else 0
    return f"{file}(cached={min(CACHED, most - 1) if most else CACHED},engine={find_file_engine(file)})"


def _is_bare_file(model: str) -> bool:
    from joulemap.wing.llm.decoder.pass_name import drop_arguments, is_weight_file

    return drop_arguments(model) == model and is_weight_file(model)


def describe_unread(models: Sequence[str]) -> list[str]:
    """Return notes on checkpoint quantization that the predictions of `models` ignore."""
    from joulemap.wing.llm.decoder.pass_name import find_pass, is_pass

    passes = [find_pass(one) for one in models if is_pass(one)]
    published = [one.decoder.published for one in passes if one and one.decoder.published]
    return list(dict.fromkeys(one.doubt for one in published if one.doubt and not one.weights))


def find_published(model: str, engine: str = "", named: str = "") -> str:
    """Return the format of a language model's weights under an engine; empty for 16 bits.

    It is the format of the checkpoint unless another one is named, or that of its files for an engine of GGUF files.
    """
    from joulemap.physics.record.weight import GGUF_METHOD
    from joulemap.wing.llm.capacity.question import find_file_weights
    from joulemap.wing.llm.decoder.pass_name import find_decoder, is_pass
    from joulemap.wing.llm.stack import find_engine

    decoder = find_decoder(model) if is_pass(model) else None
    if decoder is None or decoder.published is None or named not in ("", decoder.published.weights):
        return named
    stored = find_file_weights(decoder) if find_engine(engine).methods == (GGUF_METHOD,) else ""
    return stored or decoder.published.weights


def find_runtime(engine: str) -> str:
    """Return the launch mode of an engine; UnknownNameError or UsageError for an unknown engine."""
    from joulemap.wing.llm.stack import find_engine

    return find_engine(engine).runtime


def put_under(name: str, batch: int, point: Mapping[str, str]) -> tuple[UnderEngine, ...]:
    """Return the engine of a named pass as a modifier of its chip, as the only element; empty for other models.

    `point` has the precisions of the run. Raises like `find_pass`.
    """
    named_pass = _find_pass(name)
    if named_pass is None or not named_pass.step.engine:
        return ()
    from joulemap.wing.llm.serving.chip import UnderEngine, describe_pass
    from joulemap.wing.llm.stack import find_engine

    decoder, asked = named_pass.decoder, (named_pass.step, batch)
    precision, runtime = point["precision"], point["runtime"]
    weights = "" if point["weight_precision"] == precision else point["weight_precision"]

    def choose(first: Hardware, second: Hardware) -> Hardware:
        from joulemap.physics.bulk import Together
        from joulemap.wing.llm.decoder.column import pass_columns

        together = Together((pass_columns(decoder, [asked])[asked],))
        times = [
            one.latency_fs or 0
            for chip in (first, second)
            for one in together.evaluate(chip, precision, runtime, weight_precision=weights)
        ]
        return second if 0 < times[1] < times[0] else first

    return (
        UnderEngine(
            stack=find_engine(named_pass.step.engine),
            precision=precision,
            weight_precision=weights,
            is_routed=decoder.is_routed,
            pass_key=f"{name}:{batch}",
            faster=choose,
            **describe_pass(asked),
        ),
    )


@cache
def _find_pass(name: str) -> NamedPass | None:
    from joulemap.wing.llm.decoder.pass_name import find_pass

    return find_pass(name)
