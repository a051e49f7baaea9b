"""Built-in workloads: packed tables of a trace at batch 1 with the growth of each number over the batch.

Costs are affine in the batch for most models: with v1 and v2 traced at batches 1 and 2 and e = v2 - 2 v1,

    v(b) = v1 + (v2 - v1) (b - 1) = v1 b + e (b - 1)

e is 0 for a proportional number and -v1 for a constant one, so it compresses to almost nothing. A model that runs other
operators at batch 1, where a copy is a view, has two workloads: one for batch 1, and one for larger batches.

Models repeat each other's blocks, so files are small if repeated blocks become repeated bytes. Therefore row numbers
are not stored, references to rows are differences from the previous row, and names omit their module path. Models with
the same modules are adjacent, and some models together are a block of two sections: numbers that predictions read, and
the rest, which only a database holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from joulemap.bundle.pack import Column, Pack, Texts, as_numbers, as_texts
from joulemap.physics.record.compiler import is_single_output, read_window
from joulemap.physics.workload import KIND_CODE, OPERATOR_COUNTS, ROLE_CODE, WorkloadColumns, number_calls
from joulemap.system.record import frozen

FILE: Final = "workload.pack"

ABOVE: Final = " from batch 2"
"""Suffix of the stored name of a workload that applies to batches from 2 on."""

FIXED: Final = ("tap_count", "step_count", "run_count")
"""Operator counts that do not depend on the batch."""

GROWING: Final = {
    "workload_operator": tuple(name for name in OPERATOR_COUNTS if name not in FIXED),
    "workload_tensor": ("byte_count",),
    "workload_access": ("byte_count", "fused_byte_count"),
    "workload_buffer": ("byte_count",),
    "workload_edge": (),
    "workload_subgraph": (),
}
"""Table -> number columns that may depend on the batch."""

SHAPES: Final = {"workload_operator": "output_shape", "workload_tensor": "shape"}
"""Table -> column that contains a shape as text."""

ROW: Final = {
    "workload_operator": "operator_index",
    "workload_tensor": "tensor_index",
    "workload_access": "access_index",
    "workload_buffer": "buffer_index",
    "workload_edge": "edge_index",
    "workload_subgraph": "subgraph_index",
}
"""Table -> column with the row's number within its workload, from 0."""

STEPS: Final = {
    "workload_operator": ("subgraph_index",),
    "workload_tensor": ("producer_index", "buffer_index"),
    "workload_access": ("operator_index", "tensor_index"),
    "workload_buffer": ("birth_index", "death_index", "release_index"),
    "workload_edge": ("producer_index", "consumer_index", "tensor_index"),
    "workload_subgraph": (),
}
"""Table -> columns that refer to other rows, stored as differences from the previous value that is not missing."""

DERIVED: Final = {("workload_access", "fused_byte_count"): "byte_count"}
"""(table, column that may be missing in the file) -> column from which its value is then taken."""

READ: Final = {
    "workload_operator": (
        "kind", "operation", "variant", "aten", "is_foldable", "scalars", "output_shape", "subgraph_index",
        *OPERATOR_COUNTS,
    ),
    "workload_tensor": ("buffer_index", "byte_count", "is_matrix"),
    "workload_access": (
        "operator_index", "tensor_index", "role", "byte_count", "fused_byte_count", "item_bytes", "is_boundary",
    ),
    "workload_buffer": (
        "birth_index", "death_index", "release_index", "byte_count", "item_bytes", "is_hidden",
    ),
    "workload_subgraph": ("step_count",),
}  # fmt: skip
"""Table -> columns that predictions read."""

MADE: Final = (("workload_tensor", "is_matrix"),)
"""(table, column) that the database lacks: whether a shape has several sizes, so that predictions need no shape."""

NUMBERS: Final = "numbers"
NAMES: Final = "names"
"""Sections of a block: what predictions read, and the rest."""


Tables = dict[str, dict[str, Column]]


@frozen(kw_only=True)
class Place:
    """Place of a stored workload: its block, and its rows in each table of the block."""

    block: int
    rows: Mapping[str, slice]


def is_predicted(section: str) -> bool:
    """Return True for a section of the file that predictions read, so that not only a database does."""
    return section.rpartition(" ")[2] != NAMES


