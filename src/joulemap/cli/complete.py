"""Completions that a shell offers for a word that is being typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, get_args

VARIABLE: Final = "_JOULEMAP_COMPLETE"
"""Set by the shell's function while it asks, as typer names it."""

WORDS: Final = ("_TYPER_COMPLETE_ARGS", "COMP_WORDS")
"""Where the shell's function says what is typed: zsh, fish and PowerShell; bash."""


def read_typed(variables: Mapping[str, str]) -> list[str]:
    """Return the words that are typed behind the command's name."""
    return next((variables[name] for name in WORDS if variables.get(name)), "").split()[1:]


def begin(incomplete: str, names: Iterable[str]) -> list[str]:
    """Return what is typed with the rest of each name that it begins, in any case; a list goes on after its comma."""
    before, comma, last = incomplete.rpartition(",")
    folded = last.lower().replace("-", "_")
    return [f"{before}{comma}{last}{name[len(last) :]}" for name in names if name.replace("-", "_").startswith(folded)]


def complete_models(incomplete: str) -> list[str]:
    """Return models."""
    from joulemap.answer.completion import list_model_names

    if "(" in incomplete:
        return [name for name in list_model_names(incomplete) if name.startswith(incomplete)]
    return begin(incomplete, list_model_names(incomplete))


def complete_hardware(incomplete: str) -> list[str]:
    """Return hardware and classes of it."""
    from joulemap.answer.completion import list_hardware_names

    return begin(incomplete, list_hardware_names())


def complete_optimizers(incomplete: str) -> list[str]:
    """Return optimizers."""
    from joulemap.answer.completion import list_optimizers

    return begin(incomplete, list_optimizers())


def complete_words(incomplete: str) -> list[str]:
    """Return models, and hardware."""
    return [*complete_models(incomplete), *complete_hardware(incomplete)]


def complete_queries(incomplete: str) -> list[str]:
    """Return versioned queries."""
    from joulemap.store.library import name_queries

    return [name for name in name_queries() if name.startswith(incomplete)]


def complete_architectures(incomplete: str) -> list[str]:
    """Return architecture classes."""
    from joulemap.domain.architecture import CLASS_HARDWARE

    return begin(incomplete, CLASS_HARDWARE)


def complete_deployments(incomplete: str) -> list[str]:
    """Return deployments."""
    from joulemap.domain.settings import Deployment

    return begin(incomplete, get_args(Deployment))


def complete_precisions(incomplete: str) -> list[str]:
    """Return precisions."""
    from joulemap.domain.configuration import PRECISION_BYTES

    return begin(incomplete, PRECISION_BYTES)


def complete_weights(incomplete: str) -> list[str]:
    """Return what weights may be stored at."""
    from joulemap.domain.weight import WEIGHT_FORMATS

    return begin(incomplete, WEIGHT_FORMATS)


def complete_boundaries(incomplete: str) -> list[str]:
    """Return what an energy may contain."""
    from joulemap.domain.configuration import BOUNDARIES

    return begin(incomplete, BOUNDARIES)


def complete_decoders(incomplete: str) -> list[str]:
    """Return language models."""
    from joulemap.answer.completion import list_decoder_names

    return [name for name in list_decoder_names() if name.startswith(incomplete.lower())]


def complete_engines(incomplete: str) -> list[str]:
    """Return what serves language models."""
    from joulemap.answer.completion import list_engines

    return begin(incomplete, list_engines())


def complete_runtimes(incomplete: str) -> list[str]:
    """Return runtimes."""
    from joulemap.domain.configuration import RUNTIMES

    return begin(incomplete, RUNTIMES)
