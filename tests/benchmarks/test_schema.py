"""JSON documents: they begin with their schema and command, and follow the schema that ships."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import Run
from document_schema import check, check_document, schema
from joulemap.domain.table import Row, described
from joulemap.show.present.format import SCHEMA_VERSION
from joulemap.workspace import Workspace
from tools import GENERATED
from tools.schema import SCHEMA, describe_record, list_broken, make_schema

if TYPE_CHECKING:
    from joulemap.domain.column import Cell

COMMANDS = [
    "compare resnet18 l4 t4 --level run",
    "compare resnet18 l4 t4 --by category",
    "compare resnet18 mobilenet_v2 l4 t4",
    "analyze resnet18 l4",
    "analyze resnet18 l4 --level operator --by action",
    "architectures resnet18",
    "hardware show l4",
    "hardware show h100_sxm5 --calibration none",
    "model show resnet18",
    "place resnet18 --on l4,t4 --link pcie4x16",
    "recommend mlp --where scenario=camera --limit 2",
    "db diff 1 2",
    "db info",
    "db check",
]
"""Beside those of tests/show/test_table.py, whose documents are held to the schema as well."""


@pytest.mark.sample(2)
@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.slow
def test_documents_follow_the_schema_of_their_command(
    words: str, joulemap: Run, database: Path, workspace: Workspace
) -> None:
    db = database if words.startswith("db ") else workspace.path
    done = joulemap(*words.split(), *(() if words.startswith("hardware") else ("--db", db)), "--format", "json")
    assert done.returncode == 0, done.stderr
    check_document(json.loads(done.stdout), words)


def test_a_document_of_another_command_or_with_a_missing_column_is_refused() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    part = schema()["$defs"]["commands"]["cost"]
    head = {"schema_version": SCHEMA_VERSION, "command": "cost", "program": "joulemap"}
    check({**head, "rows": []}, part)
    for wrong in ({"command": "cost"}, {**head, "rows": [{"hardware": "l4"}]}, {**head, "schema_version": 1}):
        with pytest.raises(jsonschema.ValidationError):
            check(wrong, part)


@pytest.mark.wings
def test_the_schema_is_that_of_the_records() -> None:
    made = make_schema()
    assert next(iter(made.values())) == GENERATED
    assert json.loads(json.dumps(made)) == json.loads(SCHEMA.read_text(encoding="utf-8"))


class Record(Row):
    """One row."""

    name: Cell[str] = described("who")
    energy_j: Cell[float | None] = described("of a batch", "J")
    ids: Cell[tuple[int, ...]] = described("of runs")


def test_a_record_is_an_object_with_its_columns() -> None:
    assert describe_record(Record) == {
        "type": "object",
        "description": "One row.",
        "properties": {
            "name": {"type": "string", "description": "who"},
            "energy_j": {"type": ["number", "null"], "description": "of a batch (J)"},
            "ids": {"type": "array", "items": {"type": "integer"}, "description": "of runs"},
        },
        "required": ["name", "energy_j", "ids"],
    }


def test_what_a_version_published_stays() -> None:
    published = {"$defs": {"Row": {"properties": {"a": {"type": "integer", "description": "x"}}, "required": ["a"]}}}
    row = {"properties": {"a": {"type": "integer", "description": "y"}, "b": {}}, "required": ["a", "b"]}
    assert list(list_broken(published, {"$defs": {"Row": row, "New": {}}})) == []
    wider = {"properties": {"a": {"type": ["integer", "null"]}}, "required": []}
    assert list(list_broken(published, {"$defs": {"Row": wider}})) == [
        "/$defs/Row/properties/a/type",
        "/$defs/Row/required: a",
    ]
    assert list(list_broken(published, {"$defs": {}})) == ["/$defs/Row"]