class Zoo:
    """Built-in workloads of a folder."""

    def __init__(self, folder: Path) -> None:
        """Open the packed file of a folder; raises like `Pack`."""
        self._pack = Pack(folder / FILE)
        self._read = lru_cache(maxsize=4)(self._pack.read)

    @cached_property
    def models(self) -> dict[str, dict[str, Any]]:
        """Model -> what its workloads at all batches have in common: columns of the table `workload` by name, whether
        one trace grows with the batch (`is_affine`), and whether another does from batch 2 on (`is_affine_above`).
        """
        columns = self._pack.read("workload")
        listed = {
            name: column.list() if isinstance(column, Texts) else column.tolist() for name, column in columns.items()
        }
        for name in LISTED:
            listed[name] = [json.loads(str(text)) for text in listed[name]]
        rows = (dict(zip(listed, row, strict=True)) for row in zip(*listed.values(), strict=True))
        return {row["model"]: row for row in rows}

    @cached_property
    def places(self) -> dict[str, Place]:
        """Stored name of each workload -> its place."""
        index = self._pack.read("index")
        names, blocks = as_texts(index["model"]), as_numbers(index["block"]).tolist()
        sizes = {table: as_numbers(index[table]).tolist() for table in GROWING}
        starts, places = dict.fromkeys(GROWING, 0), {}
        for number, (name, block) in enumerate(zip(names.list(), blocks, strict=True)):
            if number and block != blocks[number - 1]:
                starts = dict.fromkeys(GROWING, 0)
            counts = {table: sizes[table][number] for table in GROWING}
            rows = {table: slice(starts[table], starts[table] + count) for table, count in counts.items()}
            starts = {table: starts[table] + count for table, count in counts.items()}
            places[str(name)] = Place(block=block, rows=rows)
        return places

    def ships(self, model: str, batch: int) -> bool:
        """Return True if a workload of a model at a batch follows from the file."""
        about = self.models.get(model)
        return about is not None and (batch == 1 or about["is_affine"] or about["is_affine_above"])

    def find_stored(self, model: str, batch: int) -> str:
        """Return the stored name of the workload that a model has at a batch."""
        return model + ABOVE * (batch > 1 and bool(self.models[model]["is_affine_above"]))

    def restore_all(self, wanted: Sequence[tuple[str, int]]) -> list[Tables]:
        """Return table -> column -> values of each (model, batch), with all columns of the database's tables."""
        names = [self.find_stored(model, batch) for model, batch in wanted]
        found: dict[int, Tables] = {}
        for number in sorted(range(len(wanted)), key=lambda one: self.places[names[one]].block):
            found[number] = self._restore(names[number], wanted[number][1], (NUMBERS, NAMES))
            for table, column in MADE:
                del found[number][table][column]
        return [found[number] for number in range(len(wanted))]

    def _restore(self, name: str, batch: int, parts: Sequence[str]) -> Tables:
        """Return table -> column -> values of a stored workload at a batch, from these parts of its block."""
        place = self.places[name]
        tables: Tables = {}
        for part in parts:
            for path, column in self._read(f"{place.block} {part}").items():
                table, _, field = path.partition(".")
                rows = place.rows[table]
                tables.setdefault(table, {})[field] = column.take(rows) if isinstance(column, Texts) else column[rows]
        return {table: restore_table(table, columns, batch) for table, columns in tables.items()}

    def form_columns(self, model: str, batch: int) -> WorkloadColumns:
        """Return a model's workload at a batch as formulas read it."""
        tables = self._restore(self.find_stored(model, batch), batch, (NUMBERS,))
        operators, tensors, accesses, buffers, subgraphs = (tables[table] for table in READ)
        tensor = _integers(accesses["tensor_index"])
        owner = _integers(operators["subgraph_index"])
        counts: dict[str, Any] = {name: _floats(operators[name]) for name in OPERATOR_COUNTS}
        return WorkloadColumns(
            batch=batch,
            weight_bytes=self.models[model]["weight_bytes"],
            kernel_step_count=_floats(subgraphs["step_count"])[owner],
            is_foldable=_truths(operators["is_foldable"]),
            subgraph_index=owner,
            **counts,
            **form_operators(*(as_texts(operators[name]) for name in OPERATOR_TEXTS)),
            access_operator=_integers(accesses["operator_index"]),
            access_tensor=tensor,
            access_buffer=np.ma.filled(np.ma.asarray(tensors["buffer_index"]), -1).astype(np.int64)[tensor],
            access_tensor_bytes=_floats(tensors["byte_count"])[tensor],
            access_is_matrix=_truths(tensors["is_matrix"])[tensor],
            access_role=_number(accesses["role"], ROLE_CODE),
            access_bytes=_floats(accesses["byte_count"]),
            access_fused_bytes=_floats(accesses["fused_byte_count"]),
            access_item_bytes=_floats(accesses["item_bytes"]),
            access_is_boundary=_truths(accesses["is_boundary"]),
            buffer_birth=_integers(buffers["birth_index"]),
            buffer_death=_integers(buffers["death_index"]),
            buffer_release=_integers(buffers["release_index"]),
            buffer_bytes=_floats(buffers["byte_count"]),
            buffer_item_bytes=_floats(buffers["item_bytes"]),
            buffer_is_hidden=_truths(buffers["is_hidden"]),
        )


LISTED: Final = ("operators", "notes")
"""Columns of the table `workload` with a list of texts per model, written as JSON."""

OPERATOR_TEXTS: Final = ("kind", "operation", "variant", "aten", "scalars", "output_shape")
"""Columns of an operator from which the arrays of `form_operators` follow."""


