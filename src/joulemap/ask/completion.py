"""List names for shell completion from the names of data files; no file is parsed and no database opened."""

from __future__ import annotations

from joulemap.catalog.digest import box_files, own_files, shipped_files
from joulemap.catalog.sheet import load_models
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.operator.name import complete
from joulemap.plan.model_name import list_names
from joulemap.system.errors import CatalogueError
from joulemap.system.package import list_packages


def list_hardware_names() -> tuple[str, ...]:
    """Return the names of classes, hardware and boxes; a user's own file counts by its file name without ending."""
    try:
        own = own_files()
    except CatalogueError:
        own = ()
    supplied = (path for package in list_packages() for path in package.list_hardware())
    return (*CLASS_HARDWARE, *(path.stem for path in (*shipped_files(), *box_files(), *own, *supplied)))


def list_model_names(typed: str) -> tuple[str, ...]:
    """Return the known models, their aliases, and completions of a partly typed name with brackets."""
    models = load_models()
    aliases = (alias for entry in models.values() for alias in entry.aliases)
    return (*models, *aliases, *(one for names in list_names() for one in names.complete(typed)), *complete(typed))
