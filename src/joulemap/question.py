"""A method about a model: one known by name, or a module of this program with example inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from joulemap.errors import UsageError

if TYPE_CHECKING:
    import torch

    ExampleInputs = torch.Tensor | tuple[Any, ...] | list[Any] | Mapping[str, Any]

Name_contra = TypeVar("Name_contra", contravariant=True)
Name = TypeVar("Name")
Asker = TypeVar("Asker")
P = ParamSpec("P")
Answered = TypeVar("Answered")
Answered_co = TypeVar("Answered_co", covariant=True)


class Asked(Protocol[Name_contra, P, Answered_co]):
    """A question that is asked of one workspace."""

    @overload
    def __call__(self, model: Name_contra, /, *args: P.args, **kwargs: P.kwargs) -> Answered_co: ...

    @overload
    def __call__(
        self, module: torch.nn.Module, example_inputs: ExampleInputs | None, /, *args: P.args, **kwargs: P.kwargs
    ) -> Answered_co: ...


class Question(Generic[Asker, Name, P, Answered]):
    """A question as type checkers see it in its class; it is a function."""

    @overload
    def __get__(self, asker: None, owner: type[Asker]) -> Question[Asker, Name, P, Answered]: ...

    @overload
    def __get__(self, asker: Asker, owner: type[Asker]) -> Asked[Name, P, Answered]: ...

    def __get__(self, asker: Asker | None, owner: type[Asker]) -> Any:
        """Return the question, asked of a workspace where there is one."""
        raise NotImplementedError


def about_model(
    method: Callable[Concatenate[Asker, Name, P], Answered],
) -> Question[Asker, Name, P, Answered]:
    """Return a method that also takes an `nn.Module`, with example inputs behind it, in place of a name.

    The module is traced on the meta device: its weights, mode and device stay as they are. Raises UsageError for what
    is neither a name nor a module, ModelError for a module that cannot be traced.
    """
    called = list(signature(method).parameters)[1]

    @wraps(method)
    def ask(asker: Asker, *args: Any, **keywords: Any) -> Answered:
        call = cast("Callable[..., Answered]", method)
        named = [keywords.pop(name) for name in (called, "module") if not args and name in keywords]
        if not (args or named):
            raise UsageError(f"{method.__name__} needs a model: a name, or a module with example inputs")
        model, *rest = (*args, *named)
        if isinstance(model, str) or _are_names(model):
            return call(asker, model, *rest, **keywords)
        from joulemap.plan.workload import hold_module

        if "example_inputs" in keywords:
            inputs = keywords.pop("example_inputs")
        else:
            inputs, *rest = rest or (None,)
        held = hold_module(model, inputs)
        name = held.request.model
        return call(asker, name, *rest, **{**keywords, "modules": {name: held}})

    return cast("Question[Asker, Name, P, Answered]", ask)


def on_default(question: Question[Asker, Name, P, Answered], find: Callable[[], Asker]) -> Asked[Name, P, Answered]:
    """Return a question as a function that asks it of the workspace which `find` finds."""
    method = cast("Callable[..., Answered]", question)

    @wraps(method)
    def ask(*args: Any, **keywords: Any) -> Answered:
        return method(find(), *args, **keywords)

    asked = signature(method)
    _, *parameters = asked.parameters.values()
    ask.__signature__ = Signature(parameters, return_annotation=asked.return_annotation)  # type: ignore[attr-defined]
    return cast("Asked[Name, P, Answered]", ask)


def _are_names(model: object) -> bool:
    return isinstance(model, list | tuple | set | frozenset | dict) and all(isinstance(name, str) for name in model)
