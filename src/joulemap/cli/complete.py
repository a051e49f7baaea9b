"""Completions of a word for a shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, get_args


def begin(incomplete: str, names: Iterable[str]) -> list[str]:
    """Return the completions of a word, or of the last entry of a list, ignoring case."""
    before, comma, last = incomplete.rpartition(",")
    folded = last.lower().replace("-", "_")
    return [f"{before}{comma}{last}{name[len(last) :]}" for name in names if name.replace("-", "_").startswith(folded)]


def offer(address: str, *, is_one: bool = False) -> Callable[[str], list[str]]:
    """Return a function that completes a word by the names at `package.module:NAME`: a collection, a Literal, or a
    function.

    The module is imported only when a shell asks. With `is_one` the word is a single name, not a list.
    """

    def complete(incomplete: str) -> list[str]:
        from joulemap.system.wing import load

        source = load(address)
        names = get_args(source) or (source() if callable(source) else source)
        return [one for one in names if one.startswith(incomplete.lower())] if is_one else begin(incomplete, names)

    return complete


def complete_models(incomplete: str) -> list[str]:
    """Return the completions of a model's name."""
    from joulemap.ask.completion import list_model_names

    if "(" in incomplete:
        return [name for name in list_model_names(incomplete) if name.startswith(incomplete)]
    return begin(incomplete, list_model_names(incomplete))


complete_hardware: Final = offer("joulemap.ask.completion:list_hardware_names")
complete_queries: Final = offer("joulemap.store.library:name_queries", is_one=True)
complete_architectures: Final = offer("joulemap.domain.architecture:CLASS_HARDWARE")
complete_precisions: Final = offer("joulemap.physics.record.configuration:PRECISION_BYTES")
complete_weights: Final = offer("joulemap.physics.record.weight:WEIGHT_FORMATS")
complete_boundaries: Final = offer("joulemap.physics.record.configuration:BOUNDARY_NAMES")
complete_runtimes: Final = offer("joulemap.physics.record.runtime:RUNTIME_NAMES")


def complete_words(incomplete: str) -> list[str]:
    """Return the completions of a word that is a model or hardware."""
    return [*complete_models(incomplete), *complete_hardware(incomplete)]


def complete_site(incomplete: str) -> list[str]:
    """Return the names of values of a site that begin with a text, each with `=`."""
    from joulemap.ask.site import KNOWN

    return [f"{name}=" for name in KNOWN if name.startswith(incomplete)]
