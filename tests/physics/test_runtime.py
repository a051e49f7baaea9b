"""A runtime is one record: what follows from it, and that no other code knows its name."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final, get_args

import pytest

import joulemap
from joulemap.domain import label
from joulemap.physics.record import runtime as module
from joulemap.physics.record.configuration import BOUNDARY_NAMES
from joulemap.physics.record.runtime import RUNTIME, RUNTIME_NAMES, RUNTIMES, RuntimeName
from joulemap.system.resource import folder as resource_folder
from joulemap.workspace import Workspace

SOURCE: Final = Path(module.__file__)
LABELS: Final = Path(label.__file__)
ROOT: Final = Path(joulemap.__file__).parent

NAMES: Final = 'Literal["eager", "graph", "fused", "engine"]'
FIRST: Final = '        Runtime(name="eager"'

ADDED: Final = """\
        Runtime(name="lazy", launches_each=False, is_captured=False, merges=True, is_built=False),
"""

LATER: Final = """
import contextlib, io, json, sys
from types import ModuleType
path, source, database = sys.argv[1:]
name = "joulemap.physics.record.runtime"
module = sys.modules[name] = ModuleType(name)
exec(compile(source, path, "exec"), vars(module))
import duckdb
from joulemap.catalog.load import load_catalogue
from joulemap.cli.app import run
from joulemap.cli.complete import complete_runtimes
from joulemap.domain.settings import Settings
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import Configuration
from joulemap.bundle.workload import open_zoo
from joulemap.catalog.digest import ZOO
from joulemap.store.migration import migrate

told = io.StringIO()
with contextlib.redirect_stdout(told):
    assert run(["compare", "--help-all"]) == 0
    asked = ["compare", "resnet18", "l4", "t4", "--runtime", "lazy", "--format", "json", "--db", database]
    assert run(asked) == 0
connection = duckdb.connect()
migrate(connection)
evaluator = Evaluator(open_zoo(ZOO).form_columns("mobilenet_v2", 1))
chips = ("l4", "xeon_8490h", "tpu_v4", "cloud_ai_100_pro", "kpu_t256")
asked = [(load_catalogue().find(chip), Configuration(hardware=chip, precision="int8", runtime=runtime))
    for chip in chips for runtime in ("fused", "lazy", "eager")]
print(json.dumps({
    "settings": Settings(runtime=" Lazy").runtime,
    "words": complete_runtimes("la"),
    "help": " ".join(told.getvalue().split()),
    "merging": connection.execute("SELECT is_merging('lazy')").fetchone(),
    "comments": [text for text, in connection.execute(
        "SELECT comment FROM duckdb_columns() WHERE column_name = 'runtime' AND comment LIKE '%eager%'").fetchall()],
    "energies": [int(run.ledger.energy_fj.sum()) for run in evaluator.evaluate_all(asked)],
}))
"""


def read_module(source: str) -> ModuleType:
    """Return the module that this source makes in place of the one of runtimes."""
    made = ModuleType(module.__name__)
    exec(compile(source, str(SOURCE), "exec"), vars(made))
    return made


def test_each_name_has_a_record_and_each_record_a_name() -> None:
    assert tuple(RUNTIME) == get_args(RuntimeName) == RUNTIME_NAMES
    assert [one.name for one in RUNTIMES] == list(RUNTIME_NAMES)


def test_a_name_without_a_record_or_a_property_is_refused() -> None:
    source = SOURCE.read_text(encoding="utf-8")
    assert source.count(NAMES) == source.count(FIRST) == 1
    more = source.replace(NAMES, NAMES.replace("]", ', "lazy"]'))
    with pytest.raises(KeyError, match="lazy"):
        read_module(more)
    with pytest.raises(TypeError, match="is_built"):
        read_module(more.replace(FIRST, ADDED.replace(", is_built=False", "") + FIRST))
    assert "lazy" in read_module(more.replace(FIRST, ADDED + FIRST)).RUNTIME


@pytest.mark.slow
def test_a_new_runtime_is_one_record(tmp_path: Path) -> None:
    database = tmp_path / "before.duckdb"
    Workspace(database).compare("resnet18", hardware=["l4"])
    source = SOURCE.read_text(encoding="utf-8").replace(NAMES, NAMES.replace("]", ', "lazy"]'))
    done = subprocess.run(
        [sys.executable, "-c", LATER, str(SOURCE), source.replace(FIRST, ADDED + FIRST), str(database)],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1] / "support",
    )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["settings"] == found["words"] == ["lazy"]
    assert "engine (TensorRT) or lazy" in found["help"]
    assert found["merging"] == [True]
    assert len(found["comments"]) > 6
    assert all(text.endswith("engine or lazy") for text in found["comments"])
    fused, lazy, eager = (found["energies"][start::3] for start in range(3))
    assert lazy == fused != eager


def list_comparisons(tree: ast.AST, word: str, names: Collection[str]) -> Iterator[ast.Compare | ast.Dict]:
    """Yield comparisons of something called `word` with one of the names, and tables by several of the names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            texts = {one.value for side in sides for one in ast.walk(side) if isinstance(one, ast.Constant)}
            if word in ast.unparse(node) and texts & {*names}:
                yield node
        elif isinstance(node, ast.Dict):
            keys = {one.value for one in node.keys if isinstance(one, ast.Constant)}
            if len(keys & {*names}) > 1:
                yield node


@pytest.mark.parametrize(("word", "names"), [("runtime", RUNTIME_NAMES), ("boundary", BOUNDARY_NAMES)])
def test_no_code_compares_the_name(word: str, names: Collection[str]) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path, text in read_files("*.py", names, ROOT)
        if word in text and path not in (SOURCE, LABELS)
        for node in list_comparisons(ast.parse(text), word, names)
    ]
    assert wrong == []


@pytest.mark.parametrize("names", [RUNTIME_NAMES, BOUNDARY_NAMES])
def test_no_check_lists_the_names(names: Collection[str]) -> None:
    listed = [f"'{first}', '{second}'" for first in names for second in names]
    files = read_files("*.sql", names, resource_folder("schemas"))
    assert [path for path, text in files if any(one in text for one in listed)] == []


def read_files(pattern: str, names: Collection[str], *folders: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files that contain one of the names as a string, with their text."""
    for folder in folders:
        for path in folder.rglob(pattern):
            text = path.read_text(encoding="utf-8")
            if any(f'"{name}"' in text or f"'{name}'" in text for name in names):
                yield path, text
