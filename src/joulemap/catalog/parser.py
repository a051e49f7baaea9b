"""Parse data files into entries; errors are one line with file, key and reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
from cattrs import Converter
from cattrs.errors import BaseValidationError, ForbiddenExtraKeysError
from cattrs.v import transform_error

from joulemap.catalog.digest import DATA
from joulemap.catalog.schema import describe_valid
from joulemap.system.errors import CatalogueError
from joulemap.system.file import FileError, parse_toml, read_bytes
from joulemap.system.key import describe_unknown

MAX_FILE_BYTES: Final = 1_000_000
"""Maximum size of a data file; a chip's file has a few kilobytes."""

SHOWN_REASONS: Final = 3
"""Maximum faults that an error message lists."""

Structured = TypeVar("Structured")


@cache
def _make_converter() -> Converter:
    converter = Converter(forbid_extra_keys=True)

    def structure_float(value: Any, _: type) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"expected a number, found {value!r}")
        return float(value)

    def structure_int(value: Any, _: type) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"expected a whole number, found {value!r}")
        return value

    def structure_str(value: Any, _: type) -> str:
        if not isinstance(value, str):
            raise ValueError(f"expected a text, found {value!r}")
        return value

    def structure_bool(value: Any, _: type) -> bool:
        if not isinstance(value, bool):
            raise ValueError(f"expected true or false, found {value!r}")
        return value

    converter.register_structure_hook(bool, structure_bool)
    converter.register_structure_hook(float, structure_float)
    converter.register_structure_hook(int, structure_int)
    converter.register_structure_hook(str, structure_str)

    def structure_texts(value: Any, _: type) -> list[str]:
        if not isinstance(value, list):
            raise ValueError(f"expected a list, found {value!r}")
        return [structure_str(text, str) for text in value]

    converter.register_structure_hook_func(lambda kind: kind == list[str], structure_texts)
    return converter


def _describe(exception: BaseException, _type: type | None) -> str:
    if isinstance(exception, ForbiddenExtraKeysError):
        known = [field.name for field in attrs.fields(exception.cl) if field.init]
        return "; ".join(describe_unknown(key, known) for key in sorted(exception.extra_fields))
    if isinstance(exception, KeyError):
        return "missing"
    return str(exception.args[0]) if exception.args else type(exception).__name__


def _describe_syntax(error: Exception, content: bytes) -> str:
    """Describe a TOML syntax error, with the key and line of a duplicate key."""
    match = re.search(r"Cannot (?:overwrite a value|declare .* twice|mutate .*) \(at line (\d+)", str(error))
    if match is None:
        return f"not valid TOML: {error}"
    lines = content.decode().splitlines()
    text = lines[int(match[1]) - 1].split("=")[0].strip() if int(match[1]) <= len(lines) else ""
    return f"not valid TOML: duplicate key {text} at line {match[1]}"


def name_file(path: Path) -> str:
    """Return a file's name for messages: its path as given, or the bare name of a built-in file."""
    return path.name if path.is_relative_to(DATA) else str(path)


def read_file(path: Path, record: type[Structured]) -> tuple[Structured, bytes]:
    """Return the content of a file as a `record`, and its bytes; CatalogueError names file, key and reason."""
    label = name_file(path)
    try:
        content = read_bytes(path, MAX_FILE_BYTES)
    except FileError as error:
        raise CatalogueError(f"{label}: cannot be read: {error}") from error
    return parse_content(label, content, record), content


def parse_content(label: str, content: bytes, record: type[Structured]) -> Structured:
    """Parse a file's bytes into a `record`; CatalogueError names `label`, key and reason."""
    try:
        raw = parse_toml(content.decode())
    except UnicodeDecodeError as error:
        raise CatalogueError(f"{label}: not valid TOML: it is not UTF-8 text") from error
    except ValueError as error:
        raise CatalogueError(f"{label}: {_describe_syntax(error, content)}") from error
    return structure(label, raw, record)


def structure(label: str, raw: Mapping[str, Any], record: type[Structured]) -> Structured:
    """Return parsed content as a `record`; CatalogueError names `label`, key and reason."""
    try:
        return _make_converter().structure(raw, record)
    except BaseValidationError as error:
        is_extra: list[bool] = []

        def describe(one: BaseException, kind: type | None) -> str:
            is_extra.append(isinstance(one, ForbiddenExtraKeysError))
            return _describe(one, kind)

        reasons = [_locate(reason) for reason in transform_error(error, path="", format_exception=describe)]
        extra_first = sorted(zip(is_extra, reasons, strict=True), key=lambda pair: not pair[0])
        raise CatalogueError(f"{label}: {'; '.join(reason for _, reason in extra_first[:SHOWN_REASONS])}") from error


def _locate(reason: str) -> str:
    """Rewrite an error `what @ .where` as `where: what`, with the expected value of a missing key."""
    what, _, where = reason.rpartition(" @ ")
    where = re.sub(r"\['([^']*)'\]", r".\1", where).removeprefix(".")
    expected = describe_valid(where) if what == "missing" else ""
    what = f"{what}, expected {expected}" if expected else what
    return f"{where}: {what}" if where.strip(".") else what
