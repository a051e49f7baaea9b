"""Model names that wings add to those of the catalogue and of files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from joulemap.system.wing import find_parts, list_wings, load

if TYPE_CHECKING:
    from joulemap.domain.catalogue import ModelEntry, ShippedWorkload
    from joulemap.domain.settings import Settings
    from joulemap.physics.record.configuration import Precision
    from joulemap.physics.record.workload import Workload
    from joulemap.plan.model import Model
    from joulemap.plan.source import Talk

PORT: Final = "models"

JOIN: Final = " + "
"""Separator between the models of a name that joins several."""

Ask = TypeVar("Ask", bound=Callable[..., Any])


class ModelNames:
    """Model names of one wing, which registers an instance of a subclass at `models`.

    `is_name` reads no file and imports no module, because shells call it while a user types.
    """

    prefixes: tuple[str, ...] = ()
    """Texts before a colon that only names of this wing have."""

    def claims(self, name: str, settings: Settings) -> bool:
        """Return True if a name has a form that only this wing uses, before other meanings are tried."""
        del name, settings
        return False

    def find_claimed(self, name: str, settings: Settings, batch: int | None) -> Model:
        """Return the model of a claimed name; raises like `plan.workload.find_model`."""
        raise NotImplementedError(name)

    def find(self, name: str, settings: Settings, batch: int | None) -> Model | None:
        """Return the model of an unclaimed name; None if the name is not this wing's. Raises like `find_model`."""
        del name, settings, batch
        return None

    def is_name(self, word: str) -> bool:
        """Return True if a word is a name of this wing."""
        del word
        return False

    def list_names(self) -> Sequence[str]:
        """Return the known names, for suggestions in errors."""
        return ()

    def suggest(self, name: str) -> tuple[Sequence[str], str]:
        """Return names that an unknown name may mean, with a hint for the error; empty without any."""
        del name
        return (), ""

    def complete(self, typed: str) -> Sequence[str]:
        """Return the completions of a partly typed name."""
        del typed
        return ()

    def list_shipped(self) -> Mapping[str, tuple[ModelEntry, ShippedWorkload]]:
        """Return name -> (model, workload) for `model list`."""
        return {}

    def describe(self, model: Model, talk: Talk) -> Workload:
        """Return the workload that a model's name defines; UsageError for a workload that is too large."""
        raise NotImplementedError(model.request.model)

    def list_precisions(self, model: str) -> tuple[tuple[Precision, ...], tuple[str, ...]] | None:
        """Return the precisions in which a model and its weights are published; None if unknown."""
        del model
        return None

    def apply_published(
        self, models: tuple[str, ...], settings: Settings, shared: Collection[str]
    ) -> tuple[tuple[str, ...], Settings]:
        """Return models and settings; values that the question does not state come from the models' files.

        `shared` are the precisions that all hardware of the question has. Raise UsageError if the files state different
        values.
        """
        del shared
        return models, settings

    def list_parts(self, model: str) -> tuple[str, ...] | None:
        """Return the models that a name joins, which can be named alone; None for the name of a single model."""
        del model
        return None

    def count_in(self, model: str) -> str:
        """Return the unit of a model's evaluations, to which a plural adds an s: output token; empty for inference."""
        del model
        return ""

    def find_batch(self, model: str) -> int | None:
        """Return the only batch size of a model; None if it takes any. Raises ModelError for a broken file."""
        del model
        return None

    def find_checkpoint(self, model: str) -> str:
        """Return the name of a model in its publisher's hub; empty if unknown."""
        del model
        return ""

    def find_phase(self, model: str) -> str:
        """Return the part of a request that a model is, as the commands of tools call it; empty for any other model."""
        del model
        return ""

    def describe_evaluation(self, models: Sequence[str], hardware: Sequence[str]) -> tuple[tuple[str, str] | None, str]:
        """Return ((model, meaning of one evaluation), suggested question) for the first model whose evaluation needs
        explaining.

        Return (None, "") if there is no such model.
        """
        del models, hardware
        return None, ""

    def describe_unread(self, models: Sequence[str]) -> list[str]:
        """Return a note for each part of the models' checkpoints that predictions ignore."""
        del models
        return []


UNKNOWN: Final = ModelNames()


@cache
def list_names() -> tuple[ModelNames, ...]:
    """Return the `ModelNames` of each wing."""
    return tuple(find_parts(PORT))


def find_names(model: str) -> ModelNames:
    """Return the `ModelNames` of the wing that names a model; one that knows nothing for any other model."""
    return next((names for names in list_names() if names.is_name(model)), UNKNOWN)


def is_name(word: str) -> bool:
    """Return True if a word names a model of a wing."""
    return find_names(word) is not UNKNOWN


def find_answer(usual: Ask, model: str) -> Ask:
    """Return the function that answers a question about a model: `usual`, or that of the wing that names the model."""
    for wing in list_wings():
        home = wing.answers.get(usual.__name__)
        if home and load(wing.parts[PORT]).is_name(model):
            answer: Ask = load(f"{home}:{usual.__name__}")
            return answer
    return usual


def find_batch(model: str) -> int | None:
    """Return the only batch size that a model takes; None for a model that takes any."""
    return find_names(model).find_batch(model)


def find_precisions(model: str) -> tuple[tuple[Precision, ...], tuple[str, ...]] | None:
    """Return the precisions in which a model and its weights are published; None if unknown."""
    return next(filter(None, (names.list_precisions(model) for names in list_names())), None)


def is_prefix(word: str) -> bool:
    """Return True if a colon after a word makes the name of a wing's model."""
    return any(word in names.prefixes for names in list_names())


def suggest(name: str) -> tuple[Sequence[str], str]:
    """Return names that a wing suggests for an unknown name, with a hint for the error; empty without any."""
    suggestions = (names.suggest(name) for names in list_names())
    return next((one for one in suggestions if any(one)), ((), ""))


def list_known() -> tuple[str, ...]:
    """Return the model names that wings know."""
    return tuple(name for names in list_names() for name in names.list_names())
