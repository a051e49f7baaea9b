"""Facts of a comparison from predictions alone, as `joulemap compare` and `joulemap explain` find them in a database.

    configurations ─► totals and half-widths ─► choices, causes and terms ─► sentences of `joulemap.show`

Probabilities are those of stored runs: errors have the same keys, so that shared ones cancel in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from joulemap.ask import Caveat, Choice, Entry, Facts, Quantity, Refusal, Subject, Term, choose, find_decision
from joulemap.ask.cause import share_energies
from joulemap.bundle import load_chips, open_zoo
from joulemap.catalog import ZOO, load_models
from joulemap.construct import ModelRequest
from joulemap.construct.source import resolve_model
from joulemap.domain import LEAST_ASSUMED, METRIC, MOSTLY_STATIC, MetricName, find_model_name
from joulemap.physics import PointColumns
from joulemap.physics.interval.covariance import ErrorColumns, split_errors
from joulemap.physics.interval.half_width import HalfWidths
from joulemap.physics.interval.probability import Powers
from joulemap.physics.interval.standing import Axis, Candidate, Standing, estimate_front, rank_candidates
from joulemap.physics.record.runtime import USUAL_RUNTIME
from joulemap.prediction import Cells, Prediction, evaluate_cells, form_prediction
from joulemap.show.present.category import ON_CHIP
from joulemap.system import FJ_PER_J, frozen

POWERS: Final[Mapping[MetricName, Powers]] = {"energy": Powers(0.0, 1.0), "latency": Powers(1.0, 0.0)}
"""Metric that a comparison decides -> its exponents of latency and energy."""


@frozen(kw_only=True, eq=False)
class Contest:
    """Predictions of one model on several chips, at one precision, batch size and runtime."""

    request: ModelRequest
    chips: tuple[str, ...]
    """Ids of the chips, each once."""
    precision: str
    runtime: str
    found: Prediction
    points: PointColumns
    widths: HalfWidths
    runs: Mapping[int, Subject]
    """Row of a chip that runs the model -> its name."""

    @property
    def among(self) -> tuple[int, ...]:
        """Rows that can be chosen: those of available chips if there are any, otherwise all."""
        return tuple(row for row, run in self.runs.items() if run.is_available) or tuple(self.runs)

    def find_value(self, row: int, metric: MetricName) -> Quantity:
        """Return the value of a chip with its interval."""
        values = {"energy": self.found.energy_j, "latency": self.found.latency_s}
        widths = {"energy": self.widths.energy, "latency": self.widths.latency}
        width = float(widths[metric][row])
        return Quantity(float(values[metric][row]), METRIC[metric].unit, None if np.isnan(width) else width)

    def find_parts(self, row: int) -> dict[str, int]:
        """Return category -> energy in femtojoules, in the order of figures; they sum to the energy of the chip."""
        parts: dict[str, int] = {}
        for name, spent in self.points.category_fj.items():
            joined = ON_CHIP if name in ("unit_memory", "chip_memory") else name
            parts[joined] = parts.get(joined, 0) + int(spent[row])
        return parts

    def rank(self, metric: MetricName, rows: Sequence[int]) -> list[Standing]:
        """Return the standing of each row by a metric, the best first."""
        order = order_rows(self, rows, metric)
        values = np.log([self.find_value(row, metric).value for row in order])
        candidates = [
            Candidate(place=place, run_id=row, powers=POWERS[metric], cost=float(value))
            for place, (row, value) in enumerate(zip(order, values, strict=True))
        ]
        standings = rank_candidates(candidates, self._find_errors(rows))
        return [attrs.evolve(one, place=order[one.place]) for one in standings]

    def choose(self, metric: MetricName, rows: Sequence[int]) -> Choice:
        """Return the best row by a metric, the next one, and rows that are tied with the best."""
        best, *others = self.rank(metric, rows)
        behind = {one.place: one.probability_ahead for one in others}

        def beats(_: int, other: int) -> float | None:
            better = behind[other]
            return None if better is None else 1.0 - better

        values = {one.place: self.find_value(one.place, metric) for one in (best, *others)}
        return choose(metric, values, beats, chance=best.probability_best)

    def find_front(self) -> dict[int, float]:
        """Return row -> probability that no other chip is better in both energy and latency."""
        rows = list(self.runs)
        energy, latency = (
            Axis(
                powers=powers,
                costs=np.log([self.find_value(row, metric).value for row in rows]),
                has_price=False,
            )
            for metric, powers in POWERS.items()
        )
        unpriced = [""] * len(rows), [""] * len(rows), np.zeros(len(rows))
        chances = estimate_front(rows, (latency, energy), unpriced, self._find_errors(rows))
        return dict(zip(rows, chances.tolist(), strict=True))

    def find_assumed(self, row: int) -> tuple[float, float]:
        """Return the share of the energy of a chip whose energies per action are assumed, and that of static power in
        it.
        """
        assumed = {key: int(spent[row]) for key, spent in self.points.spent_fj.items() if key.basis == "assumed"}
        whole, static = (
            sum(assumed.values()),
            sum(one for key, one in assumed.items() if key.common_category == "static"),
        )
        return whole / int(self.points.energy_fj[row]), static / whole if whole else 0.0

    def _find_errors(self, rows: Sequence[int]) -> ErrorColumns:
        shares = {(one.quantity, one.factor): one.share.value for one in load_chips().errors.doubt.complete_shares()}
        return split_errors([self._describe(row) for row in sorted(rows)], dict(sorted(shares.items())))

    def _describe(self, row: int) -> dict[str, Any]:
        """Return the columns of the view `run_errors` for a chip."""
        batch, source, spec = self.request.batch, find_source(self.request), spell_inputs(self.request)
        chip = load_chips().find(self.chips[row])
        runtime = "" if self.runtime == USUAL_RUNTIME else f" {self.runtime}"
        label = f"{chip.id} {self.precision} batch {batch}{runtime}"
        return {
            "run_id": row,
            "latency_half_width": self.widths.latency[row],
            "energy_half_width": self.widths.energy[row],
            "latency_own_half_width": self.widths.latency_own[row],
            "energy_own_half_width": self.widths.energy_own[row],
            "thin_half_width": self.widths.thin[row],
            "engine_numbers": f"{chip.id} {self.precision} {self.precision} ",
            "architecture": chip.architecture,
            "hardware": chip.id,
            "model": source,
            "configuration": f"{batch} {self.precision} {self.runtime}",
            "own": f"{source} {spec} {label} {chip.boundary} {chip.host} {chip.matmul_precision} []",
        }


def find_request(model: str, batch: int) -> ModelRequest:
    """Return a built-in model or a single operator by name; UnknownNameError with the nearest names without one."""
    models = load_models()
    return resolve_model(find_model_name(model, models), models, batch=batch)


def find_source(request: ModelRequest) -> str:
    """Return the source of a workload, as its key has it."""
    if request.kind != "operator":
        return str(open_zoo(ZOO).models[request.model]["source"])
    return f"operator:{request.model.replace('(', ' ').replace(',', ' ').removesuffix(')')}"


def spell_inputs(request: ModelRequest) -> str:
    """Return the inputs of a workload, as its key has them."""
    if request.kind == "operator":
        return f"batch={request.batch}"
    return f"{' '.join(map(str, request.inputs)) or 'example_inputs'} batch={request.batch}"


def hold_contest(request: ModelRequest, chips: Sequence[str], precision: str, runtime: str) -> Contest:
    """Return the predictions of a model on chips; raises like `joulemap.predict`."""
    batch = request.batch or 1
    cells = Cells([(request.model, chip, precision, batch, runtime, "") for chip in chips])
    points, widths, codes = evaluate_cells(cells)
    records = [chip for _, chip, _ in cells.asked]
    return Contest(
        request=request,
        chips=tuple(one.id for one in records),
        precision=cells.asked[0][2].precision,
        runtime=runtime,
        found=form_prediction(points, widths, codes, (len(chips),)),
        points=points,
        widths=widths,
        runs={
            row: Subject(hardware=chip.id, is_available=not chip.unavailable, is_named=True)
            for row, chip in enumerate(records)
            if not points.refusal[row]
        },
    )


def find_facts(contest: Contest) -> Facts:
    """Return the facts of a comparison: choices by energy and latency, terms of the gap, values of each chip, caveats,
    and refused chips.
    """
    among, every = contest.among, tuple(contest.runs)
    choices: list[Choice] = []
    if len(every) > 1:
        choices = [contest.choose(metric, among) for metric in POWERS]
        beyond = [contest.choose(metric, every) for metric in POWERS] if among != every else []
        own = {one.run for one in choices}
        choices += [
            one for one in beyond if one.run not in own and not contest.runs[one.run].is_available
        ]  # chips that cannot be bought and would win
    entries = [
        Entry(runs=(row,), values={metric: contest.find_value(row, metric) for metric in POWERS})
        for row in order_rows(contest, every)
    ]
    decision = find_decision(Facts(asked=tuple(POWERS), runs=contest.runs, facts=tuple(choices)))
    terms = list_terms(contest, *decision.runs) if decision is not None else []
    caveats = list(_find_caveats(contest, choices))
    refusals = [
        Refusal(runs=(row,), reason=str(reason), hardware=(contest.chips[row],))
        for row, reason in enumerate(contest.found.refusal)
        if reason
    ]
    return Facts(asked=tuple(POWERS), runs=contest.runs, facts=(*choices, *terms, *entries, *caveats, *refusals))


def _find_caveats(contest: Contest, choices: Sequence[Choice]) -> Iterator[Caveat]:
    """Yield what the rules `assumed` and `uncalibrated` find, with their weights on the first choice."""
    pair = choices[0].runs[:2] if choices else ()
    own = {row: float(contest.widths.energy_own[row]) for row in contest.runs}
    for row in contest.runs:
        share, static = contest.find_assumed(row)
        if share >= LEAST_ASSUMED:
            mostly = "static" if static >= MOSTLY_STATIC else ""
            yield Caveat(
                kind="assumed",
                runs=(row,),
                values={"energy_fraction": share, "mostly": mostly},
                weight=own[row] * (row in pair),
                move=own[row],
            )
    calibrations = load_chips().calibrations
    without = [row for row in contest.runs if contest.chips[row] not in calibrations]
    if without and len(without) < len(contest.runs):
        widths = {row: float(contest.widths.energy[row]) for row in without}
        doubts = {row: math.sqrt(max(widths[row] ** 2 - own[row] ** 2, 0.0)) for row in without}
        weight = math.hypot(*(doubts[row] for row in pair if row in doubts))
        yield Caveat(kind="uncalibrated", runs=tuple(without), values={}, weight=weight, move=max(doubts.values()))


def order_rows(contest: Contest, rows: Sequence[int], metric: MetricName = "energy") -> list[int]:
    """Return rows by a metric, the best first; equal ones by name."""
    return sorted(rows, key=lambda row: (contest.find_value(row, metric).value, contest.chips[row]))


def list_terms(contest: Contest, first: int, second: int) -> list[Term]:
    """Return the terms of the difference of the second chip and the first, largest first; they sum to it exactly."""
    a, b = contest.find_parts(first), contest.find_parts(second)
    exact = {name: b[name] - a[name] for name in sorted(a) if a[name] or b[name]}
    energies = {name: (a[name] / FJ_PER_J, b[name] / FJ_PER_J) for name in exact}
    return list(share_energies((first, second), energies, exact=exact))


def find_difference(contest: Contest) -> Facts:
    """Return the facts of the difference of the second chip and the first: terms sum to it exactly."""
    first, second = 0, 1
    choice = contest.choose("energy", (first, second))
    choice = attrs.evolve(choice, ahead=None)
    terms = list_terms(contest, first, second)
    entries = [Entry(runs=(row,), values={"energy": contest.find_value(row, "energy")}) for row in (first, second)]
    caveats = _find_caveats(contest, [choice])
    return Facts(asked=("energy",), runs=contest.runs, facts=(choice, *terms, *entries, *caveats))
