"""What an engine adds to a pass of a language model, whose ledger is of devices alone."""

from __future__ import annotations

from collections.abc import Sequence

from joulemap.present.cell import show_quantity


def say_engine(model: str, batch: int, runs: Sequence[tuple[str, float, float]]) -> list[str]:
    """Return what the engine that a pass names adds to it on each hardware; nothing of what is no pass of one.

    `runs` have the name of a hardware, seconds of the pass there, and watts that it draws while it waits.
    """
    if "engine=" not in model:
        return []
    from joulemap.catalog.stack import find_engine
    from joulemap.decoder.name import find_pass
    from joulemap.domain.settings import MOST_GUESSED

    asked = find_pass(model)
    if asked is None or not asked.step.engine:
        return []
    engine, stage = find_engine(asked.step.engine), asked.step.cut(asked.decoder)
    launch_s = engine.launch(
        stage.layer_count, stage.expert_count, *(["prompt"] if asked.step.tokens > 1 + MOST_GUESSED else [])
    )
    told = []
    for name, seconds, idle_w in runs:
        whole = float(engine.add_host(seconds, launch_s, batch))
        if whole > seconds:
            more = show_quantity(whole - seconds, "s")
            cost = show_quantity((whole - seconds) * idle_w, "J")
            told.append(f"{more} and {cost} on {name}, {show_quantity(whole, 's')} in all")
    name = f"{engine.label} {engine.date}"
    lines = [f"{name} adds its host's time to the pass: {'; '.join(told)}"] if told else []
    if any(one.startswith(("memory_rate", "compute_rate")) for one in engine.coefficients):
        lines.append(f"{name}'s own kernels reach less of memory and units than these, which `llm` counts")
    return lines


def find_runtime(engine: str) -> str:
    """Return how an engine launches a pass; UnknownNameError or UsageError for one that is not known."""
    from joulemap.catalog.stack import find_engine

    return find_engine(engine).runtime
