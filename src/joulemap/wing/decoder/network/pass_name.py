"""Names of passes: a decoder, with the arguments of the pass in brackets.

    llama-3.1-8b(tokens=2048)                 prefill of a prompt
    llama-3.1-8b(cached=2048)                 decode: a token of each sequence after a KV cache of 2048 tokens
    llama-3.1-70b(cached=2048,devices=8)      the work of one of eight devices
    path/config.json(cached=2048)             from a configuration or its folder, where a family.toml may be next to it
    path/model-q4_k_m.gguf(cached=2048)       from a file of weights, whose header is read
    path/model.safetensors(cached=2048)       from weights next to a configuration, or the folder of both

Every pass has one canonical name, as every single operator has.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from joulemap.domain import ModelEntry, Settings, ShippedWorkload, read_arguments
from joulemap.domain.operator.name import complete_argument
from joulemap.system import frozen
from joulemap.trace.version import closed_version
from joulemap.wing.hub import CONFIGURED

if TYPE_CHECKING:
    from joulemap.wing.decoder.network.config import Decoder
    from joulemap.wing.decoder.network.decoder_pass import DecoderPass


CODE: Final = ("wing/decoder/network", "physics/fuse")


@cache
def decoder_version() -> str:
    """Return a hash of the code that builds passes from sizes, as sixteen hexadecimal digits.

    It is part of the key of every such pass.
    """
    return closed_version(*CODE)


DECODER: Final = "decoder"
"""Family and task of the built-in decoders."""

CONFIGURATION: Final = "config.json"

GGUF: Final = ".gguf"
"""Suffix of files of weights that state the sizes of their model."""

ENCODER: Final = "mmproj"
"""Part of the name of a GGUF file with an encoder of images or sound. Source: llama.cpp, `convert_hf_to_gguf.py`."""

SAFETENSORS: Final = (".safetensors", ".safetensors.index.json")
"""Suffixes of files of weights next to a configuration, and of their index."""

SHIPPED: Final = Path(__file__).parents[3] / "catalog" / "data" / "model" / "decoder.json"
"""File of the built-in configurations, with their names, sources and bases."""

EXAMPLE: Final = "llama-3.1-8b(cached=2048)"

ADAPTER: Final = "adapter_"
"""Prefix of files with the weights of an adapter (LoRA), which are not a whole model."""

_KIND: Final = re.compile(r"-(?:instruct|inst|chat|it|hf|base)(?=-|$)")
"""Suffix of a trained model's name that does not change its sizes."""

_VERSION: Final = re.compile(r"-(?:v\d+(?:\.\d+)?|\d{4})$")
"""Version or month in a model name, which people omit."""

_MAKER: Final = re.compile(r"^(?:meta|nvidia|c4ai)-")
"""Publisher's prefix of a model name."""

_CALL: Final = re.compile(r"(?P<name>.+?\.(?:gguf|json|safetensors)(?=\s*\(|$)|[^()]+?)\s*(?P<rest>\(.*)?", re.DOTALL)
"""Name and arguments of a pass; the path of a file may have brackets: `model (1).gguf(cached=8)`."""


@frozen
class NamedPass:
    """Decoder pass that is requested by name."""

    decoder: Decoder
    step: DecoderPass

    @property
    def digest(self) -> str:
        """Hash of the configuration and of the engine's kernels, as sixteen hexadecimal digits."""
        words = self.step.kernels
        digest = self.decoder.digest
        return hashlib.sha256(f"{digest} {words}".encode()).hexdigest()[:16] if words else digest

    def __str__(self) -> str:
        """Return the canonical name of the pass."""
        return self.step.spell(self.decoder.name)


@cache
def load_shipped() -> dict[str, Mapping[str, Any]]:
    """Return plain name -> entry of a built-in model: its configuration, aliases, source and basis."""
    entries: dict[str, Mapping[str, Any]] = json.loads(SHIPPED.read_text(encoding="utf-8"))
    return entries


def find_checkpoint(model: str) -> str:
    """Return the hub name (owner/name) of a built-in model; empty if unknown.

    A repository whose name begins with the model's name is preferred, because fine-tuned models of other publishers are
    aliases too.
    """
    name = find_shipped(model)
    shipped = load_shipped().get(name)
    listed = [one for one in shipped["aliases"] if "/" in one] if shipped else []

    def rank(one: str) -> tuple[bool, bool, int, str]:
        own = one.partition("/")[2]
        return not own.startswith(model.lower()), not own.startswith(name), len(one), one

    return min(listed, key=rank, default="")


