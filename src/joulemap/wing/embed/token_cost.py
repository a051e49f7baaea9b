"""Energy and carbon of one token of language models, as a table for leaderboards.

mteb (issue 4368, pull request 4878) and EcoLogits (0.11.3) state grams of CO2 equivalent from watt-hours per token, a
power usage effectiveness and the carbon intensity of a grid. This table states the same with intervals.
"""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap import __version__
from joulemap.catalog.sheet import find_region
from joulemap.prediction import check_count, check_names, read_numbers
from joulemap.system import UnsupportedError, UsageError, frozen, write_text
from joulemap.wing.llm.serve import Passes, StepPredictor, evaluate_steps, predict_step

J_PER_KWH: Final = 3.6e6

MILLION: Final = 1e6


@frozen(kw_only=True)
class TokenCost:
    """Energy and carbon per token of one model on one chip; fields are columns of the table."""

    model: str
    hardware: str
    engine: str
    devices: int
    """Chips that serve the model together; energies are those of all."""
    batch: int
    """Sequences that get an output token together."""
    context_tokens: int
    """Tokens of the prompt, and in the KV cache before the output token."""
    prompt_token_j: float | None = None
    """Energy per token of a prompt at the boundary of the board; None if refused."""
    prompt_token_low_j: float | None = None
    """Lower end of the 80 % interval."""
    prompt_token_high_j: float | None = None
    output_token_j: float | None = None
    output_token_low_j: float | None = None
    output_token_high_j: float | None = None
    prompt_gco2_per_million: float | None = None
    """Grams of CO2 equivalent per million tokens, with the power usage effectiveness."""
    prompt_gco2_per_million_low: float | None = None
    prompt_gco2_per_million_high: float | None = None
    output_gco2_per_million: float | None = None
    output_gco2_per_million_low: float | None = None
    output_gco2_per_million_high: float | None = None
    region: str
    """Grid region, whose intensity counts as exact."""
    gco2_per_kwh: float
    grid_year: int
    grid_basis: str
    pue: float
    """Power usage effectiveness of the datacenter: its power over that of the boards."""
    basis: str = "predicted"
    source: str
    """Program and version that predicted the energy."""
    refusal: str = ""
    """Reason why the chip cannot serve the model; empty if it can."""


def predict_token_costs(
    models: str | Iterable[str],
    hardware: str | Iterable[str],
    *,
    engine: str = "vllm",
    devices: int = 1,
    batch: int = 1,
    context_tokens: int = 1024,
    region: str = "world",
    pue: float = 1.0,
) -> tuple[TokenCost, ...]:
    """Return the costs of each model on each chip, one after another; a chip that cannot serve a model is refused.

    A single name stands for a list of one. Raises as `predict_step` does for unknown names, UsageError for a `pue`
    below 1 and for a number of sequences or tokens that is no whole number from 1.
    """
    if isinstance(pue, str) or (ratio := read_numbers("pue", pue)).ndim or not ratio >= 1.0:
        raise UsageError(
            f"pue is {pue!r}, expected a number of at least 1: the power of the datacenter over that of the boards"
        )
    check_names(region=region)
    devices, batch = check_count("devices", devices), check_count("batch", batch)
    context_tokens = check_count("context_tokens", context_tokens)
    grid, names, chips = find_region(region), _list_names("models", models), _list_names("hardware", hardware)
    asked = [
        TokenCost(
            model=model,
            hardware=chip,
            engine=engine,
            devices=devices,
            batch=batch,
            context_tokens=context_tokens,
            region=grid.region,
            gco2_per_kwh=grid.intensity.value,
            grid_year=grid.year,
            grid_basis=grid.intensity.basis,
            pue=float(ratio),
            source=f"joulemap {__version__}",
        )
        for model in names
        for chip in chips
    ]
    steps = [_find_steps(one) for one in asked]
    passes = Passes.of([1.0, batch], tokens=[context_tokens, 1.0], context=[0.0, context_tokens])
    with contextlib.suppress(UnsupportedError):  # `price` finds which of the chips cannot run its model
        evaluate_steps((one, passes) for one in steps if isinstance(one, StepPredictor))
    return tuple(_predict(one, known, passes) for one, known in zip(asked, steps, strict=True))


def write_token_costs(costs: Iterable[TokenCost], path: str | Path) -> None:
    """Write costs as a CSV file with a column per field; a value that is None is empty.

    Raises UsageError for anything else than costs, and for a file that cannot be written; one that joulemap did not
    write is never replaced.
    """
    rows = [costs] if isinstance(costs, TokenCost) else list(costs)
    for one in rows:
        if not isinstance(one, TokenCost):
            raise UsageError(f"the costs have {one!r}, expected what predict_token_costs returns")
    text = io.StringIO()
    writer = csv.DictWriter(text, [one.name for one in attrs.fields(TokenCost)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(attrs.asdict(one) for one in rows)
    write_text(Path(path), text.getvalue())


def _list_names(kind: str, names: str | Iterable[str]) -> tuple[str, ...]:
    """Return names, of which there may be a single one; UsageError for anything else."""
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, Iterable):
        raise UsageError(f"{kind} is {names!r}, expected names")
    listed = tuple(names)
    for one in listed:
        check_names(**{kind: one})
    return listed


def _find_steps(asked: TokenCost) -> StepPredictor | str:
    """Return the steps of a model on a chip, or the reason for none."""
    try:
        return predict_step(asked.model, asked.hardware, engine=asked.engine, devices=asked.devices)
    except UnsupportedError as error:
        return str(error)


def _predict(asked: TokenCost, steps: StepPredictor | str, passes: Passes) -> TokenCost:
    """Return a cost with the numbers of a prompt and a decode step, or with the reason why it has none."""
    if isinstance(steps, str):
        return attrs.evolve(asked, refusal=steps)
    try:
        found = steps.price(passes)
    except UnsupportedError as error:
        return attrs.evolve(asked, refusal=str(error))
    if refusal := next(filter(None, found.refusal.tolist()), ""):
        return attrs.evolve(asked, refusal=refusal)
    grams = MILLION * asked.pue * asked.gco2_per_kwh / J_PER_KWH
    values: dict[str, Any] = {}
    for place, (phase, tokens) in enumerate((("prompt", asked.context_tokens), ("output", asked.batch))):
        for end, joules in (("", found.energy_j), ("_low", found.energy_low_j), ("_high", found.energy_high_j)):
            token_j = float(joules[place]) / tokens
            values |= {f"{phase}_token{end}_j": token_j, f"{phase}_gco2_per_million{end}": token_j * grams}
    return attrs.evolve(asked, **values)
