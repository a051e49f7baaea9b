"""Reader of pprof profiles: the messages of profile.proto, decoded by the protobuf library.

Source: https://github.com/google/pprof/blob/main/proto/profile.proto (names and numbers of fields)
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import attrs
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

INT, UINT, TEXT, BOOL = "INT64", "UINT64", "STRING", "BOOL"

MESSAGES: dict[str, dict[str, tuple[int, str, bool]]] = {
    "Profile": {
        "sample_type": (1, "ValueType", True),
        "sample": (2, "Sample", True),
        "mapping": (3, "Mapping", True),
        "location": (4, "Location", True),
        "function": (5, "Function", True),
        "string_table": (6, TEXT, True),
        "duration_nanos": (10, INT, False),
        "comment": (13, INT, True),
        "default_sample_type": (14, INT, False),
    },
    "ValueType": {"type": (1, INT, False), "unit": (2, INT, False)},
    "Sample": {"location_id": (1, UINT, True), "value": (2, INT, True), "label": (3, "Label", True)},
    "Label": {"key": (1, INT, False), "str": (2, INT, False)},
    "Mapping": {
        "id": (1, UINT, False),
        "filename": (5, INT, False),
        "has_functions": (7, BOOL, False),
        "has_filenames": (8, BOOL, False),
    },
    "Location": {"id": (1, UINT, False), "mapping_id": (2, UINT, False), "line": (4, "Line", True)},
    "Line": {"function_id": (1, UINT, False)},
    "Function": {
        "id": (1, UINT, False),
        "name": (2, INT, False),
        "system_name": (3, INT, False),
        "filename": (4, INT, False),
    },
}
"""Message -> field -> (number, type, True if repeated)."""


@attrs.frozen
class Stack:
    """Sample with its frames from the root."""

    frames: tuple[str, ...]
    kinds: tuple[str, ...]
    values: tuple[int, ...]
    labels: dict[str, str]


def _message() -> Any:
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="profiles", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for label, (number, kind, is_repeated) in fields.items():
            one = message.field.add(name=label, number=number)
            one.label = field.LABEL_REPEATED if is_repeated else field.LABEL_OPTIONAL
            if kind in MESSAGES:
                one.type, one.type_name = field.TYPE_MESSAGE, f".profiles.{kind}"
            else:
                one.type = field.Type.Value(f"TYPE_{kind}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("profiles.Profile"))


PROFILE = _message()


def read_profile(path: Path) -> Any:
    """Return the message of a file, checked as by pprof: every referenced id exists once."""
    profile = PROFILE.FromString(gzip.decompress(path.read_bytes()))
    assert profile.string_table[0] == ""
    assert len(set(profile.string_table)) == len(profile.string_table)
    mappings, functions, locations = (
        [one.id for one in table] for table in (profile.mapping, profile.function, profile.location)
    )
    for ids in (mappings, functions, locations):
        assert 0 not in ids and len(set(ids)) == len(ids)
    assert all(one.mapping_id in mappings and one.line[0].function_id in functions for one in profile.location)
    for sample in profile.sample:
        assert len(sample.value) == len(profile.sample_type)
        assert set(sample.location_id) <= set(locations)
    return profile


def read_stacks(path: Path) -> list[Stack]:
    """Return the samples of a file."""
    profile = read_profile(path)
    text = profile.string_table
    functions = {one.id: (text[one.name], text[one.filename]) for one in profile.function}
    frames = {one.id: functions[one.line[0].function_id] for one in profile.location}
    stacks = []
    for sample in profile.sample:
        named = [frames[number] for number in reversed(sample.location_id)]
        stacks.append(
            Stack(
                frames=tuple(name for name, _ in named),
                kinds=tuple(kind for _, kind in named),
                values=tuple(sample.value),
                labels={text[one.key]: text[one.str] for one in sample.label},
            )
        )
    return stacks
