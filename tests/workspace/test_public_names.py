"""Public names: few at the top, each in one public module, documented, and taught by no longer path."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

import joulemap
from joulemap.system.errors import UnknownNameError
from joulemap.workspace import find_question
from sample import each
from tools import GENERATED, PACKAGE
from tools.public import find_public, place_names, read_door, spell_stubs

ROOT = Path(__file__).parents[2]
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *PACKAGE.rglob("*.py"))
}
CORE = (
    "joulemap",
    "joulemap.catalog",
    "joulemap.extend",
    "joulemap.records",
    "joulemap.show",
)
"""Public modules of the core."""

MOST = 120
"""Maximum number of names at the top of the package."""


def test_the_top_of_the_package_can_be_learned() -> None:
    assert len(joulemap.__all__) <= MOST
    assert {"Workspace", "Settings", "Hardware", "MetricName", "compare", "hardware", "JoulemapError"} <= {
        *joulemap.__all__
    }


@pytest.mark.wings
def test_the_stubs_list_what_the_library_hands_out() -> None:
    for place, text in spell_stubs().items():
        assert place.read_text(encoding="utf-8") == text, "make rows"


def test_what_is_generated_stands_apart() -> None:
    for path in (*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")):
        is_apart = "generated" in path.relative_to(PACKAGE).parts
        assert path.read_text(encoding="utf-8").startswith(f"# {GENERATED}\n") == is_apart, path
    stems = Counter(path.stem for path in (PACKAGE / "generated").glob("*.py*"))
    assert set(stems.values()) == {1}


@pytest.mark.wings
def test_a_name_is_in_one_public_module() -> None:
    modules = place_names()
    assert set(CORE) < set(modules)
    names = Counter(name for names in modules.values() for name in names)
    assert [name for name, count in names.items() if count > 1] == []
    assert find_public().keys() <= names.keys()


@pytest.mark.wings
def test_a_public_module_has_its_names_and_no_other() -> None:
    for module, names in place_names().items():
        opened = import_module(module)
        assert opened.__all__ == dir(opened) == sorted({**names, **read_door().get(module, {})})
        assert all(getattr(opened, name) is not None for name in names)
        assert not any(name.startswith("_") for name in names)
        with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nonsense'"):
            _ = opened.nonsense
    with pytest.raises(AttributeError):
        _ = joulemap.nonsense  # type: ignore[attr-defined]


@pytest.mark.wings
def test_every_public_class_and_function_has_a_docstring() -> None:
    for module, names in place_names().items():
        values = {name: getattr(import_module(module), name) for name in names}
        defined = {name: one for name, one in values.items() if isinstance(one, type | FunctionType)}
        assert [name for name, one in defined.items() if not one.__doc__] == [], module


@pytest.mark.wings
def test_the_page_of_the_library_names_every_public_module() -> None:
    page = TEXTS["docs/library.md"]
    assert [module for module in place_names() if f"`{module}`" not in page] == []


PLUGIN = "joulemap.wing.embed.plugin"
"""Module that `pytest -p` loads by this name."""


@pytest.mark.wings
@each([name for name, text in TEXTS.items() if "joulemap." in text and name.endswith(".md")])
def test_a_page_teaches_no_longer_path(page: str) -> None:
    modules = place_names()
    code = "\n".join(re.findall(r"^```py\w*\n(.*?)^```", TEXTS[page], re.DOTALL | re.MULTILINE))
    imported = re.findall(r"^\s*(?:from|import) (joulemap[\w.]*)", code, re.MULTILINE)
    assert [module for module in imported if module not in modules] == []
    for path in re.findall(r"(?<![\w.\"/])joulemap(?:\.\w+)+", TEXTS[page]):
        module, _, name = path.rpartition(".")
        if path not in modules and path != PLUGIN and path.count(".") > 1:
            assert module in modules and name in modules[module], path


@pytest.mark.wings
def test_docstrings_teach_no_longer_path() -> None:
    examples = re.compile(r"^ {4,}(?:from|import) (joulemap(?:\.\w+){2,})", re.MULTILINE)
    modules = place_names()
    for name, text in TEXTS.items():
        texts = re.findall(r'"""(.*?)"""', text, re.DOTALL) if name.endswith(".py") else []
        assert [path for one in texts for path in examples.findall(one) if path not in modules] == [], name


def test_public_modules_load_neither_torch_nor_duckdb() -> None:
    program = f"import sys\nfor name in {CORE!r}:\n    __import__(name)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"torch", "duckdb", "numpy", "attrs", "cattrs", "typer"} & set(done.stdout.split())


def test_a_wing_finds_the_function_of_a_question() -> None:
    assert find_question("compare").__module__ == "joulemap.ask.compare"
    with pytest.raises(UnknownNameError, match="unknown question 'compares'; did you mean compare"):
        find_question("compares")
