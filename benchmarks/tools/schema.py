"""Write the JSON Schema of `--format json`: `make rows`.

A command's documents follow from its source. The annotations of its questions say which answers they return. The fields
of an answer say which tables it has, and the record of a table's rows has the columns.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final, Literal, get_args, get_origin

import attrs
import typer

from joulemap.ask import fact
from joulemap.ask.answer import Answer, RunAnswer
from joulemap.ask.fact import Fact, Quantity, Subject
from joulemap.cli.app import build
from joulemap.cli.command import name_command
from joulemap.cli.overview import list_commands
from joulemap.domain.computed import read_types
from joulemap.domain.table import Row
from joulemap.plan.kind import list_kinds
from joulemap.question import Question
from joulemap.show.present.format import SCHEMA_VERSION
from joulemap.store.library import find_query
from joulemap.workspace import Workspace
from tools import GENERATED, ROOT

SCHEMA: Final = ROOT / "schemas" / f"answer.v{SCHEMA_VERSION}.json"

STATED: Final[dict[str, dict[str, Any]]] = tomllib.loads((ROOT / "schemas" / "document.toml").read_text())
"""Class of answers -> properties of its documents that neither a table nor an annotation describes."""

OTHERS: Final = {"list_others": "list_question", "find_description": "show_question"}
"""Function that names questions about kinds of hardware other than chips -> field of a kind with this question."""

TEXT: Final[dict[str, Any]] = {"type": "string"}
TEXTS: Final[dict[str, Any]] = {"type": "array", "items": TEXT}

HEAD: Final[dict[str, Any]] = {
    "schema_version": {"const": SCHEMA_VERSION, "description": "Version of the schema that the document follows."},
    "command": {**TEXT, "description": "Command that wrote the document, without its options."},
    "program": {**TEXT, "description": "Name and version of the program."},
}
"""First properties of every document."""

ENVELOPE: Final[dict[str, Any]] = {
    "type": "object",
    "description": "A table alone with the habit `envelope`: its rows, as in the command's array, behind the head.",
    "properties": {**HEAD, "rows": {"type": "array", "items": {"type": "object"}}},
    "required": [*HEAD, "rows"],
}
"""Document of a single table, if the habit `envelope` requests an object."""

OPTIONAL: Final[dict[str, Any]] = {
    "answer": {**TEXT, "description": "The answer in a sentence."},
    "insights": {**TEXTS, "description": "Sentences on what decides."},
    "how_sure": {**TEXT, "description": "How far figures may be off, in a sentence."},
    "notes": {**TEXTS, "description": "What the words mean, what is assumed and what is left out."},
    "next_steps": {**TEXTS, "description": "Commands that lead on from the answer."},
    "site": {
        "type": "object",
        "description": "Values of the site that the answer used: name -> `value`, `unit` and place (`from`).",
    },
}
"""Properties that a document may have or lack."""

PLAIN: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "datetime": "string"}
"""Python type -> JSON type."""

TABLE: Final = re.compile(r"Table\[(\w+)\]")
"""Pattern of the annotation of a field that is a table of a record."""


def _describe_type(annotation: object) -> dict[str, Any]:
    """Return the JSON schema of a value with this annotation; it has no constraints unless the type is plain."""
    names = [name.strip() for name in str(getattr(annotation, "__name__", annotation)).split("|")]
    is_null, names = "None" in names, [name for name in names if name != "None"]
    if all(name in PLAIN for name in names):
        kinds = list(dict.fromkeys(PLAIN[name] for name in names)) + ["null"] * is_null
        return {"type": kinds[0] if len(kinds) == 1 else kinds}
    if len(names) == 1 and (match := re.match(r"(?:tuple|list|Sequence)\[(\w+)(?:, \.\.\.)?\]$", names[0])):
        kind = ["array", "null"] if is_null else "array"
        return {"type": kind, **({"items": {"type": PLAIN[match[1]]}} if match[1] in PLAIN else {})}
    return {}


FACTS: Final[dict[str, Any]] = {
    "asked": {**TEXTS, "description": "Quantities that the answer is about, the deciding one first."},
    "runs": {
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/Subject"},
        "description": "Configurations that facts refer to, by run id.",
    },
    "facts": {
        "type": "array",
        "items": {"$ref": "#/$defs/Fact"},
        "description": "Decision, causes, limits and caveats, most important first within each type.",
    },
}
"""Properties of a document whose sentences are made from facts."""

NUMBER: Final[dict[str, Any]] = {"anyOf": [{"type": "number"}, {"const": "inf"}]}
"""Number of a fact; an unlimited weight is a text, because JSON lacks infinity."""


def _describe_part(annotation: object) -> dict[str, Any]:
    """Return the JSON schema of a field of a fact, as `joulemap.show.page.to_plain` writes it."""
    name = str(getattr(annotation, "__name__", annotation)).removesuffix(" | None")
    if name == "Quantity":
        return {"$ref": "#/$defs/Quantity"}
    if name == "float":
        return NUMBER
    if get_origin(vars(fact).get(name)) is Literal:  # values may be added without a new version
        return TEXT
    if match := re.fullmatch(r"tuple\[(\w+)( \| None)?(?:, .*)?\]", name):
        items = {"anyOf": [_describe_part(match[1]), {"type": "null"}]} if match[2] else _describe_part(match[1])
        return {"type": "array", "items": items}
    if match := re.fullmatch(r"Mapping\[str, (\w+)\]", name):
        return {"type": "object", "additionalProperties": _describe_part(match[1])}
    return _describe_type(annotation)


def _describe_fields(record: type[Any], required: list[str], **more: Any) -> dict[str, Any]:
    """Return the schema of a fact or a part of one; fields without a value are left out of a document."""
    return {
        "type": "object",
        "description": _first_line(record),
        "properties": {**more, **{field.name: _describe_part(field.type) for field in attrs.fields(record)}},
        "required": required,
    }


def describe_facts() -> dict[str, Any]:
    """Return the schemas of facts, by name: one for each type, and one for any of them."""
    kinds = {one.__name__: one for one in get_args(Fact)}
    return {
        "Fact": {"anyOf": [{"$ref": f"#/$defs/{name}Fact"} for name in kinds]},
        **{
            f"{name}Fact": _describe_fields(kind, ["fact"], fact={"const": name.lower()})
            for name, kind in kinds.items()
        },
        "Subject": _describe_fields(Subject, ["hardware"]),
        "Quantity": _describe_fields(Quantity, ["value", "unit"]),
    }


def _list_columns(record: type[Any]) -> Iterator[tuple[str, object, str, str]]:
    """Yield name, type, meaning and unit of each column; those of a query come from its header."""
    if issubclass(record, Row):
        stated = {one.name: one for one in find_query(record.query).columns} if record.query else record.descriptions
        for name, annotation in read_types(record).items():
            yield name, annotation, stated[name].meaning, stated[name].unit
    else:
        for field in attrs.fields(record):
            yield field.name, field.type, "", ""


def _is_record(record: object) -> bool:
    return isinstance(record, type) and (issubclass(record, Row) or attrs.has(record))


def describe_record(record: type[Any]) -> dict[str, Any]:
    """Return the schema of the rows of a record: every column; later programs may add some."""
    columns: dict[str, Any] = {}
    for name, annotation, meaning, unit in _list_columns(record):
        columns[name] = _describe_type(annotation)
        if meaning:
            columns[name]["description"] = f"{meaning} ({unit})" if unit else meaning
    return {
        "type": "object",
        "description": _first_line(record),
        "properties": columns,
        "required": list(columns),
    }


def describe_answer(answer: type[Any], records: dict[str, type[Any]]) -> dict[str, Any]:
    """Return the schema of an answer's document, and add the records of its tables to `records`."""
    known = {name: one for kind in answer.__mro__ for name, one in vars(import_module(kind.__module__)).items()}
    own = dict(STATED.get(answer.__name__, {}))
    more = describe_record(known[own.pop("columns")])["properties"] if "columns" in own else {}
    properties = {**HEAD, **OPTIONAL, **more, **own}
    for name in getattr(answer, "about", ()):
        properties[name] = _describe_type(_find_annotation(answer, name))
    for field in attrs.fields(answer):
        match = TABLE.match(str(field.type))
        record = known.get(match[1]) if match else None
        if record is not None and _is_record(record):
            records[record.__name__] = record
            kept = "total" if field.name == "totals" else field.name
            one = {"$ref": f"#/$defs/{record.__name__}"}
            properties[kept] = one if kept == "total" else {"type": ["array", "null"], "items": one}
        elif "Facts" in str(field.type):
            properties |= FACTS
    above = [{"$ref": f"#/$defs/{kind.__name__}"} for kind in answer.__mro__[1:] if kind.__name__ in STATED]
    return {
        "type": "object",
        "description": _first_line(answer),
        "properties": properties,
        "required": list(HEAD),
        **({"allOf": above} if above else {}),
    }


