"""Writer of safetensors files with real headers, and with weights as holes that take no disk space."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from joulemap.wing.decoder.file.safetensors import ITEM_BITS

Described = tuple[str, tuple[int, ...], str]
"""(Name, shape, type) of a tensor."""


def form_header(tensors: Iterable[Described]) -> tuple[dict[str, Any], int]:
    """Return (entries of a header, bytes of the weights after it)."""
    entries, position = {}, 0
    for name, shape, dtype in tensors:
        end = position + -(-math.prod(shape) * ITEM_BITS[dtype] // 8)
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [position, end]}
        position = end
    return entries, position


def write_header(path: Path, entries: Mapping[str, Any] | bytes, room: int) -> Path:
    """Write a header followed by a hole of `room` bytes, and return the path."""
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        stream.truncate(8 + len(text) + room)
    return path


def write_safetensors(path: Path, tensors: Iterable[Described]) -> Path:
    """Write a file of these tensors, and return its path."""
    entries, room = form_header(tensors)
    return write_header(path, {"__metadata__": {"format": "pt"}, **entries}, room)


def write_folder(folder: Path, config: Mapping[str, Any], tensors: Iterable[Described], parts: int = 1) -> Path:
    """Write a configuration and weights in one file, or in `parts` files with an index, and return the folder."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    told = list(tensors)
    if parts == 1:
        write_safetensors(folder / "model.safetensors", told)
        return folder
    files = [f"model-{index + 1:05}-of-{parts:05}.safetensors" for index in range(parts)]
    for index, file in enumerate(files):
        write_safetensors(folder / file, told[index::parts])
    places = {name: files[index % parts] for index, (name, _, _) in enumerate(told)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder
