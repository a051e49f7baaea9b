"""The walls: imports point down, the core imports no wing, and each heavy library is known in as few rooms as can be.

torch has few: `trace` runs models without storage to count them, `construct` and the wing `hub` build them, `device`
and the wing `verify` run them for real to time them. Nothing that only predicts may depend on the latter two.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import joulemap
from joulemap.question import Question
from joulemap.system.wing import BUILT_IN, list_apart, list_wings
from joulemap.workspace import Workspace
from layers import BELOW, loaded_after

PACKAGE = Path(joulemap.__file__).parent
TESTS = Path(__file__).parents[1]


OUTSIDE = ("benchmarks", "project")
"""Folders of tests without a room: of what scores and times joulemap, and of the rules of the whole project."""

EVERYWHERE: set[str] = {"system"}
"""What every room may import."""

PUBLIC: set[str] = {
    "ask", "bundle", "construct", "calibrate", "catalog", "cli", "device", "domain", "exchange",
    "physics", "plan", "prediction", "generated", "show", "store", "trace",
}  # fmt: skip
"""Rooms of the core that a wing may import."""

OWNERS: dict[str, set[str]] = {
    "torch": {"trace", "construct", "device", "wing.hub", "wing.verify"},
    "torchvision": {"construct", "trace"},
    "duckdb": {"store", "wing.explore"},
    "pyarrow": {"store", "system", "wing.explore"},
    "cattrs": {"catalog"},
    "typer": {"cli", *(f"wing.{name}" for name in BUILT_IN)},
    "mcp": {"cli"},
    "mcp_types": {"cli"},
    "tabulate": {"show"},
    "highspy": {"wing.place"},
    "plotille": {"show"},
    "rich": {"show"},
    "vl_convert": {"show"},
    "optuna": {"wing.embed", "wing.explore"},
    "pytest": {"wing.embed"},
    "numpy": {"bundle", "calibrate", "physics", "prediction", "store", *(f"wing.{name}" for name in BUILT_IN)},
}
"""library -> rooms that may import it."""

MEASURING: set[str] = {"board.py", "launch.py", "graphics.py", "trial.py"}
"""Files of `device` that import torch; the others tell of this machine without it."""


def modules() -> Iterator[tuple[str, Path]]:
    """Yield each file with its room: a folder of the package, or a wing as `wing.NAME`."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] == "wing":
            if parts[1] != "__init__":
                yield ".".join(parts[:2]), path
        elif parts[0] not in ("__init__", "__main__"):
            yield parts[0], path


def room_of(module: str) -> str:
    """The room of a module of ours, by its whole name."""
    parts = module.split(".")
    return ".".join(parts[1:3] if parts[1] == "wing" else parts[1:2])


def allowed(room: str) -> set[str]:
    """Rooms that a room may import besides itself."""
    if not room.startswith("wing."):
        return BELOW[room] | EVERYWHERE
    (wing,) = (one for one in (*list_wings(), *list_apart()) if room == f"wing.{one.name}")
    return PUBLIC | EVERYWHERE | {f"wing.{name}" for name in wing.uses}


@cache
def import_statements(path: Path) -> tuple[tuple[ast.Import | ast.ImportFrom, bool], ...]:
    """Return (statement, only for type checking) of every import in a file; nothing else of it is looked through."""
    statements = []
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text()), False)]
    while waiting:
        node, typing_only = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            statements.append((node, typing_only))
        test = node.test if isinstance(node, ast.If) else None
        typing_only |= isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
        for block in ("body", "orelse", "handlers", "finalbody", "cases"):
            waiting += [(one, typing_only) for one in getattr(node, block, ())]
    return tuple(statements)


@cache
def imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """Return (module, only for type checking) of every import in a file."""
    assert not any(node.level for node, _ in import_statements(path) if isinstance(node, ast.ImportFrom)), path
    return tuple(
        (name, typing_only)
        for node, typing_only in import_statements(path)
        for name in ([one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    )


@pytest.mark.wings
def test_every_room_is_in_the_plan() -> None:
    assert {room for room, _ in modules()} == set(BELOW) | {f"wing.{name}" for name in BUILT_IN}


def test_imports_point_down() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for room, path in modules()
        for name, typing_only in imports(path)
        if name.startswith("joulemap.") and (target := room_of(name)) != room and target not in allowed(room)
        if not (typing_only and name == f"joulemap.generated.{room}")
    ]
    assert wrong == []


BY_NAME: dict[str, str] = {
    "bundle.record": "types of records that a file names, all of physics",
    "cli.app": "the command that was called, from the registry of commands",
    "physics.architecture": "the module of a class of chips, beside it",
    "plan.stored_runs": "numpy.ma, which DuckDB would import while the database is locked",
    "show.present.format": "the writer of a format, beside it",
    "show.view": "the page of an answer: of ask.NAME in show.NAME, or in the same wing",
    "system": "public names, from the stub that lists them",
    "system.frame": "pandas, polars and pyarrow, if installed",
    "system.windows": "msvcrt, which other systems lack",
    "system.wing": "what the registries of questions, figures, completions and wings name",
    "wing.explore.lake.fill": "distributed, if installed",
}
"""Modules that import by name -> what they import. All others have import statements, which the tests above read."""


def list_calls(path: Path) -> Iterator[str]:
    """Yield the name of each function that a file calls."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func).rpartition(".")[2]


def test_registries_alone_import_by_name() -> None:
    importing = {name_of(path) for _, path in modules() if {"import_module", "__import__"} & {*list_calls(path)}}
    assert importing == BY_NAME.keys()


ADDRESS = re.compile(r"joulemap(?:\.\w+)+(?::\w+)?")
"""Pattern of a text that is a module, or an object in one."""

REGISTRIES = {"question": "workspace"}
"""Room with a registry -> room that finds what it names."""


def list_addresses(path: Path) -> Iterator[str]:
    """Yield the modules of ours that the texts of a file name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ADDRESS.fullmatch(node.value):
            place = PACKAGE.parent.joinpath(*node.value.partition(":")[0].split("."))
            if place.is_dir() or place.with_suffix(".py").is_file():
                yield node.value.partition(":")[0]


def test_texts_name_no_module_above() -> None:
    """A module that is imported by name stands where an import statement could reach it."""
    wrong = [
        f"{path.relative_to(PACKAGE)} names {name}"
        for room, path in modules()
        for name in list_addresses(path)
        if room_of(name) not in {room, REGISTRIES.get(room), *allowed(REGISTRIES.get(room, room))}
        if not name.startswith("joulemap.generated.") and name != "joulemap.wing"
    ]
    assert wrong == []


def test_a_text_that_names_a_module_above_is_found(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text('PAGE = "joulemap.show.page"\nNAME = "joulemap.show.page:compose"\nFILE = "joulemap.toml"\n')
    assert [room_of(name) for name in list_addresses(path)] == ["show", "show"]


def test_the_core_names_no_wing() -> None:
    """Neither in imports nor in texts from which one could be imported; the registry and its tools apart."""
    told = re.compile(rf"wing\.({'|'.join(BUILT_IN)})\b")
    named = {
        str(path.relative_to(PACKAGE))
        for room, path in modules()
        if not room.startswith("wing.") and told.search(path.read_text(encoding="utf-8"))
    }
    assert named == set()


def test_tests_of_the_core_import_no_wing_until_they_run() -> None:
    imports = re.compile(r"^(from|import) joulemap\.wing", re.MULTILINE)
    files = [path for room in (*BELOW, *OUTSIDE) for path in sorted((TESTS / room).glob("test_*.py"))]
    assert len(files) > 100
    assert [path.name for path in files if imports.search(path.read_text(encoding="utf-8"))] == []


def test_tests_stand_where_their_subject_stands() -> None:
    places = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    assert places <= {*BELOW, *OUTSIDE, *BUILT_IN}
    names = Counter(path.name for path in TESTS.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_questions_are_answered_below_who_asks_them() -> None:
    """They are found by name, which no import says."""
    homes = {one.home for one in vars(Workspace).values() if isinstance(one, Question)}
    assert {home.split(".")[1] for home in homes} <= BELOW["workspace"] | {"wing"}


def test_the_plan_has_no_cycle() -> None:
    settled: set[str] = set()
    while len(settled) < len(BELOW):
        ready = {room for room, below in BELOW.items() if room not in settled and below <= settled}
        assert ready, f"a cycle among {set(BELOW) - settled}"
        settled |= ready


def name_of(path: Path) -> str:
    """A file as a module below the package; a room's `__init__` has the name of the room."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def module_graph(files: dict[str, Path]) -> dict[str, set[str]]:
    """Module -> modules that its imports name, those for type checking and those in functions included."""
    graph: dict[str, set[str]] = {module: set() for module in files}
    for module, path in files.items():
        for node, _ in import_statements(path):
            named = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                parts = [f"{node.module}.{name}" for name in named]
                named = [part if part.removeprefix("joulemap.") in files else node.module or "" for part in parts]
            graph[module].update(name.removeprefix("joulemap.") for name in named)
        graph[module].intersection_update(files)
    return graph


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def find_circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Modules that reach each other: the strongly connected components that have an edge inside."""
    reach = {module: reachable(graph, module) for module in graph}
    return {
        frozenset(other for other in reach[module] if module in reach[other])
        for module in graph
        if module in reach[module]
    }


def test_no_file_is_in_a_circle() -> None:
    files = {name_of(path): path for _, path in modules()}
    assert find_circles(module_graph(files)) == set()


def test_a_circle_is_found(tmp_path: Path) -> None:
    texts = {
        "a": "from joulemap.b import one",
        "b": "def f():\n    from joulemap import c",
        "c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import joulemap.a",
        "d": "from joulemap.a import one",
    }
    files = {name: tmp_path / f"{name}.py" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    assert find_circles(module_graph(files)) == {frozenset("abc")}


@pytest.mark.parametrize("library", sorted(OWNERS))
def test_a_heavy_library_is_known_in_its_rooms_only(library: str) -> None:
    wrong = [
        str(path.relative_to(PACKAGE))
        for room, path in modules()
        for name, typing_only in imports(path)
        if name.split(".")[0] == library and room not in OWNERS[library] and not typing_only
    ]
    assert wrong == []


TYPER: frozenset[str] = frozenset(
    {
        *("Argument", "BadParameter", "CallbackParam", "Context", "Exit", "Option", "Typer"),
        "main.get_command",
        *("completion.get_completion_inspect_parameters", "completion.install_callback", "completion.show_callback"),
    }
)
"""Names of Typer that may be used: those that its documentation names, and the functions behind its options
`--install-completion` and `--show-completion`, because the options accept no name of a shell."""


def find_names(path: Path, library: str) -> set[str]:
    """Return the names of a library that a file imports or reads as its attributes, without the library's own name."""
    mentions: set[str] = set()
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if library in text else ():
        if isinstance(node, ast.Import):
            mentions |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            mentions |= {f"{node.module}.{one.name}" for one in node.names}
        elif isinstance(node, ast.Attribute):
            mentions.add(ast.unparse(node))
    names = {name.removeprefix(f"{library}.") for name in mentions if re.fullmatch(rf"{library}(\.\w+)+", name)}
    return {name for name in names if not any(other.startswith(f"{name}.") for other in names)}


def test_the_command_line_uses_documented_names_of_typer() -> None:
    files = [path for folder in (PACKAGE, TESTS) for path in folder.rglob("*.py")]
    wrong = {str(path): sorted(find_names(path, "typer") - TYPER) for path in files}
    assert {path: names for path, names in wrong.items() if names} == {}


def test_a_name_that_is_not_documented_is_found(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text(
        "import typer\nimport typer.models\nfrom typer.core import TyperGroup as G\ntyper.main.get_group(x).y\n"
    )
    assert find_names(path, "typer") - TYPER == {"models", "core.TyperGroup", "main.get_group"}


def test_the_machine_is_described_without_torch() -> None:
    device = [path for room, path in modules() if room == "device"]
    assert {path.name for path in device if "torch" in {name for name, _ in imports(path)}} == MEASURING


def command(*arguments: str) -> str:
    return (
        "import contextlib, io\nfrom joulemap.cli.app import run\nwith contextlib.redirect_stdout(io.StringIO()):\n"
        f"    code = run({list(arguments)!r})\nassert code == 0, code"
    )


def test_importing_the_package_loads_nothing_heavy(tmp_path: Path) -> None:
    loaded = loaded_after("import joulemap", tmp_path)
    assert "joulemap" in loaded
    assert not loaded & {"torch", "duckdb", "numpy", "pyarrow", "attrs", "cattrs", "typer"}


def test_a_prediction_needs_no_engine(tmp_path: Path) -> None:
    loaded = loaded_after("import joulemap\njoulemap.predict('resnet50', 'h100_sxm5', batch=8)", tmp_path)
    assert "joulemap.prediction" in loaded
    assert not loaded & {"torch", "duckdb", "pyarrow", "pandas", "cattrs", "typer", "rich"}


def test_questions_load_what_answers_them_when_they_are_looked_at(tmp_path: Path) -> None:
    unlooked = {"joulemap.ask.scope", "joulemap.plan.stored_runs", "numpy", "pyarrow", "torch"}
    loaded = loaded_after(
        "import inspect, joulemap, sys\njoulemap.Workspace(), joulemap.use\n"
        f"assert 'joulemap.workspace' in sys.modules and not {unlooked!r} & set(sys.modules)\n"
        "inspect.getmembers(joulemap.Workspace)",
        tmp_path,
    )
    assert "joulemap.ask.compare" in loaded
    assert not loaded & {"pyarrow", "torch", "typer"}


def test_help_loads_only_typer(tmp_path: Path) -> None:
    loaded = loaded_after(command("--help"), tmp_path)
    assert "typer" in loaded
    assert not loaded & {"torch", "duckdb", "numpy", "rich", "pydantic", "cattrs"}


READING = [
    ("sql", "SELECT hardware FROM runs"),
    ("query", "run", "run.list"),
    ("query", "list"),
    ("hardware", "list"),
    ("hardware", "show", "tpu_v4"),
    ("model", "list"),
    ("db", "info"),
    ("db", "check"),
]


RANKING = [
    (
        "recommend",
        "resnet18",
        "--hardware",
        "tpu_v4",
        "--precision",
        "fp32",
        "--runtime",
        "fused",
        "--batch",
        "1",
        "--max-power",
        "1kW",
    ),
    ("sweep", "resnet18", "--batch", "1", "--precision", "fp32,bf16"),
]
"""Commands about stored runs that compute probabilities."""

CHARTING = ("utilization", "resnet18", "--no-advice")
"""Command about stored runs that draws a chart."""

DRAWING = [
    ("analyze", "resnet18", "tpu_v4"),
    ("edp", "resnet18", "tpu_v4"),
    ("architectures", "--precision", "fp32", "--where", "architecture=cpu,gpu,tpu"),
]
"""Commands about stored runs that compute probabilities and draw pictures in a table."""


@pytest.mark.parametrize("count", [1, pytest.param(None, marks=pytest.mark.slow)], ids=["few", "all"])
def test_a_command_that_only_reads_never_imports_torch(database: Path, count: int | None) -> None:
    """Few: one of the commands that compute probabilities, and one that draws as well."""
    heavy = {"torch", "torchvision", "pyarrow", "pandas", "cattrs", "rich", "plotille", "joulemap.show.present.sketch"}
    code = ["import os", f"os.environ['JOULEMAP_DB'] = {str(database)!r}"]
    for arguments in READING:  # one process for all: what none of them imports is not there at the end
        code += [command(*arguments), f"assert not { ({*heavy, 'numpy'})!r} & set(sys.modules), {arguments!r}"]
    drawing = {"plotille", "joulemap.show.present.sketch"}
    code += [command(*CHARTING), f"assert not { ({*heavy, 'numpy'} - drawing)!r} & set(sys.modules)"]
    heavy -= drawing
    for arguments in RANKING[-1:] if count else RANKING:
        code += [command(*arguments), f"assert not {heavy!r} & set(sys.modules), {arguments!r}"]
    for arguments in DRAWING[:count]:
        code += [command(*arguments), f"assert not {heavy!r} & set(sys.modules), {arguments!r}"]
    assert "joulemap.cli.app" in loaded_after("\n".join(code), database.parent)


def test_listings_need_neither_a_database_nor_torch(tmp_path: Path) -> None:
    loaded = loaded_after(f"{command('hardware', 'list')}\n{command('model', 'list')}", tmp_path)
    assert "duckdb" in loaded
    assert "torch" not in loaded
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("model", ["mobilenet_v2", "gemm(m=8,n=8,k=8)", "attention(queries=4,heads=2,head_dim=8)"])
@pytest.mark.sample(1)
def test_a_first_comparison_of_a_shipped_model_imports_no_torch(model: str, tmp_path: Path) -> None:
    loaded = loaded_after(command("compare", model, "--batch", "3"), tmp_path)
    assert "numpy" in loaded
    assert not loaded & {"torch", "torchvision"}


@pytest.mark.slow
@pytest.mark.sample(1)
def test_a_second_comparison_imports_no_torch(own_database: Path) -> None:
    asked = ("compare", "resnet18", "--db", str(own_database))
    stored = f"{command(*asked)}\nassert not {{'torch', 'pyarrow', 'pandas'}} & set(sys.modules)\n"
    evaluated = loaded_after(stored + command(*asked, "--precision", "int8"), own_database.parent)
    assert "numpy" in evaluated
    assert "torch" not in evaluated


def test_no_room_is_called_as_something_public() -> None:
    """A room that is imported would hide it: `joulemap.report` is a function."""
    rooms = {name.removesuffix(".py") for name in (path.name for path in PACKAGE.iterdir())}
    assert not rooms & set(joulemap.__all__)
