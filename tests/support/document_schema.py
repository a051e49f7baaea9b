"""Check of a document against the JSON Schema of answers."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from joulemap.show.present.format import SCHEMA_VERSION
from joulemap.system.resource import package_version
from tools.schema import SCHEMA


@cache
def schema() -> dict[str, Any]:
    """Return the published schema, in which a document has no further property and a record no further column."""
    read: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for name, one in read["$defs"].items():
        if name not in ("commands", "Answer", "RunAnswer"):
            one["unevaluatedProperties"] = "properties" not in one
    return read


def check(document: object, part: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator({**part, "$defs": schema()["$defs"]}).validate(document)


def check_document(document: dict[str, Any], words: str) -> None:
    """Check what a command writes as JSON: its head, and all of it by the schema of the command."""
    head = {
        "schema_version": SCHEMA_VERSION,
        "command": document["command"],
        "program": f"joulemap {package_version('joulemap')}",
    }
    assert dict(list(document.items())[:3]) == head
    assert words.startswith(document["command"])
    check(document, schema()["$defs"]["commands"][document["command"]])
