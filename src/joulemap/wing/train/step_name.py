"""Names of training steps, a model and its recipe in brackets, as models of the core.

    train(resnet50)                                       one device, AdamW
    train(resnet50,optimizer=momentum,devices=8)          share of one of eight devices
    train(llama-3.1-8b(tokens=2048,logits=all),devices=8,zero=1,recompute=true)

A name has one canonical spelling, like the name of a single operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Final

from joulemap.domain import read_arguments
from joulemap.plan import ModelNames
from joulemap.system import UsageError
from joulemap.trace.version import closed_version

if TYPE_CHECKING:
    from joulemap.domain import Settings
    from joulemap.physics import Workload
    from joulemap.plan import Model, Talk
    from joulemap.wing.train.training.recipe import Recipe


EXAMPLE: Final = "train(resnet50,optimizer=momentum,devices=8)"

_CALL: Final = re.compile(r"\s*train\s*\((?P<inside>.*)\)\s*", re.DOTALL | re.IGNORECASE)


def read_step(name: str, given: Iterable[tuple[str, str]] = ()) -> tuple[str, Recipe]:
    """Return the model and the recipe in a step's name, with more arguments added; UsageError for an invalid name."""
    from joulemap.wing.train.training.recipe import ARGUMENTS, Recipe

    match = _CALL.fullmatch(name)
    parts = _split(match["inside"]) if match else []
    if not parts or not parts[0] or _CALL.fullmatch(parts[0]):
        raise UsageError(f"cannot read {name!r:.60}: write {EXAMPLE}")
    values = read_arguments("train", name, f"({','.join(parts[1:])})", ARGUMENTS, EXAMPLE, given)
    return parts[0], Recipe.of(values)


def _split(inside: str) -> list[str]:
    """Return the parts of a text, split at commas outside brackets."""
    parts, depth = [""], 0
    for letter in inside:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


CODE: Final = ("wing/train/training", "physics/fuse")


@cache
def training_version() -> str:
    """Return a digest of the code that derives training steps, as sixteen hexadecimal digits.

    It is part of a step's key, together with the key of the model.
    """
    return closed_version(*CODE)


START: Final = "train("
"""Beginning of a training step's name, in any case."""

KIND: Final = "training"
"""Kind of workload request that stands for a training step."""


class StepNames(ModelNames):
    """Recognition of training steps as model names."""

    def claims(self, name: str, settings: Settings) -> bool:
        """Return True for the name of a training step."""
        del settings
        return self.is_name(name)

    def find_claimed(self, name: str, settings: Settings, batch: int | None) -> Model:
        """Return the training step of a model; raises like `find_model`, UsageError for a single operator."""
        from joulemap.construct import ModelRequest
        from joulemap.plan import Model, find_model
        from joulemap.plan.workload import name_model

        inner, recipe = read_step(name)
        model = find_model(inner, settings, batch)
        request = model.request
        if request.kind == "operator":
            raise UsageError(f"{request.model} is a single operator, which is not trained: name a model")
        return Model(
            request=ModelRequest(
                model=recipe.spell(name_model(request)),
                kind=KIND,
                batch=request.batch,
                is_default=True,
                content_digest=model.workload_keys[-1].replace(":", "-"),
                version=training_version(),
            ),
            retrace=settings.retrace,
            may_run=model.may_run,
            base=model,
            names=self,
        )

    def is_name(self, word: str) -> bool:
        """Return True for `train(...)`."""
        return word.lstrip().lower().startswith(START)

    def describe(self, model: Model, talk: Talk) -> Workload:
        """Return the workload of a step, derived from the shipped or traced workload of its model."""
        from joulemap.plan import find_workload_of
        from joulemap.wing.train.training.step import describe_training

        assert model.base is not None
        _, recipe = read_step(model.request.model)
        inner = find_workload_of(model.base, talk)
        return describe_training(inner, recipe, model.request.model, model.request.key)


NAMES: Final = StepNames()
