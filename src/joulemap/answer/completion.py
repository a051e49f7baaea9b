"""Names that a word may become, from the names of data files: nothing is parsed, and no database is opened."""

from __future__ import annotations

from joulemap.catalog.digest import box_files, own_files, shipped_files
from joulemap.catalog.sheet import load_models
from joulemap.decoder.name import complete as complete_passes
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.operator.name import complete
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
    return (*load_models(), *complete_passes(typed), *complete(typed))


def list_engines() -> tuple[str, ...]:
    """Return what serves language models."""
    from joulemap.catalog.stack import stack_names

    return stack_names()


def list_decoder_names() -> tuple[str, ...]:
    """Return the language models that are known by name."""
    from joulemap.decoder.name import list_decoders

    return list_decoders()


def list_optimizers() -> tuple[str, ...]:
    """Return what changes weights of models that are trained."""
    from joulemap.training.recipe import OPTIMIZERS

    return tuple(OPTIMIZERS)
