"""Register wings: packages that add commands, questions, model names or kinds of hardware to the core.

A wing is a package with a function `register` that returns a `Wing`. Thirteen are built in, under `joulemap.wing`.
Those of other distributions are found by their entry points:

    [project.entry-points."joulemap.wings"]
    toy = "toy_wing:register"

Registration names modules and objects by text, so that a wing is imported only on demand. The core never imports a
wing: it asks `find_parts` for the objects that wings registered at a port.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from joulemap.system.entry_point import list_entry_points

BUILT_IN: Final = (
    "pipeline", "embed", "explore", "file", "fleet", "here", "hub", "decoder", "llm", "place", "tab", "train", "verify",
)  # fmt: skip
"""Built-in wings. They are listed because an editable install keeps its original entry points."""

MODEL_PREFIXES: Final[Mapping[str, str]] = {"timm": "hub", "hf": "hub"}
"""Prefix of a model's name -> built-in wing that such models need, which an installation may lack."""

APART: Final = ("embed",)
"""Built-in wings that add nothing to the core, so that commands do not import them."""

GROUP: Final = "joulemap.wings"
"""Entry-point group for wings of other distributions."""


Group = Literal["choose", "understand", "language_models", "machine", "design", "data", "other"]
"""Purpose of a command, under which help lists it."""


class Command(NamedTuple):
    """Command that the core or a wing adds to the command line."""

    home: str
    """Module with a function of the command's name, or with a group `app`."""
    group: Group = "other"
    """Purpose under which help lists the command; a merged command is listed with the other one."""
    merged: str = ""
    """Command that answers the same kind of question; help lists this one beside it, with `--help all` only."""
    is_first: bool = False
    """True if help lists the command before others of its group."""
    is_advanced: bool = False
    """True if only `--help all` lists the command."""
    start: Mapping[str, str] = {}
    """Question of a new user -> the command line to type first, at the top of help."""


class Ask(NamedTuple):
    """Question that a wing adds to the workspace."""

    home: str
    """Module with the function that has the question's name."""
    keywords: str = ""
    """Name of a type in `domain.settings`, whose keywords set fields of the question's settings."""
    is_of_model: bool = False
    """True if the question's first argument is a model: a name, or a module with example inputs."""
    is_shared: bool = True
    """True if the package also exports the question as a function."""


class Wing(NamedTuple):
    """Additions of one wing, by name: a module is written `package.module`, an object `package.module:OBJECT`."""

    name: str
    commands: Mapping[str, Command] = {}
    questions: Mapping[str, Ask] = {}
    answers: Mapping[str, str] = {}
    """Question of the core -> module whose function of the same name answers it for models that the wing names."""
    tools: Mapping[str, str] = {}
    """Tool of the MCP server -> command."""
    figures: Mapping[str, tuple[str, str]] = {}
    """Figure -> (module, function) of the question that draws it."""
    parts: Mapping[str, str] = {}
    """Port -> object that the core requests at this extension point; see docs/extend.md."""
    queries: tuple[str, ...] = ()
    """Subfolders of `queries` whose row types are in the wing's module `generated.row`."""
    queries_folder: Path | None = None
    """Folder of the query files of a wing of another distribution; its subfolder `NAME_rule` has the wing's rules."""
    public: tuple[str, ...] = ()
    """Objects that the wing's package exports, beside the types of its questions."""
    top: tuple[str, ...] = ()
    """Objects of a built-in wing that `joulemap` itself exports, beside its questions as functions."""
    uses: tuple[str, ...] = ()
    """Names of wings that this wing requires; without them, this wing is left out."""


@cache
def list_wings() -> tuple[Wing, ...]:
    """Return all installed wings that add to the core and whose requirements are met: built-in ones first, then by
    name.
    """
    wings = {wing.name: wing for wing in (*_list_built_in(is_apart=False), *_list_installed())}
    while missing := [name for name, wing in wings.items() if not wings.keys() >= {*wing.uses}]:
        for name in missing:
            del wings[name]
    return tuple(wings.values())


def list_apart() -> tuple[Wing, ...]:
    """Return the built-in wings that add nothing to the core and whose requirements are met."""
    known = {wing.name for wing in list_wings()}
    return tuple(wing for wing in _list_built_in(is_apart=True) if known.issuperset(wing.uses))


def find_parts(port: str) -> Iterator[Any]:
    """Yield the objects that wings registered at a port, importing each."""
    for wing in list_wings():
        if address := wing.parts.get(port):
            yield load(address)


def describe_foreign(port: str) -> str:
    """Return the objects that wings of other distributions registered at a port, as text; empty without any."""
    wings = (wing for wing in list_wings() if wing.name not in BUILT_IN and port in wing.parts)
    return "".join(repr(load(wing.parts[port])) for wing in wings)


def load(address: str) -> Any:
    """Return the object at `package.module:OBJECT`."""
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)


def _list_built_in(*, is_apart: bool) -> Iterator[Wing]:
    for name in BUILT_IN:
        if (name in APART) != is_apart:
            continue
        module = f"joulemap.wing.{name}"
        try:
            yield import_module(module).register()
        except ModuleNotFoundError as error:
            if error.name not in (module, "joulemap.wing"):
                raise


def _list_installed() -> Iterator[Wing]:
    for one in list_entry_points(GROUP):
        try:
            yield load(one.address)()
        except Exception as error:
            import logging

            logging.getLogger("joulemap").warning(
                "the wing %s is left out: %s: %s", one.name, type(error).__name__, error
            )