def _find_annotation(answer: type[Any], name: str) -> object:
    shown = inspect.getattr_static(answer, name, None)
    if isinstance(shown, property):
        return inspect.signature(shown.fget).return_annotation if shown.fget else ""
    return next((field.type for field in attrs.fields(answer) if field.name == name), "")


def _first_line(record: type[Any]) -> str:
    return " ".join((inspect.getdoc(record) or "").partition("\n\n")[0].split())


def list_callbacks() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the words of each command, with its function."""
    for name in list_commands():
        group: Any = typer.main.get_command(build((name,)))
        command = group.commands[name]
        for one in getattr(command, "commands", {"": command}).values():
            callback = inspect.unwrap(one.callback)
            yield name_command(callback), callback


def find_returned(callback: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Return the return annotations of a command's questions, with the variables of their modules."""
    module = inspect.getmodule(callback)
    functions = {name: one for name, one in vars(module).items() if inspect.isfunction(one)}
    seen: set[str] = set()
    homes: dict[str, Any] = {}

    def add(name: str) -> None:
        question = vars(Workspace).get(name)
        if isinstance(question, Question):
            home = import_module(question.home)
            annotation = str(inspect.signature(inspect.unwrap(getattr(home, question.name))).return_annotation)
            homes[annotation] = vars(home)

    def visit(function: Callable[..., Any]) -> None:
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
            if isinstance(node, ast.Attribute):
                add(node.attr)
            elif isinstance(node, ast.Name) and node.id in OTHERS:
                for kind in list_kinds():
                    add(getattr(kind, OTHERS[node.id]))
            elif isinstance(node, ast.Name) and node.id in functions and node.id not in seen:
                seen.add(node.id)
                if functions[node.id].__module__ == function.__module__:
                    visit(inspect.unwrap(functions[node.id]))

    visit(callback)
    return list(homes.items())


