"""Questions about a database: functions, each declared once and offered as a method of a workspace.

`QUESTIONS` names the module that defines each; wings add theirs. A module is imported at the first access to one of its
questions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache, cached_property, wraps
from inspect import Parameter, isgeneratorfunction, signature, unwrap
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, cast

from joulemap.system.errors import UsageError
from joulemap.system.wing import list_wings, load

if TYPE_CHECKING:
    import torch

    ExampleInputs = torch.Tensor | tuple[Any, ...] | list[Any] | Mapping[str, Any]
    Ask = Callable[..., Any]


class Question:
    """Method that calls the function of the same name with the workspace's source as first argument."""

    def __init__(self, home: str, keywords: str = "", *, is_shared: bool = False) -> None:
        """Declare a function of the module `home`; `is_shared` says that the package exports it too.

        `keywords` names the type in `domain.settings` of the keywords that replace fields of the function's settings;
        empty if it takes no settings.
        """
        self.home, self.keywords, self.is_shared = home, keywords, is_shared

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, asker: object, _owner: type) -> Ask:
        return self.method if asker is None else MethodType(self.method, asker)

    @cached_property
    def method(self) -> Ask:
        """The question as a method of its class."""
        answer = load(f"{self.home}:{self.name}")
        ask = self._prepare(answer)

        @wraps(answer)
        def method(asker: Any, /, *args: Any, **keywords: Any) -> Any:
            return ask(asker._source, *args, **keywords)

        whole = signature(answer)
        parameters = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *list(whole.parameters.values())[1:]]
        if self.keywords:
            parameters.append(Parameter("keywords", Parameter.VAR_KEYWORD, annotation=f"Unpack[{self.keywords}]"))
        annotation = whole.return_annotation
        if isgeneratorfunction(unwrap(answer)):
            annotation = annotation.replace("Iterator", "AbstractContextManager", 1)
        shown = cast("Any", method)
        shown.__signature__ = whole.replace(parameters=parameters, return_annotation=annotation)
        shown.__qualname__ = f"{self.owner.__qualname__}.{self.name}"
        return method

    def share(self, find: Callable[[], object]) -> Ask:
        """Return the question as a function on the workspace that `find` returns."""

        @wraps(self.method)
        def ask(*args: Any, **keywords: Any) -> Any:
            return self.method(find(), *args, **keywords)

        whole, shown = signature(self.method), cast("Any", ask)
        shown.__signature__ = whole.replace(parameters=list(whole.parameters.values())[1:])
        shown.__qualname__ = self.name
        return ask

    def _prepare(self, answer: Ask) -> Ask:
        """Return the function adapted to the arguments that the workspace passes."""
        return self._with_settings(answer)

    def _with_settings(self, answer: Ask) -> Ask:
        """Return the function with the keywords of the question."""
        return _accept_keywords(answer) if self.keywords else answer


class ModelQuestion(Question):
    """Question about models, given by name or as an `nn.Module` with example inputs; also a function of the package.

    The wing that names a model may answer it in place of the core. A module is traced on the meta device: its weights,
    mode and device stay as they are. Raises UsageError for an argument that is neither a name nor a module, ModelError
    for a module that cannot be traced.
    """

    def __init__(self, home: str, keywords: str = "SettingsKeywords", *, is_shared: bool = True) -> None:
        super().__init__(home, keywords, is_shared=is_shared)

    def _prepare(self, answer: Ask) -> Ask:
        called = list(signature(answer).parameters)[1]

        def ask_about(source: object, /, *args: Any, **keywords: Any) -> Any:
            named = [keywords.pop(name) for name in (called, "module") if not args and name in keywords]
            if not (args or named):
                raise UsageError(f"{self.name} needs a model: a name, or a module with example inputs")
            model, *rest = (*args, *named)
            model = os.fspath(model) if isinstance(model, os.PathLike) else model
            if isinstance(model, str) or _are_names(model):
                if called == "model" and not isinstance(model, str):
                    raise UsageError(f"{self.name} takes one model; compare_models, sweep and report take several")
                from joulemap.plan.model_name import find_answer

                chosen = find_answer(answer, model) if isinstance(model, str) else answer
                return self._with_settings(chosen)(source, model, *rest, **keywords)
            from joulemap.plan.workload import trace_user_module

            if "example_inputs" in keywords:
                inputs = keywords.pop("example_inputs")
            else:
                inputs, *rest = rest or (None,)
            held = trace_user_module(model, inputs)
            name = held.request.model
            return self._with_settings(answer)(source, name, *rest, **{**keywords, "modules": {name: held}})

        return ask_about


@cache
def _accept_keywords(answer: Ask) -> Ask:
    """Return a function whose additional keywords replace fields of its settings."""
    parameters = signature(answer).parameters
    index, usual = list(parameters).index("settings"), parameters["settings"].default

    @wraps(answer)
    def ask(*args: Any, **keywords: Any) -> Any:
        fields = {name: keywords.pop(name) for name in tuple(keywords) if name not in parameters}
        given = args[index] if len(args) > index else keywords.pop("settings", usual)
        if not hasattr(given, "with_keywords"):
            raise UsageError(f"{answer.__name__} takes settings here, found {_hint(answer.__name__, given)}")
        settings = given.with_keywords(fields)
        if len(args) > index:
            return answer(*args[:index], settings, *args[index + 1 :], **keywords)
        return answer(*args, settings=settings, **keywords)

    return ask


