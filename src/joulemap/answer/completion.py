"""Names that a word may become, from the names of data files: nothing is parsed, and no database is opened."""

from __future__ import annotations

from joulemap.catalog.digest import box_files, own_files, shipped_files
from joulemap.catalog.sheet import load_models
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.operator.name import complete
from joulemap.plan.name import list_names
from joulemap.system.errors import CatalogueError


def list_hardware_names() -> tuple[str, ...]:
    """Return the classes and ids of hardware and boxes; a file of a person's own counts by its name."""
    try:
        own = own_files()
    except CatalogueError:
        own = ()
    return (*CLASS_HARDWARE, *(path.stem for path in (*shipped_files(), *box_files(), *own)))


def list_model_names(typed: str) -> tuple[str, ...]:
    """Return the models that are known by name, and how one with brackets that is being typed may go on."""
    return (*load_models(), *(one for names in list_names() for one in names.complete(typed)), *complete(typed))


def list_engines() -> tuple[str, ...]:
    """Return what serves language models."""
    from joulemap.catalog.stack import stack_names

    return stack_names()