def make_schema() -> dict[str, Any]:
    """Return the schema of all documents, with those of each command under `$defs`."""
    records: dict[str, type[Any]] = {}
    answers: dict[str, Any] = {}
    commands: dict[str, list[str]] = {}
    tables: dict[str, Any] = {}
    for words, callback in list_callbacks():
        for annotation, known in find_returned(callback):
            rows = TABLE.fullmatch(annotation)
            record = known.get(rows[1] if rows else annotation)
            if not isinstance(record, type) or not _is_record(record):
                continue
            if rows:
                records[record.__name__] = record
                tables[words] = {"type": "array", "items": {"$ref": f"#/$defs/{record.__name__}"}}
            elif hasattr(record, "document"):
                answers[record.__name__] = describe_answer(record, records)
                commands.setdefault(words, []).append(record.__name__)
    return {
        "$comment": GENERATED,
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What joulemap writes with --format json",
        "description": "Documents are objects; a table alone is an array of its rows, with the habit `envelope` "
        "`$defs/Envelope`. `$defs/commands` has both by command. Properties that are not listed may be added without a "
        "new version.",
        "type": "object",
        "properties": HEAD,
        "required": list(HEAD),
        "$defs": {
            "commands": {
                **{
                    words: {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in names]}
                    for words, names in sorted(commands.items())
                },
                **{f"{words} (table)": one for words, one in sorted(tables.items())},
            },
            "Envelope": ENVELOPE,
            **{one.__name__: {"type": "object", "properties": STATED[one.__name__]} for one in (Answer, RunAnswer)},
            **describe_facts(),
            **dict(sorted(answers.items())),
            **{name: describe_record(record) for name, record in sorted(records.items())},
        },
    }


def list_broken(published: Mapping[str, Any], made: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the paths of a published schema that another one lacks or contradicts; texts and additions may differ."""
    for name, one in published.items():
        other, place = made.get(name), f"{path}/{name}"
        if isinstance(one, dict) and isinstance(other, dict):
            yield from list_broken(one, other, place)
        elif isinstance(one, list) and isinstance(other, list) and name != "type":
            yield from (f"{place}: {part}" for part in one if part not in other)
        elif one != other and name not in ("description", "title", "$comment"):
            yield place


def main() -> None:
    """Write the schema. End the process if it breaks what was published under its version."""
    if SCHEMA.is_file() and (
        broken := list(list_broken(json.loads(SCHEMA.read_text(encoding="utf-8")), make_schema()))
    ):
        sys.exit(f"schema_version {SCHEMA_VERSION} promised {', '.join(broken)}: raise SCHEMA_VERSION")
    SCHEMA.write_text(json.dumps(make_schema(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