def _hint(name: str, given: object) -> str:
    """Return a hint where an argument given in index of settings belongs, such as a chip or a second example input."""
    if isinstance(given, str) or _are_names(given):
        return f"{given!r}; name hardware by keyword: {name}(model, hardware={given!r})"
    return f"a {type(given).__name__}; several example inputs are one tuple: {name}(module, (a, b))"


def _are_names(model: object) -> bool:
    return isinstance(model, list | tuple | set | frozenset | dict) and all(isinstance(name, str) for name in model)


QUESTIONS: Final[Mapping[str, Question]] = {
    "compare": ModelQuestion("joulemap.ask.compare"),
    "compare_models": ModelQuestion("joulemap.ask.contest"),
    "report": ModelQuestion("joulemap.ask.report"),
    "compare_parts": ModelQuestion("joulemap.ask.contest"),
    "compare_breakdowns": ModelQuestion("joulemap.ask.analyze"),
    "analyze": ModelQuestion("joulemap.ask.analyze", "RunKeywords"),
    "break_down": ModelQuestion("joulemap.ask.analyze", "RunKeywords"),
    "explain": ModelQuestion("joulemap.ask.explain", "RunKeywords"),
    "sensitivity": ModelQuestion("joulemap.ask.constant"),
    "flip": ModelQuestion("joulemap.ask.flip", "RunKeywords"),
    "evidence": ModelQuestion("joulemap.ask.constant"),
    "architectures": ModelQuestion("joulemap.ask.architecture"),
    "pareto": ModelQuestion("joulemap.ask.pareto"),
    "plot": ModelQuestion("joulemap.show.plot", ""),
    "recommend": ModelQuestion("joulemap.ask.recommend"),
    "cost": ModelQuestion("joulemap.ask.cost"),
    "measure": Question("joulemap.ask.measure", "RunKeywords"),
    "measure_host": Question("joulemap.ask.measure"),
    "measure_parts": Question("joulemap.ask.measure"),
    "modules": ModelQuestion("joulemap.ask.model", "RunKeywords"),
    "evaluate": ModelQuestion("joulemap.plan.stored_runs"),
    "run": Question("joulemap.ask.record", is_shared=True),
    "workload": ModelQuestion("joulemap.ask.model", "ModelKeywords"),
    "operators": ModelQuestion("joulemap.ask.model", "ModelKeywords"),
    "profile": ModelQuestion("joulemap.ask.model", "ModelKeywords"),
    "edp": ModelQuestion("joulemap.ask.edp", "RunKeywords"),
    "fusion": ModelQuestion("joulemap.ask.fusion", "RunKeywords"),
    "utilization": ModelQuestion("joulemap.ask.utilization"),
    "sweep": ModelQuestion("joulemap.ask.sweep"),
    "query": Question("joulemap.ask.query"),
    "list_queries": Question("joulemap.ask.query"),
    "sql": Question("joulemap.ask.query", is_shared=True),
    "stream": Question("joulemap.ask.query"),
    "stream_query": Question("joulemap.ask.query"),
    "describe": Question("joulemap.ask.query"),
    "hardware_list": Question("joulemap.ask.listing"),
    "hardware": Question("joulemap.ask.hardware", is_shared=True),
    "describe_hardware": Question("joulemap.ask.hardware"),
    "energy_reference": Question("joulemap.ask.hardware"),
    "sanity": Question("joulemap.ask.sanity"),
    "measurements": Question("joulemap.ask.measurement"),
    "served_measurements": Question("joulemap.ask.measurement"),
    "measurement_tables": Question("joulemap.ask.measurement"),
    "import_measurements": Question("joulemap.ask.measurement"),
    "validate": Question("joulemap.ask.validate"),
    "serving_refusals": Question("joulemap.ask.validate"),
    "validate_operators": Question("joulemap.ask.validate"),
    "energy_evidence": Question("joulemap.ask.validate"),
    "calibrate": Question("joulemap.ask.calibrate"),
    "difference": Question("joulemap.ask.diff"),
    "diff": Question("joulemap.ask.diff", "SettingsKeywords", is_shared=True),
    "export_runs": Question("joulemap.ask.database"),
    "import_runs": Question("joulemap.ask.database"),
    "export": ModelQuestion("joulemap.ask.export", "RunKeywords"),
    "check": Question("joulemap.ask.database"),
    "recover": Question("joulemap.ask.database"),
    "info": Question("joulemap.ask.database"),
    "migrate": Question("joulemap.ask.database"),
}
"""Questions of the core by name."""


def list_questions() -> dict[str, Question]:
    """Return the questions of the core and of wings by name."""
    wings = {
        name: (ModelQuestion if one.is_of_model else Question)(one.home, one.keywords, is_shared=one.is_shared)
        for wing in list_wings()
        for name, one in wing.questions.items()
    }
    return {**QUESTIONS, **wings}
