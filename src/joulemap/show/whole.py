"""Tables and figure of whole runs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.ask.decision import find_decision
from joulemap.ask.fact import Facts
from joulemap.ask.utilization import BOUNDS
from joulemap.ask.whole import BreakdownAnswer
from joulemap.show.choice import describe_beyond
from joulemap.show.layout import lay_beside
from joulemap.show.page import Figures, draw_figure
from joulemap.show.part import describe_energies, describe_least
from joulemap.show.present.cell import mark_projected, show_busy_units
from joulemap.show.present.document import Grid
from joulemap.show.present.template import Template
from joulemap.show.run import prove_parts
from joulemap.show.shape import Part, Shape

NAME: Final = Template("[{model} on ]{name}")
FIGURES: Final = (
    "energy | {energy_j:J}",
    "energy per inference | {energy_per_inference_j:J}",
    "- compute | {compute_energy_j:J}",
    "- memory | {memory_energy_j:J}",
    "- control | {control_energy_j:J}",
    "- static | {static_energy_j:J}",
    "overhead | {overhead_energy_j:J}",
    "latency | {latency_s:s}",
    "throughput | {throughput_per_s:1/s}",
    "average power | {average_power_w:W}",
    "energy x delay | {edp_js:Js}",
    "compute utilization | {compute_utilization_fraction:%}",
    "bandwidth utilization | {bandwidth_utilization_fraction:%}",
    "peak memory | {peak_memory_bytes:B}",
)
MORE: Final = (
    "activations | {activation_bytes:B}",
    "weights | {weight_bytes:B}",
    "memory capacity | {memory_capacity_bytes:B}",
    *(f"{bound}-bound subgraphs | {{{bound}_bound_count}}" for bound in BOUNDS),
    *(f"{bound}-bound time | {{{bound}_time_fraction:%}}" for bound in BOUNDS),
)
STEPS: Final = ("analyze {model} {hardware}", "explain {model} {other} {hardware}[ --metric {metric}]")

SHOWN_RUNS: Final = 6
"""Maximum runs in the caption of a figure; its table lists all."""


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: named hardware that cannot be bought and would win, and the largest category of each run."""
    return [*describe_beyond(facts), *describe_energies(facts)]


def choose(answer: BreakdownAnswer, **_: Any) -> Mapping[str, Any]:
    """Return the steps on the runs of the decision, or on the first two of the first model."""
    first, decision = answer.rows[0].model, find_decision(answer.facts)
    ran = {row.run_id: answer.scope.spell(row.hardware) for row in answer.answered if row.model == first}
    kept = [ran[one] for one in decision.runs if one in ran] if decision is not None else []
    spelled = [*dict.fromkeys((*kept, *ran.values()))][:2]
    named = dict(zip(("hardware", "other"), spelled, strict=False))
    metric = "" if answer.facts.asked[:1] == ("energy",) else "".join(answer.facts.asked[:1])
    return {"steps": STEPS[: len(spelled)], "model": answer.scope.model, "metric": metric, **named}


def lay_figures(answer: BreakdownAnswer, figures: Sequence[str]) -> Grid:
    """Return a grid with a row per figure and a column per run. Narrow terminals keep the runs with the lowest
    energies.
    """
    rows = answer.answered.rows
    models = [row.model if len(answer.scope.models) > 1 else "" for row in rows]
    names = [
        NAME(model=model, name=mark_projected(row.hardware, answer.projected))
        for model, row in zip(models, rows, strict=True)
    ]
    frugal = sorted(range(len(rows)), key=lambda place: rows[place].energy_fj or 0)
    return lay_beside(("quantity per batch", *names), figures, rows, keep=[names[place] for place in frugal])


def lay_more(answer: BreakdownAnswer, _: Any) -> Grid:
    """Return the grid of further figures."""
    drawn = lay_figures(answer, MORE)
    return attrs.evolve(drawn, rows=(*drawn.rows, ("units", *map(show_busy_units, answer.answered))))


def divide_trees(answer: BreakdownAnswer) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Yield each run with its energy by category and action."""
    for row in answer.answered:
        own = answer.tree.with_rows(branch for branch in answer.tree if branch.run_id == row.run_id)
        name = mark_projected(row.hardware, answer.projected)
        yield {"name": name, "of": row.model, "proof": prove_parts("actions", own, row)}, own


def draw(answer: BreakdownAnswer) -> Figures:
    """Return the energy of each run by common category; empty if every run was refused."""
    if not answer.tree.rows:
        return ()
    facts = "; ".join(describe_energies(answer.facts, SHOWN_RUNS))
    texts = {"label": "{model} on {hardware}" if len(answer.scope.models) > 1 else "{hardware}"}
    return (draw_figure(answer.scope, "breakdown", answer.tree, None, f"{facts}.", texts),)


PAGES: Final = {
    BreakdownAnswer: Shape(
        first=describe_least,
        why=list_reasons,
        choices=choose,
        draw=draw,
        parts=(
            Part(table="answered", make=lambda answer, _: lay_figures(answer, FIGURES), counts_left_out=True),
            Part(title="More figures", table="rows", make=lay_more),
            Part(
                title="Energy of {of} on {name}",
                table="tree",
                divide=divide_trees,
                columns="category | *category_fraction | *component | *action | *part | *energy_j | *share_fraction",
                draw=lambda _, grid, __, *, proof, **___: (grid, proof),
            ),
        ),
    )
}