def form_operators(
    kind: Texts, operation: Texts, variant: Texts, aten: Texts, scalars: Texts, output_shape: Texts
) -> dict[str, Any]:
    """Return the columns of operators that formulas read, from the texts of a trace."""
    shapes = [tuple(map(int, filter(None, text.split("x")))) for text in output_shape.texts]
    rank = np.array([len(shape) for shape in shapes], dtype=np.int64)
    length = np.array([(1, *shape)[-1] for shape in shapes], dtype=np.float64)
    pairs = scalars.codes.astype(np.int64) * len(shapes) + output_shape.codes
    distinct, each = np.unique(pairs, return_inverse=True)
    windows = np.array(
        [
            read_window(scalars.texts[one // len(shapes)], is_single=is_single_output(shapes[one % len(shapes)]))
            for one in distinct.tolist()
        ],
        dtype=np.int64,
    ).reshape(-1, 2)[each]
    return {
        "kind": _number(kind, KIND_CODE),
        "operation": np.array(operation.texts, dtype=np.str_)[operation.codes],
        "variant": np.array(variant.texts, dtype=np.str_)[variant.codes],
        "call_index": number_calls([aten.texts[code] for code in aten.codes.tolist()]),
        "kernel": windows[:, 0],
        "stride": windows[:, 1],
        "rank": rank[output_shape.codes],
        "row_length": length[output_shape.codes],
    }


def _number(column: Column, numbers: Mapping[str, int]) -> NDArray[np.int64]:
    """Return the number of each text."""
    texts = as_texts(column)
    found: NDArray[np.int64] = np.array([numbers.get(text, -1) for text in texts.texts], dtype=np.int64)[texts.codes]
    return found


def _integers(column: Column) -> NDArray[np.int64]:
    return as_numbers(column).astype(np.int64)


def _floats(column: Column) -> NDArray[np.float64]:
    return as_numbers(column).astype(np.float64)


def _truths(column: Column) -> NDArray[np.bool_]:
    return as_numbers(column).astype(bool)


def restore_table(table: str, columns: Mapping[str, Column], batch: int) -> dict[str, Column]:
    """Return the columns of a table at a batch from its stored columns."""
    growing, shape = GROWING[table], SHAPES.get(table)
    restored: dict[str, Column] = {}
    for name, column in columns.items():
        if name in growing:
            numbers = _grow(columns, name, batch)
            if isinstance(column, np.ma.MaskedArray):
                other = _grow(columns, DERIVED[table, name], batch)
                numbers = np.where(np.ma.getmaskarray(column), other, numbers)
            restored[name] = numbers
        elif name in STEPS[table]:
            restored[name] = _add_steps(column)
        elif name == shape:
            restored[name] = _grow_shapes(as_texts(column), as_texts(columns[f"{name}_growth"]), batch)
        elif (table, name) == ("workload_operator", "name"):
            restored[name] = _join(as_texts(columns["module_path"]), as_texts(column), lambda path, own: f"{path}{own}")
        elif not name.endswith(("_excess", "_growth")):
            restored[name] = column
    count = len(next(iter(columns.values())))
    return {ROW[table]: np.arange(count), **restored}


def _grow(columns: Mapping[str, Column], name: str, batch: int) -> NDArray[np.int64]:
    """Return a number of each row at a batch; 0 where it is missing."""
    one, excess = (np.ma.filled(as_numbers(columns[part]), 0).astype(np.int64) for part in (name, f"{name}_excess"))
    return np.asarray(one * batch + excess * (batch - 1))


def _add_steps(column: Column) -> NDArray[Any]:
    """Return references to rows from their differences; missing ones stay missing."""
    sums = np.cumsum(np.ma.filled(as_numbers(column), 0).astype(np.int64))
    return np.ma.MaskedArray(sums, mask=column.mask) if isinstance(column, np.ma.MaskedArray) else sums


def _grow_shapes(shapes: Texts, growth: Texts, batch: int) -> Texts:
    """Return shapes at a batch, given how much each size grows with every sample; a missing growth is none."""

    def grow(shape: str | None, step: str | None) -> str:
        if step is None:
            return str(shape)
        sizes = zip(map(int, str(shape).split("x")), map(int, step.split("x")), strict=True)
        return "x".join(str(size + more * (batch - 1)) for size, more in sizes)

    if batch == 1:
        return shapes
    return _join(shapes, growth, grow)


def _join(first: Texts, second: Texts, join: Callable[[str | None, str | None], str]) -> Texts:
    """Return the texts that two columns have together, computed once per distinct pair."""
    texts, others = (*first.texts, None), (*second.texts, None)
    codes = (first.codes.astype(np.int64) % len(texts)) * len(others) + second.codes.astype(np.int64) % len(others)
    distinct, each = np.unique(codes, return_inverse=True)
    joined = tuple(join(texts[one // len(others)], others[one % len(others)]) for one in distinct.tolist())
    return Texts(codes=each, texts=joined)


@lru_cache(maxsize=2)
def open_zoo(folder: Path) -> Zoo:
    """Return the built-in workloads of a folder."""
    return Zoo(folder)