@cache
def _aliases() -> dict[str, str]:
    """Return folded alias -> plain name of a built-in model."""
    aliases = {}
    for name, entry in load_shipped().items():
        for one in (name, *entry["aliases"]):
            aliases[fold(one)] = name
            own = fold(one.rpartition("/")[2])
            aliases.setdefault(own, name)
            aliases.setdefault(_KIND.sub("", own), name)
    return aliases


@cache
def _bare_names() -> dict[str, set[str]]:
    """Return bare name -> plain names of built-in models; a bare name lacks the parts that people omit."""
    names: dict[str, set[str]] = {}
    for alias, name in _aliases().items():
        names.setdefault(_bare(alias), set()).add(name)
    for name in load_shipped():
        names.setdefault(_VERSION.sub("", _bare(name)), {name})
    return names


def _bare(name: str) -> str:
    """Return a folded name without its publisher, its training suffix, and the dash before a number."""
    name = _KIND.sub("", _MAKER.sub("", name.rpartition("/")[2]))
    return re.sub(r"(?<=[a-z])-(?=\d)", "", name)


def fold(name: str) -> str:
    """Return a name for comparison: in lower case, with dashes in place of underscores and spaces."""
    return name.strip().lower().replace("_", "-").replace(" ", "-")


def list_decoders() -> tuple[str, ...]:
    """Return the plain names of the built-in decoders."""
    return tuple(load_shipped())


def find_shipped(name: str) -> str:
    """Return the plain name of a built-in decoder; empty for an unknown or ambiguous name."""
    own, known = fold(name), _aliases()
    likely = {known[own]} if own in known else _bare_names().get(_bare(own), set())
    return next(iter(likely)) if len(likely) == 1 else ""


def find_by_size(type_name: str, parameters: float, step: float) -> str:
    """Return the built-in decoder that matches a type name of llama.cpp, such as `llama 8B`, and a parameter count.

    Counts are compared rounded to `step`; empty if none matches. A decoder of that name is preferred, then the one of
    its architecture with the longest context.
    """
    from joulemap.wing.decoder.file.gguf import load_tables

    near = [name for name, one in load_shipped().items() if abs(one["parameters"] - parameters) <= step / 2.0]
    if (named := find_shipped(type_name)) in near:
        return named
    kind = load_tables()["architectures"].get(type_name.partition(" ")[0])
    alike = [name for name in near if load_shipped()[name]["config"].get("model_type") == kind] or near
    return max(alike, key=lambda name: load_shipped()[name]["config"].get("max_position_embeddings", 0), default="")


def find_alias(asked: str, name: str) -> str:
    """Return the folded name of a built-in decoder, without its publisher, if it differs from the plain name.

    Training suffixes and punctuation do not count as a difference. Return an empty text for other models, such as
    files.
    """
    own = fold(asked).rpartition("/")[2]
    return own if find_shipped(asked) == name and _bare(own) != _bare(name) else ""


@cache
def _read_shipped(name: str) -> Decoder:
    from joulemap.wing.decoder.network.read import read_config

    entry = load_shipped()[name]
    decoder = read_config(entry["config"], name)
    decoder.basis, decoder.source = str(entry["basis"]), str(entry["source"])
    decoder.notes = tuple(entry.get("doubts", ()))
    return decoder


def find_decoder(name: str) -> Decoder | None:
    """Return the decoder of a built-in name, or of the path of a configuration, a file of weights or a folder of both.

    Return None for any other name. Raise ModelError for a file that cannot be read.
    """
    plain = find_shipped(name)
    if plain:
        return _read_shipped(plain)
    path = _find_path(name)
    return None if path is None else _read_file(path, name)


def _find_path(name: str) -> Path | None:
    """Return the configuration or the weights at a path, or in the folder at a path; None if there are none."""
    suffixes = (".json", GGUF, *SAFETENSORS)
    if "\0" in name or not ("/" in name or name.endswith(suffixes) or name.startswith(".")):
        return None
    path = Path(name)
    if name.endswith(suffixes):
        return path
    if not path.is_dir():
        return None
    config = path / CONFIGURATION
    files = None
    if not config.is_file():  # the encoder of images may lie beside its language model
        files = min(path.glob(f"*{GGUF}"), key=lambda one: (ENCODER in one.name.lower(), one.name), default=None)
    return files or find_weights(path) or (config if config.is_file() else None)


