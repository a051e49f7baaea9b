"""Names of models that wings add to those of the catalogue, of files and of hubs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from joulemap.system.wing import find_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from joulemap.domain.catalogue import ModelEntry, ShippedWorkload
    from joulemap.domain.configuration import Precision
    from joulemap.domain.settings import Settings
    from joulemap.domain.workload import Workload
    from joulemap.plan.model import Model
    from joulemap.plan.source import Talk

PORT: Final = "models"


class ModelNames:
    """Names of models that a wing knows; it registers an instance of a subclass at `models`.

    Nothing is read or imported to ask whether a word is a name: shells ask while it is typed.
    """

    def claims(self, name: str, settings: Settings) -> bool:
        """Return True if the form of a name makes it one of these, before any other meaning is tried."""
        del name, settings
        return False

    def find_claimed(self, name: str, settings: Settings, batch: int | None) -> Model:
        """Return the model of a name that is claimed; raises as `plan.workload.find_model`."""
        raise NotImplementedError(name)

    def find(self, name: str, settings: Settings, batch: int | None) -> Model | None:
        """Return the model of a name that nothing claims; None for one of others. Raises as `find_model`."""
        del name, settings, batch
        return None

    def is_name(self, word: str) -> bool:
        """Return True if a word is a name of these."""
        del word
        return False

    def list_names(self) -> Sequence[str]:
        """Return the names that are known, for errors to offer."""
        return ()

    def complete(self, typed: str) -> Sequence[str]:
        """Return how a name that is being typed may go on."""
        del typed
        return ()

    def list_shipped(self) -> Mapping[str, tuple[ModelEntry, ShippedWorkload]]:
        """Return name -> model and workload as `model list` has them."""
        return {}

    def describe(self, model: Model, talk: Talk) -> Workload:
        """Return the workload of a model of these, which follows from its name; UsageError for one too large."""
        raise NotImplementedError(model.request.model)

    def list_precisions(self, model: str) -> tuple[tuple[Precision, ...], tuple[str, ...]] | None:
        """Return the precisions that a model is published for and those of its weights; None where none are known."""
        del model
        return None

    def count_in(self, model: str) -> str:
        """Return what evaluations of a model are counted in, such as output tokens; empty for inferences."""
        del model
        return ""

    def describe_evaluation(self, models: Sequence[str], hardware: Sequence[str]) -> tuple[tuple[str, str] | None, str]:
        """Return (model, what one evaluation of it is) and what to ask instead, of the first that needs to be told."""
        del models, hardware
        return None, ""

    def describe_unread(self, models: Sequence[str]) -> list[str]:
        """Return what of the checkpoints of models is not counted."""
        del models
        return []

    def describe_engine(self, model: str, batch: int, runs: Sequence[tuple[str, float, float]]) -> list[str]:
        """Return what software adds to runs (hardware, seconds, idle watts) that their ledgers lack."""
        del model, batch, runs
        return []


def list_names() -> list[ModelNames]:
    """Return the names of all wings."""
    return list(find_parts(PORT))


def is_name(word: str) -> bool:
    """Return True if a word names a model of a wing."""
    return any(names.is_name(word) for names in list_names())


def list_known() -> tuple[str, ...]:
    """Return the names of models that wings know."""
    return tuple(name for names in list_names() for name in names.list_names())
