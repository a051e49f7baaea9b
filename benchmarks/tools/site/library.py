"""Reference of the library: every public name, which Sphinx documents from docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from importlib import import_module

from joulemap.domain.computed import make_table
from joulemap.domain.table import Row
from joulemap.store.library import find_query
from tools.public import place_names
from tools.row import spell_type


def write_library() -> Mapping[str, str]:
    """Return the pages of the reference, name -> text."""
    modules = {module: sorted(names) for module, names in place_names().items()}
    pages = {f"reference/{_name_page(one)}.md": "\n".join(_write_page(one, names)) for one, names in modules.items()}
    return {"reference/index.md": "\n".join(_write_index(modules)), **pages}


def _name_page(module: str) -> str:
    return module.removeprefix("joulemap.").replace(".", "_")


def _write_index(modules: Mapping[str, list[str]]) -> Iterator[str]:
    yield "# Every public name\n"
    yield "By module. [As a library](../library.md) says how they go together.\n"
    for module, names in modules.items():
        listed = " ".join(f"{{py:obj}}`~{module}.{name}`" for name in names)
        yield f"- [`{module}`]({_name_page(module)}.md): {listed}"
    yield "\n```{toctree}\n:hidden:"
    yield from map(_name_page, modules)
    yield "```"


def _write_page(module: str, names: list[str]) -> Iterator[str]:
    first, *_ = (inspect.getdoc(import_module(module)) or "").split("\n\n")
    yield f"# `{module}`\n\n{first}\n\n```{{eval-rst}}"
    for name in names:
        yield from _write_name(module, name)
    yield "```"


def _write_name(module: str, name: str) -> Iterator[str]:
    value = getattr(import_module(module), name)
    if inspect.isclass(value) and issubclass(value, Row) and value is not Row:
        yield f".. autoclass:: {module}.{name}\n"
        is_queried = bool(value.query)
        for column in find_query(value.query).columns if is_queried else make_table("", value, ()).columns:
            text = f"{column.unit}: {column.meaning}" if column.unit else column.meaning
            meaning = re.sub(r"([*|\\]|(?<=\w)_\b)", r"\\\1", text)
            yield f"   .. attribute:: {column.name}\n      :type: {spell_type(column)}\n\n      {meaning}\n"
    elif inspect.isclass(value):
        yield f".. autoclass:: {module}.{name}\n   :members:\n   :undoc-members:\n"
    elif inspect.isfunction(value):
        yield f".. autofunction:: {module}.{name}\n"
    else:
        yield f".. autodata:: {module}.{name}\n"