def find_gguf(name: str) -> str:
    """Return the GGUF file at a path or in the folder at a path; the name itself if there is none."""
    path = _find_path(name)
    return str(path) if path is not None and path.suffix == GGUF else name


def find_weights(folder: Path) -> Path | None:
    """Return the index of the safetensors files in a folder, or else one of the files; None if there are none."""
    for ending in reversed(SAFETENSORS):
        paths = sorted(one for one in folder.glob(f"*{ending}") if not one.name.startswith(ADAPTER))
        if paths:
            return next((one for one in paths if one.name == f"model{ending}"), paths[0])
    return None


def _read_file(path: Path, name: str) -> Decoder:
    if path.suffix == GGUF:
        from joulemap.wing.decoder.file.model import read_model_file

        return read_model_file(path, name)
    if path.name.endswith(SAFETENSORS):
        from joulemap.wing.decoder.file.folder import read_folder

        return read_folder(path, name)
    from joulemap.wing.decoder.network.read import OWN, read_config
    from joulemap.wing.hub import read_checkpoint_files

    own = path.with_name(OWN)
    return read_config(read_checkpoint_files(path, name), name, own=own if own.is_file() else None)


def split_pass(name: str) -> tuple[str, str] | None:
    """Return (model name, arguments in brackets) of a name; `()` without arguments, None for an invalid form."""
    match = _CALL.fullmatch(name.strip())
    return (match["name"].strip(), match["rest"] or "()") if match else None


def drop_arguments(name: str) -> str:
    """Return the name of a model without the arguments of a pass."""
    parts = split_pass(name)
    return parts[0] if parts else name


def is_traced_pass(name: str, settings: Settings) -> bool:
    """Return True for a pass of a model that is traced: from a file, a hub or a module of this program."""
    before = name.partition("(")[0]
    return name.endswith(")") and (
        before in settings.modules or before.startswith(f"{CONFIGURED}:") or ".py:" in before[before.rfind("/") + 1 :]
    )


def find_pass(name: str, given: Iterable[tuple[str, str]] = ()) -> NamedPass | None:
    """Return the pass that a name describes, with additional arguments; None for other models.

    Raise UsageError, with a correction, for invalid brackets, arguments or values, and for a pass that the model does
    not accept. Raise ModelError for a configuration that cannot be read.
    """
    parts = split_pass(name)
    decoder = find_decoder(parts[0]) if parts else None
    if parts is None or decoder is None:
        return None
    from joulemap.wing.decoder.network.decoder_pass import ARGUMENTS, DecoderPass, check_step

    values = read_arguments(decoder.name, name, parts[1], ARGUMENTS, EXAMPLE, given)
    step = DecoderPass.of(values)
    check_step(decoder, step)
    return NamedPass(decoder, step)


def is_pass(name: str) -> bool:
    """Return True if a name is a built-in decoder or the path of a configuration or weights; no file is read."""
    parts = split_pass(name)
    return parts is not None and (bool(find_shipped(parts[0])) or _find_path(parts[0]) is not None)


def find_file_engine(name: str) -> str:
    """Return the engine that serves a file of weights, a folder with some, or a pass of either; empty for other names.

    No file is read.
    """
    parts = split_pass(name)
    path = _find_path(parts[0]) if parts and not find_shipped(parts[0]) else None
    if path is None:
        return ""
    return "llamacpp" if path.suffix == GGUF else "vllm" if path.name.endswith(SAFETENSORS) else ""


def complete(typed: str) -> list[str]:
    """Return the completions of a partly typed name: names of models, or the next argument of a pass."""
    before, bracket, inside = typed.partition("(")
    if not bracket:
        return list(load_shipped())
    from joulemap.wing.decoder.network.decoder_pass import ARGUMENTS

    return complete_argument(typed, inside, ARGUMENTS) if find_shipped(before) or _find_path(before) else []


def describe_shipped() -> dict[str, tuple[ModelEntry, ShippedWorkload]]:
    """Return name -> (model, workload of one token with an empty cache) for each built-in decoder."""
    shipped = {}
    for name, entry in load_shipped().items():
        count = int(entry["parameters"])
        shipped[name] = (
            ModelEntry(name=name, family=DECODER, task=DECODER, parameter_count=count, aliases=tuple(entry["aliases"])),
            ShippedWorkload(model=name, is_affine=True, parameter_count=count, mac_count=int(entry["macs"])),
        )
    return shipped
