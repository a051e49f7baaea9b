"""Reader of configurations in the format of the Transformers library."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Final

from joulemap.system.errors import ModelError, UnknownFamilyError
from joulemap.trace.configuration import check_sizes
from joulemap.wing.llm.decoder.bound import check_decoder
from joulemap.wing.llm.decoder.checkpoint import apply_quantization, find_quantization
from joulemap.wing.llm.decoder.config import Decoder
from joulemap.wing.llm.decoder.family import DENSE, Family, Settings
from joulemap.wing.llm.decoder.hybrid import HYBRIDS
from joulemap.wing.llm.decoder.mixture import MIXTURES

FAMILIES: Final[Mapping[str, Family]] = {**DENSE, **MIXTURES, **HYBRIDS}
"""Reader of each model_type."""

BROKEN: Final = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Errors of a family whose configuration has lists or parts that differ in type from published ones."""

TEXT: Final = ("text_config", "llm_config", "language_config", "thinker_config")
"""Keys of the decoder's configuration in a multimodal model."""


def read_config(mapping: Mapping[str, Any], name: str) -> Decoder:
    """Return the decoder of a configuration; UnknownFamilyError for its model_type, ModelError for sizes."""
    outer = find_text(mapping)
    kind = str(outer.get("model_type", "")).lower()
    family = FAMILIES.get(kind) or FAMILIES.get(kind.removesuffix("_text"))
    if family is None:
        near = difflib.get_close_matches(kind, FAMILIES, 1)
        nearest = f"; the nearest that is known is {near[0]}" if near else ""
        raise UnknownFamilyError(
            f"{name}: the model_type {kind!r} is not known{nearest}. Tracing it needs torch and transformers: "
            "pip install torch transformers"
        )
    check_sizes(outer, name)
    try:
        decoder = check_decoder(family(Settings(name, outer)))
    except BROKEN as error:
        raise ModelError(f"{name}: its sizes make no {kind} model: {str(error)[:120]}") from error
    quantization = find_quantization(mapping, name)
    return decoder if quantization is None else apply_quantization(decoder, quantization)


def find_text(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a configuration that describes its decoder."""
    outer = dict(mapping)
    for key in TEXT:
        inner = outer.get(key)
        if isinstance(inner, Mapping):
            kind = outer.get("model_type")
            shared = {one: outer[one] for one in ("tie_word_embeddings",) if one in outer}
            told = {**shared, **inner}
            told.setdefault("model_type", kind)
            outer = told
            if any(isinstance(outer.get(other), Mapping) for other in TEXT):
                return find_text(outer)
            break
    return outer
