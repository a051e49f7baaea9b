"""Plugin of pytest that fails a test whose model needs more energy or time than a limit.

    test ─returns, or takes as `model`─► module and inputs, or a name ─► cost ─► above the limit: the test fails

`pytest -p joulemap.wing.embed.plugin` loads it. It is no entry point of pytest, which would then rewrite the assertions
of all of joulemap. It imports the model of the chips when a marked test runs.
"""

from __future__ import annotations

import functools
from collections.abc import Generator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from joulemap.wing.embed.cost import InferenceCost

MARK: Final = "joules"

LIMITS: Final = ("max", "latency", "strict")
"""Arguments of the mark that set its limits; the others say how the model runs."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", "joules(max, on): fail if the model of the test needs more energy on this chip")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Compare the model of a marked test with its limits after the test itself."""
    marks = list(pyfuncitem.iter_markers(MARK))
    if not marks:
        return (yield)
    test = pyfuncitem.obj
    returned: list[object] = []

    @functools.wraps(test)
    def call(*args: object, **keywords: object) -> None:
        returned.append(test(*args, **keywords))

    pyfuncitem.obj = call
    try:
        done = yield
    finally:
        pyfuncitem.obj = test
    model = pyfuncitem.funcargs.get("model") if returned == [None] else returned[0]
    _check(pyfuncitem, model, marks)
    return done


def _check(item: pytest.Function, model: object, marks: list[pytest.Mark]) -> None:
    """Fail the test with one line per limit that its model exceeds."""
    from joulemap.system import JoulemapError
    from joulemap.wing.embed.cost import predict_cost, read_model

    try:
        work = read_model(model)
        lines = []
        for mark in marks:
            cost = predict_cost(work, **{name: one for name, one in mark.kwargs.items() if name not in LIMITS})
            item.user_properties += [
                (f"{cost.hardware}.{name}", getattr(cost, name)) for name in ("energy_per_inference_j", "latency_s")
            ]
            faults = _compare(cost, **{name: mark.kwargs[name] for name in LIMITS if name in mark.kwargs})
            lines += [f"{cost.model} {one}; explained by {_explain(cost, isinstance(model, str))}" for one in faults]
    except JoulemapError as error:
        lines = [f"{MARK}: {error}"]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


def _compare(cost: InferenceCost, max: str = "", latency: str = "", strict: bool = False) -> list[str]:  # noqa: A002
    """Return a text for each limit that a cost exceeds; UsageError without a limit."""
    from joulemap.system import UsageError
    from joulemap.wing.embed.cost import read_limit

    most_j, most_s = read_limit("max", max, "J"), read_limit("latency", latency, "s")
    if most_j is None and most_s is None:
        raise UsageError('state a limit: max="40 mJ" or latency="5 ms"')
    least_j = cost.energy_per_inference_j if strict else cost.energy_per_inference_low_j
    least_s = cost.latency_s if strict else cost.latency_low_s
    setting = f"{cost.hardware} ({cost.precision}, batch {cost.batch}, {cost.runtime})"
    texts = []
    if most_j is not None and least_j > most_j:
        texts.append(f"needs {cost.energy_text} per inference on {setting}, more than {max}")
    if most_s is not None and least_s > most_s:
        texts.append(f"takes {cost.latency_text} per batch on {setting}, more than {latency}")
    return texts


def _explain(cost: InferenceCost, is_named: bool) -> str:
    """Return the command, or for a module the call, that breaks the cost down."""
    chip, precision, runtime = cost.hardware, cost.precision, cost.runtime
    if is_named:
        return (
            f"`joulemap analyze {cost.model} {chip} --precision {precision} --batch {cost.batch} --runtime {runtime}`"
        )
    return f'`joulemap.analyze(module, inputs, "{chip}", precision="{precision}", runtime="{runtime}")`'
