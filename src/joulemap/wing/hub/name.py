"""Names of models of libraries for the core: `timm:NAME`, `hf:NAME`, and `hf:FOLDER` with a configuration."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.catalog import load_models
from joulemap.construct import ModelRequest, check_batch, parse_input
from joulemap.construct.source import check_text, quote
from joulemap.plan import ModelNames
from joulemap.system import FileError, ModelError, UsageError, digest_code, package_version, read_bytes

if TYPE_CHECKING:
    from joulemap.construct import InputSpec
    from joulemap.domain import Settings
    from joulemap.plan import Model

HUBS: Final = {"timm": "timm", "hf": "transformers"}
"""Prefix of a model's name -> package that provides the model."""

CONFIGURED: Final = "hf"
"""Prefix of the models that are built from a configuration."""

FAMILIES: Final[Mapping[str, str]] = {
    "bart": "Bart", "beit": "Beit", "blip": "Blip", "camembert": "Camembert", "deberta": "DebertaV2", "deit": "DeiT",
    "electra": "Electra", "longformer": "Longformer", "whisper": "Whisper", "xlnet": "XLNet",
}  # fmt: skip
"""Common name of a model family without a shipped workload -> its name in transformers. Source: its model_types."""


def hub_version() -> str:
    """Return a digest of the code that builds models of libraries and their inputs, as sixteen hexadecimal digits."""
    return digest_code("wing/hub")


class HubNames(ModelNames):
    """Models by a prefix, which names the library that provides them."""

    prefixes = tuple(HUBS)

    def find(self, name: str, settings: Settings, batch: int | None) -> Model | None:
        """Return the model of a library; None for a name without one of the prefixes."""
        from joulemap.plan import Model, replace_batch

        if name.partition(":")[0] not in HUBS:
            return None
        request = request_hub(
            name,
            batch=batch,
            inputs=replace_batch([parse_input(text) for text in settings.inputs], settings.batch, batch),
            arguments=[(one, str(value)) for one, value in settings.arguments.items()],
            config=settings.config,
        )
        request = attrs.evolve(request, build_memory_bytes=settings.build_memory_bytes)
        return Model(request=request, retrace=settings.retrace, may_run=settings.is_named or settings.trust)

    def suggest(self, name: str) -> tuple[Sequence[str], str]:
        """Return the models of the family in an unknown name, or the name that builds this family from a
        configuration.
        """
        words = re.findall(r"[a-z]+\d?[a-z]*\d?", name.lower())
        family = next((word for word in words if word in FAMILIES), "")
        kin = [entry.name for entry in load_models().values() if entry.family == family]
        if family and not kin:
            return (f"{CONFIGURED}:{FAMILIES[family]}",), "if so, give its sizes with --config config.json"
        return difflib.get_close_matches(name.lower(), kin, cutoff=0), ""


def request_hub(
    name: str,
    *,
    batch: int | None = None,
    inputs: Sequence[InputSpec] = (),
    arguments: Sequence[tuple[str, str]] = (),
    config: str = "",
) -> ModelRequest:
    """Return the request for a model of a library, whose name starts with a prefix of `HUBS`.

    Raises ModelError if the library is missing or a configuration cannot be read, UsageError for a name that cannot be
    stored, a batch that contradicts the inputs, or a configuration or nested arguments that the library does not take.
    """
    check_text(name)
    size = check_batch(batch, inputs)
    prefix, _, factory = name.partition(":")
    if prefix != CONFIGURED:
        if config:
            raise UsageError(f"{name} takes no --config: {CONFIGURED}:NAME does")
        nested = next((entry for entry, _ in arguments if "." in entry), None)
        if nested is not None:
            raise UsageError(
                f"{name} takes no argument {nested}: only settings of {CONFIGURED}:NAME are nested by dots"
            )
    if package_version(HUBS[prefix]) == "absent":
        raise ModelError(f"{name} needs the package {HUBS[prefix]}: pip install {HUBS[prefix]}")
    request = ModelRequest(
        model=name,
        kind=prefix,
        batch=size or 1,
        inputs=tuple(inputs),
        factory=factory,
        arguments=tuple(arguments),
        package=HUBS[prefix],
        builder=hub_version(),
    )
    return _with_configuration(request, config) if prefix == CONFIGURED else request


def _with_configuration(request: ModelRequest, config: str) -> ModelRequest:
    """Return a request with its configuration, read from `config` or from the path in its name."""
    from joulemap.wing.hub.configuration import CONFIGURATION_FILE, MOST_BYTES, find_quantization_files

    named = Path(request.factory)
    is_path = named.is_dir() or named.suffix == ".json"
    if not config and not is_path:
        if "/" in request.factory:
            raise ModelError(
                f"there is no folder {quote(request.factory)}, and nothing is downloaded: give the folder of a "
                "config.json, or the name of a class, as hf:Llama, with --config FILE.json"
            )
        return request
    if config and is_path:
        raise UsageError(f"{request.model} is a configuration itself: leave out --config")
    path = Path(config) if config else named / CONFIGURATION_FILE if named.is_dir() else named
    try:
        content = b"".join(read_bytes(file, MOST_BYTES) for file in (path, *find_quantization_files(path)))
    except FileError as error:
        raise ModelError(f"{quote(str(path))} cannot be read: {error}") from error
    digest = hashlib.sha256(content).hexdigest()[:16]
    return attrs.evolve(request, path=path, content_digest=digest, factory="" if is_path else request.factory)


NAMES: Final = HubNames()
